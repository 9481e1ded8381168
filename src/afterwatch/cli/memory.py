"""`afterwatch memory`: remember, recall, look at and keep whole what is remembered."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterwatch.cli import embedder
from afterwatch.cli.memory_write import app, ready
from afterwatch.cli.options import AsOf, Json, KnownAt, Layers, Limit, Statuses, Tags, grouped, moment, shown_moment
from afterwatch.cli.outcomes import degraded
from afterwatch.cli.output import clean, print_json, say, table
from afterwatch.cli.view import Place, meter, opened
from afterwatch.errors import UserError
from afterwatch.memory.model import Item

if TYPE_CHECKING:
    from afterwatch.memory.reading import Filter
    from afterwatch.memory.recall import Found, Hit

__all__ = ["app"]

app.add_typer(embedder.app, name="embedder")
app.command(epilog="Example: afterwatch memory calibrate --json")(embedder.calibrate)

Target = Annotated[str, typer.Argument(metavar="ID|KEY", help="An id, or a key such as pref.editor.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


@dataclass(frozen=True)
class Chosen:
    """Which items a list or a search covers."""

    layer: Layers = None
    tag: Tags = None
    as_of: AsOf = None
    known_at: KnownAt = None

    def filter(self, statuses: Iterable[str] = ()) -> "Filter":
        """The same for the memory room."""
        from afterwatch.memory.reading import Filter

        return Filter(
            layers=tuple(self.layer or ()),
            tags=tuple(self.tag or ()),
            statuses=tuple(statuses),
            valid_at=moment(self.as_of, end=True),
            known_at=moment(self.known_at, end=True),
        )


@app.command("list", epilog="Example: afterwatch memory list --layer semantic --limit 20")
@grouped
def list_(
    chosen: Chosen,
    place: Place,
    status: Statuses = None,
    everything: Annotated[bool, typer.Option("--all", help="Former values and ended items too.")] = False,
    limit: Limit = 50,
    offset: Annotated[int, typer.Option("--offset", min=0, help="How many to leave out.")] = 0,
    as_json: Json = False,
) -> None:
    """List items, newest first."""
    where = chosen.filter(status or ())
    with opened(place) as (memory, view):
        found = memory.items(view, where, limit=limit + 1, offset=offset, everything=everything)
    more, found = len(found) > limit, found[:limit]
    if as_json:
        print_json({"items": [item_document(item) for item in found], "more": more})
        return
    if not found:
        say("nothing here")
        return
    rows = [(i.id, i.date, i.layer, i.origin, state(i), i.subject or "", f'"{i.text}"') for i in found]
    table(["id", "date", "layer", "origin", "status", "key", "text"], rows)
    if more:
        say(f"there are more: --offset {offset + limit}")


@app.command(epilog="Example: afterwatch memory show pref.editor")
@grouped
def show(target: Target, place: Place, as_json: Json = False) -> None:
    """Show an item with all its fields, the history of its key and what happened to it."""
    with opened(place) as (memory, view):
        history = memory.history(view, target)
        named = [item for item in history if item.id == target]
        item = named[-1] if named else memory.current(view, target) or history[-1]
        events = memory.events(view, item_id=item.id)
    if as_json:
        past = [item_document(one) for one in history] if item.subject else []
        print_json({"item": item_document(item), "history": past, "events": [event_document(e) for e in events]})
        return
    for name, value in _fields(item):
        say(f"{name + ':':<15}{clean(value, one_line=True)}")
    say(quoted(item.text))
    if item.subject:
        say("\nhistory, oldest first:")
        rows = [(i.id, since(i), state(i), str(i.scope), f'"{i.text}"', i.superseded_by or "") for i in history]
        table(["id", "since", "status", "scope", "value", "superseded by"], rows)
    say("\nevents, newest first:")
    _event_table(events)


@app.command(epilog="Example: afterwatch memory search 'who drains the queue?'")
@grouped
def search(
    question: Annotated[str, typer.Argument(help="A question, or some words.")],
    chosen: Chosen,
    place: Place,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, max=1000, help="Default search_limit.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    gated: Annotated[bool, typer.Option("--gated", help="Only what may enter a prompt; often nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Find what matches a question best, by words and by meaning."""
    where = chosen.filter()
    with opened(place) as (memory, view):
        ready(memory, view)
        ask = memory.relevant if gated else memory.search
        found = ask(view, question, limit=limit, where=where, explain=explain)
    if as_json:
        hits = [{"score": h.score, "terms": h.terms, "why": h.why, **item_document(h.item)} for h in found.hits]
        print_json({"hits": hits, "degraded": list(found.degraded)})
        return
    _say_found(found)


@app.command(epilog="Example: afterwatch memory stats --json")
@grouped
def stats(place: Place, as_json: Json = False) -> None:
    """Count what is there: items, vectors, events and bytes of each space."""
    with opened(place) as (memory, view):
        found = memory.stats(view)
    if as_json:
        print_json({"spaces": found})
        return
    rows = [
        (space["space"], row["layer"], row["status"], row["tier"], row["count"])
        for space in found
        for row in space["items"]
    ]
    table(["space", "layer", "status", "tier", "items"], rows)
    for space in found:
        vectors = ", ".join(f"{count} of {model}" for model, count in space["vectors"].items()) or "none"
        say(f"{space['space']}: vectors {vectors}; {space['events']} events; keyword index {space['index']};")
        say(f"  {space['bytes'] / 1e6:.1f} MB in {space['path']}")


@app.command(epilog="Example: afterwatch memory audit --limit 20")
@grouped
def audit(
    place: Place,
    item: Annotated[str | None, typer.Option("--item", metavar="ID", help="Only what happened to this item.")] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List what happened, newest first: ids and codes, never remembered text."""
    with opened(place) as (memory, view):
        found = memory.events(view, item_id=item, limit=limit)
    if as_json:
        print_json({"events": [event_document(event) for event in found]})
    else:
        _event_table(found)


# -- upkeep --------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: afterwatch memory backup memory-2026.db")
@grouped
def backup(file: File, place: Place, as_json: Json = False) -> None:
    """Write a whole copy of the space to a new file, while others may use it."""
    target = Path(file).expanduser().absolute()
    with opened(place, writes=True) as (memory, view):
        memory.backup(view, target)
    size = target.stat().st_size
    if as_json:
        print_json({"space": view.write, "file": str(target), "bytes": size})
    else:
        say(f"{view.write}: {size / 1e6:.1f} MB written to {target}")


@app.command(epilog="Example: afterwatch memory restore memory-2026.db --yes")
@grouped
def restore(
    file: File,
    place: Place,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Put a backup in the place of what the space holds now; that is kept in a file beside it. Only you may."""
    source = Path(file).expanduser().absolute()
    with opened(place, writes=True, for_user="only the user replaces what a space holds") as (memory, view):
        _agree(f"Replace all that {view.write} holds by {source}?", yes)
        with meter("indexing") as progress:
            kept = memory.restore(view, source, progress=progress)
    if as_json:
        print_json({"space": view.write, "file": str(source), "kept": str(kept)})
    else:
        say(f"{view.write}: restored from {source}")
        say(f"what it held before is kept in {kept}; restore that file to go back")


@app.command(epilog="Example: afterwatch memory reindex")
@grouped
def reindex(place: Place, as_json: Json = False) -> None:
    """Build the keyword index of the space anew; no item is touched."""
    with opened(place, writes=True) as (memory, view):
        with meter("indexing") as progress:
            memory.reindex(view, progress=progress)
        items = sum(row["count"] for space in memory.stats(view)[:1] for row in space["items"])
    if as_json:
        print_json({"space": view.write, "items": items})
    else:
        say(f"{view.write}: {items} items indexed")


def _agree(question: str, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nobody can be asked here, and the space would be replaced", remedy="add --yes if it may")
    typer.confirm(clean(question), abort=True, err=True)


# -- showing -------------------------------------------------------------------------------------------------------


def item_document(item: Item) -> dict[str, Any]:
    """An item as plain data."""
    from afterwatch.memory.reading import as_dict

    return as_dict(item)


def event_document(event: dict[str, Any]) -> dict[str, Any]:
    """An event as plain data, its time as ISO text."""
    return {**event, "at": shown_moment(event["at"])}


def quoted(text: str, margin: str = "    > ") -> str:
    """Remembered text as a quotation: each of its lines behind a mark, so that none can pass for ours."""
    return "\n".join(margin + line for line in text.split("\n"))


def state(item: Item) -> str:
    """Status and tier in a word or two."""
    return f"{item.status}, cold" if item.tier == "cold" else item.status


def since(item: Item) -> str:
    """When an item began to hold, where it was captured."""
    return shown_moment(item.valid_from, item.offset_minutes)


def _say_found(found: "Found") -> None:
    if not found.hits:
        say("nothing found")
    spaces = {hit.item.space for hit in found.hits}
    for hit in found.hits:
        say(_head(hit, with_space=len(spaces) > 1))
        say(quoted(hit.item.text))
        if hit.why:
            say(f"    why: {clean(hit.why, one_line=True)}")
        if hit.terms:
            say(f"    score: {', '.join(f'{name} {value:.3f}' for name, value in hit.terms.items())}")
    degraded(found.degraded)


def _head(hit: "Hit", *, with_space: bool) -> str:
    item = hit.item
    parts = [item.id, item.date, f"{hit.score:.3f}", item.origin, item.source]
    parts += [item.subject] if item.subject else []
    parts += [state(item)] if state(item) != "active" else []
    parts += [item.space] if with_space else []
    return clean("  ".join(parts), one_line=True)


def _fields(item: Item) -> Iterable[tuple[str, str]]:
    left_out = ("text", "subject", "valid_from", "valid_to", "recorded_at", "superseded_at", "offset_minutes", "date")
    yield from (("id", item.id), ("key", item.subject or "—"), ("since", since(item)))
    for name in ("valid_to", "recorded_at", "superseded_at"):
        at = getattr(item, name)
        if at is not None:
            yield name.replace("_", " "), shown_moment(at, item.offset_minutes)
    for name, value in item_document(item).items():
        if name not in ("id", *left_out) and value not in (None, (), [], ""):
            yield name.replace("_", " "), _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _event_table(events: Sequence[dict[str, Any]]) -> None:
    names = ("seq", "at", "code", "item", "other", "reason", "by", "origin", "write")
    rows = [["" if one[name] is None else one[name] for name in names] for one in map(event_document, events)]
    if rows:
        table(names, rows)
    else:
        say("no events")
