"""Law: nothing vanishes: quotes of a former value wait for a person, the cap only cools, cold items come back."""

from pathlib import Path

import pytest

from afterwatch.errors import UserError
from afterwatch.memory import Draft, Layer, Memory, Outcome, Result, View
from afterwatch.memory.reading import Filter
from tests.memory.support import AGENT, SHOP, USER, everything, ids, keywords_only


def replaced(memory: Memory, old: str, new: str = "helix", key: str = "pref.code_editor") -> Outcome:
    memory.remember(AGENT, key, old)
    return memory.remember(AGENT, key, new)


def after(home: Path, text: str, old: str, key: str = "pref.code_editor") -> bool:
    """Whether a text is marked when the old value goes."""
    with keywords_only(home) as memory:
        memory.remember(AGENT, key, old)
        note = memory.add(AGENT, text)
        return memory.remember(AGENT, key, "helix").pending_cleanup == (note.id,)


QUOTES = [
    "Our code editor is vim on every host",
    "We noted: code_editor=vim and nothing else",
    "we noted pref.code_editor: vim, nothing else",
    "CODE EDITOR: 'vim' for the whole team",
    "the code editor `vim` is everywhere",
    "They all have the code editor vim.",
]
NO_QUOTES = [
    "Our code editor is vims on every host",
    "Our code editor is neovim on every host",
    "Our code editor is not vim on any host",
    "Our barcode editor is vim on every host",
    "Our code editor may be vim on every host",
    "Vim is the code editor of every host",
    "Our editor is vim on every host",
    "Nothing but helix is used by the team",
]


@pytest.mark.parametrize("text", QUOTES)
def test_a_quote_of_key_and_former_value_waits_for_a_person(home: Path, text: str) -> None:
    assert after(home, text, "vim")


@pytest.mark.parametrize("text", NO_QUOTES)
def test_anything_else_stays(home: Path, text: str) -> None:
    assert not after(home, text, "vim")


@pytest.mark.parametrize(
    ("old", "text", "marked"),
    [
        ("vi", "Our code editor is vi on every host", False),  # too short to be sure
        ("v.i", "Our code editor is v.i on every host", True),
        ("...", "Our code editor is (nano) on every host", False),
        ("my-vim 9.1", "We noted code editor:my-vim 9.1 there", True),
        ("c++ (nightly)", "The code editor is c++ (nightly) here", True),
        ("编辑器二号", "The code editor is 编辑器二号 here", True),
        ("The Best One", "Our code editor is the best one here", True),
    ],
)
def test_values_of_every_form(home: Path, old: str, text: str, marked: bool) -> None:
    assert after(home, text, old) is marked


def test_a_value_that_is_no_text_marks_nothing(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.remember(AGENT, "pref.port", 8080)
        memory.add(AGENT, "The port is 8080 on every host")
        assert memory.remember(AGENT, "pref.port", 9090).pending_cleanup == ()


def test_only_this_scope_and_only_knowledge_is_marked(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.add(View(scopes=(SHOP,)), "Our code editor is vim on shop hosts")
        memory.remember(AGENT, "pref.note", "the code editor is vim")
        assert replaced(memory, "vim").pending_cleanup == ()


def test_three_are_marked_listed_and_undone_by_a_person(home: Path) -> None:
    with keywords_only(home) as memory:
        notes = [memory.add(AGENT, f"The code editor is vim on host {at} of 4").id for at in range(4)]
        written = replaced(memory, "vim")
        assert written.pending_cleanup == tuple(notes[:3])
        marked = memory.items(AGENT, Filter(statuses=("pending-cleanup",)))
        assert {item.id for item in marked} == set(notes[:3])
        assert {item.status_by for item in marked} == {f"write:{written.event}"}
        assert set(ids(memory, "editor vim host")) >= set(notes), "they stay searchable"
        for view in (AGENT, View(channel=AGENT.channel, principal="someone")):
            with pytest.raises(UserError):
                memory.keep(view, write=written.event)
        assert len(memory.items(AGENT, Filter(statuses=("pending-cleanup",)))) == 3
        kept = memory.keep(USER, write=written.event)
        assert [outcome.id for outcome in kept] == notes[:3]
        assert memory.items(AGENT, Filter(statuses=("pending-cleanup",))) == []
        assert memory.keep(USER, write=written.event) == []
        assert [outcome.result for outcome in memory.keep(USER, ids=[notes[0] or ""])] == [Result.UNCHANGED]


def test_one_write_undoes_only_its_own_marks(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.add(AGENT, "The code editor is vim on every host")
        memory.add(AGENT, "The release day is friday for the shop")
        first = replaced(memory, "vim")
        second = replaced(memory, "friday", "monday", "project.release_day")
        assert first.pending_cleanup
        assert second.pending_cleanup
        memory.keep(USER, write=first.event)
        left = memory.items(AGENT, Filter(statuses=("pending-cleanup",)))
        assert tuple(item.id for item in left) == second.pending_cleanup


# --- lessons ----------------------------------------------------------------------------------------


def test_a_lesson_is_found_by_its_rule_and_by_what_not_to_do(home: Path) -> None:
    with keywords_only(home) as memory:
        kept = memory.learn(USER, "Drain nodes before a reboot", category="tool", negative="Never pull the plug")
        assert ids(memory, "drain") == ids(memory, "plug") == [kept.id]
        item = memory.get(AGENT, kept.id or "")
        assert (item.layer, item.category, item.negative) == ("lesson", "tool", "Never pull the plug")
        again = memory.learn(USER, "Drain nodes before a reboot", category="tool", negative="never pull the plug")
        assert again.id == kept.id
        for category, negative in (("knowledge", "Never pull the plug"), ("tool", "Just wait"), ("tool", None)):
            other = memory.learn(USER, "Drain nodes before a reboot", category=category, negative=negative)
            assert other.result is Result.INSERTED, "another kind or another warning is another lesson"


# --- the cap ----------------------------------------------------------------------------------------


def test_the_cap_cools_the_least_important_oldest(home: Path) -> None:
    with keywords_only(home, cap=3) as memory:
        pinned = memory.add(AGENT, "A pinned note about zebras", importance=0.0, pinned=True)
        first = [memory.add(AGENT, f"Note {at} is about okapis", importance=0.5).id or "" for at in range(2)]
        strong = memory.add(AGENT, "An important note about quaggas", importance=0.9)
        weak = memory.add(AGENT, "A weak note about llamas today", importance=0.1)
        assert weak.cooled == (weak.id,), "what enters may be the least of all"
        newer = memory.add(AGENT, "Note 3 is about tapirs", importance=0.5)
        assert newer.cooled == (first[0],), "of equal ones the oldest"
        tiers = {item.id: item.tier for item in memory.items(AGENT)}
        assert {item for item, tier in tiers.items() if tier == "cold"} == {weak.id, first[0]}
        assert {item for item, tier in tiers.items() if tier == "hot"} == {pinned.id, strong.id, newer.id, first[1]}
        assert ids(memory, "llamas") == [weak.id], "cold items are found"
        assert memory.relevant(AGENT, "a weak note about llamas today").hits == ()
        assert memory.warm(AGENT, [weak.id or ""])[0].result is Result.CHANGED
        assert memory.get(AGENT, weak.id or "").tier == "hot"
        assert len(everything(memory)) == 6


def test_each_layer_has_a_cap_of_its_own(home: Path) -> None:
    with keywords_only(home, cap=2) as memory:
        layers = (Layer.EPISODIC, Layer.HISTORY, Layer.PREFERENCE)
        drafts = [Draft(f"Note {at} of {layer} on zebras", layer) for layer in layers for at in range(2)]
        assert [outcome.cooled for outcome in memory.add_many(AGENT, drafts)] == [()] * 6
        assert len(memory.add(AGENT, "Note 2 of episodic on zebras").cooled) == 1


def test_the_cap_spares_current_values_and_an_agent_cools_nothing_of_the_users(home: Path) -> None:
    with keywords_only(home, cap=1) as memory:
        for at in range(3):
            assert memory.remember(AGENT, f"pref.animal{at}", f"zebra {at}").cooled == ()
        own = [memory.add(USER, f"Note {at} is about okapis", importance=0.1).id for at in range(2)]
        assert [memory.get(AGENT, item or "").tier for item in own] == ["cold", "hot"]
        llama = memory.add(AGENT, "An important note about llamas", importance=0.9)
        assert llama.cooled == ()
        assert memory.add(USER, "The most important note about tapirs", importance=1.0).cooled == (llama.id, own[1])


def test_the_cap_counts_all_scopes_of_a_space(home: Path) -> None:
    with keywords_only(home, cap=1) as memory:
        first = memory.add(View(scopes=(SHOP,)), "The zebra crossing of the shop is closed")
        assert memory.add(AGENT, "Another zebra crossing is closed").cooled == (first.id,)


def test_without_a_cap_nothing_is_cooled(home: Path) -> None:
    with keywords_only(home, cap=0) as memory:
        outcomes = memory.add_many(AGENT, [Draft(f"{at} zebras", imported=True) for at in range(50)])
        assert not any(outcome.cooled for outcome in outcomes)


def test_an_agent_only_asks_to_cool_what_is_the_users(home: Path) -> None:
    with keywords_only(home) as memory:
        own = memory.add(USER, "The zebra crossing is closed on Mondays").id or ""
        asked = memory.cool(AGENT, [own, own])
        assert [(outcome.result, outcome.reason) for outcome in asked] == [(Result.REFUSED, "user_holds")]
        assert memory.get(AGENT, own).tier == "hot"
        assert memory.cool(USER, [own])[0].cooled == (own,)


def test_one_unknown_id_changes_nothing_at_all(home: Path) -> None:
    with keywords_only(home) as memory:
        kept = memory.add(AGENT, "The zebra crossing is closed on Mondays").id or ""
        for act in (memory.cool, memory.warm):
            with pytest.raises(UserError):
                act(AGENT, [kept, "mem-2024-03-01-999"])
        assert memory.get(AGENT, kept).tier == "hot"
