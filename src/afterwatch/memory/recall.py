"""The one gate out: candidates by words and vector, rated together, put in order; gated for a prompt.

Standard library only; vectors join in when an embedder is ready. Nothing here waits for one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from afterwatch.memory import keywords, ranking
from afterwatch.memory.gather import Asked, Where, gather
from afterwatch.memory.model import Item, View, micros
from afterwatch.memory.ranking import Candidate, Levels
from afterwatch.memory.reading import Condition, Filter, chosen, in_scope, in_time
from afterwatch.memory.spaces import Spaces
from afterwatch.settings.clock import Clock

if TYPE_CHECKING:
    from afterwatch.memory.vectors import Vector

LONGEST_QUESTION = 4000
"""Characters of a question that are read."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One found item with its score; `terms` are the parts of the score, when asked for."""

    item: Item
    score: float
    terms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question, best first; `degraded` names what was missing."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rated:
    """Every candidate of a question with its score, in no order."""

    candidates: list[Candidate]
    levels: Levels
    degraded: tuple[str, ...]
    now: int


class Recall:
    """Searches the spaces of a view."""

    def __init__(self, spaces: Spaces, clock: Clock) -> None:
        self._spaces = spaces
        self._clock = clock

    def search(self, view: View, question: str, *, limit: int, where: Filter, explain: bool = False) -> Found:
        """The best matches, ungated."""
        rated = self.rated(view, question, where)
        return self._found(rated, ranking.order(rated.candidates, limit), explain=explain)

    relevant = search

    def rated(self, view: View, question: str, where: Filter) -> Rated:
        """The candidates of all spaces of the view, rated against each other."""
        now = micros(self._clock.now())
        levels = Levels()
        candidates: list[Candidate] = []
        degraded: dict[str, None] = {}
        for space in dict.fromkeys(view.read):
            found, lacking = self._gather(space, view, question[:LONGEST_QUESTION], where, levels, now)
            candidates += found
            degraded |= dict.fromkeys(lacking)
        ranking.rate(question, candidates, levels, now)
        return Rated(candidates, levels, tuple(degraded), now)

    def _found(self, rated: Rated, chosen_ones: list[Candidate], *, explain: bool) -> Found:
        items: dict[tuple[str, int], Item] = {}
        for space in {candidate.space for candidate in chosen_ones}:
            rows = [candidate.row for candidate in chosen_ones if candidate.space == space]
            items.update(((space, row), item) for row, item in self._spaces.store(space).by_rows(rows).items())
        hits = [
            Hit(items[c.space, c.row], c.score, ranking.explain(c, rated.levels, rated.now) if explain else {})
            for c in chosen_ones
            if (c.space, c.row) in items
        ]
        return Found(tuple(hits), rated.degraded)

    def _gather(
        self, space: str, view: View, question: str, where: Filter, levels: Levels, now: int
    ) -> tuple[list[Candidate], tuple[str, ...]]:
        store = self._spaces.store(space)
        with store.reading() as connection:
            degraded = self._spaces.degraded(store, connection)
            if not question.strip():
                return [], degraded
            matrix = self._spaces.matrix(store, connection)
            terms = keywords.weigh(connection, self._spaces.stem, question)
            asked = Asked(question, terms, self._vector(question) if matrix is not None else None)
            final = in_time(where, now) if where.past else in_time(where, now) & Condition("live = 1")
            place = Where(in_scope(view) & chosen(where), final, where.past)
            return gather(connection, space, asked, place, matrix, levels), degraded

    def _vector(self, question: str) -> "Vector | None":
        embedder = self._spaces.embedder()
        return embedder.encode([question])[0] if embedder is not None else None
