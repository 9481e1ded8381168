"""Reading items without ranking: one by id, lists, histories, events, counts. Standard library only.

Every function takes a `View` and shows what its spaces and scopes allow, nothing else.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from afterwatch.errors import UserError
from afterwatch.memory.ladder import begun
from afterwatch.memory.model import GLOBAL, Item, View
from afterwatch.memory.names import quoted
from afterwatch.memory.store import Store

OpenStore = Callable[[str], Store]
"""Gives the store of a space by its name."""
_NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Filter:
    """Which items a list or a search covers. Times are microseconds since the epoch.

    `valid_at` asks what was true then, `known_at` what was remembered then; with either, former items are
    looked at too. `quarantined` asks for the items that were set aside, and shows no others.
    """

    layers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    valid_at: int | None = None
    known_at: int | None = None
    quarantined: bool = False

    @property
    def past(self) -> bool:
        return self.valid_at is not None or self.known_at is not None


ANY = Filter()


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition over `items` and its values; empty text means no restriction."""

    sql: str = ""
    values: tuple[Any, ...] = ()

    def __and__(self, other: "Condition") -> "Condition":
        if not (self.sql and other.sql):
            return self if self.sql else other
        return Condition(f"{self.sql} AND {other.sql}", (*self.values, *other.values))


def in_scope(view: View) -> Condition:
    """Keeps a query inside the scopes of the view."""
    if not view.scopes:
        return Condition()
    visible = dict.fromkeys((GLOBAL, *view.scopes))
    sql = " OR ".join("(scope_kind = ? AND scope_key = ?)" for _ in visible)
    return Condition(f"({sql})", tuple(part for scope in visible for part in (str(scope.kind), scope.key)))


def chosen(where: Filter) -> Condition:
    """Keeps a query to the layers, statuses and tags asked for (any of the tags)."""
    found = Condition()
    for column, allowed in (("layer", where.layers), ("status", where.statuses)):
        if allowed:
            found &= Condition(f"{column} IN ({','.join('?' * len(allowed))})", tuple(map(str, allowed)))
    if where.tags:
        marks = ",".join("?" * len(where.tags))
        sql = f"EXISTS (SELECT 1 FROM json_each(tags) WHERE json_each.value IN ({marks}))"
        found &= Condition(sql, tuple(tag.strip().lower() for tag in where.tags))
    return found


def admitted(where: Filter) -> Condition:
    """Keeps a query from quarantined items, unless they are asked for by name."""
    return Condition("quarantined = 1" if where.quarantined else "quarantined = 0")


def visible(where: Filter, now: int, *, everything: bool = False) -> Condition:
    """What a view sees of its scopes: the one place that decides it, for lists and for searches.

    Quarantined items only by name; live ones unless a status or a time is asked for; what holds at the time asked
    for, or now. `everything` lifts all but the first.
    """
    if everything:
        return admitted(where)
    seen = admitted(where) & in_time(where, now)
    return seen if where.statuses or where.past or where.quarantined else seen & Condition("live = 1")


def in_time(where: Filter, now: int) -> Condition:
    """Keeps a query to what holds now, or to what was true, and known, at the times asked for.

    What did not lie ahead when it was recorded has begun, whatever the clock says since.
    """
    if not where.past:
        return Condition("valid_from <= max(?, recorded_at) AND (valid_to IS NULL OR valid_to > ?)", (now, now))
    known = where.known_at
    at = where.valid_at if where.valid_at is not None else (known if known is not None else now)
    if known is None:
        return Condition("valid_from <= ? AND (valid_to IS NULL OR valid_to > ?)", (at, at))
    # The end that was known then: that of the first revision kept later, else the present one.
    return Condition(
        "recorded_at <= ? AND valid_from <= ? AND coalesce((SELECT coalesce(r.valid_to, ?) FROM item_revisions r "
        "WHERE r.item = row AND r.until > ? ORDER BY r.revision LIMIT 1), valid_to, ?) > ?",
        (known, at, _NEVER, known, _NEVER, at),
    )


def current(items: Iterable[Item], now: int) -> Item | None:
    """Of a key's history the value that holds now: neither former, ended nor planned. Of several scopes the latest."""
    held = [i for i in items if i.live and begun(i, now) and (i.valid_to is None or i.valid_to > now)]
    return held[-1] if held else None


def get(stores: OpenStore, view: View, item_id: str, where: Filter = ANY) -> Item:
    """The item of an id; one that is quarantined if the filter names those.

    Raises:
        UserError: there is none in the spaces and scopes of this view.
    """
    wanted = Condition("id = ?", (item_id,)) & in_scope(view) & admitted(where)
    for space in view.read:
        found = stores(space).select(wanted.sql, wanted.values)
        if found:
            return found[0]
    raise UserError(f"no item {quoted(item_id)} here", remedy="`afterwatch memory search …` or `memory list` shows ids")


def listing(
    stores: OpenStore,
    view: View,
    where: Filter,
    *,
    limit: int,
    offset: int = 0,
    now: int,
    everything: bool = False,
) -> list[Item]:
    """Items newest first; live ones unless `everything`, or a status or time is asked for."""
    wanted = in_scope(view) & chosen(where) & visible(where, now, everything=everything)
    tail = f"ORDER BY recorded_at DESC, row DESC LIMIT {int(limit) + int(offset)}"
    found = [item for space in view.read for item in stores(space).select(wanted.sql, wanted.values, tail=tail)]
    found.sort(key=lambda item: (-item.recorded_at, -item.row))
    return found[offset : offset + limit]


def history(stores: OpenStore, view: View, subject_or_id: str) -> list[Item]:
    """Every value a subject ever had, oldest first; for an id, the chain it belongs to.

    Raises:
        UserError: nothing of that name is visible.
    """
    if subject_or_id.startswith("mem-"):
        item = get(stores, view, subject_or_id)
        if item.subject is None:
            return [item]
        chain = "subject = ? AND scope_kind = ? AND scope_key = ? AND quarantined = 0"
        values = (item.subject, str(item.scope.kind), item.scope.key)
        return stores(item.space).select(chain, values, tail="ORDER BY row")
    wanted = Condition("subject = ?", (subject_or_id,)) & in_scope(view) & admitted(ANY)
    found = [i for space in view.read for i in stores(space).select(wanted.sql, wanted.values, tail="ORDER BY row")]
    if not found:
        raise UserError(
            f"no key {quoted(subject_or_id)} here", remedy="`afterwatch memory list --layer semantic` shows keys"
        )
    return found


def events(stores: OpenStore, view: View, *, item_id: str | None, limit: int) -> list[dict[str, Any]]:
    """What happened to the items in view, newest first: ids and codes, never texts."""
    columns = ("seq", "at", "code", "item", "other", "reason", "by", "origin", "write")
    wanted, seen = Condition(), in_scope(view)
    if seen.sql:
        wanted &= Condition(f"item IN (SELECT id FROM items WHERE {seen.sql})", seen.values)
    if item_id:
        wanted &= Condition("(item = ? OR other = ?)", (item_id, item_id))
    found: list[dict[str, Any]] = []
    for space in view.read:
        with stores(space).reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(columns)} FROM events WHERE {wanted.sql or '1'} ORDER BY seq DESC LIMIT ?",
                (*wanted.values, limit),
            )
            found += [{"space": space, **dict(zip(columns, row, strict=True))} for row in rows]
    return sorted(found, key=lambda event: (-event["at"], -event["seq"]))[:limit]


def stats(stores: OpenStore, view: View) -> list[dict[str, Any]]:
    """Counts of each space of the view: visible items by layer and status; of the whole file vectors, events, bytes."""
    seen = in_scope(view) & admitted(ANY)
    answer: list[dict[str, Any]] = []
    for space in view.read:
        store = stores(space)
        with store.reading() as connection:
            layers = connection.execute(
                f"SELECT layer, status, tier, count(*) FROM items WHERE {seen.sql} GROUP BY 1, 2, 3", seen.values
            ).fetchall()
            vectors = connection.execute("SELECT model, count(*) FROM vectors GROUP BY 1").fetchall()
            count = connection.execute("SELECT count(*) FROM events").fetchone()[0]
            whole = connection.execute("SELECT upto IS NULL AND segments IS NULL FROM index_state").fetchone()
        answer.append(
            {
                "space": space,
                "items": [dict(zip(("layer", "status", "tier", "count"), row, strict=True)) for row in layers],
                "vectors": dict(vectors),
                "events": count,
                "index": "complete" if whole and whole[0] else "rebuilding",
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
