"""What a write came to, in words and as a document."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import typer

from afterwatch.cli.output import print_json, say
from afterwatch.cli.view import BY_USER, why_no_user
from afterwatch.errors import ToolRefused
from afterwatch.memory.model import Outcome, Result

REFUSED = 3
"""The exit status of a refusal."""

REMEDIES: dict[str, str] = {
    "key_format": "give another key, such as pref.editor",
    "key_prefix": "use one of these prefixes, or allow yours: afterwatch config set memory.extra_prefixes PREFIX",
    "reserved_prefix": "choose another prefix, or write it yourself at a terminal",
    "secret_name": "name it by what it is for; what is secret belongs in a vault",
    "text_value": "write the value in the text, or leave the text out: --value alone",
    "validity": "check --valid-from and --valid-to",
    "value_empty": "give the value: --value TEXT",
    "value_size": "shorten the value, or remember it without a key",
    "text_length": "make it one statement; several go in with --lines, one a line",
    "category": "add lessons with `afterwatch learn add`",
    "low_confidence": "write it yourself at a terminal, or lower memory.confidence",
    "user_holds": BY_USER,
    "needs_user": BY_USER,
    "lower_confidence": "confirm the new value: the user writes it at a terminal",
    "older": "give a later --valid-from, or none",
    "same_time": "give a --valid-from that says which value is the later one",
}
"""The next step for each reason of a refusal."""
_NEEDS_USER = ("user_holds", "needs_user", "reserved_prefix")


def remedy(outcome: Outcome) -> str:
    """The next step after a refusal."""
    step = REMEDIES.get(outcome.reason, "see `afterwatch memory add --help`")
    why = why_no_user() if outcome.reason in _NEEDS_USER else ""
    return f"{step} ({why})" if why else step


def document(outcome: Outcome, space: str | None = None) -> dict[str, Any]:
    """An outcome as plain data, with the next step; `space` is the one that was named on the command line."""
    found = asdict(outcome)
    if not outcome.stored:
        found["remedy"] = remedy(outcome)
    if outcome.pending_cleanup:
        found["undo"] = _keep(outcome, space)
    return found


def refuse(outcome: Outcome) -> None:
    """Raise what a refused outcome means; do nothing for any other."""
    if outcome.stored:
        return
    about = f" ({outcome.id})" if outcome.id else ""
    raise ToolRefused(f"refused: {outcome.detail}{about}", remedy=remedy(outcome), code=outcome.reason)


def remembered(outcome: Outcome, space: str | None = None) -> list[str]:
    """Lines that say what became of something to be remembered."""
    first = {
        Result.INSERTED: f"remembered as {outcome.id}",
        Result.UNCHANGED: f"unchanged: {outcome.id} says so already",
        Result.MERGED: f"same as {outcome.id}: counted as said again",
        Result.CORROBORATED: f"same as {outcome.id}: counted as said again",
        Result.CHANGED: f"changed {outcome.id}",
        Result.SUPERSEDED: f"remembered as {outcome.id}; supersedes {_list(outcome.displaced)}",
        Result.QUARANTINED: f"set aside as {outcome.id} until someone looks at it",
        Result.REFUSED: f"refused: {outcome.detail}",
    }[outcome.result]
    lines = [first]
    if outcome.stored and outcome.detail:
        lines.append(outcome.detail)
    if outcome.pending_cleanup:
        lines.append(f"{_items(outcome.pending_cleanup)} the old value, marked pending-cleanup; to keep what they say:")
        lines.append(f"  {_keep(outcome, space)}")
    if outcome.near:
        lines.append(f"looks like {_list(outcome.near)}: noted for review")
    if outcome.cooled:
        lines.append(f"the layer is full: cooled {_list(outcome.cooled)}; `afterwatch memory warm ID` brings one back")
    return lines


def settle(outcomes: Sequence[Outcome], done: str, *, as_json: bool) -> None:
    """Report changes to items; `done` is a word such as `cooled`. One refusal is an error; among others, status 3."""
    if len(outcomes) == 1:
        refuse(outcomes[0])
    if as_json:
        print_json({"outcomes": [document(outcome) for outcome in outcomes]})
    else:
        for outcome in outcomes:
            say(_settled(outcome, done), error=not outcome.stored)
        if not outcomes:
            say("nothing to do")
    leave(outcomes)


def leave(outcomes: Iterable[Outcome]) -> None:
    """End with the status of a refusal if there is one among the outcomes."""
    if any(not outcome.stored for outcome in outcomes):
        raise typer.Exit(REFUSED)


def degraded(flags: Iterable[str]) -> None:
    """Say on stderr what was missing."""
    found = list(dict.fromkeys(flags))
    if found:
        say(f"degraded: {'; '.join(found)}", error=True)


def _settled(outcome: Outcome, done: str) -> str:
    if not outcome.stored:
        return f"{outcome.id}: refused: {outcome.detail}\n  {remedy(outcome)}"
    return f"{outcome.id}: unchanged" if outcome.result is Result.UNCHANGED else f"{outcome.id}: {done}"


def _keep(outcome: Outcome, space: str | None) -> str:
    return f"afterwatch memory keep --write {outcome.event}{f' --space {space}' if space else ''}"


def _items(ids: Sequence[str]) -> str:
    return f"1 item ({ids[0]}) quotes" if len(ids) == 1 else f"{len(ids)} items ({_list(ids)}) quote"


def _list(ids: Sequence[str]) -> str:
    return ", ".join(ids)
