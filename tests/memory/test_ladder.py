"""Law: at every instant a key has at most one value; a planned one waits for its time; both axes stay true."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from afterwatch.memory import Channel, Draft, Memory, Outcome, Result, View, reading
from afterwatch.memory.embedders import Loading
from afterwatch.memory.model import USER as BY_USER
from afterwatch.memory.model import micros
from afterwatch.memory.reading import Filter
from afterwatch.settings.clock import FixedClock
from tests.memory.support import AGENT, USER, Letters, events_of, index_problems, item_problems, keywords_only

KEY = "project.owner"
ZERO = datetime(2024, 1, 1, tzinfo=UTC)
BEYOND = 24
"""An hour after all that the tests speak of: what holds then has no end."""


def hour(number: float) -> int:
    return micros(ZERO + timedelta(hours=number))


class Hours(FixedClock):
    """A clock that is set to an hour."""

    def set(self, number: float) -> None:
        self.advance((ZERO + timedelta(hours=number) - self.now()).total_seconds())


@pytest.fixture
def clock() -> Hours:
    return Hours(ZERO)


@pytest.fixture
def memory(home: Path, clock: Hours) -> Iterator[Memory]:
    """With vectors, so that a search by meaning is held to the same law."""
    with Memory.open(home, clock=clock, embedder=Loading.done(Letters())) as opened:
        yield opened


def say(memory: Memory, view: View, value: str, begins: float | None = None, ends: float | None = None) -> Outcome:
    start, stop = (None if at is None else hour(at) for at in (begins, ends))
    return memory.remember(view, KEY, value, valid_from=start, valid_to=stop)


def answers(memory: Memory, now: int, where: Filter | None = None) -> set[tuple[str, ...]]:
    """What every way of reading gives for the key: they must agree, so one answer is the rule."""
    question = "ines omar priya owner"
    ways = {
        "list": memory.items(AGENT, where),
        "search": [hit.item for hit in memory.search(AGENT, question, where=where, limit=50).hits],
    }
    if where is None:
        ways["prompt"] = [hit.item for hit in memory.relevant(AGENT, f"{question} project.owner").hits]
        held = reading.current(memory.history(AGENT, KEY), now)
        ways["key"] = [held] if held is not None else []
    return {tuple(item.value for item in found) for found in ways.values()}


# --- planned values ---------------------------------------------------------------------------------


def test_a_planned_value_waits_for_its_time(memory: Memory, clock: Hours) -> None:
    clock.set(1)
    first = say(memory, USER, "ines")
    clock.set(2)
    planned = say(memory, USER, "omar", 10)
    assert planned.result is Result.INSERTED
    assert planned.detail == f"until it begins, {first.id} holds"
    for at, wanted in ((2, "ines"), (9.9, "ines"), (10, "omar"), (30, "omar")):
        clock.set(at)
        assert answers(memory, hour(at)) == {(wanted,)}, at
        for valid in (1, 9.9, 10, 40):
            assert answers(memory, hour(at), Filter(valid_at=hour(valid))) == {("ines" if valid < 10 else "omar",)}
    assert answers(memory, 0, Filter(valid_at=hour(20), known_at=hour(1.5))) == {("ines",)}, "nothing was planned then"
    assert answers(memory, 0, Filter(valid_at=hour(20), known_at=hour(2))) == {("omar",)}


def test_the_next_write_settles_what_was_planned(home: Path, memory: Memory, clock: Hours) -> None:
    clock.set(1)
    note = memory.add(AGENT, "They noted that the owner is ines for now")
    first = say(memory, AGENT, "ines")
    second = say(memory, AGENT, "omar", 10)
    assert second.pending_cleanup == (), "the old value still holds"
    assert [item.status for item in memory.history(AGENT, KEY)] == ["active", "active"]
    clock.set(20)
    third = say(memory, AGENT, "priya")
    assert (third.result, third.displaced) == (Result.SUPERSEDED, (second.id,))
    assert third.pending_cleanup == (note.id,)
    chain = [(item.value, item.status, item.superseded_by) for item in memory.history(AGENT, KEY)]
    assert chain == [
        ("ines", "superseded", second.id),
        ("omar", "superseded", third.id),
        ("priya", "active", None),
    ]
    assert first.id != second.id
    counted = events_of(memory)
    assert (counted["add"], counted["cut"], counted["supersede"]) == (4, 1, 2)
    assert item_problems(home) == []
    assert index_problems(home, memory) == []


def test_a_change_before_a_planned_value_holds_until_then(memory: Memory, clock: Hours) -> None:
    say(memory, AGENT, "ines", 0)
    say(memory, AGENT, "omar", 10)
    clock.set(5)
    assert say(memory, AGENT, "priya").result is Result.SUPERSEDED
    for at, wanted in ((4, "ines"), (5, "priya"), (9, "priya"), (10, "omar"), (50, "omar")):
        assert answers(memory, 0, Filter(valid_at=hour(at))) == {(wanted,)}


def test_of_two_planned_values_the_first_ends_the_present_one(memory: Memory, clock: Hours) -> None:
    for at, value in ((0, "ines"), (10, "omar"), (20, "priya")):
        say(memory, AGENT, value, at)
    clock.set(5)
    assert say(memory, AGENT, "uwe").stored
    for at, wanted in ((4, "ines"), (9, "uwe"), (10, "omar"), (20, "priya")):
        assert answers(memory, 0, Filter(valid_at=hour(at))) == {(wanted,)}


def test_a_repeat_that_beats_what_is_planned_is_a_new_value(memory: Memory, clock: Hours) -> None:
    memory.remember(AGENT, KEY, "ines", confidence=0.8, valid_from=hour(0))
    memory.remember(AGENT, KEY, "omar", confidence=0.8, valid_from=hour(10))
    clock.set(5)
    assert memory.remember(View(channel=Channel.MCP), KEY, "ines", confidence=0.85).result is Result.CORROBORATED
    assert len(memory.remember(AGENT, KEY, "ines", confidence=1.0).displaced) == 2
    assert answers(memory, 0, Filter(valid_at=hour(20))) == {("ines",)}


def test_an_earlier_beginning_of_the_present_value_contradicts_the_former_one(memory: Memory, clock: Hours) -> None:
    say(memory, AGENT, "omar", 1)
    clock.set(10)
    say(memory, AGENT, "ines")
    for begins in (0.5, 1, 5):
        assert say(memory, AGENT, "ines", begins).reason == "older"
    assert answers(memory, 0, Filter(valid_at=hour(7))) == {("omar",)}


def test_the_users_own_wording_and_end_take_the_place_of_an_agents(memory: Memory, clock: Hours) -> None:
    memory.remember(AGENT, KEY, "ines", text="They say ines")
    clock.set(1)
    assert memory.remember(USER, KEY, "ines").result is Result.SUPERSEDED
    memory.remember(AGENT, "pref.editor", "vim", valid_to=hour(30))
    clock.set(2)
    assert memory.remember(USER, "pref.editor", "vim").result is Result.SUPERSEDED
    assert memory.history(AGENT, "pref.editor")[-1].valid_to is None


def test_what_is_planned_does_not_crowd_out_what_holds(memory: Memory) -> None:
    drafts = [Draft(f"zebra {at}", imported=True, valid_from=hour(5)) for at in range(250)]
    memory.add_many(AGENT, drafts)
    kept = memory.add(AGENT, "Of all the things that were ever said here only this one speaks of a zebra").id
    assert [hit.item.id for hit in memory.search(AGENT, "zebra").hits] == [kept]


def test_the_user_overrules_what_an_agent_planned_and_not_the_other_way_round(memory: Memory, clock: Hours) -> None:
    say(memory, AGENT, "ines", 0)
    say(memory, AGENT, "omar", 10)
    clock.set(5)
    assert len(say(memory, USER, "ines").displaced) == 2, "the user's word has no end"
    assert answers(memory, 0, Filter(valid_at=hour(20))) == {("ines",)}
    for begins in (6, 20):
        assert say(memory, AGENT, "omar", begins).reason == "user_holds"
    assert memory.history(AGENT, KEY)[-1].origin == BY_USER


def test_an_agent_changes_nothing_of_what_the_user_said_of_the_past(memory: Memory, clock: Hours) -> None:
    say(memory, USER, "ines", 1, 5)
    clock.set(10)
    assert say(memory, AGENT, "omar", 7).stored, "the user's value had ended"
    assert say(memory, AGENT, "priya", 2, 4).reason == "user_holds"
    assert say(memory, AGENT, "priya", 2).reason == "older"
    assert answers(memory, 0, Filter(valid_at=hour(3))) == {("ines",)}


def test_a_user_who_corrects_the_past_cuts_the_whole_chain(memory: Memory, clock: Hours) -> None:
    for at, value in ((1, "ines"), (10, "omar"), (20, "priya")):
        clock.set(at)
        say(memory, AGENT, value)
    clock.set(30)
    say(memory, USER, "uwe", 5)
    for at, wanted in ((3, "ines"), (7, "uwe"), (15, "uwe"), (40, "uwe")):
        assert answers(memory, 0, Filter(valid_at=hour(at))) == {(wanted,)}
    assert answers(memory, 0, Filter(valid_at=hour(15), known_at=hour(29))) == {("omar",)}


def test_an_end_behind_the_successor_is_still_known_of_the_past(memory: Memory, clock: Hours) -> None:
    say(memory, AGENT, "ines", 0, 30)
    clock.set(10)
    say(memory, AGENT, "omar")
    for valid, wanted in ((20, ("ines",)), (40, ())):
        assert answers(memory, 0, Filter(valid_at=hour(valid), known_at=hour(5))) == {wanted}


def test_a_stretch_of_the_past_takes_the_place_of_nothing(home: Path, memory: Memory, clock: Hours) -> None:
    clock.set(10)
    now = say(memory, AGENT, "ines")
    clock.set(20)
    past = say(memory, USER, "omar", 1, 5)
    assert (past.result, past.displaced) == (Result.INSERTED, ())
    assert memory.get(AGENT, past.id or "").superseded_by == now.id
    assert answers(memory, hour(20)) == {("ines",)}
    assert answers(memory, 0, Filter(valid_at=hour(3))) == {("omar",)}
    assert item_problems(home) == []
    assert index_problems(home, memory) == []


def test_what_ends_before_it_begins_is_refused(memory: Memory, clock: Hours) -> None:
    clock.set(10)
    say(memory, AGENT, "ines")
    clock.set(20)
    assert say(memory, USER, "omar", None, 15).reason == "validity"
    assert memory.add(AGENT, "The zebra crossing is closed", valid_to=hour(15)).reason == "validity"
    assert answers(memory, hour(20)) == {("ines",)}


def test_knowledge_that_lies_ahead_waits_too(memory: Memory, clock: Hours) -> None:
    memory.add(AGENT, "The zebra crossing is closed", valid_from=hour(5))
    assert memory.items(AGENT) == []
    assert memory.search(AGENT, "zebra crossing").hits == ()
    assert len(memory.items(AGENT, everything=True)) == 1
    clock.set(5)
    assert len(memory.items(AGENT)) == len(memory.search(AGENT, "zebra crossing").hits) == 1


def test_a_clock_that_goes_back_hides_nothing(memory: Memory, clock: Hours) -> None:
    clock.set(10)
    say(memory, AGENT, "ines")
    clock.set(2)
    assert answers(memory, hour(2)) == {("ines",)}
    assert say(memory, AGENT, "omar").reason == "older"


# --- any sequence -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Say:
    """One write, `after` hours after the one before."""

    value: str
    user: bool
    confidence: float
    after: int
    begins: int | None
    ends: int | None


@dataclass
class Held:
    """A value as the model knows it."""

    value: str
    user: bool
    confidence: float
    begins: int


@dataclass
class Line:
    """The model: for each hour the value that holds."""

    hours: list[Held | None] = field(default_factory=lambda: [None] * BEYOND)

    def end(self, held: Held) -> int | None:
        last = max(at for at, one in enumerate(self.hours) if one is held)
        return None if last == BEYOND - 1 else last + 1

    def add(self, say: Say, now: int) -> None:
        begins = now if say.begins is None else say.begins
        if say.ends is not None and say.ends <= begins:
            return
        span = range(begins, BEYOND if say.ends is None else say.ends)
        there = list({id(one): one for at in span if (one := self.hours[at]) is not None}.values())
        planned = [one for one in there if one.begins > max(begins, now) and self.stands(one, say, begins)]
        stop = planned[0].begins if planned else span.stop
        there = [one for one in there if one.begins < stop]
        same = next((one for one in there if self.repeats(one, say, max(begins, now))), None)
        if same is not None and there == [same]:
            same.user, same.confidence = same.user or say.user, 1.0 if say.user else same.confidence
            return
        if any(self.stands(one, say, begins) for one in there):
            return
        self.hours = [None if at >= begins and one in there else one for at, one in enumerate(self.hours)]
        new = Held(say.value, say.user, 1.0 if say.user else say.confidence, begins)
        self.hours[begins:stop] = [new] * (stop - begins)

    def stands(self, held: Held, say: Say, begins: int) -> bool:
        if held.user != say.user:
            return held.user
        if not say.user and abs(held.confidence - say.confidence) > 0.11:
            return held.confidence > say.confidence
        return begins <= held.begins

    def repeats(self, held: Held, say: Say, latest: int) -> bool:
        if held.value != say.value or held.begins > latest or say.ends not in (None, self.end(held)):
            return False
        return held.user or not say.user or say.ends == self.end(held)


SAYS = st.builds(
    Say,
    value=st.sampled_from(["ines", "ines", "omar"]),
    user=st.sampled_from([False, False, True]),
    confidence=st.sampled_from([0.8, 0.85, 1.0]),
    after=st.integers(1, 2),
    begins=st.none() | st.integers(0, 16),
    ends=st.none() | st.none() | st.integers(1, 20),
)


def listed(memory: Memory, where: Filter | None = None) -> list[str]:
    return [item.value for item in memory.items(AGENT, where)]


def check_line(memory: Memory, line: list[str | None], known: int | None, step: int) -> None:
    for at in range(0, BEYOND, step):
        where = Filter(valid_at=hour(at), known_at=None if known is None else hour(known))
        assert listed(memory, where) == ([line[at]] if line[at] else []), (known, at)


@settings(max_examples=120, deadline=None)
@example([Say("ines", False, 1.0, 1, None, None), Say("omar", False, 1.0, 1, 10, None), Say("ines", True, 1, 1, 5, 20)])
@given(st.lists(SAYS, min_size=2, max_size=7))
def test_any_sequence_gives_what_the_model_gives(tmp_path_factory: pytest.TempPathFactory, said: list[Say]) -> None:
    home, clock, line, now = tmp_path_factory.mktemp("line") / "home", Hours(ZERO), Line(), 0
    known: list[tuple[int, list[str | None]]] = []
    with keywords_only(home, clock) as memory:
        for one in said:
            now += one.after
            clock.set(now)
            start, stop = (None if at is None else hour(at) for at in (one.begins, one.ends))
            view = USER if one.user else AGENT
            memory.remember(view, KEY, one.value, confidence=one.confidence, valid_from=start, valid_to=stop)
            line.add(one, now)
            held = line.hours[now]
            assert listed(memory) == ([held.value] if held else [])
            assert item_problems(home) == []
            known.append((now, [one.value if one else None for one in line.hours]))
        check_line(memory, known[-1][1], None, 1)
        for at, values in known:
            check_line(memory, values, at, 3)
        assert index_problems(home, memory) == []
