"""Does recall find the evidence? LoCoMo, conversation by conversation, turns as items, no model involved.

Strict: a question counts at k when *all* its evidence lies within the first k distinct sessions (or turns).
Dates are either all those of the run (`now`) or keep their real gaps with the newest at the run (`anchored`).
"""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from afterwatch.bench.report import conditions, digest, percentile, whole
from afterwatch.errors import UserError
from afterwatch.memory import Channel, Draft, Memory, View
from afterwatch.memory.embedders import Embedder, Loading
from afterwatch.memory.model import Item, micros
from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.clock import FixedClock

CUTS = (1, 3, 5, 10)
LIMIT = 50
TIMELINES = ("now", "anchored")
UNANSWERABLE = 5
"""The category of questions whose answer is not in the conversation."""
RUN_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The moment of the run: fixed, so that two runs give the same figures."""
_EVIDENCE = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance: `id` such as `D3:7`, its text with speaker and image caption, and when it was said."""

    id: str
    session: str
    position: int
    text: str
    at: datetime


@dataclass(slots=True)
class Tally:
    """Hits by metric and cut, questions by metric and cut, and times in milliseconds."""

    n: int = 0
    hits: dict[str, int] = field(default_factory=dict)
    short: dict[int, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)

    def add(self, name: str, hit: bool) -> None:
        self.hits[name] = self.hits.get(name, 0) + hit


def run(
    text: str,
    embedder: Loading | None,
    *,
    timeline: str = "now",
    conversations: Sequence[int] = (),
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measure recall on a LoCoMo file.

    Args:
        text: the JSON file's content.
        embedder: None measures keywords alone.
        timeline: one of `TIMELINES`.
        conversations: numbers from 1; empty takes all.
        progress: called with (conversations done, in all).

    Raises:
        UserError: not a LoCoMo file, or no such timeline.
        Unavailable: the embedder is degraded.
    """
    if timeline not in TIMELINES:
        raise UserError(f"no timeline {timeline!r}", remedy=f"use one of: {', '.join(TIMELINES)}")
    model = whole(embedder) if embedder is not None else None
    chosen = samples(text, conversations)
    tally = Tally()
    for done, sample in enumerate(chosen, 1):
        _measure(sample, model, timeline, tally)
        if progress is not None:
            progress(done, len(chosen))
    head = conditions(
        "retrieval",
        corpus=digest(text),
        embedder=model.id if model else None,
        timeline=timeline,
        conversations=list(conversations),
        limit=LIMIT,
    )
    return {**head, **_figures(tally)}


def _figures(tally: Tally) -> dict[str, Any]:
    n = max(tally.n, 1)
    return {
        "n": tally.n,
        **{name: round(count / n, 4) for name, count in sorted(tally.hits.items())},
        "short_answers": {str(cut): round(tally.short.get(cut, 0) / n, 4) for cut in CUTS},
        "query_ms_p50": round(percentile(tally.times, 0.5), 2),
        "query_ms_p95": round(percentile(tally.times, 0.95), 2),
    }


def samples(text: str, wanted: Sequence[int]) -> list[dict[str, Any]]:
    """The conversations of a file, or those of the numbers wanted (from 1)."""
    try:
        found = json.loads(text)
        whole_file = [sample for sample in found if sample["conversation"] and isinstance(sample["qa"], list)]
    except (ValueError, TypeError, KeyError) as error:
        raise UserError("this is no LoCoMo file", remedy="name the file locomo10.json") from error
    if any(not 1 <= number <= len(whole_file) for number in wanted):
        raise UserError(f"conversations are numbered 1 to {len(whole_file)}", remedy="e.g. --conversations 6-10")
    return [whole_file[number - 1] for number in wanted] if wanted else whole_file


def _measure(sample: dict[str, Any], model: Embedder | None, timeline: str, tally: Tally) -> None:
    turns = list(turns_of(sample["conversation"]))
    with filled(turns, model, timeline) as (memory, view):
        memory.search(view, "first")  # loads what a first question loads
        for question, gold in questions(sample, {turn.id for turn in turns}):
            started = time.perf_counter()
            found = memory.search(view, question, limit=LIMIT)
            tally.times.append((time.perf_counter() - started) * 1000)
            _score([hit.item for hit in found.hits], gold, tally)


@contextmanager
def filled(turns: Sequence[Turn], model: Embedder | None, timeline: str) -> Iterator[tuple[Memory, View]]:
    """A memory in a temporary home that holds these turns, and the view that wrote them."""
    view = View(principal="bench", channel=Channel.IMPORT)
    settings = MemorySettings(embedder="none" if model is None else "bundled", cap=0)
    with (
        tempfile.TemporaryDirectory(prefix="afterwatch-bench-") as home,
        Memory.open(Path(home), settings=settings, clock=FixedClock(RUN_AT), embedder=Loading.done(model)) as memory,
    ):
        memory.add_many(view, list(drafts(turns, timeline)))
        yield memory, view


def questions(sample: dict[str, Any], known: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Answerable questions with the ids of their evidence; evidence that names no turn is dropped."""
    for asked in sample["qa"]:
        gold = {e for e in _EVIDENCE.findall(" ".join(map(str, asked.get("evidence", [])))) if e in known}
        if asked.get("category") != UNANSWERABLE and gold:
            yield str(asked["question"]), gold


def _score(items: Sequence[Item], gold: set[str], tally: Tally) -> None:
    tally.n += 1
    ranked = [[source for source in item.sources if _EVIDENCE.fullmatch(source)] for item in items]
    sessions = list(dict.fromkeys(_session(turn) for turns in ranked for turn in turns))
    gold_sessions = {_session(turn) for turn in gold}
    for cut in CUTS:
        first_turns = {turn for turns in ranked[:cut] for turn in turns}
        first_sessions = set(sessions[:cut])
        tally.add(f"session_recall_all@{cut}", gold_sessions <= first_sessions)
        tally.add(f"session_recall_any@{cut}", bool(gold_sessions & first_sessions))
        tally.add(f"turn_recall_all@{cut}", gold <= first_turns)
        tally.add(f"turn_recall_any@{cut}", bool(gold & first_turns))
        tally.short[cut] = tally.short.get(cut, 0) + (len(sessions) < cut)


def _session(turn: str) -> str:
    return turn.partition(":")[0]


def turns_of(conversation: dict[str, Any]) -> Iterator[Turn]:
    """The turns of all sessions in order."""
    names = [name for name, value in conversation.items() if _SESSION.fullmatch(name) and isinstance(value, list)]
    for name in sorted(names, key=lambda name: int(name.partition("_")[2])):
        start = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for position, turn in enumerate(conversation[name]):
            caption = turn.get("blip_caption")
            text = f"{turn['speaker']}: {turn.get('text', '')}" + (f" [image: {caption}]" if caption else "")
            yield Turn(turn["dia_id"], name, position, text, start + timedelta(seconds=position))


def drafts(turns: Sequence[Turn], timeline: str) -> Iterator[Draft]:
    """What is remembered of each turn."""
    newest = max(turn.at for turn in turns)
    for turn in turns:
        at = RUN_AT if timeline == "now" else RUN_AT - (newest - turn.at)
        yield Draft(
            turn.text,
            source=turn.id,
            conversation=turn.session,
            position=turn.position,
            valid_from=micros(at),
            offset_minutes=0,
            imported=True,
        )
