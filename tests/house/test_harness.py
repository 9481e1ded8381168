"""Law: no test touches the real home or the network, and a skipped test is never overlooked."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests import conftest

OUTSIDE = ("192.0.2.1", 9)  # RFC 5737: never routed
SAMPLE = """
import os, socket, pytest
HOME = os.environ["HOME"]
@pytest.fixture(scope="module")
def wide():
    return os.environ["AFTERWATCH_HOME"], [n for n in os.environ if n.startswith("AFTERWATCH_")]
def test_wide(wide):
    assert "afterwatch-tests-" in wide[0] and wide[1] == ["AFTERWATCH_HOME"]
    assert "afterwatch-tests-" in HOME
"""
SKIPS = "\n@pytest.mark.skip(reason='no kubectl')\ndef test_left_out(): pass\n"
SWALLOWS = """
def test_swallows():
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=1)
    except Exception:
        pass
"""


def inner(folder: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A pytest run of its own, with this suite's conftest, on one file."""
    (folder / "test_inner.py").write_text(text, encoding="utf-8")
    (folder / "conftest.py").write_text(Path(conftest.__file__).read_text("utf-8"), encoding="utf-8")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
            str(folder),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        cwd=folder,
        check=False,
        timeout=120,
    )


def test_the_home_is_a_temporary_one(house: Path) -> None:
    for name in conftest.HOMES:
        assert Path(os.environ[name]).is_relative_to(house), name
    assert Path.home().is_relative_to(house)
    assert [name for name in os.environ if name.startswith("AFTERWATCH_")] == ["AFTERWATCH_HOME"]


def test_wider_fixtures_have_a_temporary_home_too(tmp_path: Path) -> None:
    done = inner(tmp_path, SAMPLE, AFTERWATCH_TOKEN="x", HOME="/nowhere", AFTERWATCH_HOME="/nowhere")
    assert done.returncode == 0, done.stdout
    assert "SQLite " in done.stdout


def test_a_connection_outwards_raises() -> None:
    with socket.socket() as tcp, pytest.raises(conftest.NetworkUseError):
        tcp.connect(OUTSIDE)
    with socket.socket(type=socket.SOCK_DGRAM) as udp, pytest.raises(conftest.NetworkUseError):
        udp.sendto(b"x", OUTSIDE)
    with pytest.raises(conftest.NetworkUseError):
        socket.getaddrinfo("example.org", 80)
    assert len(conftest.attempts) == 3
    conftest.attempts.clear()


def test_loopback_and_unix_sockets_work(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass
    if hasattr(socket, "AF_UNIX"):
        with socket.socket(socket.AF_UNIX) as near, pytest.raises(OSError, match=r"No such file|too long"):
            near.connect(str(tmp_path / "none"))


def test_a_swallowed_attempt_still_fails(tmp_path: Path) -> None:
    done = inner(tmp_path, SAMPLE + SWALLOWS)
    assert done.returncode == 1
    assert "this test reached for the network: socket." in done.stdout


def test_a_skip_is_listed_and_fails_where_none_is_allowed(tmp_path: Path) -> None:
    mild = inner(tmp_path, SAMPLE + SKIPS)
    assert mild.returncode == 0
    assert "skipped: test_inner.py::test_left_out: Skipped: no kubectl" in mild.stdout
    hard = inner(tmp_path, SAMPLE + SKIPS, AFTERWATCH_NO_SKIPS="1")
    assert hard.returncode == 1
    assert "allows no skipped test: test_inner.py::test_left_out" in hard.stdout
    module = inner(tmp_path, "import pytest\npytest.skip('no sshd', allow_module_level=True)", AFTERWATCH_NO_SKIPS="1")
    assert module.returncode != 0
    assert "allows no skipped test: test_inner.py: Skipped: no sshd" in module.stdout


def test_hypothesis_depends_neither_on_load_nor_on_luck() -> None:
    assert settings().deadline is None
    assert settings().derandomize
