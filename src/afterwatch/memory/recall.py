"""The one gate out: candidates by keyword and vector, scored together, filtered, gated, made diverse.

Standard library only; vectors join in when an embedder is ready. Nothing here ever waits for one.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from afterwatch.memory import index, ranking
from afterwatch.memory.admission import micros
from afterwatch.memory.model import Item, View
from afterwatch.memory.ranking import Candidate
from afterwatch.memory.reading import Filter, scope_clause
from afterwatch.memory.spaces import Spaces
from afterwatch.memory.words import terms
from afterwatch.settings.clock import Clock

KEYWORD_CANDIDATES = 400
VECTOR_CANDIDATES = 400
SEGMENTS = 16
PULLED = 60
"""Best candidates whose neighbours in the conversation are looked at too."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One found item; `terms` are the parts of its score when asked for."""

    item: Item
    score: float
    terms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question; `degraded` names what was missing, `more` how many were left out."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()


class Recall:
    """Searches the spaces of a view."""

    def __init__(self, spaces: Spaces, clock: Clock) -> None:
        self._spaces = spaces
        self._clock = clock

    def search(self, view: View, question: str, *, limit: int, where: Filter, explain: bool) -> Found:
        now = micros(self._clock.now())
        hits: list[Hit] = []
        degraded: list[str] = []
        for space in dict.fromkeys(view.read):
            store = self._spaces.store(space)
            with store.reading() as connection:
                one = _Question(self._spaces, space, connection, view, question, where, now)
                candidates = one.candidates()
                ranking.score(candidates, now)
                candidates.sort(key=lambda c: (-round(c.score, 6), -c.valid_from, c.row))
                items = store.by_rows(c.row for c in candidates[: limit * 2])
                for c in candidates[: limit * 2]:
                    item = items[c.row]
                    if where.holds(item, now):
                        hits.append(Hit(item, c.score, c.terms if explain else {}))
                degraded += self._spaces.degraded(store, connection)
        hits.sort(key=lambda h: (-round(h.score, 6), -h.item.valid_from, h.item.id))
        return Found(tuple(hits[:limit]), tuple(dict.fromkeys(degraded)))

    relevant = search


class _Question:
    def __init__(
        self, spaces: Spaces, space: str, connection: sqlite3.Connection, view: View, question: str, where: Filter, now: int
    ) -> None:
        self._spaces = spaces
        self._store = spaces.store(space)
        self._connection = connection
        self._view = view
        self._question = question
        self._where = where
        self._terms = terms(question)

    def candidates(self) -> list[Candidate]:
        keyword = self._keyword("words_live")
        vector: dict[int, float] = {}
        matrix = self._spaces.matrix(self._store, self._connection)
        query = None
        embedder = self._spaces.embedder()
        if matrix is not None and embedder is not None and self._question.strip():
            query = embedder.encode([self._question])[0]
            vector = dict(matrix.nearest(query, VECTOR_CANDIDATES))
        segments = self._segments()
        rows = set(keyword) | set(vector)
        found = self._load(rows)
        found += self._segment_members(segments, {c.row for c in found})
        cosines = matrix.cosines(query, [c.row for c in found]) if matrix is not None and query is not None else {}
        for c in found:
            c.bm25 = keyword.get(c.row, 0.0)
            c.cosine = cosines.get(c.row)
            c.segment_score = segments.get(c.segment or 0, 0.0)
        return found

    def _match(self) -> str:
        return " OR ".join(f'"{term}"' for term in self._terms)

    def _keyword(self, table: str) -> dict[int, float]:
        if not self._terms:
            return {}
        return dict(
            self._connection.execute(
                f"SELECT rowid, -bm25({table}, 1.0, 1.0, 0.7) s FROM {table} WHERE {table} MATCH ? ORDER BY s DESC LIMIT ?",
                (self._match(), KEYWORD_CANDIDATES),
            )
        )

    def _segments(self) -> dict[int, float]:
        if not self._terms:
            return {}
        return dict(
            self._connection.execute(
                "SELECT rowid, -bm25(words_segments, 1.0, 1.0, 0.7) s FROM words_segments WHERE words_segments MATCH ? ORDER BY s DESC LIMIT ?",
                (self._match(), SEGMENTS),
            )
        )

    def _load(self, rows: Iterable[int]) -> list[Candidate]:
        rows = list(rows)
        marks = ",".join("?" * len(rows))
        return [
            Candidate(*r)
            for r in self._connection.execute(
                f"SELECT row, conversation, position, segment, importance, valid_from FROM items WHERE row IN ({marks})", rows
            )
        ]

    def _segment_members(self, segments: dict[int, float], known: set[int]) -> list[Candidate]:
        marks = ",".join("?" * len(segments))
        return [
            Candidate(*r)
            for r in self._connection.execute(
                f"SELECT row, conversation, position, segment, importance, valid_from FROM items WHERE segment IN ({marks}) AND live=1", list(segments)
            )
            if r[0] not in known
        ]
