"""The tables of a space, and numbered migrations. Standard library only.

A row `meta(schema, min_reader, min_writer)` says what the file is and who may touch it. It is read in every
transaction, so that a process that was running while another migrated the file notices at once.
"""

import sqlite3
from collections.abc import Callable, Sequence

from afterwatch.errors import Unavailable
from afterwatch.memory.words import SEPARATORS

RESTORE = "run `afterwatch memory restore` with a backup"

Migration = tuple[int, int, int, Callable[[sqlite3.Connection], None]]
"""(schema it makes, least reader, least writer, steps)."""

FTS_OPTIONS = f"tokenize=\"porter ascii tokenchars '{SEPARATORS}'\", content=''"

_BASE = """
CREATE TABLE items (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, layer TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT,
    text TEXT NOT NULL, value TEXT, status TEXT NOT NULL DEFAULT 'active', status_by TEXT,
    tier TEXT NOT NULL DEFAULT 'hot', merged_into TEXT, quarantined INTEGER NOT NULL DEFAULT 0, superseded_by TEXT,
    category TEXT, negative TEXT, source TEXT NOT NULL, quote TEXT, source_run TEXT,
    conversation TEXT, position INTEGER, segment INTEGER, origin TEXT NOT NULL, author TEXT NOT NULL,
    scope_kind TEXT NOT NULL, scope_key TEXT NOT NULL, confidence REAL NOT NULL, epistemic TEXT NOT NULL,
    corroborating_refs TEXT NOT NULL DEFAULT '[]', inspired_by TEXT, importance REAL NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]', aliases TEXT NOT NULL DEFAULT '[]', pinned INTEGER NOT NULL DEFAULT 0,
    recorded_at INTEGER NOT NULL, offset_minutes INTEGER NOT NULL, date TEXT NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, superseded_at INTEGER,
    revision INTEGER NOT NULL DEFAULT 1, fingerprint INTEGER NOT NULL,
    live INTEGER NOT NULL GENERATED ALWAYS AS
        (status IN ('active', 'pending-cleanup') AND quarantined = 0 AND merged_into IS NULL) VIRTUAL,
    CHECK ((kind = 'state') = (subject IS NOT NULL)),
    CHECK ((status = 'superseded') = (superseded_by IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX one_current_value ON items(scope_kind, scope_key, subject)
    WHERE subject IS NOT NULL AND status = 'active' AND quarantined = 0 AND merged_into IS NULL;
CREATE INDEX items_subject ON items(subject) WHERE subject IS NOT NULL;
CREATE INDEX items_fingerprint ON items(fingerprint);
CREATE INDEX items_place ON items(conversation, position) WHERE conversation IS NOT NULL;
CREATE INDEX items_segment ON items(segment) WHERE segment IS NOT NULL;
CREATE INDEX items_scope ON items(scope_kind, scope_key);
CREATE INDEX items_ending ON items(valid_to) WHERE live = 1 AND valid_to IS NOT NULL;
CREATE INDEX items_pinned ON items(pinned) WHERE pinned = 1;
CREATE INDEX items_warm ON items(layer, importance, recorded_at) WHERE live = 1 AND tier != 'cold' AND pinned = 0;
CREATE TABLE item_revisions (
    item INTEGER NOT NULL REFERENCES items(row), revision INTEGER NOT NULL, text TEXT NOT NULL, value TEXT,
    negative TEXT, origin TEXT NOT NULL, confidence REAL NOT NULL, epistemic TEXT NOT NULL, importance REAL NOT NULL,
    tags TEXT NOT NULL, aliases TEXT NOT NULL, corroborating_refs TEXT NOT NULL, valid_to INTEGER,
    until INTEGER NOT NULL, changed_by TEXT NOT NULL, PRIMARY KEY (item, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE vectors (item INTEGER PRIMARY KEY REFERENCES items(row), model TEXT NOT NULL, vector BLOB NOT NULL) STRICT;
CREATE TABLE usage (item INTEGER PRIMARY KEY REFERENCES items(row), uses INTEGER NOT NULL, last_used INTEGER NOT NULL)
    STRICT;
CREATE TABLE feedback (
    item INTEGER NOT NULL REFERENCES items(row), at INTEGER NOT NULL, verdict TEXT NOT NULL, by TEXT NOT NULL
) STRICT;
CREATE TABLE segments (
    row INTEGER PRIMARY KEY, conversation TEXT NOT NULL, number INTEGER NOT NULL, turns INTEGER NOT NULL,
    UNIQUE (conversation, number)
) STRICT;
CREATE TABLE changes (item INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
CREATE INDEX changes_seq ON changes(seq);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, code TEXT NOT NULL, item TEXT, other TEXT, reason TEXT,
    by TEXT NOT NULL, origin TEXT NOT NULL, write INTEGER
) STRICT;
CREATE INDEX events_item ON events(item);
CREATE INDEX events_write ON events(write);
CREATE TABLE index_state (one INTEGER PRIMARY KEY CHECK (one = 1), signature TEXT NOT NULL, upto INTEGER,
    live INTEGER NOT NULL DEFAULT 0) STRICT;
"""

INDEX_TABLES = {
    "words_live": "words, grams, identifiers",
    "words_past": "words, grams, identifiers",
    "words_segments": "words, grams, identifiers",
}


def create_index(connection: sqlite3.Connection) -> None:
    """Drop and create the empty keyword tables: current items, former items, conversation segments."""
    for name, names in INDEX_TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {name}_terms")
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE VIRTUAL TABLE {name} USING fts5({names}, {FTS_OPTIONS})")
        connection.execute(f"CREATE VIRTUAL TABLE {name}_terms USING fts5vocab({name}, row)")


def _base(connection: sqlite3.Connection) -> None:
    for statement in _BASE.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    create_index(connection)


def _timelines(connection: sqlite3.Connection) -> None:
    """Values of a key that are planned stand beside the present one; revisions keep pin and quote; neighbours of a turn
    are found in an index alone, which spells `live` out (SQLite 3.40 does not take a generated column from an index).

    A program of schema 1 would take a planned value for the current one, so it must not even read this.
    """
    connection.execute("DROP INDEX one_current_value")
    connection.execute(
        "CREATE UNIQUE INDEX one_value_of_a_beginning ON items(scope_kind, scope_key, subject, valid_from) "
        "WHERE subject IS NOT NULL AND status = 'active' AND quarantined = 0 AND merged_into IS NULL"
    )
    connection.execute("CREATE INDEX items_beginning ON items(valid_from) WHERE live = 1 AND valid_from > recorded_at")
    connection.execute("ALTER TABLE index_state ADD COLUMN segments INTEGER")
    connection.execute("DROP INDEX items_place")
    connection.execute(
        "CREATE INDEX items_turns ON items(conversation, scope_kind, scope_key, position, status, quarantined, "
        "merged_into) WHERE conversation IS NOT NULL"
    )
    connection.execute("ALTER TABLE item_revisions ADD COLUMN quote TEXT")
    connection.execute("ALTER TABLE item_revisions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0")


MIGRATIONS: Sequence[Migration] = ((1, 1, 1, _base), (2, 2, 2, _timelines))
SCHEMA = MIGRATIONS[-1][0]


def read_meta(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """(schema, min_reader, min_writer); (0, 0, 0) for an empty file."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone():
        return (0, 0, 0)
    row = connection.execute("SELECT schema, min_reader, min_writer FROM meta").fetchone()
    if row is None:
        raise Unavailable("the memory store is damaged: it does not say its schema", remedy=RESTORE, code="damaged")
    return (row[0], row[1], row[2])


def check_meta(meta: tuple[int, int, int], *, write: bool, known: int = SCHEMA) -> None:
    """Refuse what this program does not understand.

    Raises:
        Unavailable: the store was made or migrated by a newer program.
    """
    schema, min_reader, min_writer = meta
    if (min_writer if write else min_reader) > known:
        verb = "written" if write else "read"
        raise Unavailable(
            f"the memory store has schema {schema}; this program knows {known} and must not have it {verb}",
            remedy="upgrade afterwatch (a running process must be restarted), or restore an older backup",
            code="newer_store",
        )


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> list[int]:
    """Apply what is missing, each step in the open transaction of the caller. Returns the schemas made."""
    done: list[int] = []
    if read_meta(connection)[0] == 0:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS meta (one INTEGER PRIMARY KEY CHECK (one = 1), schema INTEGER NOT NULL, "
            "min_reader INTEGER NOT NULL, min_writer INTEGER NOT NULL, epoch TEXT NOT NULL) STRICT"
        )
        connection.execute("INSERT INTO meta VALUES (1, 0, 0, 0, lower(hex(randomblob(8))))")
    present = read_meta(connection)[0]
    for schema, min_reader, min_writer, steps in migrations:
        if schema <= present:
            continue
        steps(connection)
        connection.execute(
            "UPDATE meta SET schema = ?, min_reader = ?, min_writer = ?", (schema, min_reader, min_writer)
        )
        done.append(schema)
    return done
