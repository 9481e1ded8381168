"""The one gate out: candidates by words and vector, rated together, put in order; gated for a prompt.

Standard library only; vectors join in when an embedder is ready. Nothing here waits for one.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from afterwatch.memory import gate, keywords, ranking, spelling
from afterwatch.memory.gather import Asked, Where, gather
from afterwatch.memory.keywords import Term
from afterwatch.memory.model import Item, View, micros
from afterwatch.memory.ranking import Candidate, Levels
from afterwatch.memory.reading import Condition, Filter, chosen, in_scope, visible
from afterwatch.memory.spaces import Spaces
from afterwatch.settings.clock import Clock

if TYPE_CHECKING:
    from afterwatch.memory.vectors import Vector

LONGEST_QUESTION = 4000
"""Characters of a question that are read."""
GATED = 50
"""Best candidates that the gate judges."""
WARM = Condition("tier != 'cold' AND status != 'pending-cleanup'")
ANY = Condition()


@dataclass(frozen=True, slots=True)
class Hit:
    """One found item with its score; `terms` are its parts, when asked for; `why` is what the gate says."""

    item: Item
    score: float
    terms: dict[str, float]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question, best first; `degraded` names what was missing."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()


@dataclass(slots=True)
class Rated:
    """Every candidate of a question with its score, in no order, and what the gate needs about the question."""

    now: int
    candidates: list[Candidate] = field(default_factory=list)
    levels: Levels = field(default_factory=Levels)
    degraded: dict[str, None] = field(default_factory=dict)
    terms: dict[str, Term] = field(default_factory=dict)
    near: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0


class Recall:
    """Searches the spaces of a view."""

    def __init__(self, spaces: Spaces, clock: Clock) -> None:
        self._spaces = spaces
        self._clock = clock

    def search(self, view: View, question: str, *, limit: int, where: Filter, explain: bool = False) -> Found:
        """The best matches, ungated."""
        rated = self.rated(view, question, where)
        best, items = self._items(ranking.order(rated.candidates, limit), where)
        hits = [
            Hit(item, one.score, ranking.explain(one, rated.levels, rated.now) if explain else {})
            for one, item in zip(best, items, strict=True)
        ]
        return Found(tuple(hits), tuple(rated.degraded))

    def relevant(self, view: View, question: str, *, limit: int, where: Filter, explain: bool = False) -> Found:
        """The best matches that may enter a prompt: warm, and admitted by the gate."""
        rated = self.rated(view, question, where, WARM)
        best, items = self._items(ranking.order(rated.candidates, GATED), where)
        verdicts = self._verdicts(question, rated, best, items)
        hits = [
            Hit(item, one.score, {f"gate:{verdict.way}": verdict.strength} if explain else {}, verdict.why)
            for one, item, verdict in zip(best, items, verdicts, strict=True)
            if verdict.admitted
        ]
        return Found(tuple(hits[:limit]), tuple(rated.degraded))

    def _verdicts(
        self, question: str, rated: Rated, best: Sequence[Candidate], items: Sequence[Item]
    ) -> list[gate.Verdict]:
        stem, embedder = self._spaces.stem, self._spaces.embedder()
        asked = gate.ask(question[:LONGEST_QUESTION], rated.terms.values(), rated.rows, stem, rated.near)
        evidence = [
            gate.about(item.subject, item.aliases, one.held, stem, one.cosine)
            for one, item in zip(best, items, strict=True)
        ]
        vectors = embedder.id if embedder is not None and rated.levels.vectors else None
        return gate.admit(asked, evidence, self._spaces.gate(vectors))

    def rated(self, view: View, question: str, where: Filter, also: Condition = ANY) -> Rated:
        """The candidates of all spaces of the view, rated against each other."""
        question = question[:LONGEST_QUESTION]
        rated = Rated(micros(self._clock.now()), degraded=dict.fromkeys(self._spaces.lacking()))
        vector = self._vector(question)
        for space in dict.fromkeys(view.read):
            place = Where(in_scope(view) & chosen(where), visible(where, rated.now) & also, where.past)
            self._collect(space, question, vector, replace(place, narrow=place.narrow & also), rated)
        ranking.rate(question, rated.candidates, rated.levels, rated.now)
        return rated

    def _collect(self, space: str, question: str, vector: "Vector | None", place: Where, rated: Rated) -> None:
        store, stem = self._spaces.store(space), self._spaces.stem
        with store.reading() as connection:
            rated.degraded |= dict.fromkeys(self._spaces.degraded(store, connection))
            if not question.strip():
                return
            rows = keywords.live_rows(connection)
            frequent = self._spaces.frequent(space)
            frequent.check(rows)
            terms = keywords.weigh(connection, stem, question, frequent)
            near = spelling.corrections(connection, stem, terms)
            guesses = keywords.count(connection, stem, [word for words in near.values() for word in words])
            asked = Asked(question, [*keywords.searched(terms, rows), *guesses], rows, vector)
            if _some_out_of_time(connection, rated.now):
                place = replace(place, narrow=place.all)  # else they would crowd out what holds
            matrix = self._spaces.matrix(store, connection) if vector is not None else None
            rated.candidates += gather(connection, space, asked, place, matrix, rated.levels)
        rated.rows += rows
        for term in terms:
            before = rated.terms.get(term.stem)
            rated.terms[term.stem] = Term(term.text, term.stem, term.rows + (before.rows if before else 0))
        for one, words in near.items():
            rated.near[one] = [*rated.near.get(one, ()), *words]

    def _items(self, wanted: Sequence[Candidate], where: Filter) -> tuple[list[Candidate], list[Item]]:
        """The items of candidates, without those that another process took out of sight meanwhile."""
        found: dict[tuple[str, int], Item] = {}
        for space in {candidate.space for candidate in wanted}:
            rows = [candidate.row for candidate in wanted if candidate.space == space]
            found.update(((space, row), item) for row, item in self._spaces.store(space).by_rows(rows).items())
        pairs = [(one, found.get((one.space, one.row))) for one in wanted]
        still = [(one, item) for one, item in pairs if item is not None and (where.past or item.live)]
        return [one for one, _ in still], [item for _, item in still]

    def _vector(self, question: str) -> "Vector | None":
        found = self._spaces.encode([question]) if question.strip() else None
        return found[1][0] if found is not None else None


def _some_out_of_time(connection: sqlite3.Connection, now: int) -> bool:
    sql = (
        "SELECT EXISTS (SELECT 1 FROM items INDEXED BY items_ending "
        "WHERE live = 1 AND valid_to IS NOT NULL AND valid_to <= ?) OR EXISTS (SELECT 1 FROM items "
        "INDEXED BY items_beginning WHERE live = 1 AND valid_from > recorded_at AND valid_from > ?)"
    )
    return bool(connection.execute(sql, (now, now)).fetchone()[0])
