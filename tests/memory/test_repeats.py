"""Law: what is said again loses nothing it brings, and an agent's labels never become the user's."""

from contextlib import closing
from pathlib import Path

import pytest

from afterwatch.memory import Channel, Draft, Memory, Result, View
from afterwatch.memory.model import USER as BY_USER
from tests.memory.support import AGENT, DAY, USER, connect, events_of, ids, keywords_only

ZEBRA = "The zebra crossing is closed on Mondays"
PHONE = View(channel=Channel.MCP)


def test_a_raise_keeps_the_users_labels_alone(home: Path) -> None:
    with keywords_only(home) as memory:
        labels = {"tags": ["urgent"], "aliases": ["bank transfer"], "importance": 0.9, "pinned": True}
        note = memory.add(AGENT, ZEBRA, quote="he said so", **labels).id or ""
        state = memory.remember(AGENT, "pref.editor", "vim", **labels).id or ""
        assert ids(memory, "transfer") == [note, state]
        memory.add(USER, ZEBRA, tags=["road"], quote="I saw it")
        memory.remember(USER, "pref.editor", "vim", tags=["road"])
        for one, quote in ((note, "I saw it"), (state, None)):
            item = memory.get(AGENT, one)
            assert item.origin == BY_USER
            assert (item.tags, item.aliases, item.importance, item.pinned) == (("road",), (), 0.5, False)
            assert item.quote == quote
        assert ids(memory, "transfer") == []
        assert ids(memory, "road") == [note, state]
    kept = revisions(home)
    assert len(kept) == 2
    assert all(row[:4] == ('["urgent"]', '["bank transfer"]', 0.9, 1) for row in kept)
    assert {row[4] for row in kept} == {"he said so", None}


def revisions(home: Path) -> list[tuple[object, ...]]:
    with closing(connect(home)) as connection:
        return connection.execute("SELECT tags, aliases, importance, pinned, quote FROM item_revisions").fetchall()


def test_a_raise_drops_the_end_that_an_agent_gave(home: Path) -> None:
    with keywords_only(home) as memory:
        note = memory.add(AGENT, ZEBRA, valid_from=0, valid_to=40_000 * DAY).id or ""
        memory.add(USER, ZEBRA)
        assert memory.get(AGENT, note).valid_to is None


def test_a_repeat_adds_its_pin_and_its_quote(home: Path) -> None:
    with keywords_only(home) as memory:
        for view in (AGENT, USER):
            note = memory.add(view, f"{ZEBRA} {view.channel}").id or ""
            again = memory.add(view, f"{ZEBRA} {view.channel}", pinned=True, quote="as said")
            assert (again.result, again.id) == (Result.MERGED, note)
            memory.add(view, f"{ZEBRA} {view.channel}", quote="another one")
            item = memory.get(AGENT, note)
            assert (item.pinned, item.quote) == (True, "as said"), "the first quote stays"


def test_a_repeat_with_a_later_end_moves_the_end(home: Path) -> None:
    with keywords_only(home) as memory:
        note = memory.add(AGENT, ZEBRA, valid_from=DAY, valid_to=40_000 * DAY).id or ""
        for end, wanted in ((None, 40_000), (39_000, 40_000), (41_000, 41_000)):
            memory.add(AGENT, ZEBRA, valid_to=end and end * DAY)
            assert memory.get(AGENT, note).valid_to == wanted * DAY


def test_what_has_ended_is_not_repeated_but_said_anew(home: Path) -> None:
    with keywords_only(home) as memory:
        note = memory.add(AGENT, ZEBRA, valid_from=0, valid_to=DAY)
        again = memory.add(AGENT, ZEBRA)
        assert again.result is Result.INSERTED
        assert again.id != note.id


@pytest.mark.parametrize("author", [AGENT, USER])
def test_only_the_users_repeat_clears_pending_cleanup(home: Path, author: View) -> None:
    with keywords_only(home) as memory:
        note = memory.add(author, "Our editor is quagga on all hosts").id or ""
        for value in ("quagga", "okapi"):
            memory.remember(AGENT, "pref.editor", value)
        for view, status in ((PHONE, "pending-cleanup"), (USER, "active")):
            memory.add(view, "Our editor is quagga on all hosts")
            assert memory.get(AGENT, note).status == status


def test_a_value_is_no_turn_of_its_conversation(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.remember(AGENT, "pref.editor", "vim", conversation="chat", position=1)
    with closing(connect(home)) as connection:
        assert connection.execute("SELECT count(*) FROM segments").fetchone() == (0,)


def test_an_agents_repeat_changes_nothing_of_the_users_but_its_sources(home: Path) -> None:
    with keywords_only(home) as memory:
        note = memory.add(USER, ZEBRA, valid_from=DAY, valid_to=40_000 * DAY, tags=["road"]).id or ""
        before = memory.get(AGENT, note)
        memory.add(PHONE, ZEBRA, tags=["x"], aliases=["y"], pinned=True, quote="z", valid_to=50_000 * DAY)
        item = memory.get(AGENT, note)
        assert item.sources == ("tty:local", "mcp:local")
        assert (item.tags, item.aliases, item.pinned, item.quote) == (("road",), (), False, None)
        assert (item.valid_to, item.importance, item.revision) == (before.valid_to, before.importance, 1)


def test_labels_that_find_no_place_are_told(home: Path) -> None:
    with keywords_only(home) as memory:
        first = memory.add(AGENT, ZEBRA, tags=[f"t{at}" for at in range(12)], aliases=["a" * 101])
        assert first.detail.startswith("3 label(s) were left out or cut")
        memory.add(AGENT, ZEBRA, tags=[f"u{at}" for at in range(10)])
        again = memory.add(AGENT, ZEBRA, tags=["one", "more"])
        assert again.detail.startswith("2 label(s) found no place")
        assert len(memory.get(AGENT, first.id or "").tags) == 20
        assert memory.add(AGENT, ZEBRA, tags=["t1"]).detail == ""


@pytest.mark.parametrize("batch", [1, 64])
def test_a_draft_nominates_at_most_three_look_alikes(home: Path, batch: int) -> None:
    with keywords_only(home) as memory:
        drafts = [Draft(f"The zebra crossing number {at} is closed for works on Mondays") for at in range(40)]
        outcomes = [one for at in range(0, 40, batch) for one in memory.add_many(AGENT, drafts[at : at + batch])]
        assert max(len(outcome.near) for outcome in outcomes) == 3
        assert events_of(memory)["nominate"] == sum(len(outcome.near) for outcome in outcomes)


def test_the_most_alike_is_nominated(home: Path) -> None:
    with keywords_only(home) as memory:
        others = [memory.add(AGENT, f"Our zebra crossing {at} near the school is closed on {at}") for at in "abcd"]
        best = memory.add(AGENT, "Their zebra crossing near the old school is closed on Sundays")
        near = memory.add(AGENT, "Their zebra crossing near the old school is closed on Tuesdays").near
        assert near[0] == best.id
        assert len(near) <= 3 < len(others)


def counted(memory: Memory) -> list[str]:
    return [event["code"] for event in reversed(memory.events(AGENT, limit=1000))]


def test_refusals_are_kept_in_order_with_their_chunk(home: Path) -> None:
    good, bad = Draft("The zebra crossing is closed"), Draft("short")
    with keywords_only(home) as memory:
        outcomes = memory.add_many(AGENT, [bad, good, bad, Draft(subject="pref.editor", value="vim"), bad])
        assert counted(memory) == ["refused", "add", "refused", "add", "refused"]
        events = [outcome.event or 0 for outcome in outcomes]
        assert events == sorted(events)
