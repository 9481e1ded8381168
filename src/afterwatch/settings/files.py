"""The settings files: find them, read them, and write one value without losing a comment."""

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from afterwatch.errors import Unavailable, UserError

PROJECT_FILE = ".afterwatch.toml"
MAX_BYTES = 1_000_000  # a settings file of a megabyte is a mistake, or an attempt to stall us


def find_project_file(start: Path) -> Path | None:
    """Return the nearest project file from `start` up to its git root, or None.

    Outside a git tree only `start` itself is looked at: a file left in a shared parent is nobody's project.
    """
    start = Path(os.path.abspath(start))
    chain = [start, *start.parents]
    root = next((folder for folder in chain if (folder / ".git").exists()), start)
    for folder in chain[: chain.index(root) + 1]:
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    return None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of one settings file; a file that does not exist has none.

    UserError names the file and the line if it is no TOML; Unavailable if it cannot be read.
    """
    import tomllib

    text = _read(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UserError(
            f"{path} is not valid TOML: {exc}",
            remedy=f"correct the line in {path}",
            code="bad_config_file",
        ) from exc


def _read(path: Path) -> str:
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UserError(f"{path} is not a regular file", remedy="put a TOML file there, or remove it")
        if info.st_size > MAX_BYTES:
            raise UserError(f"{path} is larger than {MAX_BYTES} bytes", remedy="check what it holds")
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError as exc:
        raise UserError(f"{path} is not UTF-8 text", remedy=f"save {path} as UTF-8") from exc
    except OSError as exc:
        raise Unavailable(f"{path} cannot be read: {exc.strerror}", remedy="check its permissions") from exc


def write_value(path: Path, section: str, name: str, value: Any) -> None:
    """Set one value, see `write_values`."""
    write_values(path, section, {name: value})


def write_values(path: Path, section: str, values: Mapping[str, Any]) -> None:
    """Set values of one section in the file at `path`, keeping comments; replaces the file at once, mode 0600.

    Writers wait for each other up to ten seconds. Unavailable if the file cannot be written.
    """
    from filelock import FileLock, Timeout

    target = Path(os.path.realpath(path))  # a linked file stays a link
    try:
        with FileLock(target.with_name(target.name + ".lock"), timeout=10, mode=0o600):
            _replace(target, _edited(target, section, values))
    except Timeout as exc:
        raise Unavailable(f"{path} is being written by another process", remedy="try again") from exc
    except OSError as exc:
        raise Unavailable(f"{path} cannot be written: {exc.strerror}", remedy="check its folder") from exc


def _edited(path: Path, section: str, values: Mapping[str, Any]) -> str:
    import tomlkit

    document = tomlkit.parse(_read(path))
    table = document.setdefault(section, tomlkit.table())
    for name, value in values.items():
        if value is None:
            table.pop(name, None)
        else:
            table[name] = _plain(value)
    return tomlkit.dumps(document)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _replace(path: Path, text: str) -> None:
    import tempfile

    handle, temporary = tempfile.mkstemp(prefix=".config-", suffix=".tmp", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # gone when the replacement went well
            os.unlink(temporary)
