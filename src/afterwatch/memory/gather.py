"""Collecting what may answer a question in one space: by words, by vector, by conversation. Standard library only.

At most a few hundred items are looked at, whatever the size of the store.
"""

import heapq
import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from afterwatch.memory import keywords
from afterwatch.memory.keywords import Term
from afterwatch.memory.ranking import Candidate, Levels
from afterwatch.memory.reading import Condition
from afterwatch.memory.utterance import named, speaker

if TYPE_CHECKING:
    from afterwatch.memory.vectors import Matrix, Vector

BY_WORDS = 200
KNOWN_WORDS = 600
"""Rows whose keyword score is known: what comes in another way, and its neighbours, may have one too."""
BY_VECTOR = 200
BY_SEGMENT = 10
"""Segments whose turns all become candidates; the scores of five times as many are known."""

TOPIC_TURNS = 3
"""Turns of a segment whose cosines say what it is about."""

_PLACED = """
SELECT i.row, i.text, i.importance, i.valid_from, i.segment,
    (SELECT n.row FROM items n WHERE {same} AND n.position < i.position ORDER BY n.position DESC LIMIT 1 OFFSET 1),
    (SELECT n.row FROM items n WHERE {same} AND n.position < i.position ORDER BY n.position DESC LIMIT 1),
    (SELECT n.row FROM items n WHERE {same} AND n.position > i.position ORDER BY n.position LIMIT 1)
FROM items i WHERE i.row IN (SELECT value FROM json_each(?)) AND {wanted}
""".replace(
    "{same}",
    "n.conversation = i.conversation AND n.scope_kind = i.scope_kind AND n.scope_key = i.scope_key "
    "AND n.status IN ('active', 'pending-cleanup') AND n.quarantined = 0 AND n.merged_into IS NULL",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question ready to be searched: terms with their frequencies among `rows` items, and a vector."""

    text: str
    terms: list[Term]
    rows: int
    vector: "Vector | None" = None


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look: `narrow` restricts while candidates are found, `final` afterwards; `past` adds former items."""

    narrow: Condition
    final: Condition
    past: bool = False

    @property
    def all(self) -> Condition:
        return self.narrow & self.final


@dataclass(slots=True)
class _Evidence:
    by_words: dict[int, float]
    by_segment: dict[int, float]
    by_vector: dict[int, float] = field(default_factory=dict)
    topics: dict[int, float] = field(default_factory=dict)
    holds: dict[int, int] = field(default_factory=dict)
    shares: list[float] = field(default_factory=list)
    _share: dict[int, float] = field(default_factory=dict)
    _stems: dict[int, frozenset[str]] = field(default_factory=dict)

    def share(self, bits: int) -> float:
        """The part of the question's weight that these terms have."""
        if bits not in self._share:
            self._share[bits] = sum(share for bit, share in enumerate(self.shares) if bits >> bit & 1)
        return self._share[bits]

    def stems(self, bits: int, terms: list[Term]) -> frozenset[str]:
        """The stems of these terms."""
        if bits not in self._stems:
            self._stems[bits] = frozenset(term.stem for bit, term in enumerate(terms) if bits >> bit & 1)
        return self._stems[bits]


def gather(
    connection: sqlite3.Connection, space: str, asked: Asked, where: Where, matrix: "Matrix | None", levels: Levels
) -> list[Candidate]:
    """Candidates of one space with their raw evidence; raises the levels to what was seen here."""
    wanted = [term.text for term in asked.terms]
    by_words, words = _by_words(connection, wanted, where)
    found = _Evidence(
        by_words,
        keywords.match(connection, "words_segments", wanted, BY_SEGMENT * 5),
    )
    rows_seen = set(words) | _turns_of(connection, list(found.by_segment)[:BY_SEGMENT])
    if matrix is not None and asked.vector is not None:
        near = matrix.nearest(connection, asked.vector, BY_VECTOR, where.narrow)
        if near.rows:  # vectors of items out of view say nothing
            rows_seen.update(near.rows)
            _raise_vector_levels(levels, near.mean, near.top)
    placed = _place(connection, rows_seen, where.all)
    if matrix is not None and asked.vector is not None:
        everyone = {row for one in placed for row in (one[0], *one[5:]) if row is not None}
        found.by_vector = matrix.cosines(asked.vector, list(everyone))
        found.topics = _topics(placed, found.by_vector)
    _cover(connection, asked, placed, found)
    levels.keyword = max(levels.keyword, *found.by_words.values(), 0.0)
    levels.segment = max(levels.segment, *found.by_segment.values(), 0.0)
    return [_candidate(space, one, asked, found) for one in placed]


def _by_words(connection: sqlite3.Connection, wanted: list[str], where: Where) -> tuple[dict[int, float], list[int]]:
    """The scores of the best rows, more than become candidates; and the rows that do."""
    narrow = where.narrow
    scores = keywords.match(connection, "words_live", wanted, KNOWN_WORDS, narrow.sql, narrow.values)
    rows = list(scores)[:BY_WORDS]
    if where.past:
        everything = where.all
        past = keywords.match(connection, "words_past", wanted, KNOWN_WORDS, everything.sql, everything.values)
        return scores | past, rows + list(past)[:BY_WORDS]
    return scores, rows


def _turns_of(connection: sqlite3.Connection, segments: list[int]) -> set[int]:
    rows = connection.execute(
        "SELECT row FROM items WHERE segment IN (SELECT value FROM json_each(?)) AND live = 1",
        (json.dumps(segments),),
    )
    return {row for (row,) in rows}


_Placed = tuple[int, str, float, int, int | None, int | None, int | None, int | None]
"""row, text, importance, valid_from, segment, and the rows two before, one before and one after."""


def _place(connection: sqlite3.Connection, rows: Iterable[int], wanted: Condition) -> list[_Placed]:
    sql = _PLACED.replace("{wanted}", wanted.sql or "1")
    return connection.execute(sql, (json.dumps(sorted(rows)), *wanted.values)).fetchall()


def _raise_vector_levels(levels: Levels, mean: float, top: float) -> None:
    levels.cosine_mean = mean if not levels.vectors else min(levels.cosine_mean, mean)
    levels.cosine_max = top if not levels.vectors else max(levels.cosine_max, top)
    levels.vectors = True


def _topics(placed: list[_Placed], cosines: Mapping[int, float]) -> dict[int, float]:
    """Per segment the mean of its best cosines."""
    found: dict[int, list[float]] = {}
    for row, _text, _importance, _valid_from, segment, *_near in placed:
        if segment is not None and row in cosines:
            found.setdefault(segment, []).append(cosines[row])
    best = {segment: heapq.nlargest(TOPIC_TURNS, values) for segment, values in found.items()}
    return {segment: math.fsum(values) / len(values) for segment, values in best.items()}


def _cover(connection: sqlite3.Connection, asked: Asked, placed: list[_Placed], found: _Evidence) -> None:
    """Which terms each row holds, as bits, and each term's share of the question's rare-term weight.

    Names of speakers have no share: nearly every turn of theirs holds them.
    """
    said = named(asked.text, (speaker(one[1]) for one in placed))
    names = {word for name in said for word in name.split()}
    weights = [0.0 if term.text in names else _rarity(term.rows, asked.rows) for term in asked.terms]
    whole = math.fsum(weights) or 1.0
    found.shares = [weight / whole for weight in weights]
    for bit, term in enumerate(asked.terms):
        for row in keywords.holding(connection, term.text) if term.rows else ():
            found.holds[row] = found.holds.get(row, 0) | (1 << bit)


def _rarity(held: int, rows: int) -> float:
    return max(1e-6, math.log((rows - held + 0.5) / (held + 0.5))) if held else 0.0


def _candidate(space: str, placed: _Placed, asked: Asked, found: _Evidence) -> Candidate:
    row, text, importance, valid_from, segment, before2, before, after = placed
    own = mask = found.holds.get(row, 0)
    if segment is not None:
        mask |= found.holds.get(before or 0, 0) | found.holds.get(before2 or 0, 0)
        lent_keyword = _lent(found.by_words, row, before2, before, after)
    else:
        lent_keyword = found.by_words.get(row, 0.0)
    cosine = lent_vector = found.by_vector.get(row)
    if cosine is not None and segment is not None:
        lent_vector = _lent(found.by_vector, row, before2, before, after)
    return Candidate(
        row,
        space,
        text,
        importance,
        valid_from,
        lent_keyword,
        lent_vector,
        cosine,
        found.share(mask),
        found.by_segment.get(segment, 0.0) if segment is not None else None,
        found.topics.get(segment) if segment is not None else None,
        found.stems(own, asked.terms),
        speaker(text),
    )


def _lent(values: Mapping[int, float], row: int, before2: int | None, before: int | None, after: int | None) -> float:
    """The mean of an item's own value (twice) and what its neighbours in the conversation have."""
    total, weight = 2 * values.get(row, 0.0), 2.0
    if before is not None:
        total, weight = total + values.get(before, 0.0), weight + 1.0
    if after is not None:
        total, weight = total + values.get(after, 0.0), weight + 1.0
    if before2 is not None:
        total, weight = total + 0.5 * values.get(before2, 0.0), weight + 0.5
    return total / weight
