"""Whole-space copies: online backup, and restore into a store that others may have open."""

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory import index, schema
from afterwatch.memory.files import plain_errors
from afterwatch.memory.store import Store
from afterwatch.security.reading import sensitive_kind

COPIED = ("items", "item_revisions", "vectors", "usage", "feedback", "segments", "changes", "events")
"""Tables that a restore replaces; counters are joined, the keyword index is rebuilt."""


def backup(store: Store, target: Path) -> None:
    """Write a consistent copy while others read and write.

    Raises:
        UserError: the target exists, or its folder does not.
        Unavailable: the disk is full or cannot be written.
    """
    _refuse_sensitive(target)
    if target.exists():
        raise UserError(f"{target} exists already", remedy="name a new file")
    if not target.parent.is_dir():
        raise UserError(f"there is no folder {target.parent}", remedy="create it first")
    part = target.with_name(f".{target.name}.part")
    try:
        store.copy_to(part)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def restore(store: Store, source: Path, *, stamp: str) -> Path:
    """Put a backup in the place of the space's content, in one transaction; the former content is kept beside it.

    Counters are never lowered by it (no id is given out twice). The keyword index is emptied: rebuild it next.

    Returns:
        Where the former content was kept.

    Raises:
        UserError: the file is no backup of a memory store.
        Unavailable: the backup is damaged or was made by a newer program.
    """
    _refuse_sensitive(source)
    if not source.is_file():
        raise UserError(f"there is no file {source}", remedy="name a file made by `afterwatch memory backup`")
    kept = store.path.with_name(f"before-restore-{stamp}.db")
    staged = store.path.with_name(f".restore-{stamp}.db")
    try:
        _stage(source, staged)
        backup(store, kept)
        _swap(store, staged)
    finally:
        staged.unlink(missing_ok=True)
    return kept


def _refuse_sensitive(path: Path) -> None:
    kind = sensitive_kind(path)
    if kind is not None:
        raise UserError(f"{path} is a sensitive place ({kind})", remedy="name a file elsewhere")


def _stage(source: Path, staged: Path) -> None:
    """A private, checked copy of the backup with our schema."""
    with plain_errors():
        origin = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)
        copy = sqlite3.connect(staged, isolation_level=None)
        try:
            meta = schema.read_meta(origin)
            if meta[0] == 0:
                raise UserError(f"{source} is no memory store", remedy="name a file made by `memory backup`")
            schema.check_meta(meta, write=True)
            origin.backup(copy)
            _refuse_damage(copy, source)
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("BEGIN")
            schema.migrate(copy)
            copy.execute("COMMIT")
        finally:
            origin.close()
            copy.close()


def _refuse_damage(copy: sqlite3.Connection, source: Path) -> None:
    found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise Unavailable(f"the backup {source} is damaged", remedy="choose another backup", code="damaged")


def _swap(store: Store, staged: Path) -> None:
    with plain_errors(), _attached(store, staged), store.writing() as connection:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        for table in COPIED:
            _replace(connection, table)
        connection.execute(
            "INSERT INTO counters SELECT name, value FROM backup.counters WHERE true "
            "ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
        )
        connection.execute("UPDATE meta SET epoch = ?", (secrets.token_hex(8),))
        index.start_rebuild(connection, index.signature())


@contextmanager
def _attached(store: Store, staged: Path) -> Iterator[None]:
    store.connection().execute("ATTACH ? AS backup", (str(staged),))
    try:
        yield
    finally:
        store.connection().execute("DETACH backup")


def _replace(connection: sqlite3.Connection, table: str) -> None:
    columns = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,))
    names = ", ".join(row[0] for row in columns)
    connection.execute(f"DELETE FROM main.{table}")
    connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM backup.{table}")
