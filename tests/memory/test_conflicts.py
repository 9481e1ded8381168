"""Law: a value is replaced by rank of its channel, confidence and time; an agent never overwrites the user."""

from itertools import pairwise, product
from pathlib import Path

import pytest

from afterwatch.memory import Channel, Draft, Item, Memory, Outcome, Result, Scope, View
from afterwatch.memory.model import GLOBAL, ORIGINS
from afterwatch.memory.model import USER as BY_USER
from tests.memory.support import AGENT, BANK, DAY, SHOP, USER, everything, ids, keywords_only

KEY = "pref.editor"
CHANNELS = {origin: channel for channel, origin in ORIGINS.items()}
"""One channel of each origin."""


def say(memory: Memory, view: View, value: str, *, confidence: float = 1.0, at: int = 0) -> Outcome:
    return memory.remember(view, KEY, value, confidence=confidence, valid_from=10 * DAY + at)


def current(memory: Memory) -> Item:
    active = [item for item in memory.history(AGENT, KEY) if item.status == "active"]
    assert len(active) == 1
    return active[0]


def unchanged(memory: Memory, outcome: Outcome, reason: str) -> bool:
    """A refusal names the reason and the value that holds, which stays as it was."""
    held = current(memory)
    return (outcome.result, outcome.reason, outcome.id, held.value) == (Result.REFUSED, reason, held.id, "vim")


@pytest.mark.parametrize(("first", "second"), list(product(CHANNELS, CHANNELS)))
def test_who_may_overwrite_whom(home: Path, first: str, second: str) -> None:
    """Every pair of origins, the second one surer and newer than the first."""
    with keywords_only(home) as memory:
        say(memory, View(channel=CHANNELS[first]), "vim", confidence=0.8)
        outcome = say(memory, View(channel=CHANNELS[second]), "helix", confidence=1.0, at=1)
        if first == BY_USER and second != BY_USER:
            assert unchanged(memory, outcome, "user_holds")
        else:
            assert outcome.result is Result.SUPERSEDED
            assert (current(memory).value, current(memory).origin) == ("helix", second)


# held, said, when (before, same, after), what it comes to
LADDER = [
    (0.9, 0.9, 1, "superseded"),
    (0.9, 0.9, 0, "same_time"),
    (0.9, 0.9, -1, "older"),
    (0.9, 0.8, 1, "superseded"),
    (0.93, 0.83, 1, "superseded"),  # 0.1 as numbers of a computer: 0.10000000000000009
    (0.83, 0.93, -1, "older"),
    (0.8, 0.9, 0, "same_time"),
    (0.8, 0.9, -1, "older"),
    (0.91, 0.8, 1, "lower_confidence"),
    (0.91, 0.8, -1, "lower_confidence"),
    (0.8, 0.91, 1, "superseded"),
    (0.8, 0.91, 0, "superseded"),
    (0.8, 0.91, -1, "superseded"),
    (1.0, 99.0, -1, "older"),  # no claim is above 1
]


@pytest.mark.parametrize(("held", "said", "at", "wanted"), LADDER)
def test_confidence_then_time(home: Path, held: float, said: float, at: int, wanted: str) -> None:
    with keywords_only(home) as memory:
        say(memory, AGENT, "vim", confidence=held)
        outcome = say(memory, AGENT, "helix", confidence=said, at=at)
        if wanted == "superseded":
            assert outcome.result is Result.SUPERSEDED
            assert current(memory).value == "helix"
        else:
            assert unchanged(memory, outcome, wanted)


@pytest.mark.parametrize(("at", "wanted"), [(1, "superseded"), (0, "same_time"), (-1, "older")])
def test_among_the_users_own_values_time_decides(home: Path, at: int, wanted: str) -> None:
    with keywords_only(home) as memory:
        say(memory, USER, "vim")
        outcome = say(memory, USER, "helix", confidence=0.1, at=at)
        if wanted == "superseded":
            assert outcome.result is Result.SUPERSEDED
        else:
            assert unchanged(memory, outcome, wanted)


@pytest.mark.parametrize("at", [1, 0, -1])
def test_the_user_overrules_everybody_at_any_time(home: Path, at: int) -> None:
    with keywords_only(home) as memory:
        say(memory, AGENT, "vim")
        assert say(memory, USER, "helix", confidence=0.0, at=at).result is Result.SUPERSEDED
        assert (current(memory).value, current(memory).confidence) == ("helix", 1.0)


@pytest.mark.parametrize("value", ["vim", 7, True, ["a", {"b": 1}], {"b": [1], "a": 2}])
def test_an_equal_value_corroborates(home: Path, value: object) -> None:
    same = dict(reversed(value.items())) if isinstance(value, dict) else value
    with keywords_only(home) as memory:
        first = memory.remember(AGENT, KEY, value)
        again = memory.remember(View(channel=Channel.MCP), KEY, same, importance=0.9)
        assert (again.result, again.id) == (Result.CORROBORATED, first.id)
        assert memory.remember(AGENT, KEY, same).result is Result.UNCHANGED
        item = current(memory)
        assert item.value == value
        assert (item.importance, item.sources) == (0.9, ("python:local", "mcp:local"))
        assert len(everything(memory)) == 1


def test_equal_in_python_is_not_equal_as_a_value(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.remember(AGENT, KEY, 1)
        for value in (True, 1.0, "1", [1]):
            assert memory.remember(AGENT, KEY, value).result is Result.SUPERSEDED


def test_a_repeat_of_the_user_raises_the_origin(home: Path) -> None:
    with keywords_only(home) as memory:
        state = memory.remember(AGENT, KEY, "vim", confidence=0.85).id or ""
        note = memory.add(AGENT, "The zebra crossing is closed on Mondays", confidence=0.3).id or ""
        for outcome in (
            memory.remember(USER, KEY, "vim"),
            memory.add(USER, "the zebra crossing is closed on mondays."),
        ):
            assert outcome.result is Result.CORROBORATED
        for item in (memory.get(AGENT, state), memory.get(AGENT, note)):
            assert (item.origin, item.epistemic, item.confidence) == (BY_USER, "confirmed", 1.0)
        assert memory.remember(AGENT, KEY, "helix").reason == "user_holds"
        assert memory.add(AGENT, "The zebra crossing is closed on Mondays").id == note
        assert memory.get(AGENT, note).origin == BY_USER


def test_a_repeat_brings_its_labels_and_warms(home: Path) -> None:
    with keywords_only(home) as memory:
        text = "The zebra crossing is closed on Mondays"
        kept = memory.add(AGENT, text, tags=["road"], importance=0.2).id or ""
        memory.cool(AGENT, [kept])
        memory.add(AGENT, text, importance=0.2)
        assert memory.get(AGENT, kept).tier == "hot"
        memory.add(AGENT, text, tags=["stripes"], aliases=["crossing"], importance=0.2)
        item = memory.get(AGENT, kept)
        assert (item.tags, item.aliases, item.importance) == (("road", "stripes"), ("crossing",), 0.2)
        assert ids(memory, "stripes") == [kept]
        assert memory.add(AGENT, text, tags=["road"], importance=0.1).result is Result.UNCHANGED


@pytest.mark.parametrize("key", ["Pref.editor", "pref.Editor", "PREF.EDITOR", "pref.editor.", "pref.editör"])
def test_a_subject_is_equal_byte_by_byte_or_refused(home: Path, key: str) -> None:
    with keywords_only(home) as memory:
        memory.remember(AGENT, KEY, "vim")
        assert memory.remember(AGENT, key, "helix").reason == "key_format"
        assert current(memory).value == "vim"


def test_a_similar_subject_is_another_one(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.remember(AGENT, KEY, "vim")
        for key in ("pref.editor2", "pref.editor.name", "pref.edito", "project.editor"):
            assert memory.remember(AGENT, key, "helix").result is Result.INSERTED
        assert current(memory).value == "vim"


def test_another_scope_or_space_is_not_touched(home: Path) -> None:
    team = View(read=("team:web",), write="team:web")
    with keywords_only(home) as memory:
        memory.remember(AGENT, KEY, "vim")
        for view in (View(scopes=(SHOP,)), View(scopes=(BANK,)), team):
            assert memory.remember(view, KEY, "emacs").result is Result.INSERTED
        assert memory.remember(View(scopes=(SHOP, BANK)), KEY, "helix").result is Result.SUPERSEDED
        held = [(item.scope, item.value) for item in memory.history(AGENT, KEY) if item.status == "active"]
        assert held == [(GLOBAL, "vim"), (BANK, "emacs"), (SHOP, "helix")]
        assert [item.value for item in memory.history(team, KEY)] == ["emacs"]
        chain = memory.history(AGENT, memory.history(AGENT, KEY)[-1].id)
        assert [(item.scope, item.value) for item in chain] == [(SHOP, "emacs"), (SHOP, "helix")]
        other = Draft(subject=KEY, value="nano", scope=Scope())
        assert memory.add_many(View(scopes=(SHOP,)), [other])[0].displaced == (held_id(memory, "vim"),)


def held_id(memory: Memory, value: str) -> str:
    return next(item.id for item in memory.history(AGENT, KEY) if item.value == value)


def test_a_chain_is_complete_and_dated(home: Path) -> None:
    with keywords_only(home) as memory:
        for at in range(5):
            say(memory, AGENT, f"editor {at}", at=at * DAY)
        chain = memory.history(AGENT, KEY)
        assert [item.value for item in chain] == [f"editor {at}" for at in range(5)]
        for old, new in pairwise(chain):
            assert (old.status, old.superseded_by, old.valid_to) == ("superseded", new.id, new.valid_from)
            assert old.superseded_at == new.recorded_at
        assert memory.history(AGENT, chain[2].id) == chain
