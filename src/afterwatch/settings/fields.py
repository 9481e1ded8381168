"""One settings field: its type, its bounds, and how text becomes its value."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


class MismatchError(ValueError):
    """A value does not fit its field; the text says what was expected and never holds the value."""


@dataclass(frozen=True)
class Rule:
    """What a value must be beside its type: in words for a person, and as a question that code can answer."""

    takes: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Field:
    """One key of one section, read from a settings dataclass.

    `project` says what a project file may do: "set", "lower", or "" for nothing.
    """

    section: str
    name: str
    type: Any
    default: Any
    help: str = ""
    ge: float | None = None
    le: float | None = None
    project: str = ""
    rule: Rule | None = None

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def expected(self) -> str:
        """What a person should write, such as `a whole number from 1 to 50`."""
        return self.rule.takes if self.rule else _describe(self.type) + _bounds(self.ge, self.le)

    def parse(self, text: str) -> Any:
        """Return the value of `text` as typed in a shell or the environment, or raise MismatchError."""
        return self.check(_from_text(text.strip(), self.type))

    def check(self, value: Any) -> Any:
        """Return `value` (from TOML or code) as the field's type, in bounds, or raise MismatchError."""
        fitted = _fit(value, self.type)
        if isinstance(fitted, (int, float)) and not isinstance(fitted, bool):
            low = self.ge is not None and fitted < self.ge
            high = self.le is not None and fitted > self.le
            if low or high or fitted != fitted:
                raise MismatchError(f"expected {self.expected}")
        if self.rule is not None and not self.rule.fits(fitted):
            raise MismatchError(f"expected {self.expected}")
        return fitted


def fields_of(sections: Mapping[str, type], rules: Mapping[str, Rule] | None = None) -> dict[str, Field]:
    """Return every field of every section, keyed `section.name` as `rules` are."""
    found: dict[str, Field] = {}
    rules = rules or {}
    for section, cls in sections.items():
        hints = typing.get_type_hints(cls)
        for item in dataclasses.fields(cls):
            rule = rules.get(f"{section}.{item.name}")
            field = Field(section, item.name, hints[item.name], _default(item), **_extras(item.metadata), rule=rule)
            found[field.key] = field
    return found


def _extras(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: metadata[name] for name in ("help", "ge", "le", "project") if name in metadata}


def _default(item: "dataclasses.Field[Any]") -> Any:
    if item.default is not dataclasses.MISSING:
        return item.default
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    raise TypeError(f"setting {item.name!r} has no default; every setting needs one")


def _members(kind: Any) -> tuple[Any, bool]:
    """Return (type without None, whether None is allowed)."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return kind, False
    parts = [part for part in typing.get_args(kind) if part is not types.NoneType]
    return parts[0], len(parts) < len(typing.get_args(kind))


def _describe(kind: Any) -> str:
    kind, optional = _members(kind)
    if typing.get_origin(kind) is Literal:
        words = "one of " + ", ".join(str(word) for word in typing.get_args(kind))
    elif typing.get_origin(kind) is tuple:
        words = "a list of texts" if typing.get_args(kind)[0] is str else "a list of numbers"
    else:
        words = {bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}.get(kind, "text")
    return words + (", or empty" if optional else "")


def _bounds(ge: float | None, le: float | None) -> str:
    if ge is not None and le is not None:
        return f" from {ge} to {le}"
    if ge is not None:
        return f" of at least {ge}"
    return f" of at most {le}" if le is not None else ""


def _from_text(text: str, kind: Any) -> Any:
    kind, optional = _members(kind)
    if optional and text == "":
        return None
    if kind is bool:
        lowered = text.lower()
        if lowered not in _TRUE + _FALSE:
            raise MismatchError("expected true or false")
        return lowered in _TRUE
    if kind in (int, float):
        return _number(text, kind)
    if typing.get_origin(kind) is tuple:
        return _list(text, typing.get_args(kind)[0])
    return text


def _number(text: str, kind: Any) -> Any:
    try:
        return kind(text)
    except ValueError as exc:
        raise MismatchError(f"expected {_describe(kind)}") from exc


def _list(text: str, part: Any) -> list[Any]:
    if not text.startswith("["):
        return [_from_text(word.strip(), part) for word in text.split(",") if word.strip()]
    import json

    try:
        parsed = json.loads(text)
    except ValueError as exc:
        raise MismatchError('expected a list such as a,b or ["a", "b"]') from exc
    return list(parsed)


def _fit(value: Any, kind: Any) -> Any:
    kind, optional = _members(kind)
    if value is None and optional:
        return None
    origin = typing.get_origin(kind)
    if origin is tuple and isinstance(value, (list, tuple)):
        part = typing.get_args(kind)[0]
        return tuple(_fit(item, part) for item in value)
    if origin is Literal and value in typing.get_args(kind):
        return value
    if origin is None and _is(value, kind):
        if isinstance(value, str) and not _whole(value):
            raise MismatchError("expected whole characters")
        return kind(value)
    raise MismatchError(f"expected {_describe(kind)}")


def _whole(text: str) -> bool:
    """Whether a text can be written to a file: a byte that is no UTF-8 comes in as half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is(value: Any, kind: Any) -> bool:
    if kind is Path:
        return isinstance(value, (str, Path))
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is kind
