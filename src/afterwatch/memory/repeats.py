"""The same thing said again: found by exact words or by the sameness rule, and added to the item that says it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from afterwatch.memory import index
from afterwatch.memory.entry import Entry
from afterwatch.memory.keywords import likely_repeats
from afterwatch.memory.model import USER, Epistemic, Item, Kind, Outcome, Result, Status, Tier
from afterwatch.memory.sameness import Sameness, compare, normalise, thresholds_for
from afterwatch.memory.store import note_change
from afterwatch.memory.texts import MOST_LABELS, fingerprint, overlap, union

LEAST_OVERLAP = 0.25
"""Below this share of common words, and below the cosine of a nomination, two texts are not compared further."""
MOST_NEAR = 3
"""Look-alikes that one draft nominates for review, the most alike first."""


# -- finding ---------------------------------------------------------------------------------------------------------


def repeats(entry: Entry) -> tuple[Item | None, tuple[str, ...]]:
    """The item that says the same as a piece of knowledge, or else the ids of those that look alike."""
    draft = entry.draft
    limits = thresholds_for(entry.prepared.model)
    for item in entry.select("fingerprint = ? AND live = 1", fingerprint(draft.text)):
        same = compare(item.text, draft.text, None, limits.merge, limits.nominate) is Sameness.SAME
        if same and _comparable(entry, item):
            return item, ()
    near: list[tuple[float, str]] = []
    room = entry.room
    rows = likely_repeats(entry.connection, room.stem, draft.text, room.frequent)
    cosines = _cosines(entry, rows)
    for row, item in sorted(room.store.by_rows(rows).items()):
        if not _comparable(entry, item) or item.status != "active":
            continue
        cosine, words = cosines.get(row), overlap(item.text, draft.text)
        if (cosine or 0.0) < limits.nominate and words < LEAST_OVERLAP:
            continue
        verdict = compare(item.text, draft.text, cosine, limits.merge, limits.nominate)
        if verdict is Sameness.SAME:
            return item, ()
        if verdict is Sameness.NEAR:
            near.append((-max(cosine or 0.0, words), item.id))
    return None, tuple(item_id for _, item_id in sorted(near)[:MOST_NEAR])


def _cosines(entry: Entry, rows: Sequence[int]) -> dict[int, float]:
    if entry.prepared.vector is None or entry.prepared.model is None:
        return {}
    from afterwatch.memory.vectors import stored_cosines

    return stored_cosines(entry.connection, entry.prepared.model, entry.prepared.vector, rows)


def _comparable(entry: Entry, item: Item) -> bool:
    draft = entry.draft
    return (
        item.kind == Kind.KNOWLEDGE
        and not entry.ended(item)
        and item.layer == draft.layer
        and item.scope == entry.scope
        and item.category == draft.category
        and normalise(item.negative or "") == normalise(draft.negative or "")
    )


# -- adding ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Labels:
    """What a repeat makes of an item's labels; `left_out` counts those that found no place."""

    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    importance: float
    pinned: bool
    quote: str | None
    valid_to: int | None
    left_out: int = 0

    @property
    def columns(self) -> dict[str, Any]:
        """As they are stored."""
        return {
            "tags": json.dumps(list(self.tags), ensure_ascii=False),
            "aliases": json.dumps(list(self.aliases), ensure_ascii=False),
            "importance": self.importance,
            "pinned": int(self.pinned),
            "quote": self.quote,
            "valid_to": self.valid_to,
            "tier": Tier.HOT,
        }


def add_to(entry: Entry, item: Item) -> Outcome:
    """Add the source to the item that says the same; who may change it adds labels, a user makes it theirs."""
    draft, view = entry.draft, entry.view
    raised = view.is_user and item.origin != USER
    may = view.is_user or item.origin != USER
    labels = _raised(entry) if raised else _joined(entry, item)
    changes = raised or (may and _differs(entry, item, labels))
    left_out = labels.left_out if may else 0
    detail = f"{left_out} label(s) found no place: {MOST_LABELS} tags and {MOST_LABELS} aliases" if left_out else ""
    if draft.source in item.sources and not changes:
        return Outcome(Result.UNCHANGED, item.id, detail=detail)
    with index.Editing(entry.connection, [item.row]):
        if changes:
            entry.revise(item)
            _change(entry, item, labels, raised=raised)
        refs = dict.fromkeys((*item.corroborating_refs, draft.source))
        refs.pop(item.source, None)
        entry.update(item, "corroborating_refs = ?", json.dumps(list(refs), ensure_ascii=False))
    note_change(entry.connection, item.row)
    state = item.kind == Kind.STATE
    event = entry.event("corroborate" if state else "merge", item.id)
    result = Result.CORROBORATED if state or raised else Result.MERGED
    return Outcome(result, item.id, detail=detail, event=event)


def _raised(entry: Entry) -> Labels:
    """The user's own labels alone: what an agent attached must not become the user's. The revision keeps it."""
    draft = entry.draft
    return Labels(tuple(draft.tags), tuple(draft.aliases), draft.importance, draft.pinned, draft.quote, draft.valid_to)


def _joined(entry: Entry, item: Item) -> Labels:
    """The item's labels and those of the repeat; a later end that it names moves the end."""
    draft = entry.draft
    tags, more = union(item.tags, draft.tags)
    aliases, others = union(item.aliases, draft.aliases)
    ends = item.valid_to
    if ends is not None and draft.valid_to is not None and item.kind == Kind.KNOWLEDGE:
        ends = max(ends, draft.valid_to)
    return Labels(
        tags,
        aliases,
        max(item.importance, draft.importance),
        item.pinned or draft.pinned,
        item.quote or draft.quote,
        ends,
        more + others,
    )


def _differs(entry: Entry, item: Item, labels: Labels) -> bool:
    """Whether a repeat brings anything beyond one more source."""
    before = Labels(item.tags, item.aliases, item.importance, item.pinned, item.quote, item.valid_to, labels.left_out)
    waits = entry.view.is_user and item.status == Status.PENDING_CLEANUP
    return waits or item.tier == Tier.COLD or labels != before


def _change(entry: Entry, item: Item, labels: Labels, *, raised: bool) -> None:
    columns = labels.columns
    entry.update(item, ", ".join(f"{name} = ?" for name in columns), *columns.values())
    if entry.view.is_user and item.status == Status.PENDING_CLEANUP:
        entry.update(item, "status = 'active', status_by = ?", entry.view.principal)
    if raised:
        entry.update(item, "origin = ?, epistemic = ?, confidence = 1.0", USER, Epistemic.CONFIRMED)
