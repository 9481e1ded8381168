"""Law: a store is there whole or not at all; one that lost its content is named, never taken for a new one."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from afterwatch.errors import Unavailable
from afterwatch.memory import View
from afterwatch.memory.files import database_path
from tests.memory.support import AGENT, USER, everything, keywords_only

ROOT = Path(__file__).parents[2]
FACT = "The zebra crossing is closed on Mondays"


def written(home: Path, tmp_path: Path) -> Path:
    """A home with one item; returns a backup of it."""
    with keywords_only(home) as memory:
        memory.add(USER, FACT)
        memory.backup(USER, tmp_path / "good.db")
    return tmp_path / "good.db"


def test_an_empty_file_is_damage_and_points_to_a_restore(home: Path, tmp_path: Path) -> None:
    good = written(home, tmp_path)
    path = database_path(home, "local")
    path.write_bytes(b"")
    with keywords_only(home) as memory:
        for act in (
            lambda: memory.search(AGENT, "zebra"),
            lambda: memory.items(AGENT),
            lambda: memory.stats(AGENT),
            lambda: memory.add(AGENT, "This would begin a new store"),
            lambda: memory.reindex(AGENT),
        ):
            with pytest.raises(Unavailable) as caught:
                act()
            assert caught.value.code == "damaged"
            assert "afterwatch memory restore" in caught.value.remedy
        assert path.read_bytes() == b"", "nobody touched it"
        kept = memory.restore(USER, good)
        assert kept.read_bytes() == b""
        assert [item.text for item in everything(memory).values()] == [FACT]


def test_a_log_without_its_store_is_damage_too(home: Path, tmp_path: Path) -> None:
    good = written(home, tmp_path)
    path = database_path(home, "local")
    log = path.with_name(path.name + "-wal")
    path.rename(log)
    content = log.read_bytes()
    with keywords_only(home) as memory:
        for act in (lambda: memory.search(AGENT, "zebra"), lambda: memory.add(AGENT, "This would begin a new store")):
            with pytest.raises(Unavailable) as caught:
                act()
            assert caught.value.code == "damaged"
        assert log.read_bytes() == content
        kept = memory.restore(USER, good)
        assert kept.read_bytes() == content
        assert [item.text for item in everything(memory).values()] == [FACT]


CREATE = """
import resource, sys
from pathlib import Path
from afterwatch.errors import Unavailable
from tests.memory.support import AGENT, keywords_only
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    keywords_only(Path(sys.argv[1])).add(AGENT, "The zebra crossing is closed on Mondays")
except Unavailable as error:
    print(error.code)
"""


@pytest.mark.skipif(os.name != "posix", reason="no limit on file sizes here")
@pytest.mark.parametrize("size", [0, 100, 4095, 4096, 20_000])
def test_a_creation_that_failed_is_done_again(home: Path, size: int) -> None:
    """The first bytes did not fit; what that leaves behind is no damage, and stops nobody."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CREATE, str(home), str(size)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
    )
    assert done.stdout.strip() in ("disk_full", "io_error"), done.stderr
    path = database_path(home, "local")
    assert not path.exists() or path.stat().st_size >= 4096
    with keywords_only(home) as memory:
        assert memory.add(AGENT, FACT).stored
        assert memory.problems(AGENT) == {"local": []}


KILLED = """
import os, sys
from pathlib import Path
from tests.memory.support import AGENT, keywords_only
calls = 0
def stop(event, args):
    global calls
    calls += event in ("sqlite3.connect", "sqlite3.connect/handle", "os.link", "os.remove", "os.mkdir", "os.chmod")
    if calls > int(sys.argv[2]):
        os._exit(9)
sys.addaudithook(stop)
keywords_only(Path(sys.argv[1])).add(AGENT, "The zebra crossing is closed on Mondays")
print("done")
"""


def test_a_process_killed_while_it_creates_stops_nobody(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for step in range(30):
        home = tmp_path / str(step)
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(home), str(step)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=ROOT,
        )
        with keywords_only(home) as memory:
            assert memory.add(AGENT, FACT).stored, step
        if done.stdout == "done\n":
            assert step > 5
            return
    raise AssertionError("it never came to an end")


def test_every_folder_above_a_space_is_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with keywords_only(tmp_path / "home") as memory:
            memory.add(View(write="team:ops"), FACT)
    finally:
        os.umask(old)
    folders = [tmp_path / "home", *(path for path in (tmp_path / "home").rglob("*") if path.is_dir())]
    assert len(folders) >= 4
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
