"""Asking the keyword index: how common a term is, and which rows match. Standard library only."""

import heapq
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from afterwatch.memory.index import Stemmer
from afterwatch.memory.words import terms

WEIGHTS = "1.0, 1.0, 0.7"
"""BM25 weights of the columns words, grams, identifiers."""
COMMON_SHARE = 0.02
COMMON_ROWS = 2000
"""A term in more than this share *and* number of rows is left out when rarer ones exist: it only costs time
(five very common words take 70 to 93 ms on 100,000 rows)."""
COMMON_BUDGET = 4
"""Where no term is rare, so many times that many rows are looked through: three of the commonest words of 100,000
rows took 300 ms, and say next to nothing."""
MOST_SEARCHED = 32
"""Terms that one search uses, the rarest first: more only cost time."""
REPEAT_TERMS = 6
REPEAT_BUDGET = 500
REPEAT_ROWS = 6
"""Looking for repeats of a text: at most so many of its rarest terms, held by at most so many rows together, and the
rows that share most of these."""
MOST_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Term:
    """A search term, its stem, and the number of live items that hold it."""

    text: str
    stem: str
    rows: int


class Frequent:
    """Remembers how many rows hold a term: counting one costs up to 4 ms on 100,000 rows.

    A reader remembers the commonest alone (`least`), so that rare ones count exactly. A writer remembers all it met,
    and counts up what it adds. Both forget when the store has 2 % more or fewer rows than they know of, so a count
    may lag by what other processes wrote meanwhile.
    """

    def __init__(self, least: int = COMMON_ROWS) -> None:
        self._least = least
        self._rows = 0
        self._counts: dict[str, int] = {}

    def rows(self, connection: sqlite3.Connection, stem: str) -> int:
        """The live rows that hold a stem."""
        if stem in self._counts:
            return self._counts[stem]
        row = connection.execute("SELECT doc FROM words_live_terms WHERE term = ?", (stem,)).fetchone()
        found = int(row[0]) if row else 0
        if found > self._least:
            self._counts[stem] = found
        return found

    def check(self, rows: int) -> None:
        """Forget what no longer fits a store of so many rows."""
        if abs(rows - self._rows) * 50 > self._rows or len(self._counts) > MOST_REMEMBERED:
            self._rows = rows
            self._counts.clear()

    def added(self, stems: Iterable[str]) -> None:
        """Count one more row that holds these."""
        self._rows += 1
        for stem in stems:
            if stem in self._counts:
                self._counts[stem] += 1


def weigh(connection: sqlite3.Connection, stem: Stemmer, question: str, frequent: Frequent | None = None) -> list[Term]:
    """The terms of a question with their frequencies among live items, in the order of the question."""
    return count(connection, stem, terms(question), frequent)


def count(
    connection: sqlite3.Connection, stem: Stemmer, words: Sequence[str], frequent: Frequent | None = None
) -> list[Term]:
    """Words as terms with their frequencies among live items."""
    known = frequent or Frequent()
    return [Term(word, one, known.rows(connection, one)) for word, one in zip(words, stem(words), strict=True)]


def live_rows(connection: sqlite3.Connection) -> int:
    """The number of items in the live index."""
    row = connection.execute("SELECT live FROM index_state").fetchone()
    return int(row[0]) if row else 0


def searched(found: Sequence[Term], rows: int) -> list[Term]:
    """The terms worth searching, in order: the rare ones, or where there are none the rarest of the common."""
    edge = max(COMMON_ROWS, rows * COMMON_SHARE)
    worth = [term for term in found if term.rows <= edge]
    if not any(term.rows for term in worth):
        worth += _rarest([term for term in found if term.rows > edge], COMMON_BUDGET * edge)
    if len(worth) <= MOST_SEARCHED:
        return worth
    least = set(sorted((term.rows, at) for at, term in enumerate(worth) if term.rows)[:MOST_SEARCHED])
    return [term for at, term in enumerate(worth) if (term.rows, at) in least]


def _rarest(common: Sequence[Term], budget: float) -> list[Term]:
    """The rarest terms that together hold no more rows than this; one at least."""
    kept: list[Term] = []
    for term in sorted(common, key=lambda term: term.rows):
        budget -= term.rows
        if kept and budget < 0:
            break
        kept.append(term)
    return kept


def match(
    connection: sqlite3.Connection,
    table: str,
    wanted: Sequence[str],
    limit: int,
    condition: str = "",
    values: Sequence[object] = (),
) -> dict[int, float]:
    """Rows of an index table that hold any of the terms, with their BM25 score (higher is better), best first.

    `condition` restricts the items joined to the rows; it is written in this package, never taken from outside.
    """
    if not wanted:
        return {}
    quoted = " OR ".join('"{}"'.format(term.replace('"', '""')) for term in wanted)
    join = f"JOIN items ON items.row = {table}.rowid" if condition else ""
    rows = connection.execute(
        f"SELECT {table}.rowid, -bm25({table}, {WEIGHTS}) AS score FROM {table} {join} "
        f"WHERE {table} MATCH ? {f'AND {condition}' if condition else ''} ORDER BY score DESC LIMIT ?",
        (quoted, *values, limit),
    )
    return dict(rows.fetchall())


def holding(connection: sqlite3.Connection, term: str) -> list[int]:
    """The live rows that hold a term."""
    quoted = '"{}"'.format(term.replace('"', '""'))
    return [row for (row,) in connection.execute("SELECT rowid FROM words_live WHERE words_live MATCH ?", (quoted,))]


def likely_repeats(connection: sqlite3.Connection, stem: Stemmer, text: str, frequent: Frequent) -> list[int]:
    """Live rows that share the rarest terms of a text: the few that it could be a repeat of.

    The text is counted as if it were added next; where it is not, the count is one too high until it is forgotten.
    """
    frequent.check(live_rows(connection))
    shared: dict[int, float] = {}
    budget = REPEAT_BUDGET
    counted = count(connection, stem, terms(text), frequent)
    frequent.added(term.stem for term in counted)
    held = [term for term in counted if term.rows]
    for term in heapq.nsmallest(REPEAT_TERMS, held, key=lambda term: term.rows):
        budget -= term.rows
        if budget < 0:
            break
        for row in holding(connection, term.text):
            shared[row] = shared.get(row, 0.0) + 1 / term.rows
    return heapq.nsmallest(REPEAT_ROWS, shared, key=lambda row: (-shared[row], row))
