"""Reading items without ranking: one by id, lists, histories, events, counts. Standard library only.

Every function takes a `View` and shows what its spaces and scopes allow, nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from afterwatch.errors import UserError
from afterwatch.memory.model import GLOBAL, Item, View
from afterwatch.memory.store import Store

OpenStore = Callable[[str], Store]
"""Gives the store of a space by its name."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which items a list or a search covers. Times are microseconds since the epoch.

    `valid_at` asks what was true then, `known_at` what was remembered then; with either, former items are
    looked at too.
    """

    layers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    valid_at: int | None = None
    known_at: int | None = None

    @property
    def past(self) -> bool:
        return self.valid_at is not None or self.known_at is not None

    def holds(self, item: Item, now: int) -> bool:
        """Whether an item belongs in an answer at `now` under this filter (scope is checked by the query)."""
        if self.layers and item.layer not in self.layers:
            return False
        if self.tags and not set(self.tags) & set(item.tags):
            return False
        if self.statuses and item.status not in self.statuses:
            return False
        return self._in_time(item, now)

    def _in_time(self, item: Item, now: int) -> bool:
        ends = item.valid_to
        if self.known_at is not None:
            if item.recorded_at > self.known_at:
                return False
            if item.superseded_at is not None:
                if item.superseded_at <= self.known_at:
                    return False
                ends = None  # its end was not known yet
        elif not self.past:
            return ends is None or ends > now
        at = self.valid_at if self.valid_at is not None else (self.known_at or now)
        return item.valid_from <= at and (ends is None or ends > at)


def scope_clause(view: View) -> tuple[str, list[Any]]:
    """The SQL condition that keeps a query inside the view's scopes, and its values; empty when all are visible."""
    if not view.scopes:
        return "", []
    visible = dict.fromkeys((GLOBAL, *view.scopes))
    condition = " OR ".join("(scope_kind = ? AND scope_key = ?)" for _ in visible)
    return f"({condition})", [part for scope in visible for part in (str(scope.kind), scope.key)]


def get(stores: OpenStore, view: View, item_id: str) -> Item:
    """The item of an id.

    Raises:
        UserError: there is none in the spaces and scopes of this view.
    """
    clause, values = scope_clause(view)
    for space in view.read:
        where = f"id = ? AND {clause}" if clause else "id = ?"
        found = stores(space).select(where, [item_id, *values])
        if found:
            return found[0]
    raise UserError(f"no item {item_id!r} here", remedy="`afterwatch memory search …` or `memory list` shows ids")


def listing(
    stores: OpenStore, view: View, wanted: Filter, *, limit: int, offset: int = 0, now: int, everything: bool = False
) -> list[Item]:
    """Items newest first; live ones unless `everything` or a status or time is asked for."""
    clause, values = scope_clause(view)
    conditions = [clause] if clause else []
    if not (everything or wanted.statuses or wanted.past):
        conditions.append("live = 1")
    for column, allowed in (("layer", wanted.layers), ("status", wanted.statuses)):
        if allowed:
            conditions.append(f"{column} IN ({','.join('?' * len(allowed))})")
            values += allowed
    found: list[Item] = []
    for space in view.read:
        items = stores(space).select(" AND ".join(conditions) or "1", values, tail="ORDER BY recorded_at DESC, row DESC")
        found += [item for item in items if everything or wanted.holds(item, now)]
    found.sort(key=lambda item: (-item.recorded_at, -item.row))
    return found[offset : offset + limit]


def history(stores: OpenStore, view: View, subject_or_id: str) -> list[Item]:
    """Every value a subject ever had, oldest first; for an id, the chain it belongs to.

    Raises:
        UserError: nothing of that name is visible.
    """
    clause, values = scope_clause(view)
    subject = subject_or_id
    if subject_or_id.startswith("mem-"):
        item = get(stores, view, subject_or_id)
        if item.subject is None:
            return [item]
        subject = item.subject
    where = f"subject = ? AND {clause}" if clause else "subject = ?"
    found = [i for space in view.read for i in stores(space).select(where, [subject, *values], tail="ORDER BY row")]
    if not found:
        raise UserError(f"no key {subject!r} here", remedy="`afterwatch memory list --layer semantic` shows keys")
    return found


def events(stores: OpenStore, view: View, *, item_id: str | None, limit: int) -> list[dict[str, Any]]:
    """What happened, newest first: ids and codes, never texts."""
    columns = ("seq", "at", "code", "item", "other", "reason", "by", "origin", "write")
    chosen = "WHERE item = ? OR other = ?" if item_id else ""
    values: Sequence[Any] = (item_id, item_id) if item_id else ()
    found: list[dict[str, Any]] = []
    for space in view.read:
        with stores(space).reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(columns)} FROM events {chosen} ORDER BY seq DESC LIMIT ?", (*values, limit)
            )
            found += [{"space": space, **dict(zip(columns, row, strict=True))} for row in rows]
    return sorted(found, key=lambda event: (-event["at"], -event["seq"]))[:limit]


def stats(stores: OpenStore, view: View) -> list[dict[str, Any]]:
    """Counts of each space of the view: items by layer and status, vectors by model, index state, file size."""
    answer: list[dict[str, Any]] = []
    for space in view.read:
        store = stores(space)
        with store.reading() as connection:
            layers = connection.execute("SELECT layer, status, tier, count(*) FROM items GROUP BY 1, 2, 3").fetchall()
            vectors = connection.execute("SELECT model, count(*) FROM vectors GROUP BY 1").fetchall()
            count = connection.execute("SELECT count(*) FROM events").fetchone()[0]
            upto = connection.execute("SELECT upto FROM index_state").fetchone()
        answer.append(
            {
                "space": space,
                "items": [dict(zip(("layer", "status", "tier", "count"), row, strict=True)) for row in layers],
                "vectors": dict(vectors),
                "events": count,
                "index": "complete" if upto and upto[0] is None else "rebuilding",
                "bytes": store.path.stat().st_size,
                "path": str(store.path),
            }
        )
    return answer


def as_dict(item: Item) -> dict[str, Any]:
    """An item as plain data for `--json`; the row number stays inside."""
    values = asdict(item)
    del values["row"]
    return {**values, "scope": str(item.scope)}
