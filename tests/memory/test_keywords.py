"""Which terms are searched, and what a writer knows of their frequency."""

import sqlite3

import pytest

from afterwatch.memory import index
from afterwatch.memory.keywords import COMMON_BUDGET, COMMON_ROWS, Frequent, Term, likely_repeats, searched
from afterwatch.memory.schema import MIGRATIONS, migrate
from afterwatch.memory.words import columns


@pytest.fixture
def connection() -> sqlite3.Connection:
    found = sqlite3.connect(":memory:", isolation_level=None)
    migrate(found, MIGRATIONS)
    index.start_rebuild(found, index.signature())
    index.rebuild_step(found)
    return found


def terms(*rows: int) -> list[Term]:
    return [Term(f"t{at}", f"t{at}", held) for at, held in enumerate(rows)]


def test_common_terms_are_left_out_where_rarer_exist() -> None:
    found = terms(3, COMMON_ROWS + 1, 0, COMMON_ROWS)
    assert searched(found, 100_000) == [found[0], found[2], found[3]]


def test_of_common_terms_alone_the_rarest_are_searched_within_a_budget() -> None:
    found = terms(90_000, 3_000, 4_000, 5_000)
    chosen = searched(found, 100_000)
    assert {term.rows for term in chosen} == {3_000, 4_000}
    assert sum(term.rows for term in chosen) <= COMMON_BUDGET * COMMON_ROWS
    assert searched(terms(90_000, 80_000), 100_000) == terms(0, 80_000)[1:]


def test_a_writer_counts_what_it_adds(connection: sqlite3.Connection) -> None:
    stem, frequent = index.Stemmer(), Frequent(least=0)
    texts = ["the queue of payments is full", "payments queue drained", "a zebra crossed", "payments are late"]
    for row, text in enumerate(texts, 1):
        held = {word for one in texts[: row - 1] for word in one.split()} & set(text.split()) - {"the", "a", "is", "of"}
        found = likely_repeats(connection, stem, text, frequent)
        assert bool(found) is bool(held), text
        index.insert(connection, "words_live", row, columns(text))
    assert frequent.rows(connection, *stem(["payments"])) == 3
    assert likely_repeats(connection, stem, "payments queue is full", frequent)[0] == 1
