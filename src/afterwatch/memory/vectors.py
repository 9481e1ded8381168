"""Exact vector search: one matrix in memory that follows the store. Needs numpy; loaded only with an embedder.

Vectors are stored as float16 (a kilobyte at 512 dimensions) and held as float32. Rows of items that are not
live are not held, so they can lend no weight.
"""

import sqlite3
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Embedder
    from afterwatch.memory.reading import Condition

Vector = NDArray[np.float32]
READ_ROWS = 4096


def store(connection: sqlite3.Connection, row: int, model: str, vector: Vector) -> None:
    """Keep the vector of an item; replaces one of another model."""
    connection.execute(
        "INSERT INTO vectors VALUES (?, ?, ?) ON CONFLICT (item) DO UPDATE SET model = excluded.model, "
        "vector = excluded.vector",
        (row, model, vector.astype(np.float16).tobytes()),
    )


def stored_cosines(connection: sqlite3.Connection, model: str, vector: Vector, rows: Sequence[int]) -> dict[int, float]:
    """Cosine of a vector with each of these rows that has one of this model, read from the store itself."""
    marks = ",".join("?" * len(rows))
    found = connection.execute(
        f"SELECT item, vector FROM vectors WHERE model = ? AND item IN ({marks})", (model, *rows)
    ).fetchall()
    return {row: float(np.frombuffer(packed, np.float16).astype(np.float32) @ vector) for row, packed in found}


def missing(connection: sqlite3.Connection, model: str, limit: int) -> list[tuple[int, str]]:
    """(row, text) of live items without a vector of this model."""
    return connection.execute(
        "SELECT i.row, i.text FROM items i LEFT JOIN vectors v ON v.item = i.row AND v.model = ? "
        "WHERE v.item IS NULL AND i.live = 1 ORDER BY i.row LIMIT ?",
        (model, limit),
    ).fetchall()


def _now_at(connection: sqlite3.Connection) -> tuple[str, int]:
    """Epoch and last change of the snapshot that a connection reads."""
    row = connection.execute("SELECT epoch, (SELECT coalesce(max(seq), 0) FROM changes) FROM meta").fetchone()
    return (row[0], row[1])


class Nearest(NamedTuple):
    """Rows best first, and the mean and the highest cosine of all that were compared."""

    rows: list[int]
    mean: float
    top: float


class Matrix:
    """The vectors of one space and one model; `follow` brings it up to date, `nearest` searches."""

    def __init__(self, embedder: "Embedder") -> None:
        self.model = embedder.id
        self._width = embedder.dimensions
        self._lock = threading.RLock()
        self._masked: tuple[tuple[Condition, str, int], NDArray[np.bool_]] | None = None
        self._reset("", 0, 0)

    def _reset(self, epoch: str, seq: int, capacity: int) -> None:
        self._epoch, self._seq, self._used = epoch, seq, 0
        self._vectors = np.empty((capacity, self._width), np.float32)
        self._rows = np.empty(capacity, np.int64)
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return self._used

    # -- following ----------------------------------------------------------------------------------------------

    def follow(self, connection: sqlite3.Connection) -> None:
        """Take in what any process wrote since the last call. Call it inside a read transaction."""
        with self._lock:
            epoch, top = _now_at(connection)
            if epoch != self._epoch:
                self._load(connection, epoch, top)
            elif top > self._seq:
                self._catch_up(connection, top)

    def _load(self, connection: sqlite3.Connection, epoch: str, top: int) -> None:
        held = "FROM vectors v JOIN items i ON i.row = v.item WHERE v.model = ? AND i.live = 1"
        count = connection.execute(f"SELECT count(*) {held}", (self.model,)).fetchone()[0]
        self._reset(epoch, top, count + count // 8 + 64)
        cursor = connection.execute(f"SELECT v.item, v.vector {held} ORDER BY v.item", (self.model,))
        while part := cursor.fetchmany(READ_ROWS):
            end = self._used + len(part)
            joined = b"".join(vector for _, vector in part)
            self._vectors[self._used : end] = np.frombuffer(joined, np.float16).reshape(len(part), self._width)
            self._rows[self._used : end] = [row for row, _ in part]
            self._used = end
        self._place = {int(row): at for at, row in enumerate(self._rows[: self._used].tolist())}

    def _catch_up(self, connection: sqlite3.Connection, top: int) -> None:
        changed = connection.execute(
            "SELECT c.item, CASE WHEN i.live = 1 AND v.model = ? THEN v.vector END FROM changes c "
            "LEFT JOIN items i ON i.row = c.item LEFT JOIN vectors v ON v.item = c.item WHERE c.seq > ?",
            (self.model, self._seq),
        )
        for row, vector in changed.fetchall():
            if vector is None:
                self._drop(row)
            else:
                self._put(row, np.frombuffer(vector, np.float16))
        self._seq = top

    def _put(self, row: int, vector: NDArray[np.float16]) -> None:
        at = self._place.get(row)
        if at is None:
            if self._used == len(self._rows):
                self._grow()
            at = self._used
            self._used += 1
            self._place[row] = at
            self._rows[at] = row
        self._vectors[at] = vector

    def _drop(self, row: int) -> None:
        at = self._place.pop(row, None)
        if at is None:
            return
        last = self._used - 1
        if at != last:
            moved = int(self._rows[last])
            self._vectors[at] = self._vectors[last]
            self._rows[at] = moved
            self._place[moved] = at
        self._used = last

    def _grow(self) -> None:
        capacity = max(256, len(self._rows) * 3 // 2)
        vectors = np.empty((capacity, self._width), np.float32)
        vectors[: self._used] = self._vectors[: self._used]
        self._vectors = vectors
        self._rows = np.resize(self._rows, capacity)

    # -- searching ----------------------------------------------------------------------------------------------

    def nearest(self, connection: sqlite3.Connection, vector: Vector, limit: int, wanted: "Condition") -> "Nearest":
        """The nearest items that meet a condition, best first, ties by row; and how all of them lie."""
        with self._lock:
            scores = self._vectors[: self._used] @ vector
            rows = self._rows[: self._used]
            if wanted.sql:
                keep = self._mask(connection, wanted)
                scores, rows = scores[keep], rows[keep]
            if not len(scores):
                return Nearest([], 0.0, 0.0)
            # summed in float64, so that the order of rows, which depends on what was dropped, does not show
            mean, top = float(scores.mean(dtype=np.float64)), float(scores.max())
            if len(scores) > limit:
                # everything that ties with the last place stays in until the order by row decides
                edge = np.partition(scores, len(scores) - limit)[len(scores) - limit]
                keep = scores >= edge
                scores, rows = scores[keep], rows[keep]
            order = np.lexsort((rows, -scores))[:limit]
            return Nearest(rows[order].tolist(), mean, top)

    def _mask(self, connection: sqlite3.Connection, wanted: "Condition") -> NDArray[np.bool_]:
        """Which held rows meet a condition; remembered until something changes.

        A reader whose snapshot is older than the matrix (another thread moved it on) must not leave its mask behind.
        """
        key = (wanted, self._epoch, self._seq)
        if self._masked is None or self._masked[0] != key:
            found = connection.execute(f"SELECT row FROM items WHERE live = 1 AND {wanted.sql}", wanted.values)
            allowed = np.fromiter((row for (row,) in found), np.int64)
            mask = np.isin(self._rows[: self._used], allowed)
            if _now_at(connection) != key[1:]:
                return mask
            self._masked = (key, mask)
        return self._masked[1]

    def cosines(self, vector: Vector, rows: Sequence[int]) -> dict[int, float]:
        """Cosine of each of these rows that has a vector."""
        with self._lock:
            known = [(row, self._place[row]) for row in rows if row in self._place]
            if not known:
                return {}
            scores = self._vectors[[at for _, at in known]] @ vector
            return dict(zip((row for row, _ in known), scores.tolist(), strict=True))
