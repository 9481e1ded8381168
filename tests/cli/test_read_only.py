"""Law: looking needs no right to write: a closed home will do, and where there is none it makes none."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from afterwatch.memory import Memory, View
from afterwatch.memory.settings import MemorySettings
from afterwatch.security.audit import AuditLog
from afterwatch.settings.paths import home
from tests.conftest import Result, Run, environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
NOBODY = 65534
FACT = "The payments queue is drained by hand on Fridays."
READS = {
    "search": ("memory", "search", "queue"),
    "gated": ("memory", "search", "payments queue", "--gated"),
    "list": ("memory", "list"),
    "show": ("memory", "show", "pref.editor"),
    "stats": ("memory", "stats"),
    "audit": ("memory", "audit"),
    "lessons": ("learn", "list"),
    "verify": ("security", "verify"),
    "events": ("security", "events"),
    "get": ("config", "get", "memory.cap"),
    "settings": ("config", "list"),
    "doctor": ("doctor",),
}
WRITES = {
    "add": ("memory", "add", "Node 9 has the old network card."),
    "confirm": ("memory", "confirm", "ID"),
    "cool": ("memory", "cool", "ID"),
    "rate": ("memory", "rate", "ID", "helpful"),
    "reindex": ("memory", "reindex"),
    "lesson": ("learn", "add", "Ask before draining a node."),
    "set": ("config", "set", "memory.cap", "7"),
}
# Root ignores modes: the command runs first as root elsewhere, for its imports, then as somebody who owns the home.
AS_NOBODY = f"""
import contextlib, io, os, sys
from afterwatch.cli import main
from afterwatch.cli import bench, config, demo, doctor, learn, memory, security
if os.getuid() == 0:
    there = os.environ["AFTERWATCH_HOME"]
    os.environ["AFTERWATCH_HOME"] = sys.argv[1]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["memory", "add", "The imports need the rights of the one who installed."])
        main(["memory", "search", "imports"])
        main(sys.argv[2:])
        main(["memory", "show", "nothing"])
    os.environ["AFTERWATCH_HOME"] = there
    os.setgid({NOBODY})
    os.setuid({NOBODY})
sys.exit(main(sys.argv[2:]))
"""


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with an item, a key, an event and a setting, in which nothing can be written."""
    root = Path(tempfile.mkdtemp(prefix="closed-home-"))
    root.chmod(0o755)
    folder = root / "home"
    monkeypatch.setenv("AFTERWATCH_MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("AFTERWATCH_HOME", str(folder))
    with Memory.open(folder, settings=MemorySettings(embedder="none")) as memory:
        memory.add(View(), FACT)
        memory.remember(View(), "pref.editor", "vim")
    AuditLog(folder / "audit.db").append("memory.confirm", "local", ["mem-1"])
    (folder / "config.toml").write_text("[memory]\ncap = 500\n")
    for path in (folder, *folder.rglob("*")):
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o500 if path.is_dir() else 0o400)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700)
    shutil.rmtree(root)


def as_nobody(tmp_path: Path, *args: str) -> Result:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(tmp_path / "warm"), *args],
        capture_output=True,
        text=True,
        env=environment(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("name", READS)
def test_a_closed_home_can_be_looked_at(closed: Path, tmp_path: Path, name: str) -> None:
    before = tree(closed)
    code, out, err = as_nobody(tmp_path, *READS[name])
    assert code == 0, out + err
    assert tree(closed) == before
    said = {"search": FACT, "gated": FACT, "list": FACT, "show": "vim", "verify": "1 events", "events": "mem-1"}
    assert said.get(name, "") in out
    if name in ("search", "gated"):
        assert "store: read-only" in err
    if name == "get":
        assert out == "500\n"


def test_the_doctor_says_that_nothing_can_be_written(closed: Path, tmp_path: Path) -> None:
    code, out, _ = as_nobody(tmp_path, "doctor", "--json")
    rows = {row["name"]: row for row in json.loads(out)["checks"]}
    assert (code, rows["home"]["status"]) == (0, "warn")
    assert "read-only" in rows["home"]["what"]
    assert rows["home"]["remedy"]
    assert rows["audit"]["what"] == "1 events, whole"


@pytest.mark.parametrize("name", WRITES)
def test_a_closed_home_is_named_by_whatever_would_write(closed: Path, tmp_path: Path, name: str) -> None:
    before = tree(closed)
    code, out, err = as_nobody(tmp_path, *WRITES[name])
    assert (code, out) == (4, "")
    assert err.startswith("error: ")
    assert "AFTERWATCH_HOME" in err
    assert tree(closed) == before


@pytest.mark.parametrize("name", [name for name in READS if name != "show"])
def test_looking_makes_no_home(afterwatch: Run, name: str) -> None:
    """Not even a cache, which the model of a search would like to have."""
    result = afterwatch(*READS[name])
    assert result.code == 0, result
    assert not home().exists()


def test_looking_for_what_is_nowhere_makes_no_home(afterwatch: Run) -> None:
    assert afterwatch("memory", "show", "pref.editor").code == 2
    assert not home().exists()
