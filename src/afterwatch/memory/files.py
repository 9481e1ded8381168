"""Where a space lives on disk, and what kind of disk that is. Standard library only."""

import errno
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory.model import check_space

DATABASE = "memory.db"
NETWORK_KINDS = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "cephfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "glusterfs",
        "lustre",
        "gpfs",
        "9p",
        "fuse.s3fs",
        "beegfs",
        "orangefs",
        "ocfs2",
        "afpfs",
        "webdav",
        "davfs",
        "fuse.rclone",
    ]
)
"""File systems whose locks SQLite cannot trust (sqlite.org/howtocorrupt.html, section 2.1)."""

_ESCAPE = re.compile(r"\\([0-7]{3})")
"""How the table writes blanks and backslashes of a path."""

_CODES = {
    "SQLITE_FULL": (
        "disk_full",
        "the disk is full; nothing of this write was kept",
        "free space, then try again",
    ),
    "SQLITE_BUSY": (
        "busy",
        "another process has held the memory store for too long",
        "try again; see who uses it",
    ),
    "SQLITE_LOCKED": (
        "busy",
        "another process has held the memory store for too long",
        "try again; see who uses it",
    ),
    "SQLITE_READONLY": (
        "read_only",
        "the memory store cannot be written",
        "check owner and mode of the home folder",
    ),
    "SQLITE_CANTOPEN": (
        "cannot_open",
        "the memory store cannot be opened",
        "check owner and mode of the home folder",
    ),
    "SQLITE_PERM": (
        "cannot_open",
        "the memory store cannot be opened",
        "check owner and mode of the home folder",
    ),
    "SQLITE_IOERR": (
        "io_error",
        "the disk under the memory store reports an error",
        "check the disk, then restore",
    ),
    "SQLITE_CORRUPT": (
        "damaged",
        "the memory store is damaged",
        "run `afterwatch memory restore` with a backup",
    ),
    "SQLITE_NOTADB": (
        "damaged",
        "the file is no memory store",
        "run `afterwatch memory restore` with a backup",
    ),
}


def database_path(home: Path, space: str) -> Path:
    """`<home>/spaces/<kind>[/<id>]/memory.db`.

    Raises:
        UserError: the name is no space.
    """
    return home.joinpath("spaces", *check_space(space).split(":"), DATABASE)


def cache_in(home: Path) -> Path:
    """The folder of a home for what can be rebuilt. A home that is not there has none: to look makes no home."""
    return (home if home.is_dir() else Path(os.devnull)) / "cache"


def parts_of(path: Path) -> list[Path]:
    """The file of a space, and what SQLite keeps beside it, as far as they are there."""
    return [part for part in (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm")) if part.exists()]


def prepare_database(path: Path) -> None:
    """Create the file of a new space, empty but whole; refuse one that has lost its content.

    It is made under another name: whatever interrupts that, no file without content can come from it.

    Raises:
        Unavailable: damage, a full or read-only disk, or a network file system.
    """
    if path.exists() and path.stat().st_size:
        return
    if parts_of(path):
        raise Unavailable(
            f"the memory store {path} has lost its content", remedy=_CODES["SQLITE_CORRUPT"][2], code="damaged"
        )
    make_folder(path.parent)
    try:
        handle, name = tempfile.mkstemp(prefix=".new-", suffix=".db", dir=path.parent)  # mode 0600
    except OSError as error:
        raise _not_created(path, error) from error
    os.close(handle)
    try:
        with plain_errors(), closing(sqlite3.connect(name, isolation_level=None)) as connection:
            connection.execute("PRAGMA user_version = 0")  # writes the first page, or says why not
            connection.execute("PRAGMA journal_mode = WAL")
        with suppress(OSError):  # another process was faster, or a disk without links: then the store creates it
            os.link(name, path)
    finally:
        for part in parts_of(Path(name)):
            part.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create the folder of a space and those above it, closed to others.

    Raises:
        Unavailable: the disk is read-only, or a network file system.
    """
    try:
        for missing in reversed([one for one in folder.parents if not one.exists()]):
            missing.mkdir(exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise _not_created(folder, error) from error
    refuse_network(folder, mount_table())


def _not_created(path: Path, error: OSError) -> Unavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        code, message, remedy = _CODES["SQLITE_FULL"]
        return Unavailable(message, remedy=remedy, code=code)
    return Unavailable(
        f"cannot create {path}: {error.strerror}",
        remedy="make the home writable, or set AFTERWATCH_HOME to a folder that is",
        code="read_only",
    )


def mount_table() -> str:
    """The mounts of this machine as text (`/proc/self/mounts` form), empty where there is none."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        return Path("/proc/self/mounts").read_text(errors="replace")
    except OSError:
        return ""


def refuse_network(folder: Path, mounts: str) -> None:
    """Refuse a folder on a network file system, whose locks would let two writers through.

    Raises:
        Unavailable: the folder lies on such a mount.
    """
    kind = _kind_of(folder, mounts)
    if kind in NETWORK_KINDS:
        raise Unavailable(
            f"{folder} lies on a network file system ({kind}); its locks are not safe for memory",
            remedy="set AFTERWATCH_HOME to a local disk",
            code="network_file_system",
        )


def _kind_of(folder: Path, mounts: str) -> str:
    real = os.path.realpath(folder)
    best, kind = "", ""
    for line in mounts.splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        point = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), parts[1])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, parts[2]
    return kind


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn SQLite's failures into ours: what happened, and the next step. Never the statement or its values."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise UserError("half a character (a lone surrogate) cannot stand in a name", code="bad_text") from error
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        for prefix, (code, message, remedy) in _CODES.items():
            if name.startswith(prefix):
                raise Unavailable(message, remedy=remedy, code=code) from error
        if isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error):
            raise Unavailable(
                _CODES["SQLITE_CORRUPT"][1], remedy=_CODES["SQLITE_CORRUPT"][2], code="damaged"
            ) from error
        raise
