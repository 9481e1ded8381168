"""Law: a full disk, a closed folder, damage or a network file system is named; nothing is lost or guessed."""

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory import Draft
from afterwatch.memory.embedders import Loading
from afterwatch.memory.files import database_path, refuse_network
from afterwatch.memory.index import REBUILD_STEP, signature, start_rebuild
from afterwatch.memory.reading import Filter
from afterwatch.memory.recall import Recall
from afterwatch.memory.settings import MemorySettings
from afterwatch.memory.spaces import Spaces
from afterwatch.memory.writing import Writer
from tests.memory.support import (
    AGENT,
    USER,
    connect,
    everything,
    ids,
    index_problems,
    item_problems,
    keywords_only,
    ticking,
    word,
)

ROOT = Path(__file__).parents[2]

# --- a full disk ------------------------------------------------------------------------------------


def fill(writer: Writer, most: int) -> tuple[list[str], Unavailable]:
    """Texts that were acknowledged until the disk was full, and what was said then."""
    kept: list[str] = []
    for at in range(most):
        text = f"Note {word(at)} " + " ".join(word(1000 + at * 40 + more) for more in range(40))
        try:
            assert writer.add(AGENT, [Draft(text)])[0].stored
        except Unavailable as error:
            return kept, error
        kept.append(text)
    raise AssertionError("the disk was never full")


def test_a_full_disk_loses_nothing_and_heals(home: Path) -> None:
    spaces = Spaces(home, Loading.done(None))
    with closing(spaces):
        clock = ticking()
        writer, recall = Writer(spaces, MemorySettings(), clock), Recall(spaces, clock)
        connection = spaces.store("local").connection()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 40}")
        kept, error = fill(writer, 500)
        assert kept
        assert error.code == "disk_full"
        assert error.remedy
        assert "Note" not in str(error)
        hits = [recall.search(AGENT, text.split()[1], limit=1, where=Filter()).hits[0].item.text for text in kept]
        assert hits == kept
        assert spaces.store("local").problems() == []
        connection.execute("PRAGMA max_page_count = 1000000")
        assert writer.add(AGENT, [Draft("There is room again for zebras")])[0].stored
    with keywords_only(home) as memory:
        assert len(everything(memory)) == len(kept) + 1
        assert item_problems(home) == []
        assert index_problems(home, memory) == []


LIMITED = """
import resource, sys
from pathlib import Path
from afterwatch.errors import Unavailable
from tests.memory.support import AGENT, keywords_only, word
with keywords_only(Path(sys.argv[1])) as memory:
    size = 600_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        for at in range(3000):
            print(memory.add(AGENT, f"Note {word(at)} stays in the runbook").id, flush=True)
    except Unavailable as error:
        print(error.code, error.remedy, file=sys.stderr)
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", *arguments], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit on file sizes here")
def test_a_limit_on_file_size_loses_nothing(home: Path) -> None:
    done = python(LIMITED, str(home))
    assert done.returncode == 0, done.stderr
    assert done.stderr.split()[0] in ("disk_full", "io_error")
    with keywords_only(home) as memory:
        assert everything(memory).keys() >= set(done.stdout.split())
        assert memory.problems(AGENT) == {"local": []}
        assert item_problems(home) == []
        assert index_problems(home, memory) == []
        assert memory.add(AGENT, "There is room again for zebras").stored


# --- a folder that cannot be written ----------------------------------------------------------------

READER = """
import os, sys
from pathlib import Path
from afterwatch.errors import Unavailable
from tests.memory.support import AGENT, USER, keywords_only
home = Path(sys.argv[1])
keywords_only(home / "warm-up-of-imports").add(AGENT, "imports need the rights of the one who installed")
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
memory = keywords_only(home)
found = memory.search(AGENT, "zebra")
print([hit.item.text for hit in found.hits], found.degraded)
print([hit.item.text for hit in memory.relevant(AGENT, "zebra crossing").hits], memory.items(AGENT)[0].text)
for act in (
    lambda: memory.add(AGENT, "This will not be kept anywhere"),
    lambda: memory.cool(USER, [memory.items(AGENT)[0].id]),
    lambda: memory.reindex(AGENT),
):
    try:
        act()
    except Unavailable as error:
        print(error.code)
"""


@pytest.fixture
def closed_home() -> Iterator[Path]:
    """A home that others may read and nobody but root may write; reachable by every user."""
    folder = Path(tempfile.mkdtemp(prefix="closed-home-"))
    with keywords_only(folder) as memory:
        memory.add(AGENT, "The zebra crossing is closed on Mondays")
    (folder / "warm-up-of-imports").mkdir()
    folder.chmod(0o755)
    for path in (folder / "spaces").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (folder / "spaces").chmod(0o555)
    yield folder
    for path in (folder / "spaces", *(folder / "spaces").rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_home_is_searched_and_says_so(closed_home: Path) -> None:
    done = python(READER, str(closed_home))
    assert done.returncode == 0, done.stderr
    searched, relevant, *codes = done.stdout.splitlines()
    assert searched == "['The zebra crossing is closed on Mondays'] ('vectors: none', 'store: read-only')"
    assert relevant == "['The zebra crossing is closed on Mondays'] The zebra crossing is closed on Mondays"
    assert codes == ["read_only"] * 3


def test_the_file_of_a_space_is_closed_to_others(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.add(AGENT, "Nobody else may read about zebras")
        for path in (home / "spaces").rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_home_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with keywords_only(tmp_path / "file") as memory, pytest.raises(Unavailable) as caught:
        memory.add(AGENT, "This will not be kept anywhere")
    assert caught.value.code == "read_only"


# --- damage -----------------------------------------------------------------------------------------


def damaged(home: Path, start: int, data: bytes) -> None:
    path = database_path(home, "local")
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)


def written(home: Path, count: int = 300) -> None:
    with keywords_only(home) as memory:
        memory.add_many(AGENT, [Draft(f"Note {word(at)} stays in the runbook") for at in range(count)])


def read_all(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.items(AGENT, limit=10_000)
        memory.search(AGENT, word(7))
        memory.add(AGENT, "One more note about zebras")
        assert memory.problems(AGENT) == {"local": []}


def test_no_database_at_all_is_damage(home: Path) -> None:
    written(home)
    damaged(home, 0, b"This is a text and no store. " * 40)
    with pytest.raises(Unavailable) as caught:
        read_all(home)
    assert caught.value.code == "damaged"
    assert "restore" in caught.value.remedy


def test_damage_in_the_middle_is_named(home: Path) -> None:
    written(home)
    damaged(home, 4096, b"\xa5" * (database_path(home, "local").stat().st_size - 4096))
    with pytest.raises(Unavailable) as caught:
        read_all(home)
    assert caught.value.code == "damaged"


def test_a_store_that_does_not_say_its_schema_is_damaged(home: Path) -> None:
    written(home, 3)
    with closing(connect(home)) as connection:
        connection.execute("DELETE FROM meta")
    with pytest.raises(Unavailable) as caught:
        read_all(home)
    assert caught.value.code == "damaged"


def test_problems_names_a_broken_chain(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.remember(USER, "pref.editor", "vim")
        second = memory.remember(USER, "pref.editor", "helix")
        with closing(connect(home)) as connection:
            connection.execute("UPDATE items SET superseded_by = 'mem-gone' WHERE id = ?", second.displaced)
        assert memory.problems(AGENT) == {
            "local": [f"{second.displaced[0]} is superseded by an item that is not there"]
        }


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_backup_that_is_none_changes_nothing(home: Path, tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "backup.db"
    source.write_bytes(content)
    with keywords_only(home) as memory:
        memory.add(AGENT, "The zebra crossing is closed on Mondays")
        with pytest.raises((Unavailable, UserError)) as caught:
            memory.restore(USER, source)
        assert not isinstance(caught.value, sqlite3.Error)
        assert len(ids(memory, "zebra")) == 1
        assert sorted(path.name for path in database_path(home, "local").parent.glob("*restore*")) == []


# --- the index --------------------------------------------------------------------------------------


def test_an_interrupted_rebuild_says_so_and_goes_on(home: Path) -> None:
    count = 2 * REBUILD_STEP + 10
    with keywords_only(home) as memory:
        memory.add_many(AGENT, [Draft(f"Note {word(at)}", imported=True) for at in range(count)])
    with closing(connect(home)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        start_rebuild(connection, signature())
        connection.execute("COMMIT")
    spaces = Spaces(home, Loading.done(None))
    store = spaces.store("local")  # the first step is made while opening
    spaces.close()  # the others stop
    spaces = Spaces(home, Loading.done(None))
    with closing(spaces):
        spaces.finish_index(spaces.store("local"), None)
        assert store.path.exists()
    with keywords_only(home) as memory:
        assert memory.search(AGENT, word(count - 1)).degraded == ("vectors: none",)
        assert [len(ids(memory, word(at))) for at in (0, REBUILD_STEP, count - 1)] == [1, 1, 1]
        assert index_problems(home, memory) == []


def test_writing_during_a_rebuild_misses_nothing(home: Path) -> None:
    """A writer that met a rebuild half-way: what it adds and changes on both sides of the edge is indexed once."""
    with keywords_only(home) as memory:
        memory.add_many(AGENT, [Draft(f"Note {word(at)}", imported=True) for at in range(REBUILD_STEP + 50)])
        memory.remember(USER, "pref.editor", "zebra")
        with closing(connect(home)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            start_rebuild(connection, signature())
            connection.execute("COMMIT")
        assert any("rebuilding" in note for note in memory.search(AGENT, word(3)).degraded)
        memory.remember(USER, "pref.editor", "quagga")
        assert memory.add(AGENT, f"Note {word(5000)} came in between").stored
    spaces = Spaces(home, Loading.done(None))
    with closing(spaces):
        spaces.finish_index(spaces.store("local"), None)  # goes on where it was, unlike a new build
    with keywords_only(home) as memory:
        assert memory.search(AGENT, word(3)).degraded == ("vectors: none",)
        assert ids(memory, word(5000))
        assert ids(memory, "zebra") == []
        assert len(ids(memory, "quagga")) == 1
        assert index_problems(home, memory) == []


# --- network file systems ---------------------------------------------------------------------------

MOUNTS = r"""
sysfs /sys sysfs rw 0 0
/dev/sda1 / ext4 rw 0 0
server:/export /mnt/my\040share nfs4 rw 0 0
tmpfs /mnt/my\040share/local tmpfs rw 0 0
//box/c /mnt/tab\011bed cifs rw 0 0
back /mnt/back\134slash fuse.sshfs rw 0 0
none /mnt/over nfs rw 0 0
none /mnt/over ext4 rw 0 0
short line
"""


@pytest.mark.parametrize(
    "folder", ["/mnt/my share", "/mnt/my share/deep/er", "/mnt/tab\tbed/x", "/mnt/back\\slash/home"]
)
def test_a_network_file_system_is_refused(folder: str) -> None:
    with pytest.raises(Unavailable) as caught:
        refuse_network(Path(folder), MOUNTS)
    assert caught.value.code == "network_file_system"
    assert "AFTERWATCH_HOME" in caught.value.remedy


@pytest.mark.parametrize(
    "folder", ["/", "/mnt", "/mnt/my share/local/x", "/mnt/my shares", "/mnt/over/x", "/somewhere/mnt/my share"]
)
def test_a_local_file_system_is_not(folder: str) -> None:
    refuse_network(Path(folder), MOUNTS)
    refuse_network(Path(folder), "")


def test_a_backup_takes_the_place_of_a_damaged_file(home: Path, tmp_path: Path) -> None:
    with keywords_only(home) as memory:
        memory.add(USER, "The zebra crossing is closed on Mondays")
        memory.backup(USER, tmp_path / "good.db")
    path = home / "spaces/local/memory.db"
    path.write_bytes(b"no database at all " * 400)
    with keywords_only(home) as memory:
        kept = memory.restore(USER, tmp_path / "good.db")
        assert kept.read_bytes().startswith(b"no database")
        assert [hit.item.text for hit in memory.search(USER, "zebra").hits] == [
            "The zebra crossing is closed on Mondays"
        ]
        assert memory.problems(USER) == {"local": []}
