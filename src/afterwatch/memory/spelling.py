"""Misspelt question terms: the words of the index that a term no item holds may stand for. Standard library only.

The vocabulary holds stems, so stems are compared. A correction is a guess: it may point at a name, and must never
count as much as a word that was really said. Digits are left alone: `k9s` is not `k8s`, and `v1.28` not `v1.29`.
"""

import sqlite3
from collections.abc import Sequence

from afterwatch.memory.index import Stemmer
from afterwatch.memory.keywords import Term

SHORTEST = 4
"""Letters below which one edit too often makes another word (`pod`, `pot`)."""
LONG = 8
"""From this many letters on two edits are tolerated."""
PREFIX = 2
"""First characters that must be right: they bound the scan, and are rarely mistyped."""
MOST_TERMS = 8
MOST_SCANNED = 2000
MOST_FOUND = 3
ENDINGS = ("", "e", "s", "y", "ing")
"""What may make a word of a stem again; a stem is not always its own stem (`moongoos` is that of `moongoose`)."""


def corrections(connection: sqlite3.Connection, stem: Stemmer, terms: Sequence[Term]) -> dict[str, list[str]]:
    """The nearest words of the live index for each term that no live item holds.

    Args:
        connection: one of a space, inside its transaction.
        stem: the space's stemmer.
        terms: the question's, from `keywords.weigh`; those with rows are taken as right.

    Returns:
        stem of the term → words to search for instead, whose stems the index holds: those at the least distance, most
        frequent first, at most `MOST_FOUND`. A term without any is left out. At most `MOST_TERMS` are looked at.
    """
    unknown = {term.stem: term for term in terms if not term.rows and _correctable(term)}
    found: dict[str, list[str]] = {}
    for term in list(unknown.values())[:MOST_TERMS]:
        words = [word for near in _nearest(connection, term) for word in _word(stem, near)]
        if words:
            found[term.stem] = words
    return found


def distance(one: str, other: str, most: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) from one to the other; `most + 1` stands for any more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _correctable(term: Term) -> bool:
    return len(term.text) >= SHORTEST and len(term.stem) > PREFIX and term.text.isalpha()


def _nearest(connection: sqlite3.Connection, term: Term) -> list[str]:
    most = 2 if len(term.stem) >= LONG else 1
    prefix = term.stem[:PREFIX]
    rows = connection.execute(
        "SELECT term, doc FROM words_live_terms WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
        (prefix, _after(prefix), len(term.stem) - most, len(term.stem) + most, MOST_SCANNED),
    )
    rated = [(distance(term.stem, one, most), -doc, one) for one, doc in rows if _likely(term, one, most)]
    best = min((far for far, _, _ in rated), default=most + 1)
    return [one for far, _, one in sorted(rated) if far == best <= most][:MOST_FOUND]


def _likely(term: Term, one: str, most: int) -> bool:
    """A cheap look before the distance. Where an ending was cut off, the last letter before it must be right: what
    followed is no longer there to compare (`component` would be `compose`)."""
    if len(one) <= PREFIX or not one.isalpha() or len(set(term.stem) ^ set(one)) > 2 * most:
        return False
    return term.stem == term.text or term.stem[-1] == one[-1]


def _word(stem: Stemmer, wanted: str) -> list[str]:
    words = [wanted + ending for ending in ENDINGS]
    return [word for word, found in zip(words, stem(words), strict=True) if found == wanted][:1]


def _after(prefix: str) -> str:
    """The least text that sorts after everything with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
