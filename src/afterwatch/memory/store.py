"""One space on disk: connections, transactions, rows. Every process and thread may open the same file.

Standard library only. Writers queue on SQLite's lock (`BEGIN IMMEDIATE`, `synchronous=FULL`): what was
acknowledged is on disk. Nothing here decides what may be written; that is `admission`.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from afterwatch.errors import Unavailable
from afterwatch.memory import schema
from afterwatch.memory.files import database_path, make_folder, plain_errors
from afterwatch.memory.model import Item, Scope, ScopeKind

BUSY_SECONDS = 30.0
"""How long a writer waits for another; the longest wait seen with 8 writers was 1.2 s."""

_AT = {field.name: at for at, field in enumerate(fields(Item))}
_SELECT = "SELECT {}, scope_key FROM items".format(
    ", ".join({"space": "NULL", "scope": "scope_kind"}.get(name, name) for name in _AT)
)
_JSON_LISTS = tuple(_AT[name] for name in ("tags", "aliases", "corroborating_refs"))
_FLAGS = tuple(_AT[name] for name in ("quarantined", "pinned"))
REVISED = (
    *("text", "value", "negative", "quote", "origin", "confidence", "epistemic", "importance", "tags", "aliases"),
    *("pinned", "corroborating_refs", "valid_to"),
)
"""What of an item may change in place; the former content goes to `item_revisions`."""


class Store:
    """The SQLite file of one space."""

    def __init__(self, home: Path, space: str, migrations: Sequence[schema.Migration] = schema.MIGRATIONS) -> None:
        """Open, creating or migrating if needed; `migrations` are those that this program knows.

        Raises:
            Unavailable: newer store, network file system, read-only or full disk, damage.
        """
        self.space = space
        self.path = database_path(home, space)
        self.read_only = False
        self._migrations = migrations
        self._known = migrations[-1][0]
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        with plain_errors():
            self._prepare()

    # -- life cycle ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close every connection of this process."""
        with self._lock:
            for connection in self._all:
                with suppress(sqlite3.Error):
                    connection.close()
            self._all.clear()
            self._local = threading.local()

    def _prepare(self) -> None:
        if self.path.exists() and not os.access(self.path.parent, os.W_OK):
            self.read_only = True
        else:
            make_folder(self.path.parent)
        connection = self.connection()
        meta = schema.read_meta(connection)
        schema.check_meta(meta, write=False, known=self._known)
        if meta[0] < self._known and not self.read_only:
            self._migrate(connection)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection, "EXCLUSIVE"):
            # read again: another process may have migrated meanwhile, and its copy must not be overwritten
            meta = schema.read_meta(connection)
            schema.check_meta(meta, write=False, known=self._known)
            if 0 < meta[0] < self._known:
                # by a second connection: one that has begun to write cannot be copied from
                with closing(self._connect()) as source:
                    _copy(source, self.path.with_suffix(f".before-schema-{self._known}.db"))
            schema.migrate(connection, self._migrations)

    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._connect()
            self._local.connection = found
            with self._lock:
                self._all.append(found)
        return found

    def _connect(self) -> sqlite3.Connection:
        if self.read_only:
            # immutable: a closed store has no -wal file, and the folder takes no lock file
            mode = "mode=ro" if self.path.with_suffix(".db-wal").exists() else "immutable=1"
            target, uri = f"{self.path.as_uri()}?{mode}", True
        else:
            target, uri = str(self.path), False
        connection = sqlite3.connect(
            target,
            uri=uri,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        if not self.read_only:
            os.chmod(self.path, 0o600)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    # -- transactions -------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One snapshot for several reads."""
        with plain_errors():
            connection = self.connection()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                schema.check_meta(schema.read_meta(connection), write=False, known=self._known)
                yield connection
            finally:
                _end(connection)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One immediate transaction: all of it is kept, or nothing."""
        if self.read_only:
            raise Unavailable(
                f"{self.path.parent} is read-only: memory can be searched, not changed",
                remedy="check owner and mode of the home folder",
                code="read_only",
            )
        with plain_errors():
            connection = self.connection()
            with _transaction(connection, "IMMEDIATE"):
                schema.check_meta(schema.read_meta(connection), write=True, known=self._known)
                yield connection

    # -- rows ---------------------------------------------------------------------------------------------------

    def select(self, where: str, values: Sequence[Any] = (), *, tail: str = "") -> list[Item]:
        """Items by a condition written in this package (never from outside)."""
        with self.reading() as connection:
            rows = connection.execute(f"{_SELECT} WHERE {where} {tail}", values)
            return [self._item(row) for row in rows]

    def by_rows(self, wanted: Iterable[int]) -> dict[int, Item]:
        """Items by row number, in any order."""
        rows = list(wanted)
        found: dict[int, Item] = {}
        for start in range(0, len(rows), 500):
            part = rows[start : start + 500]
            marks = ",".join("?" * len(part))
            found.update((item.row, item) for item in self.select(f"row IN ({marks})", part))
        return found

    def _item(self, row: tuple[Any, ...]) -> Item:
        *values, scope_key = row  # in the order of the fields: this is done for every item that is shown
        values[_AT["space"]] = self.space
        values[_AT["scope"]] = _scope(values[_AT["scope"]], scope_key)
        for at in _JSON_LISTS:
            values[at] = tuple(json.loads(values[at])) if values[at] != "[]" else ()
        for at in _FLAGS:
            values[at] = bool(values[at])
        if values[_AT["value"]] is not None:
            values[_AT["value"]] = json.loads(values[_AT["value"]])
        return Item(*values)

    # -- whole file ---------------------------------------------------------------------------------------------

    def copy_to(self, target: Path) -> None:
        """Online copy while others read and write; the result is one closed, consistent file."""
        with plain_errors():
            _copy(self.connection(), target)

    def problems(self) -> list[str]:
        """Damage found by SQLite and broken links of ours; empty when whole."""
        with self.reading() as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
            found += [
                f"row {row[2]} of {row[0]} refers to nothing" for row in connection.execute("PRAGMA foreign_key_check")
            ]
            lost = connection.execute(
                "SELECT id FROM items a WHERE superseded_by IS NOT NULL "
                "AND NOT EXISTS (SELECT 1 FROM items b WHERE b.id = a.superseded_by)"
            )
            return found + [f"{row[0]} is superseded by an item that is not there" for row in lost]


@lru_cache(1024)
def _scope(kind: str, key: str) -> Scope:
    return Scope(ScopeKind(kind), key)


def _copy(source: sqlite3.Connection, target: Path) -> None:
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        os.chmod(target, 0o600)
        source.backup(copy, pages=4096)
        copy.execute("PRAGMA journal_mode = DELETE")


def _end(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:  # SQLite may have ended it itself, after an error
        connection.execute("COMMIT")


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # an interrupt too must leave nothing half-written; the error goes on
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def next_counter(connection: sqlite3.Connection, name: str, by: int = 1) -> int:
    """Raise a counter inside the writing transaction and return it. It is never lowered."""
    row = connection.execute(
        "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value "
        "RETURNING value",
        (name, by),
    ).fetchone()
    return int(row[0])


def note_change(connection: sqlite3.Connection, row: int) -> None:
    """Tell other processes' caches that an item changed."""
    seq = next_counter(connection, "changes")
    connection.execute(
        "INSERT INTO changes VALUES (?, ?) ON CONFLICT (item) DO UPDATE SET seq = excluded.seq", (row, seq)
    )


def keep_revision(connection: sqlite3.Connection, row: int, at: int, by: str) -> None:
    """Save what an item says before it is changed, and count its revision up."""
    kept = ", ".join(REVISED)
    connection.execute(
        f"INSERT INTO item_revisions (item, revision, {kept}, until, changed_by) "
        f"SELECT row, revision, {kept}, ?, ? FROM items WHERE row = ?",
        (at, by, row),
    )
    connection.execute("UPDATE items SET revision = revision + 1 WHERE row = ?", (row,))


def note_event(connection: sqlite3.Connection, code: str, **what: Any) -> int:
    """Append an event of ids and codes: at, item, other, reason, by, origin, write. Never a text.

    Its number comes from a counter, so that none is given twice, also after a restore.
    """
    columns = ("at", "item", "other", "reason", "by", "origin", "write")
    number = next_counter(connection, "events")
    connection.execute(
        f"INSERT INTO events (seq, code, {', '.join(columns)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number, code, *(what.get(name) for name in columns)),
    )
    return number
