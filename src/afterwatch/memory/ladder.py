"""Which value of a key holds when: the ladder of authority, confidence and time, over all rows of the key. Pure.

The values of a key in a scope form a timeline without overlaps. A new value claims a stretch of it and is judged
against each value that holds anywhere in that stretch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from afterwatch.memory.model import USER, Item

EQUAL_CONFIDENCE = 0.1
"""Confidences this close count as equal, and the newer `valid_from` wins."""
REASONS = {
    "user_holds": "the user gave the value that holds then; only the user changes it",
    "lower_confidence": "the value that holds then is held with more confidence",
    "older": "the current value is newer",
    "same_time": "two values for one moment have no order; say which one holds",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A new value on its way in: who says it, how surely, and the stretch of time it claims."""

    by_user: bool
    confidence: float
    begins: int
    ends: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a claim and of the rows that are there.

    `ends`: the claim's end, cut where a value that is planned already takes over. `cut`: rows that lose what lies
    behind the claim's beginning. `former`: live rows that are former now, each with the row that follows it, None
    for the claim itself. `follower`: the row that follows the claim if that has begun too.
    """

    ends: int | None = None
    reason: str = ""
    rival: Item | None = None
    cut: tuple[Item, ...] = ()
    former: tuple[tuple[Item, Item | None], ...] = ()
    follower: Item | None = None


def begun(item: Item, now: int) -> bool:
    """Whether an item holds already; one that did not lie ahead when it was recorded does, whatever the clock says."""
    return item.valid_from <= max(now, item.recorded_at)


def rivals(claim: Claim, rows: Sequence[Item]) -> list[Item]:
    """The rows that hold somewhere in the claimed stretch, in order of time."""
    ends = claim.ends
    found = [
        row
        for row in rows
        if (row.valid_to is None or row.valid_to > max(claim.begins, row.valid_from))
        and (ends is None or row.valid_from < ends)
    ]
    return sorted(found, key=lambda row: (row.valid_from, row.row))


def outranked(claim: Claim, held: Item) -> str:
    """Why a held value stands against a claim; empty if it gives way."""
    by_user = held.origin == USER
    if claim.by_user and not by_user:
        return ""
    if by_user and not claim.by_user:
        return "user_holds"
    if not claim.by_user and round(abs(held.confidence - claim.confidence), 6) > EQUAL_CONFIDENCE:
        return "lower_confidence" if claim.confidence < held.confidence else ""
    if claim.begins < held.valid_from:
        return "older"
    return "same_time" if claim.begins == held.valid_from else ""


def judge(claim: Claim, rows: Sequence[Item], now: int) -> Plan:
    """Measure a claim against the rows of its key that are live, or hold after its beginning."""
    cut: list[Item] = []
    refused: Plan | None = None
    ends = claim.ends
    for row in rivals(claim, rows):
        reason = outranked(claim, row)
        if not reason:
            cut.append(row)
        elif row.valid_from > claim.begins and not begun(row, now):
            ends = row.valid_from  # planned already: the claim holds until then
            break
        else:
            refused = Plan(reason=reason, rival=row)
    if refused is not None:
        return refused
    former, follower = _order(claim, [row for row in rows if row.live], cut, now)
    return Plan(ends, cut=tuple(cut), former=former, follower=follower)


def _order(
    claim: Claim, live: Sequence[Item], cut: Sequence[Item], now: int
) -> tuple[tuple[tuple[Item, Item | None], ...], Item | None]:
    """Which live rows are former once the claim is in: those that it covers, and those whose follower has begun."""
    gone = [row for row in cut if row.live and row.valid_from >= claim.begins]
    line: list[Item | None] = [*sorted((row for row in live if row not in gone), key=lambda row: row.valid_from)]
    place = sum(row is not None and row.valid_from < claim.begins for row in line)
    line.insert(place, None)
    former: list[tuple[Item, Item | None]] = [(row, None) for row in gone]
    follower = None
    for row, after in pairwise(line):
        if not (claim.begins <= now if after is None else begun(after, now)):
            continue
        if row is None:
            follower = after
        else:
            former.append((row, after))
    return tuple(former), follower
