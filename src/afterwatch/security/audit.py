"""What was done, by whom, in a chain where a changed or removed row shows.

Rows hold ids and redacted argument lists only, never text of an item. Each row's hash covers the row and the
hash before it. The chain alone shows an edited row; against a rewritten or shortened log keep an anchor
(`head()`) elsewhere and give it to `verify`.
"""

import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from afterwatch.errors import Defect, Unavailable, UserError
from afterwatch.security.redaction import redact_argv
from afterwatch.settings.clock import Clock, SystemClock

Row = tuple[int, int, str, str, str, str, str, str]
T = TypeVar("T")

GENESIS = "0" * 64
BUSY_SECONDS = 20.0
ARGUMENT_CAP = 256  # characters of one argument, after redaction
_ID = re.compile(r"[\w.:@/+-]{1,200}")
_COLUMNS = "seq, at_us, kind, actor, subjects, argv, prev_hash, hash"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL,
  subjects TEXT NOT NULL, argv TEXT NOT NULL, prev_hash TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS events_keep BEFORE DELETE ON events
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER IF NOT EXISTS events_fixed BEFORE UPDATE ON events
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
"""


@dataclass(frozen=True)
class Event:
    """One row. `at_us` is UTC in microseconds since 1970."""

    seq: int
    at_us: int
    kind: str
    actor: str
    subjects: tuple[str, ...]
    argv: tuple[str, ...]
    prev_hash: str
    hash: str


@dataclass(frozen=True)
class Verification:
    """The answer of `verify`: `broken` is the first row that does not fit, `head` the last sound anchor."""

    ok: bool
    events: int
    head: str
    broken: int | None = None
    reason: str = ""


class AuditLog:
    """The log in one SQLite file of mode 0600. Several processes may append at once."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._ready = False

    def append(self, kind: str, actor: str, subjects: Sequence[str] = (), argv: Sequence[str] = ()) -> str:
        """Record one event in one transaction and return its anchor.

        `subjects` are ids (Defect if one is not), `argv` words of a command without text of an item; they are
        redacted, then cut to 256 characters. Unavailable if it cannot be recorded: the caller decides
        whether the act then fails.
        """
        wrong = [word for word in (kind, actor, *subjects) if not _ID.fullmatch(word)]
        if wrong:
            raise Defect("an audit event may hold ids only", remedy="report the command you ran")
        words = [word[:ARGUMENT_CAP] for word in redact_argv(argv)]
        texts = (kind, actor, _dump(list(subjects)), _dump(words))
        return self._guarded(lambda: self._append(texts), "written")

    def events(self, limit: int = 100, kind: str | None = None) -> list[Event]:
        """Return the newest `limit` events, newest first, of one kind if given."""
        if not self.path.exists():
            return []
        query = f"SELECT {_COLUMNS} FROM events WHERE ?1 IS NULL OR kind = ?1 ORDER BY seq DESC LIMIT ?2"

        def read() -> list[Event]:
            with self._reading() as connection:
                return [_event(row) for row in connection.execute(query, (kind, limit))]

        return self._guarded(read, "read")

    def head(self) -> str:
        """Return the anchor of the newest row, `seq:hash`; `0:000…` if the log is empty."""
        newest = self.events(limit=1)
        return f"{newest[0].seq}:{newest[0].hash}" if newest else f"0:{GENESIS}"

    def verify(self, anchor: str | None = None) -> Verification:
        """Walk the chain and return the first row that does not fit.

        With the `anchor` of an earlier time it also shows that the log was only extended since: a row that
        is gone or different at that place is broken. UserError if the anchor is malformed.
        """
        expected = _parse_anchor(anchor) if anchor else (0, GENESIS)
        if not self.path.exists():
            return _walk(iter(()), expected)

        def walk() -> Verification:
            with self._reading() as connection:
                return _walk(connection.execute(f"SELECT {_COLUMNS} FROM events ORDER BY seq"), expected)

        return self._guarded(walk, "read")

    def _append(self, texts: tuple[str, str, str, str]) -> str:
        self._create()
        with closing(self._connect()) as connection:
            if not self._ready:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(_SCHEMA)
                self._ready = True
            connection.execute("BEGIN IMMEDIATE")
            newest = connection.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
            seq, previous = (newest[0] + 1, newest[1]) if newest else (1, GENESIS)
            at_us = round(self._clock.now().timestamp() * 1_000_000)
            digest = _digest(seq, at_us, *texts, previous)
            connection.execute(
                f"INSERT INTO events ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)",
                (seq, at_us, *texts, previous, digest),
            )
            connection.execute("COMMIT")
        return f"{seq}:{digest}"

    def _create(self) -> None:
        if self._ready and self.path.exists():
            return
        self._ready = False
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Created before SQLite sees it: SQLite would take the mode from the umask. Never through a link.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            if os.name == "posix" and os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        # A reader must not create an empty log, nor need to write. In a closed folder SQLite cannot make the file of
        # its locks; without a -wal file nobody writes, and none is needed.
        log = self.path.with_name(f"{self.path.name}-wal")
        closed = not os.access(self.path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
        address = f"{self.path.absolute().as_uri()}?{'immutable=1' if closed else 'mode=ro'}"
        with closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")  # a tampered row is shown
            yield connection

    def _guarded(self, work: Callable[[], T], done: str) -> T:
        """Run `work`; retry while another process holds the file, turn other failures into Unavailable."""
        limit = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return work()
            except sqlite3.OperationalError as exc:
                # Switching to WAL reports "locked" at once, without SQLite's own waiting.
                busy = getattr(exc, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > limit:
                    raise self._unavailable(done, str(exc)) from exc
                time.sleep(0.02)
            except (sqlite3.Error, OSError) as exc:
                raise self._unavailable(done, str(exc)) from exc

    def _unavailable(self, done: str, why: str) -> Unavailable:
        return Unavailable(
            f"the audit log {self.path} cannot be {done}: {why}",
            remedy="run `afterwatch doctor`; check the disk and who owns the file",
            code="audit_unavailable",
        )


def _dump(words: list[str]) -> str:
    return json.dumps(words, ensure_ascii=True, separators=(",", ":"))


def _digest(seq: int, at_us: int, kind: str, actor: str, subjects: str, argv: str, previous: str) -> str:
    row = json.dumps([seq, at_us, kind, actor, subjects, argv, previous], separators=(",", ":"))
    return hashlib.sha256(row.encode("ascii")).hexdigest()


def _event(row: Row) -> Event:
    seq, at_us, kind, actor, subjects, argv, previous, digest = row
    return Event(seq, at_us, kind, actor, _words(subjects), _words(argv), previous, digest)


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(str(word) for word in json.loads(text))
    except (ValueError, TypeError):  # a tampered row: `verify` names it, listing must still work
        return ("[unreadable]",)


def _parse_anchor(anchor: str) -> tuple[int, str]:
    found = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", anchor.strip())
    if found is None:
        raise UserError("the anchor must look like 12:<64 hex digits>", remedy="copy it from `security verify`")
    return int(found[1]), found[2]


def _walk(rows: Iterator[Row], anchor: tuple[int, str]) -> Verification:
    seq, previous, at_anchor = 0, GENESIS, GENESIS if anchor[0] == 0 else ""
    for row in rows:
        reason = _misfit(row, seq, previous)
        if reason:
            return Verification(False, seq, f"{seq}:{previous}", seq + 1, reason)
        seq, previous = row[0], row[7]
        if seq == anchor[0]:
            at_anchor = previous
    head = f"{seq}:{previous}"
    if at_anchor == anchor[1]:
        return Verification(True, seq, head)
    if not at_anchor:
        return Verification(False, seq, head, seq + 1, f"rows after {seq} are gone; the anchor names {anchor[0]}")
    return Verification(False, seq, head, anchor[0], "this row is not the one the anchor names: rewritten")


def _misfit(row: Row, seq: int, previous: str) -> str:
    if [type(value) for value in row] != [int, int] + [str] * 6:
        return "its content was changed"
    if row[0] != seq + 1:
        return f"row {seq + 1} is missing"
    if row[6] != previous:
        return "it does not follow the row before it"
    if _digest(*row[:7]) != row[7]:
        return "its content was changed"
    return ""
