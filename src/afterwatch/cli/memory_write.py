"""`afterwatch memory`, the half that writes: add, confirm, cool, warm, keep, rate."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterwatch.cli.interrupt import between_steps
from afterwatch.cli.options import Json, Tags, Verdict, grouped, moment
from afterwatch.cli.outcomes import degraded, document, leave, refuse, remedy, remembered, settle
from afterwatch.cli.output import print_json, say
from afterwatch.cli.view import Place, meter, opened
from afterwatch.errors import AfterwatchError, UserError
from afterwatch.memory.model import Draft, Layer, Outcome

if TYPE_CHECKING:
    from afterwatch.memory.api import Memory
    from afterwatch.memory.model import View

app = typer.Typer(help="Remember, recall, correct and forget.", no_args_is_help=True, rich_markup_mode=None)
"""The group; `cli.memory` adds the commands that read."""
MOST_INPUT = 64_000_000
"""Bytes that are read from stdin."""

Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="Ids such as mem-2026-01-31-001.")]


@dataclass(frozen=True)
class What:
    """What is remembered."""

    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="What to remember, or the key's value; - reads stdin.")
    ] = None
    key: Annotated[str | None, typer.Option("--key", help="Set the current value of a key such as pref.editor.")] = None
    value: Annotated[str | None, typer.Option("--value", help="The value of the key; the text will do as well.")] = None
    lines: Annotated[bool, typer.Option("--lines", help="Remember each line of stdin as an item of its own.")] = False


@dataclass(frozen=True)
class About:
    """What is known of it."""

    layer: Annotated[Layer, typer.Option("--layer", help="The layer of a text; a key lives in semantic.")] = (
        Layer.EPISODIC
    )
    tag: Tags = None
    alias: Annotated[list[str] | None, typer.Option("--alias", help="Another name for it; may be repeated.")] = None
    importance: Annotated[float, typer.Option("--importance", min=0.0, max=1.0, help="From 0 to 1.")] = 0.5
    source: Annotated[str, typer.Option("--source", help="Where it comes from, such as a ticket.")] = ""
    valid_from: Annotated[str | None, typer.Option("--valid-from", metavar="DATE", help="Since when it holds.")] = None
    valid_to: Annotated[str | None, typer.Option("--valid-to", metavar="DATE", help="Until when it holds.")] = None
    pinned: Annotated[bool, typer.Option("--pinned", help="Never cooled by itself.")] = False

    def draft(self) -> Draft:
        """A draft that lacks only its text or value."""
        start, stop = moment(self.valid_from), moment(self.valid_to, end=True)
        if start is not None and stop is not None and stop <= start:
            raise UserError("it would end before it begins", remedy="check --valid-from and --valid-to")
        return Draft(
            layer=self.layer,
            tags=tuple(self.tag or ()),
            aliases=tuple(self.alias or ()),
            importance=self.importance,
            source=self.source,
            valid_from=start,
            valid_to=stop,
            pinned=self.pinned,
        )


@app.command(epilog="Example: afterwatch memory add 'The payments queue is drained by hand on Fridays.'")
@grouped
def add(what: What, about: About, place: Place, as_json: Json = False) -> None:
    """Remember a text, or with --key the current value of a key. Exit status 3 if it was refused."""
    base = about.draft()
    if what.lines:
        _add_lines(what, base, place, as_json)
        return
    draft = _draft(what, base)
    with opened(place, writes=True) as (memory, view):
        missing = ready(memory, view)
        outcome = memory.add_many(view, [draft])[0]
    outcome = replace(outcome, degraded=tuple(dict.fromkeys((*outcome.degraded, *missing))))
    refuse(outcome)
    if as_json:
        print_json(document(outcome, place.space))
        return
    say("\n".join(remembered(outcome, place.space)))
    degraded(outcome.degraded)


def ready(memory: "Memory", view: "View") -> tuple[str, ...]:
    """Load the embedder and fill in missing vectors, so that this command works with them. Returns what is missing."""
    with meter("embedding") as progress:
        return memory.warm_up(view, progress=progress)


def _draft(what: What, base: Draft) -> Draft:
    text = read_stdin() if what.text == "-" else what.text
    if what.key is None:
        if what.value is not None:
            raise UserError("a value needs its key", remedy="add --key, such as --key pref.editor")
        if not (text or "").strip():
            raise UserError("there is nothing to remember", remedy="give a text, or - to read it from stdin")
        return replace(base, text=text or "")
    if what.value is not None:
        return replace(base, subject=what.key, value=what.value, text=text or "")
    if text is None:
        raise UserError(f"{what.key} needs a value", remedy="add --value TEXT")
    return replace(base, subject=what.key, value=text.strip())


def read_stdin() -> str:
    """All of stdin as text.

    Raises:
        UserError: it is no UTF-8, or more than `MOST_INPUT` bytes.
    """
    data = sys.stdin.buffer.read(MOST_INPUT + 1)
    if len(data) > MOST_INPUT:
        raise UserError(f"stdin holds more than {MOST_INPUT} bytes", remedy="give it in parts", code="too_large")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError("stdin is not utf-8 text", remedy="convert it to utf-8") from error


def _add_lines(what: What, base: Draft, place: Place, as_json: bool) -> None:
    if what.text not in (None, "-") or what.key or what.value:
        raise UserError("--lines takes its texts from stdin alone", remedy="leave text, --key and --value out")
    lines: list[tuple[int, str]] = []
    outcomes: list[Outcome] = []
    try:
        lines += [(number, line) for number, line in enumerate(read_stdin().splitlines(), 1) if line.strip()]
        with opened(place, writes=True) as (memory, view):
            missing = ready(memory, view)
            _add_each(memory, view, [replace(base, text=line) for _, line in lines], outcomes)
    except (KeyboardInterrupt, AfterwatchError) as end:
        _say_ended(isinstance(end, KeyboardInterrupt), lines, outcomes, place, as_json)
        raise
    if as_json:
        print_json({"outcomes": _documents(lines, outcomes, place), "degraded": list(missing)})
    else:
        _say_lines([(number, outcome) for (number, _), outcome in zip(lines, outcomes, strict=True)])
        degraded(missing)
    leave(outcomes)


def _add_each(memory: "Memory", view: "View", drafts: Sequence[Draft], outcomes: list[Outcome]) -> None:
    """Remember drafts, a chunk a step; what became of them is in `outcomes`, also if it ends early."""
    from afterwatch.memory.writing import CHUNK

    with meter("remembering") as progress, between_steps() as step_done:
        for start in range(0, len(drafts), CHUNK):
            outcomes += memory.add_many(view, drafts[start : start + CHUNK])
            if progress is not None:
                progress(len(outcomes), len(drafts))
            if len(outcomes) < len(drafts):
                step_done()


def _documents(lines: Sequence[tuple[int, str]], outcomes: Sequence[Outcome], place: Place) -> list[dict[str, Any]]:
    done = zip(lines, outcomes, strict=False)
    return [{"line": number, **document(outcome, place.space)} for (number, _), outcome in done]


def _say_ended(
    interrupted: bool, lines: Sequence[tuple[int, str]], outcomes: Sequence[Outcome], place: Place, as_json: bool
) -> None:
    """Say what was remembered before it ended; what ended it is said elsewhere."""
    stored = sum(outcome.stored for outcome in outcomes)
    what = f"{len(outcomes)} of {len(lines)} lines were dealt with, {stored} are remembered"
    if interrupted or outcomes:
        say(
            f"{'interrupted' if interrupted else 'ended'}: {what if outcomes else 'nothing was remembered'}", error=True
        )
    if interrupted and as_json:
        print_json({"outcomes": _documents(lines, outcomes, place), "interrupted": True})


def _say_lines(done: Sequence[tuple[int, Outcome]]) -> None:
    counts = Counter(str(outcome.result) for _, outcome in done)
    say(f"{len(done)} lines: {', '.join(f'{count} {word}' for word, count in counts.items()) or 'nothing to remember'}")
    for number, outcome in done:
        if not outcome.stored:
            say(f"line {number}: refused: {outcome.detail}\n  {remedy(outcome)}", error=True)
        for note in remembered(outcome)[1:] if outcome.stored else ():
            say(f"line {number}: {note}")


@app.command(epilog="Example: afterwatch memory confirm mem-2026-01-31-001")
@grouped
def confirm(ids: Ids, place: Place, as_json: Json = False) -> None:
    """Make items your own words; elsewhere than at your terminal only the request is recorded."""
    _change(place, "confirmed", as_json, lambda memory, view: [memory.confirm(view, one) for one in dict.fromkeys(ids)])


@app.command(epilog="Example: afterwatch memory cool mem-2026-01-31-001")
@grouped
def cool(ids: Ids, place: Place, as_json: Json = False) -> None:
    """Keep items out of prompts; a search still finds them, and `warm` brings them back."""
    _change(place, "cooled", as_json, lambda memory, view: memory.cool(view, ids))


@app.command(epilog="Example: afterwatch memory warm mem-2026-01-31-001")
@grouped
def warm(ids: Ids, place: Place, as_json: Json = False) -> None:
    """Bring cooled items back."""
    _change(place, "warm again", as_json, lambda memory, view: memory.warm(view, ids))


def _change(place: Place, done: str, as_json: bool, act: "Callable[[Memory, View], list[Outcome]]") -> None:
    """Change items and report it; `done` is the word for it."""
    with opened(place, writes=True) as (memory, view):
        outcomes = act(memory, view)
    settle(outcomes, done, as_json=as_json)


@app.command(epilog="Example: afterwatch memory keep --write 12")
@grouped
def keep(
    place: Place,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID…]", help="Items to keep.")] = None,
    write: Annotated[int | None, typer.Option("--write", min=1, help="All items that this write marked.")] = None,
    as_json: Json = False,
) -> None:
    """Clear pending-cleanup: what the items say stays as it is. You decide it, at your terminal."""
    if not ids and write is None:
        raise UserError("nothing was named", remedy="give ids, or the number of a write with --write")
    with opened(place, writes=True, for_user="only the user clears pending-cleanup") as (memory, view):
        outcomes = memory.keep(view, ids=ids or (), write=write)
    settle(outcomes, "kept", as_json=as_json)


@app.command(epilog="Example: afterwatch memory rate mem-2026-01-31-001 helpful")
@grouped
def rate(
    item_id: Annotated[str, typer.Argument(metavar="ID", help="The item.")],
    verdict: Annotated[Verdict, typer.Argument(help="How it served.")],
    place: Place,
    as_json: Json = False,
) -> None:
    """Say whether an item was of use; it changes nothing else."""
    with opened(place, writes=True) as (memory, view):
        outcome = memory.rate(view, item_id, verdict)
    answer: dict[str, Any] = {"id": outcome.id, "verdict": str(verdict)}
    if as_json:
        print_json(answer)
    else:
        say(f"{outcome.id}: rated {verdict}")
