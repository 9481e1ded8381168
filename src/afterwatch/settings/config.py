"""The loader: one value a key, from the strongest place that names it.

flags > environment > project file (allowed keys only) > user file > site file > defaults;
what the site file puts under `[enforce.<section>]` wins over all of them.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from afterwatch.errors import UserError
from afterwatch.settings.fields import Field, MismatchError, Rule, fields_of
from afterwatch.settings.files import find_project_file, read_toml, write_value, write_values
from afterwatch.settings.paths import config_file, ensure_home, site_config_file

T = TypeVar("T")

PREFIX = "AFTERWATCH_"
ENFORCE = "enforce"
RESERVED = ("AFTERWATCH_HOME", "AFTERWATCH_SITE_CONFIG")


@dataclass(frozen=True)
class Setting:
    """One resolved value: `origin` is the kind of place, `source` the very file, variable or flag."""

    field: Field
    value: Any
    origin: str = "default"
    source: str = ""


class Config:
    """Every setting of the given sections, resolved once."""

    def __init__(self, sections: Mapping[str, type], settings: Mapping[str, Setting]) -> None:
        self._sections = dict(sections)
        self._settings = dict(settings)

    @classmethod
    def load(
        cls,
        sections: Mapping[str, type],
        flags: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        *,
        cwd: Path | None = None,
        complete: bool = True,
        rules: Mapping[str, Rule] | None = None,
    ) -> "Config":
        """Resolve the settings of `sections` (name → frozen dataclass); `rules` say what their values must be.

        `flags` maps `section.key` to text or a value; None means not given. `env` defaults to the process
        environment, `cwd` (where the project file is looked for) to the working directory. With
        `complete=False` the files may hold sections that are not in `sections`; unknown keys of known
        sections stay errors. UserError names the file, variable or flag that is wrong.
        """
        loader = _Loader(fields_of(sections, rules), complete)
        loader.site(site_config_file())
        loader.file(config_file(), "user file")
        loader.project(find_project_file(cwd or Path.cwd()))
        loader.environment(os.environ if env is None else env)
        loader.flags(flags or {})
        loader.enforce()
        return cls(sections, loader.settings)

    def section(self, cls: type[T]) -> T:
        """Return the resolved dataclass of type `cls`."""
        name = next(name for name, known in self._sections.items() if known is cls)
        chosen = {
            setting.field.name: setting.value for setting in self._settings.values() if setting.field.section == name
        }
        return cls(**chosen)

    def setting(self, key: str) -> Setting:
        """Return value, origin and field of `section.key`; UserError names the nearest if there is none."""
        found = self._settings.get(key)
        if found is None:
            raise UserError(f"unknown setting {key!r}", remedy=_nearest(key, self._settings))
        return found

    def settings(self) -> tuple[Setting, ...]:
        """Return every setting, by key."""
        return tuple(self._settings[key] for key in sorted(self._settings))

    def value(self, key: str) -> Any:
        """Return the value of `section.key`."""
        return self.setting(key).value

    def origin(self, key: str) -> str:
        """Return where the value came from: default, site file, user file, project file, environment, flag
        or enforced by site."""
        return self.setting(key).origin

    def set_value(self, key: str, text: str) -> Any:
        """Check `text`, write it to the user file and return the value. This object keeps what it resolved.

        UserError if the key is unknown, the text does not fit, or the site enforces the key.
        """
        setting = self.setting(key)
        value = _writable(setting, text)
        ensure_home()
        write_value(config_file(), setting.field.section, setting.field.name, value)
        return value

    def set_values(self, section: str, texts: Mapping[str, str]) -> None:
        """The same for some settings of one section (name → text): all are written at once, or none."""
        values = {name: _writable(self.setting(f"{section}.{name}"), text) for name, text in texts.items()}
        ensure_home()
        write_values(config_file(), section, values)


class _Loader:
    """Reads the places from the weakest to the strongest; a later one replaces an earlier one."""

    def __init__(self, fields: dict[str, Field], complete: bool) -> None:
        self._fields = fields
        self._names = {field.section for field in fields.values()}
        self._complete = complete
        self._enforced: list[tuple[Field, Any, str]] = []
        self.settings = {key: Setting(field, field.default) for key, field in fields.items()}

    def site(self, path: Path) -> None:
        tables = read_toml(path)
        enforced = tables.pop(ENFORCE, {})
        self._apply(tables, str(path), "site file")
        self._enforced = list(self._entries(enforced, str(path), f"{ENFORCE}."))

    def file(self, path: Path, origin: str) -> None:
        tables = read_toml(path)
        if ENFORCE in tables:
            raise UserError(f"{path}: only the site file may enforce settings", remedy="remove [enforce]")
        self._apply(tables, str(path), origin)

    def project(self, path: Path | None) -> None:
        if path is None:
            return
        # Whoever wrote the repository wrote this file: it may narrow, never widen, what the user allows.
        for field, value, where in self._entries(read_toml(path), str(path)):
            if field.project not in ("set", "lower"):
                raise UserError(
                    f"{where}: a project file may not set {field.key}",
                    remedy=f"move it to your own settings: afterwatch config set {field.key} VALUE",
                    code="not_for_projects",
                )
            if field.project == "set" or value < self.settings[field.key].value:
                self.settings[field.key] = Setting(field, value, "project file", where)

    def environment(self, env: Mapping[str, str]) -> None:
        known = {_variable(field): field for field in self._fields.values()}
        for name, text in env.items():
            if name in known:
                self._put_text(known[name], text, "environment", name)
            elif name not in RESERVED and self._misspelt(name):
                raise UserError(f"unknown environment variable {name}", remedy=_nearest(name, known))

    def flags(self, flags: Mapping[str, Any]) -> None:
        for key, value in flags.items():
            field = self._fields.get(key)
            if field is None:
                raise UserError(f"unknown setting {key!r}", remedy=_nearest(key, self._fields))
            flag = "--" + field.name.replace("_", "-")
            if isinstance(value, str):
                self._put_text(field, value, "flag", flag)
            elif value is not None:
                self.settings[key] = Setting(field, _checked(field, value, flag), "flag", flag)

    def enforce(self) -> None:
        for field, value, where in self._enforced:
            self.settings[field.key] = Setting(field, value, "enforced by site", where)

    def _misspelt(self, name: str) -> bool:
        return any(name.startswith(f"{PREFIX}{section.upper()}_") for section in self._names)

    def _put_text(self, field: Field, text: str, origin: str, source: str) -> None:
        try:
            self.settings[field.key] = Setting(field, field.parse(text), origin, source)
        except MismatchError as exc:
            raise _bad(field, source, exc) from exc

    def _apply(self, tables: Mapping[str, Any], where: str, origin: str) -> None:
        for field, value, source in self._entries(tables, where):
            self.settings[field.key] = Setting(field, value, origin, source)

    def _entries(self, tables: Any, where: str, prefix: str = "") -> Iterator[tuple[Field, Any, str]]:
        if not isinstance(tables, Mapping):
            raise UserError(f"{where}: {prefix.rstrip('.')} must be a table", remedy="write [enforce.memory]")
        for section, table in tables.items():
            if section not in self._names:
                self._unknown_section(section, where, prefix)
                continue
            if not isinstance(table, Mapping):
                raise UserError(f"{where}: {prefix}{section} must be a table", remedy=f"write [{prefix}{section}]")
            for name, value in table.items():
                field = self._fields.get(f"{section}.{name}")
                if field is None:
                    key = f"{section}.{name}"
                    raise UserError(
                        f"{where}: unknown key {prefix}{key}",
                        remedy=_nearest(key, self._fields),
                        code="unknown_key",
                    )
                yield field, _checked(field, value, where), where

    def _unknown_section(self, section: str, where: str, prefix: str) -> None:
        if self._complete:
            raise UserError(
                f"{where}: unknown section [{prefix}{section}]",
                remedy=_nearest(section, self._names),
                code="unknown_section",
            )


def _variable(field: Field) -> str:
    return f"{PREFIX}{field.section}_{field.name}".upper()


def _checked(field: Field, value: Any, where: str) -> Any:
    try:
        return field.check(value)
    except MismatchError as exc:
        raise _bad(field, where, exc) from exc


def _writable(setting: Setting, text: str) -> Any:
    if setting.origin == "enforced by site":
        raise UserError(
            f"{setting.field.key} is enforced by {setting.source}",
            remedy="ask whoever administers this machine",
            code="enforced",
        )
    try:
        return setting.field.parse(text)
    except MismatchError as exc:
        raise _bad(setting.field, "the value given", exc) from exc


def _bad(field: Field, where: str, exc: MismatchError) -> UserError:
    return UserError(
        f"{where}: {field.key} does not fit: {exc}",
        remedy=f"{field.key} takes {field.expected}; the default is {field.default!r}",
        code="bad_value",
    )


def _nearest(word: str, known: "Mapping[str, Any] | set[str]") -> str:
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}? `afterwatch config list` shows every setting"
    return "`afterwatch config list` shows every setting"
