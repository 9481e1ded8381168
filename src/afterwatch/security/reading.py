"""Reading a file somebody else named: never a key, a pipe, a device, or something huge."""

import fnmatch
import os
import stat
from pathlib import Path

from afterwatch.errors import Unavailable, UserError
from afterwatch.security import sensitive_paths as table
from afterwatch.settings.paths import home


def sensitive_kind(path: str | Path) -> str | None:
    """Return what kind of secret `path` may hold, or None.

    Both the path as written (variables and `~` expanded) and the file it leads to are looked at. Nothing is
    opened; the file need not exist.
    """
    lexical = _expand(path)
    return _kind(lexical) or _kind(os.path.realpath(lexical))


def safe_read(path: str | Path, *, max_bytes: int, encoding: str = "utf-8") -> str:
    """Return the text of a regular file of at most `max_bytes` bytes.

    UserError, never with the content, if the path may hold a secret, is no regular file, does not exist, is
    too large, or is not text in `encoding`. Unavailable if the system cannot read it. A hard link to a key
    under an innocent name is not recognised.
    """
    lexical = _expand(path)
    _refuse_sensitive(lexical, path)
    resolved = os.path.realpath(lexical)
    _refuse_sensitive(resolved, path)
    descriptor = _open(resolved, path)
    try:
        _refuse_swapped(descriptor, resolved, path)
        data = _read(descriptor, max_bytes, path)
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    finally:
        os.close(descriptor)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise UserError(f"{path} is not {encoding} text", remedy=f"save it as {encoding}") from exc


def _expand(path: str | Path) -> str:
    text = os.fspath(path)
    if "\0" in text:
        raise UserError("a path may not hold a NUL character", remedy="check the path")
    return os.path.abspath(os.path.expanduser(os.path.expandvars(text)))


def _kind(path: str) -> str | None:
    folded = path.replace(os.sep, "/").lower()
    name = folded.rsplit("/", 1)[-1]
    for folder, kind in table.FOLDERS:
        if f"/{folder}/" in f"{folded}/":
            return kind
    for pattern, kind in table.SYSTEM:
        if fnmatch.fnmatchcase(folded, pattern):
            return kind
    return _own_kind(folded) or _name_kind(name)


def _own_kind(folded: str) -> str | None:
    for base in {str(home()), os.path.realpath(home())}:
        prefix = base.replace(os.sep, "/").lower() + "/"
        if folded.startswith(prefix):
            inside = folded[len(prefix) :]
            return next((kind for glob, kind in table.OWN_HOME if fnmatch.fnmatchcase(inside, glob)), None)
    return None


def _name_kind(name: str) -> str | None:
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in table.NOT_SECRET):
        return None
    return next((kind for pattern, kind in table.NAMES if fnmatch.fnmatchcase(name, pattern)), None)


def _refuse_sensitive(resolved: str, shown: str | Path) -> None:
    kind = _kind(resolved)
    if kind is not None:
        raise UserError(
            f"{shown} is not read: it may hold a secret ({kind})",
            remedy="copy the part that is needed into another file",
            code="sensitive_path",
        )


def _open(resolved: str, shown: str | Path) -> int:
    # O_NONBLOCK: opening a pipe without a writer would hang before it can be refused.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not stat.S_ISREG(os.lstat(resolved).st_mode):  # opening a device may already act on it
            raise _irregular(shown)
        return os.open(resolved, flags)
    except FileNotFoundError as exc:
        raise UserError(f"{shown} does not exist", remedy="check the path") from exc
    except OSError as exc:
        raise _unreadable(shown, exc) from exc


def _refuse_swapped(descriptor: int, resolved: str, shown: str | Path) -> None:
    """Refuse if what was opened is not what was checked: a folder on the way may have become a link."""
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        raise _irregular(shown)
    actual = _opened_path(descriptor)
    if actual is not None:
        _refuse_sensitive(actual, shown)
    elif os.path.realpath(resolved) != resolved or not os.path.samestat(info, os.lstat(resolved)):
        raise UserError(f"{shown} changed while it was opened", remedy="try again")


def _opened_path(descriptor: int) -> str | None:
    """Return the path the kernel knows for an open file, or None where it does not tell."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")
    except OSError:
        return None


def _read(descriptor: int, max_bytes: int, shown: str | Path) -> bytes:
    parts: list[bytes] = []
    left = max_bytes + 1  # one more than allowed tells a full file from a longer one, even while it grows
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise UserError(
            f"{shown} is larger than {max_bytes} bytes",
            remedy="split it, or give a smaller file",
            code="too_large",
        )
    return b"".join(parts)


def _irregular(shown: str | Path) -> UserError:
    return UserError(f"{shown} is not a regular file", remedy="give the path of a plain file")


def _unreadable(shown: str | Path, exc: OSError) -> Unavailable:
    return Unavailable(f"{shown} cannot be read: {exc.strerror or exc}", remedy="check its permissions")
