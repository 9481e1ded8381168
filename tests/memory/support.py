"""Helpers of the memory tests: openers, views, words that nothing else holds, and the checker of the index."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afterwatch.memory import Channel, Item, Memory, Scope, ScopeKind, View
from afterwatch.memory.embedders import Loading
from afterwatch.memory.files import database_path
from afterwatch.memory.schema import INDEX_TABLES
from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.clock import Clock, FixedClock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

USER = View(channel=Channel.TTY)
AGENT = View()
SHOP = Scope(ScopeKind.PROJECT, "shop")
BANK = Scope(ScopeKind.PROJECT, "bank")
START = datetime(2024, 3, 1, 12, tzinfo=UTC)
DAY = 86_400_000_000
"""A day in microseconds."""


def ticking(start: datetime = START, offset: int = 0) -> FixedClock:
    """A clock that moves on by a second each time it is read."""
    return FixedClock(start, step=1, offset=offset)


def keywords_only(home: Path, clock: Clock | None = None, **settings: Any) -> Memory:
    """Memory without vectors."""
    chosen = MemorySettings(**settings)
    return Memory.open(home, settings=chosen, clock=clock or ticking(), embedder=Loading.done(None))


def word(number: int) -> str:
    """A word of its own for each number, which the stemmer leaves alone."""
    letters = ""
    for _ in range(4):
        number, at = divmod(number, 16)
        letters += "bcdfghjklmnpqrtv"[at] + "aeou"[at % 4]
    return f"{letters}x"


def ids(memory: Memory, question: str, view: View = AGENT, limit: int = 50) -> list[str]:
    """What a search finds, best first."""
    return [hit.item.id for hit in memory.search(view, question, limit=limit).hits]


def everything(memory: Memory, view: View = AGENT) -> dict[str, Item]:
    """Every item of a view, former ones too."""
    return {item.id: item for item in memory.items(view, limit=1_000_000, everything=True)}


class Letters:
    """A small embedder of real vectors: counts of letter pairs, hashed; equal texts give equal vectors."""

    def __init__(self, name: str = "letters-1", dimensions: int = 32) -> None:
        self.id = name
        self.dimensions = dimensions
        self.encoded = 0

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        self.encoded += len(texts)
        counts = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            data = text.encode("utf-8", "replace")
            for at in range(len(data)):
                digest = hashlib.blake2b(data[at : at + 2], digest_size=2).digest()
                counts[row, int.from_bytes(digest, "big") % self.dimensions] += 1
        norms = np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-6)
        return np.asarray(counts / norms, np.float32)


def connect(home: Path, space: str = "local") -> sqlite3.Connection:
    """A plain connection to the file of a space, beside those of `Memory`."""
    return sqlite3.connect(database_path(home, space), isolation_level=None)


def index_content(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Every posting of the three keyword tables, and the counts that ranking uses."""
    content: dict[str, list[tuple[object, ...]]] = {}
    for table in INDEX_TABLES:
        connection.execute(f"CREATE VIRTUAL TABLE temp.postings USING fts5vocab(main, {table}, instance)")
        content[table] = sorted(connection.execute("SELECT term, doc, col, offset FROM temp.postings"))
        connection.execute("DROP TABLE temp.postings")
        sizes = connection.execute(f"SELECT id, hex(sz) FROM {table}_docsize ORDER BY id").fetchall()
        content[f"{table} sizes"] = sizes
    content["live"] = connection.execute("SELECT live, upto FROM index_state").fetchall()
    return content


def index_problems(home: Path, memory: Memory, view: View = AGENT) -> list[str]:
    """Where the keyword index differs from one that is built anew from the items."""
    with closing(connect(home, view.write)) as connection:
        before = index_content(connection)
        memory.reindex(view)
        after = index_content(connection)
    return [f"{name}: {before[name]} is not {after[name]}"[:600] for name in before if before[name] != after[name]]


def item_problems(home: Path, space: str = "local") -> list[str]:
    """Half items: rows, vectors, segments, changes and events that do not agree."""
    queries = {
        "two values at one time": "SELECT a.id FROM items a JOIN items b ON a.row < b.row AND a.subject = b.subject "
        "AND a.scope_kind = b.scope_kind AND a.scope_key = b.scope_key AND ifnull(a.valid_to, 1 << 62) > a.valid_from "
        "AND ifnull(b.valid_to, 1 << 62) > b.valid_from AND max(a.valid_from, b.valid_from) "
        "< min(ifnull(a.valid_to, 1 << 62), ifnull(b.valid_to, 1 << 62))",
        "vector without item": "SELECT item FROM vectors WHERE item NOT IN (SELECT row FROM items)",
        "no change noted": "SELECT row FROM items WHERE row NOT IN (SELECT item FROM changes)",
        "segment missing": "SELECT row FROM items WHERE segment > 0 AND segment NOT IN (SELECT row FROM segments)",
        "segment count": "SELECT row FROM segments s WHERE turns != (SELECT count(*) FROM items WHERE segment = s.row)",
        "not one add event": "SELECT id FROM items WHERE "
        "(SELECT count(*) FROM events WHERE code = 'add' AND item = items.id) != 1",
        "no supersede event": "SELECT id FROM items WHERE status = 'superseded' AND NOT EXISTS "
        "(SELECT 1 FROM events WHERE code = 'supersede' AND other = items.id AND item = items.superseded_by)",
        "add event without item": "SELECT item FROM events WHERE code = 'add' AND item NOT IN (SELECT id FROM items)",
    }
    found = []
    with closing(connect(home, space)) as connection:
        for name, query in queries.items():
            found += [f"{name}: {row[0]}" for row in connection.execute(query)]
    return found


def events_of(memory: Memory, view: View = AGENT) -> Counter[str]:
    """How often each thing happened."""
    return Counter(event["code"] for event in memory.events(view, limit=1_000_000))
