"""Law: a misspelt term finds the word it may stand for, a right or short one and one with digits stay as they are."""

import sqlite3
from collections.abc import Iterator

import pytest

from afterwatch.memory.index import Stemmer
from afterwatch.memory.keywords import Term
from afterwatch.memory.schema import create_index
from afterwatch.memory.spelling import MOST_FOUND, MOST_TERMS, corrections, distance

WORDS = (
    "typescript mongo mongodb moongoose kubernetes k8s redis error composition compose docker docket docks nodes "
    "v128 postgres überprüfung server"
).split()


@pytest.fixture
def index() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    create_index(connection)
    for row, word in enumerate(WORDS, 1):
        connection.execute("INSERT INTO words_live (rowid, words) VALUES (?, ?)", (row, word))
    yield connection
    connection.close()


def asked(index: sqlite3.Connection, *words: str) -> dict[str, list[str]]:
    """What is found for words, by word."""
    stem = Stemmer()
    stems = stem(words)
    terms = []
    for word, one in zip(words, stems, strict=True):
        found = index.execute("SELECT doc FROM words_live_terms WHERE term = ?", (one,)).fetchone()
        terms.append(Term(word, one, found[0] if found else 0))
    found_by_stem = corrections(index, stem, terms)
    return {word: found_by_stem[one] for word, one in zip(words, stems, strict=True) if one in found_by_stem}


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("typscript", ["typescript"]),
        ("typsecript", ["typescript"]),
        ("kuberentes", ["kubernet"]),
        ("reedis", ["redi"]),
        ("eror", ["error"]),
        ("mongod", ["mongo", "mongodb"]),
        ("mongoose", ["moongoose"]),
        ("uberprufun", []),
    ],
)
def test_near_words_are_found(index: sqlite3.Connection, typed: str, wanted: list[str]) -> None:
    found = asked(index, typed).get(typed, [])
    stem = Stemmer()
    assert stem(found) == stem(wanted)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("k9s", "too short, and digits"),
        ("v129", "digits"),
        ("mango", "the first two characters differ"),
        ("redux", "two edits in a short word"),
        ("redis", "it is there"),
        ("component", "what its ending hides would differ from compose"),
        ("sql", "too short"),
        ("", "nothing"),
        ("猫猫猫猫", "nothing near"),
    ],
)
def test_others_stay(index: sqlite3.Connection, typed: str, why: str) -> None:
    assert asked(index, typed) == {}, why


def test_a_correction_can_be_searched(index: sqlite3.Connection) -> None:
    word = asked(index, "mongoose")["mongoose"][0]
    rows = index.execute("SELECT rowid FROM words_live WHERE words_live MATCH ?", (f'"{word}"',)).fetchall()
    assert rows == [(WORDS.index("moongoose") + 1,)]


def test_the_work_is_bounded(index: sqlite3.Connection) -> None:
    many = [f"doc{letter}" for letter in "abdefghijlmnopqr"]
    found = asked(index, *many)
    assert len(found) <= MOST_TERMS
    assert all(len(words) <= MOST_FOUND for words in found.values())


@pytest.mark.parametrize(
    ("one", "other", "most", "wanted"),
    [
        ("same", "same", 2, 0),
        ("abcd", "abdc", 1, 1),
        ("abcd", "abc", 1, 1),
        ("abcd", "axcd", 1, 1),
        ("abcd", "badc", 2, 2),
        ("abcd", "wxyz", 2, 3),
        ("a", "abcd", 2, 3),
        ("", "ab", 2, 2),
    ],
)
def test_distance(one: str, other: str, most: int, wanted: int) -> None:
    assert distance(one, other, most) == wanted
    assert distance(other, one, most) == wanted
