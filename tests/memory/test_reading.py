"""Law: one place decides what is visible; what is quarantined is never shown unless it is asked for by name."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from afterwatch.errors import UserError
from afterwatch.memory import Memory, reading
from afterwatch.memory.embedders import Loading
from afterwatch.memory.index import Editing
from afterwatch.memory.model import Status
from afterwatch.memory.reading import Filter
from afterwatch.memory.spaces import Spaces
from tests.memory.support import AGENT, DAY, START, USER, Letters, connect, ticking

LATER = START + timedelta(days=1)
NAMED = Filter(quarantined=True)
WAYS = [
    Filter(),
    Filter(statuses=tuple(Status)),
    Filter(layers=("episodic", "semantic")),
    Filter(valid_at=40_000 * DAY),
    Filter(known_at=40_000 * DAY),
    Filter(valid_at=40_000 * DAY, known_at=40_000 * DAY, statuses=("active", "superseded")),
]


@pytest.fixture
def quarantined(home: Path) -> set[str]:
    """A note, a value and a former value that are set aside, beside ones that are not."""
    with Memory.open(home, clock=ticking(), embedder=Loading.done(Letters())) as memory:
        memory.add(AGENT, "The zebra stable is open on Mondays")
        aside = {memory.add(AGENT, "The zebra stable is haunted at night").id or ""}
        for value in ("zebra one", "zebra two"):
            aside.add(memory.remember(AGENT, "pref.animal", value).id or "")
        memory.remember(AGENT, "pref.editor", "zebra vim")
    with closing(connect(home)) as connection:
        for item in aside:
            row = connection.execute("SELECT row FROM items WHERE id = ?", (item,)).fetchone()[0]
            with Editing(connection, [row]):
                connection.execute("UPDATE items SET quarantined = 1 WHERE row = ?", (row,))
        connection.execute("UPDATE meta SET epoch = 'moved'")
    return aside


def test_no_list_and_no_search_shows_what_is_quarantined(home: Path, quarantined: set[str]) -> None:
    with Memory.open(home, clock=ticking(), embedder=Loading.done(Letters())) as memory:
        for where in WAYS:
            shown = [memory.items(AGENT, where), memory.items(AGENT, where, everything=True)]
            shown.append([hit.item for hit in memory.search(AGENT, "zebra stable animal", where=where, limit=50).hits])
            assert all(shown), where
            assert not {item.id for items in shown for item in items} & quarantined, where
        assert sum(row["count"] for space in memory.stats(AGENT) for row in space["items"]) == 2


def test_what_is_quarantined_is_known_by_no_id_and_no_key(home: Path, quarantined: set[str]) -> None:
    with Memory.open(home, clock=ticking(), embedder=Loading.done(Letters())) as memory:
        acts: list[Callable[[], object]] = [partial(memory.history, AGENT, "pref.animal")]
        for item in quarantined:
            acts += [partial(memory.get, USER, item), partial(memory.history, USER, item)]
            acts += [partial(memory.confirm, USER, item), partial(memory.cool, USER, [item])]
        for act in acts:
            with pytest.raises(UserError):
                act()


def test_they_are_shown_alone_when_asked_for_by_name(home: Path, quarantined: set[str]) -> None:
    with Memory.open(home, clock=ticking(LATER), embedder=Loading.done(Letters())) as memory:
        assert {item.id for item in memory.items(AGENT, NAMED, everything=True)} == quarantined
        listed = {item.id for item in memory.items(AGENT, NAMED)}
        assert listed < quarantined, "a former value had its time"
        assert len(listed) == 2
        assert {item.id for item in memory.items(AGENT, replace(NAMED, statuses=("superseded",)), everything=True)} == (
            quarantined - listed
        )
        assert memory.search(AGENT, "zebra", where=NAMED).hits == ()
    with closing(Spaces(home)) as spaces:
        for item in quarantined:
            assert reading.get(spaces.store, AGENT, item, NAMED).id == item


def test_a_quarantined_value_is_no_rival(home: Path, quarantined: set[str]) -> None:
    with Memory.open(home, clock=ticking(), embedder=Loading.done(Letters())) as memory:
        outcome = memory.remember(AGENT, "pref.animal", "okapi")
        assert outcome.displaced == ()
        assert [item.value for item in memory.history(AGENT, "pref.animal")] == ["okapi"]
