"""Law: a newer store is refused and untouched; a migration copies first, and happens whole or not at all."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from afterwatch.errors import Unavailable
from afterwatch.memory.files import database_path
from afterwatch.memory.schema import MIGRATIONS, SCHEMA, Migration, migrate, read_meta
from afterwatch.memory.store import Store
from tests.memory.support import AGENT, USER, connect, ids, keywords_only

NEXT = SCHEMA + 1


def add_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE feedback ADD COLUMN note TEXT")


def fail(connection: sqlite3.Connection) -> None:
    add_column(connection)
    connection.execute("INSERT INTO no_such_table VALUES (1)")


GOOD: tuple[Migration, ...] = (*MIGRATIONS, (NEXT, 1, NEXT, add_column))
BAD: tuple[Migration, ...] = (*MIGRATIONS, (NEXT, 1, 1, fail))


def raise_to(home: Path, *, reader: int = 1, writer: int = 1) -> None:
    """What a newer program leaves behind."""
    with closing(connect(home)) as connection:
        connection.execute("UPDATE meta SET schema = ?, min_reader = ?, min_writer = ?", (NEXT, reader, writer))


def digest(home: Path) -> str:
    return hashlib.sha256(database_path(home, "local").read_bytes()).hexdigest()


def columns(connection: sqlite3.Connection) -> list[str]:
    return [row[1] for row in connection.execute("PRAGMA table_info(feedback)")]


@pytest.fixture
def written(home: Path) -> Path:
    with keywords_only(home) as memory:
        memory.add(AGENT, "The zebra crossing is closed on Mondays")
    return home


def test_a_store_that_must_not_be_read_is_refused_and_untouched(written: Path) -> None:
    raise_to(written, reader=NEXT, writer=NEXT)
    before = digest(written)
    with keywords_only(written) as memory:
        for act in (lambda: memory.search(AGENT, "zebra"), lambda: memory.add(AGENT, "One more note of zebras")):
            with pytest.raises(Unavailable) as caught:
                act()
            assert caught.value.code == "newer_store"
            assert "upgrade" in caught.value.remedy
    assert digest(written) == before


def test_a_store_that_must_not_be_written_is_read_and_untouched(written: Path) -> None:
    raise_to(written, writer=NEXT)
    before = digest(written)
    with keywords_only(written) as memory:
        assert len(ids(memory, "zebra")) == 1
        with pytest.raises(Unavailable) as caught:
            memory.add(AGENT, "One more note of zebras")
        assert caught.value.code == "newer_store"
    assert digest(written) == before


def test_an_index_that_may_not_be_rebuilt_stops_no_reader(written: Path) -> None:
    """A newer program may cut tokens otherwise: an older one still reads, and says what its search lacks."""
    raise_to(written, writer=NEXT)
    with closing(connect(written)) as connection:
        connection.execute("UPDATE index_state SET signature = 'of a newer tokenizer'")
    with keywords_only(written) as memory:
        found = memory.search(AGENT, "zebra")
        assert len(found.hits) == 1
        assert any(note.startswith("index: rebuilding") for note in found.degraded)


def test_a_running_process_notices_a_migration_at_its_next_write(written: Path) -> None:
    with keywords_only(written) as memory:
        memory.add(AGENT, "The quagga stable opens on Tuesdays")
        raise_to(written, writer=NEXT)
        for act in (
            lambda: memory.add(AGENT, "One more note of zebras"),
            lambda: memory.remember(USER, "pref.editor", "vim"),
            lambda: memory.reindex(AGENT),
        ):
            with pytest.raises(Unavailable) as caught:
                act()
            assert caught.value.code == "newer_store"
            assert "restarted" in caught.value.remedy
        assert len(ids(memory, "zebra")) == 1
        assert len(memory.items(AGENT)) == 2
        found = memory.relevant(AGENT, "quagga stable")
        assert len(found.hits) == 1, "reading for a prompt goes on"
        assert any("usage" in note for note in found.degraded)
        raise_to(written, reader=NEXT, writer=NEXT)
        with pytest.raises(Unavailable) as caught:
            memory.search(AGENT, "zebra")
        assert caught.value.code == "newer_store"


def test_a_migration_copies_the_store_first(written: Path) -> None:
    with closing(Store(written, "local", GOOD)) as store:
        assert read_meta(store.connection()) == (NEXT, 1, NEXT)
        assert "note" in columns(store.connection())
        copy = store.path.with_name(f"memory.before-schema-{NEXT}.db")
        with closing(sqlite3.connect(copy)) as former:
            assert read_meta(former)[0] == SCHEMA
            assert "note" not in columns(former)
            assert former.execute("SELECT count(*) FROM items").fetchone() == (1,)
        copied = copy.read_bytes()
    with closing(Store(written, "local", GOOD)):
        assert copy.read_bytes() == copied, "it is made once"
    with keywords_only(written) as memory:
        assert len(ids(memory, "zebra")) == 1, "a program that may still read it does"


def test_a_migration_that_fails_leaves_the_old_schema(written: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        Store(written, "local", BAD)
    with closing(connect(written)) as connection:
        assert read_meta(connection)[0] == SCHEMA
        assert "note" not in columns(connection)
    with keywords_only(written) as memory:
        assert memory.add(AGENT, "The quagga stable opens on Tuesdays").stored
        assert len(ids(memory, "zebra")) == 1


def test_a_failing_step_in_the_transaction_of_a_caller(written: Path) -> None:
    with closing(Store(written, "local")) as store:
        with pytest.raises(sqlite3.OperationalError), store.writing() as connection:
            migrate(connection, BAD)
        assert read_meta(store.connection())[0] == SCHEMA
        assert "note" not in columns(store.connection())


def test_a_new_store_needs_no_copy(home: Path) -> None:
    with closing(Store(home, "local", GOOD)) as store:
        assert read_meta(store.connection())[0] == NEXT
        assert list(store.path.parent.glob("*before*")) == []


def test_a_backup_of_a_newer_program_is_refused(written: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with keywords_only(written) as memory:
        memory.backup(USER, backup)
        with closing(sqlite3.connect(backup)) as connection:
            connection.execute("UPDATE meta SET min_writer = ?", (NEXT,))
            connection.commit()
        with pytest.raises(Unavailable) as caught:
            memory.restore(USER, backup)
        assert caught.value.code == "newer_store"
        assert len(ids(memory, "zebra")) == 1
