"""Where a space lives on disk, and what kind of disk that is. Standard library only."""

import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


def make_folder(folder: Path) -> None:
    """Create the folder of a space, closed to others.

    Raises:
        Unavailable: the disk is read-only, or a network file system.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Unavailable(
            f"cannot create {folder}: {error.strerror}",
            remedy="make the home writable, or set AFTERWATCH_HOME to a folder that is",
            code="read_only",
        ) from error
    refuse_network(folder, mount_table())


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
