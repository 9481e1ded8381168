"""What many commands share: groups of options as dataclasses, dates, and words with completion."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from afterwatch.errors import UserError
from afterwatch.memory.model import Layer, Status, local_date, micros

Json = Annotated[bool, typer.Option("--json", help="Print a JSON document.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many at most.")]
Layers = Annotated[list[Layer] | None, typer.Option("--layer", help="Only this layer; may be repeated.")]
Statuses = Annotated[list[Status] | None, typer.Option("--status", help="Only this status; may be repeated.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.")]
AsOf = Annotated[str | None, typer.Option("--as-of", metavar="DATE", help="What was true then.")]
KnownAt = Annotated[str | None, typer.Option("--known-at", metavar="DATE", help="What was remembered then.")]


class Verdict(StrEnum):
    """The words of `memory rate`; the same as `memory.curation.VERDICTS`, which is loaded when needed."""

    HELPFUL = "helpful"
    MISLEADING = "misleading"
    NEUTRAL = "neutral"
    UNKNOWN = "unknown"


class Category(StrEnum):
    """What a lesson is about; the same as `memory.intake.CATEGORIES`."""

    TOOL = "tool"
    PREFERENCE = "preference"
    KNOWLEDGE = "knowledge"


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Show typer one option for each field of a parameter that is a dataclass, and give the command the dataclass.

    Fields are `Annotated` types with a default, as typer wants its parameters.
    """
    shown: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name] = kind
            shown += [_parameter(field) for field in fields(kind)]
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run


def _parameter(field: "Field[Any]") -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=field.type)


def moment(text: str | None, *, end: bool = False) -> int | None:
    """Microseconds since the epoch of an ISO date or date and time; local time when no zone is named.

    A bare date means its first moment, or with `end` its last. None stays None.

    Raises:
        UserError: it is no such date, or none that memory can hold.
    """
    if text is None:
        return None
    from afterwatch.memory.intake import EARLIEST, LATEST

    try:
        at = micros(_read(text.strip(), end).astimezone(UTC))
    except (ValueError, OverflowError, OSError) as error:
        raise UserError(f"{text!r} is no date", remedy="write 2026-01-31 or 2026-01-31T14:00+01:00") from error
    if not EARLIEST <= at <= LATEST:
        first, last = local_date(EARLIEST, 0), local_date(LATEST, 0)
        raise UserError(f"{text!r} is no date that memory holds", remedy=f"write one between {first} and {last}")
    return at


def _read(text: str, end: bool) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
    if not end:
        return datetime.combine(day, time())
    # the next midnight in local time, so that a day of 23 or 25 hours ends where it does
    return datetime.combine(day + timedelta(days=1), time()).astimezone() - timedelta(microseconds=1)


def shown_moment(at: int | None, offset_minutes: int | None = None) -> str:
    """A moment in words: in the offset it was captured in, or in local time; empty for None."""
    if at is None:
        return ""
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
        if offset_minutes is None:
            return when.astimezone().isoformat(sep=" ", timespec="seconds")
        return (when + timedelta(minutes=offset_minutes)).replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):  # a year that no calendar shows
        return f"{at} µs"
