"""The folders and files of one user's installation."""

import contextlib
import errno
import os
import stat
from pathlib import Path

from afterwatch.errors import Unavailable, UserError

PRIVATE_DIR = 0o700


def home() -> Path:
    """Return the folder that holds everything of this user: `$AFTERWATCH_HOME` or `~/.afterwatch`.

    Nothing is created. UserError if neither the variable nor a home directory is there.
    """
    chosen = os.environ.get("AFTERWATCH_HOME", "").strip()
    try:
        return Path(os.path.abspath(Path(chosen or "~/.afterwatch").expanduser()))
    except RuntimeError as exc:
        raise UserError("no home directory is known", remedy="set AFTERWATCH_HOME to a folder") from exc


def cache_dir() -> Path:
    """Return the folder for what can be rebuilt; not created."""
    return home() / "cache"


def spaces_dir() -> Path:
    """Return the folder that holds one folder a space; not created."""
    return home() / "spaces"


def config_file() -> Path:
    """Return the path of the user's own settings; it may not exist."""
    return home() / "config.toml"


def site_config_file() -> Path:
    """Return the path of the administrator's settings: `$AFTERWATCH_SITE_CONFIG` or the system's own."""
    chosen = os.environ.get("AFTERWATCH_SITE_CONFIG", "").strip()
    return Path(chosen).expanduser() if chosen else Path("/etc/afterwatch/config.toml")


def ensure_home() -> Path:
    """Create the home folder if it is missing, with mode 0700, and return it.

    A folder of ours that others may enter is closed to them. UserError if the path is no folder or belongs
    to another user; Unavailable if it cannot be written.
    """
    folder = home()
    try:
        folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        info = folder.stat()
    except FileExistsError as exc:
        raise _no_folder(folder) from exc
    except OSError as exc:
        raise _unusable(folder, exc) from exc
    _require_own(folder, info)
    _close_to_others(folder, info)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unusable(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return folder


def usable_home() -> Path:
    """Return the home folder for looking: it need not be there, nor be writable, and nothing is created.

    A folder of ours that can be written is closed to others. UserError as by `ensure_home`; Unavailable if it cannot
    be entered.
    """
    folder = home()
    try:
        info = folder.stat()
    except FileNotFoundError:
        return folder
    except OSError as exc:
        raise _unusable(folder, exc) from exc
    if not stat.S_ISDIR(info.st_mode):
        raise _no_folder(folder)
    _require_own(folder, info)
    if not os.access(folder, os.R_OK | os.X_OK):
        raise _unusable(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    if os.access(folder, os.W_OK):
        with contextlib.suppress(Unavailable):
            _close_to_others(folder, info)
    return folder


def _no_folder(folder: Path) -> UserError:
    return UserError(f"{folder} is not a folder", remedy="move it away or set AFTERWATCH_HOME")


def _require_own(folder: Path, info: os.stat_result) -> None:
    if not hasattr(os, "getuid") or info.st_uid == os.getuid():
        return
    # A folder someone else owns could be swapped under us, whatever its mode says.
    raise UserError(
        f"{folder} belongs to user id {info.st_uid}, not to you",
        remedy="set AFTERWATCH_HOME to a folder of your own",
    )


def _close_to_others(folder: Path, info: os.stat_result) -> None:
    if os.name != "posix" or not stat.S_IMODE(info.st_mode) & 0o077:
        return
    try:
        folder.chmod(stat.S_IMODE(info.st_mode) & PRIVATE_DIR)  # nothing is added: it may be closed to us on purpose
    except OSError as exc:
        raise _unusable(folder, exc) from exc


def _unusable(folder: Path, exc: OSError) -> Unavailable:
    return Unavailable(
        f"{folder} cannot be used: {exc.strerror or exc}",
        remedy="set AFTERWATCH_HOME to a folder you can write",
    )
