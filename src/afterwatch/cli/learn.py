"""`afterwatch learn`: corrections, as lessons that stand first in a prompt once a user has confirmed them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterwatch.cli.memory import item_document, quoted
from afterwatch.cli.memory_write import Ids, ready
from afterwatch.cli.options import Category, Json, Limit, grouped
from afterwatch.cli.outcomes import degraded, document, refuse, remembered, settle
from afterwatch.cli.output import clean, print_json, say
from afterwatch.cli.view import Place, opened
from afterwatch.errors import UserError
from afterwatch.memory.model import Item, Layer, Result

if TYPE_CHECKING:
    from afterwatch.memory.api import Memory
    from afterwatch.memory.model import View

app = typer.Typer(help="Record, list and withdraw corrections.", no_args_is_help=True, rich_markup_mode=None)
EVERYTHING = 100_000


@app.command(epilog="Example: afterwatch learn add 'Ask before draining a node.' --not 'Drain at once.'")
@grouped
def add(
    rule: Annotated[str, typer.Argument(help="What to do from now on.")],
    place: Place,
    negative: Annotated[str | None, typer.Option("--not", help="What not to do.")] = None,
    category: Annotated[Category, typer.Option("--category", help="What it is about.")] = Category.KNOWLEDGE,
    as_json: Json = False,
) -> None:
    """Remember a correction. At your terminal it counts as confirmed, elsewhere as suggested."""
    with opened(place, writes=True) as (memory, view):
        missing = ready(memory, view)
        outcome = memory.learn(view, rule, category=category, negative=negative)
        confirmed = outcome.stored and _confirmed(memory.get(view, str(outcome.id)))
    refuse(outcome)
    if as_json:
        print_json({**document(outcome, place.space), "confirmed": confirmed, "degraded": list(missing)})
        return
    say("\n".join(remembered(outcome, place.space)))
    if not confirmed:
        say(f"it is a suggestion until you run at your terminal: afterwatch memory confirm {outcome.id}")
    degraded(missing)


@app.command("list", epilog="Example: afterwatch learn list")
@grouped
def list_(
    place: Place,
    everything: Annotated[bool, typer.Option("--all", help="Withdrawn (cooled) ones too.")] = False,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List lessons: the confirmed ones, then the suggested ones."""
    with opened(place) as (memory, view):
        lessons = _lessons(memory, view)
    warm = [lesson for lesson in lessons if everything or lesson.tier != "cold"]
    confirmed = [lesson for lesson in warm if _confirmed(lesson)]
    suggested = [lesson for lesson in warm if not _confirmed(lesson)]
    cold = len(lessons) - len(warm)
    if as_json:
        print_json({"confirmed": _group(confirmed, limit), "suggested": _group(suggested, limit), "cooled": cold})
        return
    _say_group("confirmed", confirmed, limit)
    say()
    _say_group("suggested (confirm with `afterwatch memory confirm ID`)", suggested, limit)
    if cold:
        say(f"\n{cold} cooled: --all shows them")


@app.command(epilog="Example: afterwatch learn remove mem-2026-01-31-001")
@grouped
def remove(ids: Ids, place: Place, as_json: Json = False) -> None:
    """Withdraw lessons from prompts. They are cooled, not deleted."""
    with opened(place, writes=True) as (memory, view):
        for item_id in ids:
            if memory.get(view, item_id).layer != Layer.LESSON:
                raise UserError(f"{item_id} is no lesson", remedy="`afterwatch memory cool` cools any item")
        outcomes = memory.cool(view, ids)
    if not as_json and any(outcome.result is Result.CHANGED for outcome in outcomes):
        say("to bring one back: afterwatch memory warm ID")
    settle(outcomes, "cooled", as_json=as_json)


def _lessons(memory: "Memory", view: "View") -> list[Item]:
    from afterwatch.memory.reading import Filter

    return memory.items(view, Filter(layers=(Layer.LESSON,)), limit=EVERYTHING)


def _confirmed(lesson: Item) -> bool:
    return lesson.epistemic == "confirmed"


def _group(lessons: Sequence[Item], limit: int) -> dict[str, Any]:
    return {"shown": [item_document(lesson) for lesson in lessons[:limit]], "of": len(lessons)}


def _say_group(title: str, lessons: Sequence[Item], limit: int) -> None:
    shown = lessons[:limit]
    say(f"{title}: shown {len(shown)} of {len(lessons)}")
    for lesson in shown:
        cold = "  cold" if lesson.tier == "cold" else ""
        say(
            clean(
                f"{lesson.id}  {lesson.date}  {lesson.category}  {lesson.origin}  {lesson.source}{cold}", one_line=True
            )
        )
        say(quoted(lesson.text))
        if lesson.negative:
            say(quoted(lesson.negative, "    not > "))
