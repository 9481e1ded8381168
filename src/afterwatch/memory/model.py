"""The nouns of memory: items, views, scopes, and the typed outcome of every write. Standard library only."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from afterwatch.errors import UserError
from afterwatch.memory.names import quoted, telling

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Layer(StrEnum):
    """Where an item is shown; state with a subject lives in `semantic`, lessons in `lesson`."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    LESSON = "lesson"
    PREFERENCE = "preference"
    PROJECT = "project"
    HISTORY = "history"


class Kind(StrEnum):
    """State is replaced by a newer value of the same subject; knowledge only accumulates."""

    STATE = "state"
    KNOWLEDGE = "knowledge"


class Status(StrEnum):
    """The closed vocabulary of memory@0.2.0."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    STALE = "stale"
    PENDING_CLEANUP = "pending-cleanup"


class Tier(StrEnum):
    """Cold items are searchable and restorable but never injected."""

    HOT = "hot"
    COLD = "cold"


class Epistemic(StrEnum):
    """The protocol's Confidence (scheme epistemic-status-v1)."""

    CONFIRMED = "confirmed"
    OBSERVED_ONCE = "observed-once"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


class Channel(StrEnum):
    """The way a call came in. The channel alone decides the origin, see `ORIGINS`."""

    PORTAL = "portal"
    TTY = "tty"
    DEMO = "demo"
    CLI = "cli"
    PYTHON = "python"
    MCP = "mcp"
    ACP = "acp"
    DISK = "disk"
    CONSOLIDATION = "consolidation"
    DREAM = "dream"
    IMPORT = "import"
    MIGRATION = "migration"
    TASK = "task"


USER = "user_explicit"
AGENT = "agent"
ORIGINS: dict[Channel, str] = {
    Channel.PORTAL: USER,
    Channel.TTY: USER,
    Channel.DEMO: USER,
    Channel.CLI: AGENT,
    Channel.PYTHON: AGENT,
    Channel.MCP: AGENT,
    Channel.ACP: AGENT,
    Channel.DISK: AGENT,
    **{channel: channel.value for channel in (Channel.CONSOLIDATION, Channel.DREAM, Channel.IMPORT)},
    **{channel: channel.value for channel in (Channel.MIGRATION, Channel.TASK)},
}
"""Authority by channel. The demo is a scripted person and says so; a host's hook may later confirm an agent's quote."""


class ScopeKind(StrEnum):
    """What a scope narrows to; `global` holds everywhere in its space."""

    GLOBAL = "global"
    PROJECT = "project"
    ENVIRONMENT = "environment"
    WORKFLOW = "workflow"
    USER_PREFERENCE = "user preference"
    WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A place inside a space, e.g. project `github.com/acme/shop`; `global` has an empty key."""

    kind: ScopeKind = ScopeKind.GLOBAL
    key: str = ""

    @classmethod
    def parse(cls, text: str) -> "Scope":
        """Read `global`, `project:<key>`, `environment:<cluster>/<namespace>` and so on.

        Raises:
            UserError: the kind is unknown or the key is missing.
        """
        kind, _, key = text.partition(":")
        known = ", ".join(ScopeKind)
        if kind not in tuple(ScopeKind):
            raise UserError(f"unknown scope kind {quoted(kind)}", remedy=f"use one of: {known}")
        if (kind == ScopeKind.GLOBAL) == bool(key.strip()):
            raise UserError(
                f"scope {quoted(text)} is incomplete", remedy="write global, or kind:key such as project:shop"
            )
        return cls(ScopeKind(kind), key.strip())

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}" if self.key else str(self.kind)


GLOBAL = Scope()
_SPACE = re.compile(r"local|(?:user|agent|team):[a-z0-9][a-z0-9._@-]{0,99}")


def check_space(name: str) -> str:
    """Return the name if it is `local`, `user:<id>`, `agent:<id>` or `team:<slug>`.

    Raises:
        UserError: any other name, so that no name can leave the folder of spaces.
    """
    if not _SPACE.fullmatch(name) or ".." in name:
        raise UserError(f"{quoted(name)} is no space", remedy="use local, user:<id>, agent:<id> or team:<slug>")
    return name


@dataclass(frozen=True, slots=True)
class View:
    """Who asks, over which channel, which spaces are read, which one is written, and in which scopes.

    `scopes` empty means: every scope of the read spaces is visible. Otherwise global items and the items of
    these scopes are. Writes go to the first scope, or to `global`.
    """

    principal: str = "local"
    read: tuple[str, ...] = ("local",)
    write: str = "local"
    scopes: tuple[Scope, ...] = ()
    channel: Channel = Channel.PYTHON

    def __post_init__(self) -> None:
        for name in (*self.read, self.write):
            check_space(name)

    def check_names(self) -> None:
        """Refuse to write under a name that the redactor would change.

        Raises:
            UserError: the space that is written, or the principal, looks like a credential.
        """
        for what, name in (("space", self.write), ("principal", self.principal)):
            if telling(name):
                raise UserError(
                    f"the name of the {what} looks like a credential; nothing was written",
                    remedy="name it by what it is for",
                    code="secret_name",
                )

    @property
    def origin(self) -> str:
        """The authority of this view; it comes from the channel and nothing else."""
        return ORIGINS[self.channel]

    @property
    def is_user(self) -> bool:
        return self.origin == USER

    @property
    def write_scope(self) -> Scope:
        return self.scopes[0] if self.scopes else GLOBAL


@dataclass(frozen=True, slots=True)
class Item:
    """One remembered thing as stored. Times are microseconds since the epoch, UTC."""

    row: int
    id: str
    space: str
    layer: str
    kind: str
    subject: str | None
    text: str
    value: Any
    status: str
    status_by: str | None
    tier: str
    merged_into: str | None
    quarantined: bool
    superseded_by: str | None
    category: str | None
    negative: str | None
    source: str
    quote: str | None
    source_run: str | None
    conversation: str | None
    position: int | None
    origin: str
    author: str
    scope: Scope
    confidence: float
    epistemic: str
    corroborating_refs: tuple[str, ...]
    inspired_by: str | None
    importance: float
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    pinned: bool
    recorded_at: int
    offset_minutes: int
    date: str
    valid_from: int
    valid_to: int | None
    superseded_at: int | None
    revision: int

    @property
    def live(self) -> bool:
        """Neither superseded, stale, quarantined nor merged away (the store's rule `live`); times do not count."""
        shown = self.status in (Status.ACTIVE, Status.PENDING_CLEANUP)
        return shown and not self.quarantined and self.merged_into is None

    @property
    def sources(self) -> tuple[str, ...]:
        """The source it was captured from, then those that said the same later."""
        return (self.source, *self.corroborating_refs)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller wants remembered, before the gate. Only `text`, or `subject` and `value`, is required."""

    text: str = ""
    layer: Layer = Layer.EPISODIC
    subject: str | None = None
    value: Any = None
    confidence: float = 1.0
    importance: float = 0.5
    tags: Sequence[str] = ()
    aliases: Sequence[str] = ()
    pinned: bool = False
    source: str = ""
    quote: str | None = None
    source_run: str | None = None
    conversation: str | None = None
    position: int | None = None
    category: str | None = None
    negative: str | None = None
    epistemic: str | None = None
    inspired_by: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    offset_minutes: int | None = None
    scope: Scope | None = None
    imported: bool = False
    """A turn of an imported conversation: exempt from the length rule, otherwise gated alike."""


class Result(StrEnum):
    """What a write came to; `changed` is what confirm, cool, warm and keep do to an item."""

    INSERTED = "inserted"
    UNCHANGED = "unchanged"
    MERGED = "merged"
    SUPERSEDED = "superseded"
    CORROBORATED = "corroborated"
    CHANGED = "changed"
    QUARANTINED = "quarantined"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The typed answer to a write.

    `id` is the item that now holds what was said (the new one, or the one it agreed with); `displaced` are ids
    that lost their place to it; `pending_cleanup` are items that quote the old value and wait for a person;
    `near` are look-alikes nominated for review; `event` names the write, for undoing its marks.
    """

    result: Result
    id: str | None = None
    reason: str = ""
    detail: str = ""
    displaced: tuple[str, ...] = ()
    pending_cleanup: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    cooled: tuple[str, ...] = ()
    event: int | None = None
    degraded: tuple[str, ...] = field(default=())

    @property
    def stored(self) -> bool:
        return self.result is not Result.REFUSED


def micros(moment: datetime) -> int:
    """Microseconds since the epoch, UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def local_date(at: int, offset_minutes: int) -> str:
    """The calendar day where and when something was captured."""
    moment = _EPOCH + timedelta(microseconds=at, minutes=offset_minutes)
    return moment.date().isoformat()
