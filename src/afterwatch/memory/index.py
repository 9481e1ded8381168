"""The keyword index: three FTS5 tables that follow the items. Standard library only.

`words_live` holds current items, `words_past` former ones (for questions about the past), `words_segments`
runs of at most 32 turns of one conversation. The tables keep no text (`content=''`), so taking a row out needs
the tokens that were put in: they are computed from the same text by the same tokenizer version. When the
signature differs the tables are rebuilt in steps; until then a search says so.
"""

import json
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from afterwatch.memory.schema import FTS_OPTIONS, create_index
from afterwatch.memory.words import TOKENIZER_VERSION, Columns, columns, fold

SEGMENT_TURNS = 32
"""Turns of a segment: re-indexing a growing conversation cost 2.5 ms an add at 200 turns, 17.9 at 1,000."""
REBUILD_STEP = 1000
_FIELDS = "row, subject, text, negative, aliases, tags, live, quarantined, merged_into, status, segment"
_PROBE = "running nodes restarted quickly relational hopefulness crash-loop v1.29 prod_eu a.b/c:d naïve 猫が"


@dataclass(frozen=True, slots=True)
class Indexed:
    """What of an item decides its place in the index."""

    row: int
    table: str | None
    tokens: Columns
    segment: int | None


@cache
def signature() -> str:
    """Names everything that shapes a token: our tokenizer, Python's Unicode tables, SQLite's stemmer (probed)."""
    probe = sqlite3.connect(":memory:")
    try:
        stems = Stemmer(probe)(fold(_PROBE).split())
    finally:
        probe.close()
    return f"{TOKENIZER_VERSION}/{unicodedata.unidata_version}/{'|'.join(stems)}"


class Stemmer:
    """Asks SQLite's own tokenizer for stems, so that questions and index can never disagree."""

    def __init__(self, connection: sqlite3.Connection | None = None) -> None:
        self._memory = connection or sqlite3.connect(":memory:", check_same_thread=False)
        self._memory.execute(f"CREATE VIRTUAL TABLE temp.stems USING fts5(words, {FTS_OPTIONS})")
        self._memory.execute("CREATE VIRTUAL TABLE temp.stem_list USING fts5vocab(stems, instance)")
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        """The stem of each token, same order and length; threads take turns, since they share one scratch table."""
        with self._lock:
            return self._stems(tokens)

    def _stems(self, tokens: Sequence[str]) -> list[str]:
        fresh = [token for token in dict.fromkeys(tokens) if token not in self._known]
        if len(self._known) > 50_000:
            self._known.clear()
            fresh = list(dict.fromkeys(tokens))
        if fresh:
            self._learn(fresh)
        return [self._known[token] for token in tokens]

    def _learn(self, fresh: list[str]) -> None:
        joined = " ".join(fresh)
        self._memory.execute("INSERT INTO temp.stems (rowid, words) VALUES (1, ?)", (joined,))
        rows = self._memory.execute("SELECT term FROM temp.stem_list WHERE doc = 1 ORDER BY offset")
        stems = [row[0] for row in rows]
        self._memory.execute("INSERT INTO temp.stems (stems, rowid, words) VALUES ('delete', 1, ?)", (joined,))
        if len(stems) != len(fresh):
            stems = fresh
        self._known.update(zip(fresh, stems, strict=True))


# -- keeping the tables true ---------------------------------------------------------------------------------------


def describe(connection: sqlite3.Connection, row: int) -> Indexed:
    """The index entry an item should have, from its row as it stands."""
    found = connection.execute(f"SELECT {_FIELDS} FROM items WHERE row = ?", (row,)).fetchone()
    return _describe(found)


def _describe(found: tuple[Any, ...]) -> Indexed:
    row, subject, text, negative, aliases, tags, live, quarantined, merged, status, segment = found
    table: str | None = "words_live" if live else "words_past"
    if quarantined or merged is not None or (not live and status not in ("superseded", "stale")):
        table = None
    parts = [text, subject or "", negative or "", *json.loads(aliases), *json.loads(tags)]
    return Indexed(row, table, columns("\n".join(part for part in parts if part)), segment)


class Editing:
    """Remembers an item's entry before a change, and brings the tables in line after it.

    `with Editing(connection, [row]): UPDATE items …` is the one way to change what the index shows.
    """

    def __init__(self, connection: sqlite3.Connection, rows: Iterable[int]) -> None:
        self._connection = connection
        self._rows = list(rows)

    def __enter__(self) -> None:
        self._before = [describe(self._connection, row) for row in self._rows]
        touched = {entry.segment for entry in self._before if entry.segment is not None}
        self._segments = {number: segment_tokens(self._connection, number) for number in touched}

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is not None:
            return
        for entry in self._before:
            remove(self._connection, entry.table, entry.row, entry.tokens)
            now = describe(self._connection, entry.row)
            insert(self._connection, now.table, now.row, now.tokens)
        for number, tokens in self._segments.items():
            replace_segment(self._connection, number, tokens)


def insert(connection: sqlite3.Connection, table: str | None, row: int, tokens: Columns) -> None:
    """Put one row in, unless it waits for the rebuild."""
    if table is not None and _covers(connection, row):
        _put(connection, table, row, tokens)


def remove(connection: sqlite3.Connection, table: str | None, row: int, tokens: Columns) -> None:
    """Take one row out; `tokens` must be those that were put in."""
    if table is not None and _covers(connection, row):
        _take(connection, table, row, tokens)


def _put(connection: sqlite3.Connection, table: str, row: int, tokens: Columns) -> None:
    connection.execute(
        f"INSERT INTO {table} (rowid, words, grams, identifiers) VALUES (?, ?, ?, ?)",
        (row, tokens.words, tokens.grams, tokens.identifiers),
    )
    _count(connection, table, 1)


def _take(connection: sqlite3.Connection, table: str, row: int, tokens: Columns) -> None:
    connection.execute(
        f"INSERT INTO {table} ({table}, rowid, words, grams, identifiers) VALUES ('delete', ?, ?, ?, ?)",
        (row, tokens.words, tokens.grams, tokens.identifiers),
    )
    _count(connection, table, -1)


def _count(connection: sqlite3.Connection, table: str, by: int) -> None:
    if table == "words_live":
        connection.execute("UPDATE index_state SET live = live + ?", (by,))


def segment_tokens(connection: sqlite3.Connection, segment: int) -> Columns | None:
    """The tokens of a segment: its live turns in order; None when none is live."""
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM items WHERE segment = ? AND live = 1 ORDER BY position, row", (segment,)
    )
    parts = [_describe(row).tokens for row in rows]
    if not parts:
        return None
    return Columns(*(" ".join(filter(None, column)) for column in zip(*map(_as_tuple, parts), strict=True)))


def replace_segment(connection: sqlite3.Connection, segment: int, before: Columns | None) -> None:
    """Swap a segment's entry for its present tokens."""
    if not _covers_segment(connection, segment):
        return
    if before is not None:
        _take(connection, "words_segments", segment, before)
    now = segment_tokens(connection, segment)
    if now is not None:
        _put(connection, "words_segments", segment, now)


def _as_tuple(tokens: Columns) -> tuple[str, str, str]:
    return tokens.words, tokens.grams, tokens.identifiers


def choose_segment(connection: sqlite3.Connection, conversation: str) -> int:
    """The open segment of a conversation (whose name here includes its scope), or a new one."""
    row = connection.execute(
        "SELECT row, turns, number FROM segments WHERE conversation = ? ORDER BY number DESC LIMIT 1",
        (conversation,),
    ).fetchone()
    if row and row[1] < SEGMENT_TURNS:
        connection.execute("UPDATE segments SET turns = turns + 1 WHERE row = ?", (row[0],))
        return int(row[0])
    cursor = connection.execute(
        "INSERT INTO segments (conversation, number, turns) VALUES (?, ?, 1)",
        (conversation, row[2] + 1 if row else 1),
    )
    return int(cursor.lastrowid or 0)


# -- the signature, and rebuilding ---------------------------------------------------------------------------------


def _covers(connection: sqlite3.Connection, row: int) -> bool:
    """Whether the index already holds this row's part; the rest is added by the rebuild when it gets there."""
    upto, _segments = _state(connection)
    return upto is None or 0 < row <= upto


def _covers_segment(connection: sqlite3.Connection, segment: int) -> bool:
    upto, segments = _state(connection)
    return upto is None and (segments is None or segment <= segments)


def _state(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
    """How far items and segments are indexed; None means all."""
    state = connection.execute("SELECT upto, segments, signature FROM index_state").fetchone()
    if state is None or state[2] != signature():
        # tokens of another tokenizer would spoil the tables: whoever opens the store next builds them anew
        connection.execute("UPDATE index_state SET signature = 'left behind'")
        return 0, 0
    return state[0], state[1]


def ready(connection: sqlite3.Connection, wanted: str) -> bool:
    """Whether the index is complete and made by this tokenizer."""
    found = connection.execute("SELECT signature, upto, segments FROM index_state").fetchone()
    return bool(found == (wanted, None, None))


def start_rebuild(connection: sqlite3.Connection, wanted: str) -> None:
    """Empty the tables and begin anew; items are not touched."""
    create_index(connection)
    connection.execute(
        "INSERT OR REPLACE INTO index_state (one, signature, upto, segments, live) VALUES (1, ?, 0, 0, 0)", (wanted,)
    )


def rebuild_step(connection: sqlite3.Connection) -> tuple[int, int]:
    """Index the next items, or behind them the next segments.

    Returns (rows done, rows in all), of both; they are equal when the index is complete.
    """
    upto, segments = connection.execute("SELECT upto, segments FROM index_state").fetchone()
    items = connection.execute("SELECT coalesce(max(row), 0) FROM items").fetchone()[0]
    whole = connection.execute("SELECT coalesce(max(row), 0) FROM segments").fetchone()[0]
    if upto is not None:
        upto, segments = _index_items(connection, upto, items), 0
    elif segments is not None:
        segments = _index_segments(connection, segments, whole)
    if (upto or items) + (whole if segments is None else segments) < items + whole:
        return (upto or items) + (segments or 0), items + whole
    connection.execute("UPDATE index_state SET upto = NULL, segments = NULL")
    return items + whole, items + whole


def _index_items(connection: sqlite3.Connection, upto: int, last: int) -> int:
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM items WHERE row > ? ORDER BY row LIMIT ?", (upto, REBUILD_STEP)
    ).fetchall()
    reached = int(rows[-1][0]) if rows else last
    connection.execute("UPDATE index_state SET upto = ?", (max(reached, 1),))
    for row in rows:
        entry = _describe(row)
        insert(connection, entry.table, entry.row, entry.tokens)
    if reached >= last:
        connection.execute("UPDATE index_state SET upto = NULL")
    return reached


def _index_segments(connection: sqlite3.Connection, upto: int, last: int) -> int:
    rows = connection.execute(
        "SELECT row FROM segments WHERE row > ? ORDER BY row LIMIT ?", (upto, REBUILD_STEP // SEGMENT_TURNS)
    ).fetchall()
    reached = int(rows[-1][0]) if rows else last
    connection.execute("UPDATE index_state SET segments = ?", (reached,))
    for (segment,) in rows:
        replace_segment(connection, segment, None)
    return reached
