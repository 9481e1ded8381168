"""Asking the keyword index: how common a term is, and which rows match. Standard library only."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from afterwatch.memory.index import Stemmer
from afterwatch.memory.words import terms

WEIGHTS = "1.0, 1.0, 0.7"
"""BM25 weights of the columns words, grams, identifiers."""
COMMON_SHARE = 0.02
COMMON_ROWS = 2000
"""A term in more than this share *and* number of rows is left out when rarer ones exist: it only costs time
(five very common words take 70 to 93 ms on 100,000 rows)."""
MOST_SEARCHED = 32
"""Terms that one search uses, the rarest first: more only cost time."""
REPEAT_TERMS = 6
REPEAT_BUDGET = 500
REPEAT_ROWS = 6
"""Looking for repeats of a text: at most so many of its rarest terms, held by at most so many rows together, and the
best rows of these. What a process found to be too common for it is not counted again (`common`): counting the
commonest words of 100,000 rows takes 10 ms a text."""


@dataclass(frozen=True, slots=True)
class Term:
    """A search term, its stem, and the number of live items that hold it."""

    text: str
    stem: str
    rows: int


class Frequent:
    """Remembers how many rows hold the commonest terms: counting one costs up to 4 ms on 100,000 rows.

    It forgets when the store has grown or shrunk by 2 %, so a count may lag by that much.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._counts: dict[str, int] = {}

    def rows(self, connection: sqlite3.Connection, stem: str) -> int:
        """The live rows that hold a stem."""
        if stem in self._counts:
            return self._counts[stem]
        row = connection.execute("SELECT doc FROM words_live_terms WHERE term = ?", (stem,)).fetchone()
        found = int(row[0]) if row else 0
        if found > COMMON_ROWS:
            self._counts[stem] = found
        return found

    def check(self, rows: int) -> None:
        """Forget what no longer fits a store of so many rows."""
        if abs(rows - self._rows) * 50 > self._rows:
            self._rows = rows
            self._counts.clear()


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
    """The terms worth searching, in order: the rarest, and very common ones only when there are no others."""
    edge = max(COMMON_ROWS, rows * COMMON_SHARE)
    rare = [term for term in found if term.rows <= edge]
    worth = rare if any(term.rows for term in rare) else list(found)
    if len(worth) <= MOST_SEARCHED:
        return worth
    least = set(sorted((term.rows, at) for at, term in enumerate(worth) if term.rows)[:MOST_SEARCHED])
    return [term for at, term in enumerate(worth) if (term.rows, at) in least]


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


def likely_repeats(connection: sqlite3.Connection, stem: Stemmer, text: str, common: set[str]) -> list[int]:
    """Live rows that share the rarest terms of a text: the few that it could be a repeat of."""
    fresh = [term for term in terms(text) if term not in common]
    counted = count(connection, stem, fresh)
    common.update(term.text for term in counted if term.rows > REPEAT_BUDGET)
    wanted: list[str] = []
    budget = REPEAT_BUDGET
    for term in sorted((term for term in counted if term.rows), key=lambda term: term.rows)[:REPEAT_TERMS]:
        budget -= term.rows
        if budget >= 0:
            wanted.append(term.text)
    return list(match(connection, "words_live", wanted, REPEAT_ROWS))
