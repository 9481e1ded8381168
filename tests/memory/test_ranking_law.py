"""Law: what was superseded, cooled and warmed, or marked and kept ranks as if nothing had ever happened to it."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterwatch.memory import Draft, Layer, Memory
from afterwatch.memory.embedders import Loading
from afterwatch.memory.model import micros
from afterwatch.memory.reading import Filter
from afterwatch.settings.clock import FixedClock
from tests.memory.support import AGENT, DAY, START, USER, Letters

NOW = micros(START)
WORDS = "redis queue payments pager deploy friday rollback latency cache node ines omar disk quota".split()
VALUES = ("payments", "redis cache", "friday rollback")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=3, max_size=8).map(" ".join)
CONVERSATIONS = st.sampled_from([None, "standup", "incident 7"])


@dataclass(frozen=True)
class Story:
    """Drafts in order, and where among them something happens to extra ones."""

    drafts: tuple[Draft, ...]
    first: int
    second: int
    old: Draft
    new: Draft
    cooled: int
    question: str


@st.composite
def stories(draw: st.DrawFn) -> Story:
    texts = draw(st.lists(SENTENCES, min_size=3, max_size=9, unique=True))
    drafts = tuple(
        Draft(
            f"{text}.",
            conversation=(conversation := draw(CONVERSATIONS)),
            position=at if conversation else None,
            importance=draw(st.sampled_from([0.1, 0.5, 0.9])),
            valid_from=NOW - draw(st.integers(1, 90)) * DAY,
            source=f"turn {at}",
        )
        for at, text in enumerate(texts)
    )
    old, new = draw(st.permutations(VALUES))[:2]
    place = draw(CONVERSATIONS)
    first = draw(st.integers(0, len(drafts)))
    state = Draft(subject="pref.topic", conversation=place, position=first if place else None)
    return Story(
        drafts,
        first,
        draw(st.integers(first, len(drafts))),
        replace(state, value=old, valid_from=NOW - 9 * DAY),
        replace(state, value=new, valid_from=NOW - 3 * DAY),
        draw(st.integers(0, len(drafts) - 1)),
        draw(SENTENCES),
    )


def opened(home: Path, embedder: Loading) -> Memory:
    return Memory.open(home, clock=FixedClock(START), embedder=embedder)


def quote_of(story: Story) -> Draft:
    return Draft(f"Omar said the topic is {story.old.value} again", valid_from=NOW - 8 * DAY, source="quote")


def lived(memory: Memory, story: Story) -> None:
    """The story with everything that happened."""
    marked = False
    for at in range(len(story.drafts) + 1):
        if at == story.first:
            for draft in (story.old, quote_of(story)):  # one by one: a batch may round vectors otherwise
                memory.add_many(AGENT, [draft])
        if at == story.second:
            written = memory.add_many(AGENT, [story.new])[0]
            assert written.displaced
            assert written.pending_cleanup
            memory.keep(USER, write=written.event)
            marked = True
        memory.add_many(AGENT, story.drafts[at : at + 1])
    assert marked
    item = next(i for i in memory.items(AGENT, limit=100) if i.source == f"turn {story.cooled}")
    memory.cool(AGENT, [item.id])
    memory.warm(AGENT, [item.id])


def never(memory: Memory, story: Story) -> None:
    """The story as if only what is left had ever been written."""
    for at in range(len(story.drafts) + 1):
        if at == story.first:
            memory.add_many(AGENT, [quote_of(story)])
        if at == story.second:
            memory.add_many(AGENT, [story.new])
        memory.add_many(AGENT, story.drafts[at : at + 1])


def ranked(memory: Memory, question: str) -> list[tuple[str, float]]:
    return [(hit.item.text, hit.score) for hit in memory.search(AGENT, question, limit=100).hits]


def assert_alike(one: Sequence[tuple[str, float]], other: Sequence[tuple[str, float]]) -> None:
    assert [text for text, _ in one] == [text for text, _ in other]
    assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-6)


def check(story: Story, embedder: Loading) -> None:
    with (
        TemporaryDirectory() as folder,
        closing(opened(Path(folder, "one"), embedder)) as one,
        closing(opened(Path(folder, "other"), embedder)) as other,
    ):
        lived(one, story)
        never(other, story)
        for question in (story.question, "What is the topic?", f"who said {story.old.value}?"):
            assert_alike(ranked(one, question), ranked(other, question))
            gated = [[hit.item.text for hit in memory.relevant(AGENT, question).hits] for memory in (one, other)]
            assert gated[0] == gated[1]


@settings(max_examples=15)
@given(stories())
def test_ranking_by_keywords(story: Story) -> None:
    check(story, Loading.done(None))


@settings(max_examples=10)
@given(stories())
def test_ranking_with_small_vectors(story: Story) -> None:
    check(story, Loading.done(Letters()))


@settings(max_examples=3)
@given(stories())
def test_ranking_with_vectors(bundled: Loading, story: Story) -> None:
    check(story, bundled)


@pytest.mark.soak
@settings(max_examples=1500)
@given(stories())
def test_ranking_for_long(story: Story) -> None:
    check(story, Loading.done(Letters()))


def turns(count: int) -> list[Draft]:
    words = [f"{WORDS[at % 14]} {WORDS[at // 14]} {WORDS[at * 5 % 14]} turn" for at in range(count)]
    return [
        Draft(f"Ines: {text} {at}", conversation="long", position=2 * at, valid_from=NOW - DAY, source=f"turn {at}")
        for at, text in enumerate(words)
    ]


@pytest.mark.parametrize("at", [0, 31, 33])
def test_a_former_value_in_a_conversation_moves_no_segment(tmp_path: Path, at: int) -> None:
    """Segments hold 32 turns: a value that was superseded takes no place from a turn."""
    state = Draft(subject="pref.topic", value="zebra herd", conversation="long", position=2 * at + 1, valid_from=1)
    drafts = turns(70)
    with (
        closing(opened(tmp_path / "one", Loading.done(Letters()))) as one,
        closing(opened(tmp_path / "other", Loading.done(Letters()))) as other,
    ):
        one.add_many(AGENT, [*drafts[:at], state, *drafts[at:], replace(state, value="ibex", valid_from=2)])
        other.add_many(AGENT, [*drafts, replace(state, value="ibex", valid_from=2)])
        for question in ("What did Ines say about redis cache?", "zebra herd payments", "ibex latency"):
            assert_alike(ranked(one, question), ranked(other, question))


def test_a_question_about_the_past_finds_former_values(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "home", Loading.done(None))) as memory:
        memory.remember(AGENT, "pref.editor", "vim with plugins", valid_from=NOW - 9 * DAY)
        memory.remember(AGENT, "pref.editor", "helix", valid_from=NOW - 2 * DAY)
        assert ranked(memory, "vim plugins") == []
        then = memory.search(AGENT, "vim plugins", where=Filter(valid_at=NOW - 5 * DAY)).hits
        assert [hit.item.value for hit in then] == ["vim with plugins"]


def test_what_waits_for_cleanup_or_is_cold_enters_no_prompt(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "home", Loading.done(None))) as memory:
        cold = memory.add(AGENT, "The zebra cluster is drained by hand on Mondays")
        memory.cool(AGENT, [cold.id or ""])
        memory.remember(AGENT, "pref.editor", "quagga", valid_from=1)
        memory.add(AGENT, "Our editor is quagga for all hosts", layer=Layer.EPISODIC)
        memory.remember(AGENT, "pref.editor", "helix", valid_from=2)
        for question in ("zebra cluster drained", "editor quagga hosts"):
            assert memory.search(AGENT, question).hits
            texts = [hit.item.text for hit in memory.relevant(AGENT, question).hits]
            assert not [text for text in texts if "zebra" in text or "quagga" in text]
