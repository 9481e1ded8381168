"""What every test stands on: a home of its own, no network, no luck, and no test skipped unseen."""

import ipaddress
import os
import platform
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from hypothesis import settings

from afterwatch.cli.view import MARKERS

NO_SKIPS = "AFTERWATCH_NO_SKIPS"
HOMES = {
    "AFTERWATCH_HOME": "afterwatch",
    "HOME": "home",
    "USERPROFILE": "home",
    "APPDATA": "home/appdata",
    "LOCALAPPDATA": "home/appdata",
    "XDG_CONFIG_HOME": "home/.config",
    "XDG_DATA_HOME": "home/.local/share",
    "XDG_STATE_HOME": "home/.local/state",
    "XDG_CACHE_HOME": "home/.cache",
    "XDG_RUNTIME_DIR": "home/.run",
}

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background; commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


# --- a home of its own -----------------------------------------------------------------------------


def move_home(root: Path) -> dict[str, str]:
    """The variables that put every folder a program may call home below `root`; makes the folders."""
    moved = {name: root / below for name, below in HOMES.items()}
    for name, path in moved.items():
        if name != "AFTERWATCH_HOME":  # the product makes its own folder, with its own rights
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {name: str(path) for name, path in moved.items()}


def ours() -> list[str]:
    return [name for name in os.environ if name.startswith("AFTERWATCH_")]


@pytest.fixture(autouse=True)
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Own home for each test and no AFTERWATCH_* variable; fails a test that reached for the network."""
    for name in (*ours(), *(marker.variable for marker in MARKERS)):  # who runs the tests must not change them
        monkeypatch.delenv(name, raising=False)
    for name, value in move_home(tmp_path / "house").items():
        monkeypatch.setenv(name, value)
    attempts.clear()
    yield tmp_path / "house"
    tried, attempts[:] = list(attempts), []
    # A broad handler may have swallowed the error, hence the second look.
    assert not tried, f"this test reached for the network: {', '.join(tried)}"


# --- no network ------------------------------------------------------------------------------------


class NetworkUseError(RuntimeError):
    """A test reached beyond loopback. No OSError, lest the code under test takes it for an outage."""


attempts: list[str] = []
guarding = False


def is_here(host: object) -> bool:
    """Whether a host, as given to the socket module, is this machine's loopback."""
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if text is None or text in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(text).partition("%")[0]).is_loopback
    except ValueError:
        return False


def reached(event: str, args: tuple[Any, ...]) -> object:
    """The host that a socket event reaches for, or None if it needs no network."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        made, address = args
        outward = made.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple)
        return address[0] if outward else None
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        return args[0]
    return None


def guard(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook sees every socket call of the process, however the socket was made."""
    if not guarding or not event.startswith("socket."):
        return
    host = reached(event, args)
    if not is_here(host):
        attempts.append(f"{event} {host}")
        raise NetworkUseError(f"{event} to {host}: tests stay on loopback")


sys.addaudithook(guard)


# --- the session -----------------------------------------------------------------------------------


class SkipWatch:
    """Collects what was skipped, and fails the session for it if that was asked."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.skipped: list[str] = []

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            place = report.longrepr
            reason = place[2] if isinstance(place, tuple) else str(place)
            self.skipped.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.strict and self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        verdict = f"FAILED, {NO_SKIPS}=1 allows no skipped test" if self.strict else "skipped"
        for line in self.skipped:
            terminalreporter.write_line(f"{verdict}: {line}", red=self.strict, yellow=not self.strict)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help=f"fail if a test is skipped (or {NO_SKIPS}=1)")


def pytest_configure(config: pytest.Config) -> None:
    """Moves the home before any fixture of wider scope than one test runs."""
    global guarding
    strict = bool(config.getoption("--no-skips")) or os.environ.get(NO_SKIPS) == "1"
    config.pluginmanager.register(SkipWatch(strict), "skip-watch")
    before = dict(os.environ)
    root = Path(tempfile.mkdtemp(prefix="afterwatch-tests-"))
    for name in ours():
        del os.environ[name]
    os.environ.update(move_home(root))
    guarding = True
    config.add_cleanup(lambda: leave(root, before))


def leave(root: Path, before: Mapping[str, str]) -> None:
    global guarding
    guarding = False
    for name in set(ours()) | set(HOMES):
        os.environ.pop(name, None)
    os.environ.update(before)
    shutil.rmtree(root, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Written by hand, because pytest drops header lines under -q."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        python = f"{platform.python_implementation()} {platform.python_version()}"
        reporter.write_line(f"SQLite {sqlite3.sqlite_version}, {python}, {platform.system()}")


# --- the real command ------------------------------------------------------------------------------


class Result(NamedTuple):
    """What a run of the command gave: exit status and decoded output."""

    code: int
    stdout: str
    stderr: str


class Run(Protocol):
    """`afterwatch("memory", "add", "text")`; a variable given as None is taken out of the environment."""

    def __call__(
        self,
        *args: str,
        stdin: str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = 120,
    ) -> Result: ...


def command() -> list[str]:
    """The installed script beside this Python, else the module."""
    script = Path(sys.executable).with_name("afterwatch.exe" if os.name == "nt" else "afterwatch")
    return [str(script)] if script.exists() else [sys.executable, "-m", "afterwatch.cli"]


def environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The environment of a child: that of this test, plain output of fixed width, then `changes`."""
    plain: dict[str, str | None] = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PYTHONUTF8": "1"}
    merged = {**os.environ, **plain, **(changes or {})}
    return {name: value for name, value in merged.items() if value is not None}


@pytest.fixture
def afterwatch(house: Path, tmp_path: Path) -> Callable[..., Result]:
    """Runs the real command in a process of its own, in the home of this test. See `Run`."""
    work = tmp_path / "cwd"
    work.mkdir(exist_ok=True)

    def run(
        *args: str,
        stdin: str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = 120,
    ) -> Result:
        feed: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        done = subprocess.run(
            [*command(), *args],
            capture_output=True,
            encoding="utf-8",
            env=environment(env),
            cwd=cwd or work,
            timeout=timeout,
            check=False,
            **feed,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run
