"""The answers of the memory tools: items as plain fields, and as quotations behind marks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from afterwatch.memory.model import Item, Outcome, Result
from afterwatch.tools.quoting import NOTICE, fenced, plain, shown
from afterwatch.tools.registry import Answer

MAX_TEXT = 2_000
"""Characters of one item in a list; `memory_get` shows up to `MAX_ANSWER`."""
MAX_ANSWER = 16_000
"""Characters of all items of one answer: hosts cut or refuse what is longer than some 25,000 tokens."""
COMMAND = "afterwatch memory confirm"


class Remembered(BaseModel):
    """One item. Fields without content are left out."""

    model_config = ConfigDict(extra="forbid")
    id: str
    text: str
    date: str
    layer: str
    origin: str
    confirmed: bool
    source: str
    scope: str
    space: str
    status: str
    since: str | None = None
    until: str | None = None
    key: str | None = None
    category: str | None = None
    negative: str | None = None
    quote: str | None = None
    tags: list[str] | None = None
    superseded_by: str | None = None
    cold: bool | None = None
    cut: bool | None = None
    score: float | None = None

    def lines(self) -> list[str]:
        """A line about the item, then its text as a quotation."""
        state = [self.status] if self.status != "active" else []
        about = [self.id, self.date, self.layer, self.key or "", self.origin, *state, "cold" if self.cold else ""]
        about.append(f"source: {self.source}")  # last, for it is whatever somebody wrote
        lines = [plain("  ".join(part for part in about if part)), fenced(self.text)]
        if self.cut:
            lines.append(f"    (cut; memory_get {self.id} shows more)")
        if self.negative:
            lines.append(fenced(self.negative, "    not > "))
        return lines


class Items(Answer):
    """Items, best or newest first; `omitted` found no place in this answer."""

    notice: str = NOTICE
    items: list[Remembered] = Field(default_factory=list)
    omitted: int = 0

    def lines(self) -> list[str]:
        found = [line for item in self.items for line in item.lines()]
        if not found:
            return ["nothing found"]
        return [NOTICE, *found, *([f"{self.omitted} more left out"] if self.omitted else [])]


class Lessons(Answer):
    """Lessons from `offset` on, the confirmed ones first; `of` counts all."""

    notice: str = NOTICE
    items: list[Remembered] = Field(default_factory=list)
    confirmed: int = 0
    suggested: int = 0
    offset: int = 0
    omitted: int = 0

    def lines(self) -> list[str]:
        head = f"shown {len(self.items)} of {self.confirmed + self.suggested}"
        head += f" ({self.confirmed} confirmed, {self.suggested} suggested), from {self.offset}"
        marked = [line for item in self.items for line in (f"[{_standing(item)}]", *item.lines())]
        return [head, *([NOTICE, *marked] if marked else [])]


class Single(Answer):
    """One item; of a key also its other values, oldest first."""

    notice: str = NOTICE
    item: Remembered
    history: list[Remembered] = Field(default_factory=list)
    omitted: int = 0

    def lines(self) -> list[str]:
        past = [line for item in self.history for line in item.lines()]
        return [NOTICE, *self.item.lines(), *(["other values of this key, oldest first:", *past] if past else [])]


class Written(Answer):
    """What became of something to be remembered."""

    result: str
    id: str
    confirmed: bool
    detail: str | None = None
    next: str | None = None
    displaced: list[str] = Field(default_factory=list)
    pending_cleanup: list[str] = Field(default_factory=list)
    near: list[str] = Field(default_factory=list)
    cooled: list[str] = Field(default_factory=list)

    def lines(self) -> list[str]:
        said = [f"{self.result}: {self.id}", *([self.detail] if self.detail else [])]
        for name in ("displaced", "pending_cleanup", "near", "cooled"):
            ids = getattr(self, name)
            said += [f"{name.replace('_', ' ')}: {', '.join(ids)}"] if ids else []
        return [*said, *([self.next] if self.next else [])]


class Gone(BaseModel):
    """What became of one item that was to be forgotten."""

    model_config = ConfigDict(extra="forbid")
    id: str
    result: Literal["forgotten", "unchanged", "requested"]
    detail: str | None = None


class Forgotten(Answer):
    """What became of items to be forgotten. `requested`: it is the user's own, and the user decides."""

    outcomes: list[Gone]
    meaning: str

    def lines(self) -> list[str]:
        return [
            *(f"{one.id}: {one.result}{f': {one.detail}' if one.detail else ''}" for one in self.outcomes),
            self.meaning,
        ]


class Context(Answer):
    """What may enter a prompt: a block of quotations, and the ids it cites."""

    context: str
    ids: list[str] = Field(default_factory=list)

    def lines(self) -> list[str]:
        return [self.context or "nothing remembered bears on this"]


@dataclass
class Budget:
    """Room for the texts of one answer. What finds none is counted, not cut."""

    left: int = MAX_ANSWER
    omitted: int = 0

    def take(self, items: Iterable[Remembered]) -> list[Remembered]:
        """The first items that have room, whole."""
        kept = []
        for item in items:
            size = len(item.text) + len(item.negative or "") + len(item.quote or "")
            if self.omitted or size > self.left:
                self.omitted += 1
                continue
            self.left -= size
            kept.append(item)
        return kept


def remembered(item: Item, *, longest: int = MAX_TEXT, score: float | None = None, quote: bool = False) -> Remembered:
    """An item as an answer shows it."""
    return Remembered(
        id=item.id,
        text=item.text[:longest],
        cut=True if len(item.text) > longest else None,
        date=item.date,
        layer=item.layer,
        origin=item.origin,
        confirmed=item.epistemic == "confirmed",
        source=item.source,
        scope=str(item.scope),
        space=item.space,
        status=item.status,
        since=shown(item.valid_from, item.offset_minutes),
        until=shown(item.valid_to, item.offset_minutes),
        key=item.subject,
        category=item.category,
        negative=(item.negative or "")[:longest] or None,
        quote=(item.quote or "")[:longest] or None if quote else None,
        tags=list(item.tags) or None,
        superseded_by=item.superseded_by,
        cold=True if item.tier == "cold" else None,
        score=None if score is None else round(score, 4),
    )


def written(outcome: Outcome, *, confirmed: bool, space: str) -> Written:
    """The answer to a write that was not refused."""
    named = "" if space == "local" else f" --space {space}"
    settled = confirmed or outcome.result is Result.QUARANTINED
    later = "" if settled else f"it is a suggestion until the user runs: {COMMAND} {outcome.id}{named}"
    return Written(
        result=outcome.result,
        id=str(outcome.id),
        confirmed=confirmed,
        detail=outcome.detail or None,
        next=later or None,
        displaced=list(outcome.displaced),
        pending_cleanup=list(outcome.pending_cleanup),
        near=list(outcome.near),
        cooled=list(outcome.cooled),
        degraded=list(outcome.degraded),
    )


def _standing(item: Remembered) -> str:
    return "confirmed" if item.confirmed else "suggested"
