"""`afterwatch demo`: the main job in one page, played by a scripted person in a temporary home."""

import json
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from afterwatch.cli.output import clean, say
from afterwatch.cli.view import memory_settings
from afterwatch.memory.model import Channel, Draft, Item, View, micros
from afterwatch.memory.settings import MemorySettings

if TYPE_CHECKING:
    from afterwatch.memory.api import Memory

app = typer.Typer(rich_markup_mode=None)

WIDTH = 96
SHOWN = 3
"""Quotations a question."""
PERSON = View(principal="demo", channel=Channel.DEMO)
"""Speaks for the scripted person; only the demo may."""
IMPORT = replace(PERSON, channel=Channel.IMPORT)
AGENT = replace(PERSON, channel=Channel.MCP, principal="agent")
KEY = "project.routing_deploy"
FACT = (("2026-09-11T10:12+02:00", "Tuesdays at 10:00"), ("2026-10-06T14:24+02:00", "Wednesdays at 14:00"))
RULE = "Ines wants to be told about an incident with the number first and the story after."
TODAY = datetime(2026, 10, 7, 9, 0, tzinfo=UTC)
"""The day after the last conversation: the page reads the same on every day."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the script, and the conversation and turn that hold the answer."""

    text: str
    conversation: str
    turn: int


@app.command(epilog="Example: afterwatch demo")
def demo() -> None:
    """Show the main job in one page; needs nothing and touches nothing of yours."""
    from afterwatch.memory.api import Memory
    from afterwatch.settings.clock import FixedClock

    settings = MemorySettings(embedder=memory_settings().embedder)
    with tempfile.TemporaryDirectory(prefix="afterwatch-demo-") as folder:
        say("afterwatch demo: a scripted person in a temporary home; nothing of yours is read or touched.")
        clock = FixedClock(TODAY, step=1, offset=120)
        with Memory.open(Path(folder), settings=settings, clock=clock) as memory:
            missing = _import(memory)
            _learn(memory)
            _supersede(memory)
            _ask(memory, missing)
    if missing:
        say(f"degraded: {'; '.join(missing)} (`afterwatch doctor` says what repairs it)")
    say("The temporary home is gone. Now yours:")
    say('  afterwatch memory add "The payments queue is drained by hand on Fridays."')
    say('  afterwatch memory search "who empties the queue?"')


def turns(conversation: Mapping[str, Any]) -> Iterator[Draft]:
    """The turns of a scripted conversation, each as it is imported: `speaker: text`, its place and its moment."""
    for session in conversation["sessions"]:
        start = datetime.fromisoformat(session["date"])
        offset = start.utcoffset() or timedelta()
        for position, turn in enumerate(session["turns"]):
            yield Draft(
                f"{turn['speaker']}: {turn['text']}",
                source=f"{session['id']}:{position}",
                conversation=session["id"],
                position=position,
                valid_from=micros(start + timedelta(seconds=20 * position)),
                offset_minutes=int(offset.total_seconds()) // 60,
                imported=True,
            )


def questions() -> list[Question]:
    """The questions of the script."""
    return [Question(one["question"], one["session"], one["turn"]) for one in _data("demo_questions")["questions"]]


def _data(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("afterwatch.cli").joinpath("data", f"{name}.json").read_text("utf-8"))
    return found


def _import(memory: "Memory") -> tuple[str, ...]:
    missing = memory.warm_up(PERSON)
    script = _data("demo_conversation")
    drafts = list(turns(script))
    memory.add_many(IMPORT, drafts)
    say(f"{len(drafts)} messages of {len(script['sessions'])} conversations are imported, each with speaker and date.")
    return missing


def _learn(memory: "Memory") -> None:
    say("\nA correction becomes a lesson, which stands first in prompts from then on:")
    outcome = memory.learn(PERSON, RULE, negative="Start with the story.", category="preference")
    item = memory.get(PERSON, str(outcome.id))
    say(_wrapped(f'"{item.text}"', f'not: "{item.negative}"  [{item.id}, {item.epistemic}]'))


def _supersede(memory: "Memory") -> None:
    say("\nA fact has one current value; a new one supersedes it, and the history keeps both:")
    for day, value in FACT:
        text = f"Routing is deployed on {value}."
        memory.remember(PERSON, KEY, value, text=text, valid_from=micros(datetime.fromisoformat(day)))
    for item in memory.history(PERSON, KEY):
        became = f"{item.status} by {item.superseded_by}" if item.superseded_by else item.status
        say(_wrapped(f'{KEY} = "{item.value}"  since {item.date}', f"[{item.id}, {became}]"))
    say("An agent wants it otherwise; only the user changes what the user said:")
    outcome = memory.remember(AGENT, KEY, "Fridays at 23:00", confidence=1.0)
    say(_wrapped(f'{KEY} = "Fridays at 23:00"', f"{outcome.result} ({outcome.reason})"))


def _ask(memory: "Memory", missing: tuple[str, ...]) -> None:
    how = "by words" if missing else "by words and by meaning"
    say(f"\nWhat is asked is found {how}, and quoted; no language model is called:")
    for question in questions():
        say(f"? {question.text}")
        for hit in memory.search(PERSON, question.text, limit=SHOWN).hits:
            say(_quoted(hit.item))


def _quoted(item: Item) -> str:
    speaker, _, text = item.text.partition(": ") if item.conversation else ("the user", "", item.text)
    return _wrapped(f'"{clean(text, one_line=True)}"', f"— {speaker}, {item.date} [{item.id}]")


def _wrapped(text: str, cited: str) -> str:
    """A text, and behind it what belongs to it: on its last line if there is room, else below."""
    lines = textwrap.wrap(text, WIDTH)
    if len(lines[-1]) + len(cited) + 2 <= WIDTH:
        lines[-1] += f"  {cited}"
    else:
        lines += textwrap.wrap(cited, WIDTH)
    return textwrap.indent("\n".join(lines), "    ")
