"""Law: what was true at a time, and what was known of it at another, can always be asked."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from afterwatch.memory import Memory
from afterwatch.memory.model import micros
from afterwatch.memory.reading import Filter
from afterwatch.settings.clock import FixedClock
from tests.memory.support import AGENT, USER, keywords_only

KEY = "project.owner"
ZERO = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: float) -> int:
    return micros(ZERO + timedelta(days=number))


class Days(FixedClock):
    """A clock that is set to a day."""

    def set(self, number: float) -> None:
        self.advance((ZERO + timedelta(days=number) - self.now()).total_seconds())


@pytest.fixture
def clock() -> Days:
    return Days(ZERO)


@pytest.fixture
def memory(home: Path, clock: Days) -> Iterator[Memory]:
    with keywords_only(home, clock) as opened:
        yield opened


def owners(memory: Memory, valid: float | None = None, known: float | None = None) -> list[str]:
    """Values on both axes, by listing; a search must agree."""
    valid_at, known_at = (None if number is None else day(number) for number in (valid, known))
    where = Filter(valid_at=valid_at, known_at=known_at, layers=("semantic",))
    listed = [item.value for item in memory.items(AGENT, where)]
    searched = [hit.item.value for hit in memory.search(AGENT, "ines omar priya owner", where=where, limit=50).hits]
    assert sorted(listed) == sorted(searched)
    return listed


def chain(memory: Memory, clock: Days) -> None:
    """ines from day 1 (told at once), omar from day 10 (told on day 20), priya from day 30 (told on day 25)."""
    for value, valid, told in (("ines", 1, 1), ("omar", 10, 20), ("priya", 30, 25)):
        clock.set(told)
        memory.remember(AGENT, KEY, value, valid_from=day(valid))
    clock.set(40)


# known on day → true on day → value
ANSWERS = [
    *((0.5, valid, []) for valid in (0, 5, 15, 35)),
    *((5, valid, ["ines"]) for valid in (1, 5, 15, 35)),
    (5, 0.5, []),
    *((19.9, valid, ["ines"]) for valid in (1, 12, 35)),
    *((20, valid, ["ines"]) for valid in (1, 9.9)),
    *((20, valid, ["omar"]) for valid in (10, 15, 35)),
    *((24, valid, ["omar"]) for valid in (10, 29, 35)),
    *((25, valid, ["ines"]) for valid in (1, 9.9)),
    *((25, valid, ["omar"]) for valid in (10, 29.9)),
    *((25, valid, ["priya"]) for valid in (30, 100)),
    (25, 0.9, []),
]


def test_both_axes_over_a_chain_of_three(memory: Memory, clock: Days) -> None:
    chain(memory, clock)
    for known, valid, wanted in ANSWERS:
        assert owners(memory, valid, known) == wanted, (known, valid)


def test_one_axis_alone(memory: Memory, clock: Days) -> None:
    chain(memory, clock)
    for valid, wanted in ((0.5, []), (1, ["ines"]), (9.9, ["ines"]), (10, ["omar"]), (29.9, ["omar"]), (30, ["priya"])):
        assert owners(memory, valid=valid) == wanted, valid
    for known, wanted in ((0.5, []), (5, ["ines"]), (15, ["ines"]), (21, ["omar"]), (26, ["omar"]), (31, ["priya"])):
        assert owners(memory, known=known) == wanted, known
    assert owners(memory) == ["priya"]


def test_a_fact_that_comes_too_late_changes_nothing(memory: Memory, clock: Days) -> None:
    clock.set(10)
    memory.remember(AGENT, KEY, "omar", valid_from=day(10))
    clock.set(20)
    late = memory.remember(AGENT, KEY, "ines", valid_from=day(1))
    assert late.reason == "older"
    assert late.event is not None
    assert owners(memory, valid=15) == owners(memory, known=15) == ["omar"]


def test_the_user_corrects_the_past(memory: Memory, clock: Days) -> None:
    """An agent's value that never held is true at no time, yet it was known."""
    clock.set(10)
    memory.remember(AGENT, KEY, "omar", valid_from=day(8))
    clock.set(20)
    memory.remember(USER, KEY, "ines", valid_from=day(1))
    for valid, wanted in ((0.5, []), (3, ["ines"]), (9, ["ines"]), (25, ["ines"])):
        assert owners(memory, valid=valid) == wanted
        assert owners(memory, valid=valid, known=30) == wanted
    assert owners(memory, valid=9, known=15) == ["omar"]
    assert owners(memory, valid=3, known=15) == []


def test_an_end_that_was_given_holds_before_and_after(memory: Memory, clock: Days) -> None:
    clock.set(1)
    memory.remember(AGENT, KEY, "ines", valid_from=day(1), valid_to=day(5))
    assert owners(memory) == ["ines"]
    clock.set(7)
    assert owners(memory) == [], "it ended"
    clock.set(20)
    memory.remember(AGENT, KEY, "omar", valid_from=day(10))
    for known in (6, 15, 25):
        assert owners(memory, valid=4, known=known) == ["ines"]
        assert owners(memory, valid=7, known=known) == []
    assert owners(memory, valid=12, known=15) == []
    assert owners(memory, valid=12, known=25) == ["omar"]


def test_an_end_after_the_successor_is_cut(memory: Memory, clock: Days) -> None:
    clock.set(1)
    memory.remember(AGENT, KEY, "ines", valid_from=day(1), valid_to=day(30))
    clock.set(10)
    memory.remember(AGENT, KEY, "omar", valid_from=day(10))
    assert owners(memory, valid=20) == ["omar"], "never two values at one time"
    assert owners(memory, valid=20, known=5) == ["ines"]


def test_knowledge_has_times_too(memory: Memory, clock: Days) -> None:
    clock.set(5)
    memory.add(AGENT, "The zebra crossing is closed for works", valid_from=day(2), valid_to=day(8))
    texts = {
        (valid, known): len(memory.items(AGENT, Filter(valid_at=day(valid), known_at=day(known))))
        for valid in (1, 3, 9)
        for known in (4, 6)
    }
    assert texts == {(1, 4): 0, (3, 4): 0, (9, 4): 0, (1, 6): 0, (3, 6): 1, (9, 6): 0}
    clock.set(9)
    assert memory.search(AGENT, "zebra").hits == ()
    assert memory.items(AGENT) == []
    assert len(memory.items(AGENT, everything=True)) == 1
