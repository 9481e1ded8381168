"""One draft on its way in, inside the writing transaction: what every way of admission needs of it."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from afterwatch.memory import index
from afterwatch.memory.index import Stemmer
from afterwatch.memory.intake import canonical, kind_of
from afterwatch.memory.keywords import Frequent
from afterwatch.memory.model import USER, Draft, Epistemic, Item, Kind, Outcome, Result, View, local_date, micros
from afterwatch.memory.settings import MemorySettings
from afterwatch.memory.store import Store, keep_revision, next_counter, note_change, note_event
from afterwatch.memory.texts import fingerprint
from afterwatch.memory.words import Columns
from afterwatch.settings.clock import Clock

if TYPE_CHECKING:
    from afterwatch.memory.vectors import Vector


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft with what was computed before the transaction began."""

    draft: Draft
    vector: "Vector | None" = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """What all writes into one space share. `frequent`: what is known of its terms, see `keywords.likely_repeats`."""

    store: Store
    settings: MemorySettings
    clock: Clock
    stem: Stemmer
    frequent: Frequent


class Entry:
    """A draft, who says it, and the transaction it goes in by. `begins` is when it holds from, `now` the present."""

    def __init__(self, room: Room, connection: sqlite3.Connection, prepared: Prepared, view: View) -> None:
        draft = prepared.draft
        self.room = room
        self.connection = connection
        self.prepared = prepared
        self.view = view
        self.draft = replace(draft, source=draft.source or f"{view.channel}:{view.principal}")
        self.scope = draft.scope or view.write_scope
        self.now = micros(room.clock.now())
        self.begins = draft.valid_from if draft.valid_from is not None else self.now
        self._offset = draft.offset_minutes if draft.offset_minutes is not None else room.clock.offset_minutes()

    # -- rows ---------------------------------------------------------------------------------------------------

    def select(self, where: str, *values: Any) -> list[Item]:
        """Items of the draft's scope."""
        scoped = f"{where} AND +scope_kind = ? AND +scope_key = ?"  # +: not by the index of scopes, see `gather`
        return self.room.store.select(scoped, (*values, self.scope.kind, self.scope.key), tail="ORDER BY row")

    def ended(self, item: Item) -> bool:
        """Whether an item no longer holds when the draft begins to."""
        return item.valid_to is not None and item.valid_to <= self.begins

    def update(self, item: Item, change: str, *values: Any) -> None:
        """Change a row; what the index shows changes only within `index.Editing`."""
        self.connection.execute(f"UPDATE items SET {change} WHERE row = ?", (*values, item.row))

    def revise(self, item: Item) -> None:
        """Keep what an item says before it is changed."""
        keep_revision(self.connection, item.row, self.now, self.view.principal)

    def event(self, code: str, item: str | None, **more: Any) -> int:
        """Note what happened; returns its number."""
        view = self.view
        return note_event(self.connection, code, at=self.now, item=item, by=view.principal, origin=view.origin, **more)

    # -- a new item ---------------------------------------------------------------------------------------------

    def new_id(self) -> str:
        """The next id of today, never given out before."""
        day = local_date(self.now, self._offset)
        return f"mem-{day}-{next_counter(self.connection, f'id:{day}'):03d}"

    def insert(self, *, near: Sequence[str] = (), item_id: str | None = None, ends: int | None = None) -> Outcome:
        """Store the draft as an item of its own; `near` are nominated for review."""
        connection = self.connection
        item_id = item_id or self.new_id()
        segment, before = self._segment()
        values = self._values(item_id, segment, ends if ends is not None else self.draft.valid_to)
        cursor = connection.execute(
            f"INSERT INTO items ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
            tuple(values.values()),
        )
        row = int(cursor.lastrowid or 0)
        entry = index.describe(connection, row)
        index.insert(connection, entry.table, row, entry.tokens)
        if segment:
            index.replace_segment(connection, segment, before)
        if self.prepared.vector is not None:
            from afterwatch.memory.vectors import store as store_vector

            store_vector(connection, row, self.prepared.model or "", self.prepared.vector)
        note_change(connection, row)
        event = self.event("add", item_id)
        for other in near:
            self.event("nominate", item_id, other=other, write=event)
        return Outcome(Result.INSERTED, item_id, near=tuple(near), cooled=self._enforce_cap(), event=event)

    def _segment(self) -> tuple[int | None, Columns | None]:
        """The segment of the conversation that the draft is a turn of, and its tokens so far."""
        # A value is no turn: superseded, it would leave a gap, and every later segment would hold other turns.
        if self.draft.conversation is None or kind_of(self.draft) is Kind.STATE:
            return None, None
        place = "\x1f".join((self.scope.kind, self.scope.key, self.draft.conversation))
        segment = index.choose_segment(self.connection, place)
        return segment, index.segment_tokens(self.connection, segment)

    def _values(self, item_id: str, segment: int | None, ends: int | None) -> dict[str, Any]:
        draft, view = self.draft, self.view
        default = Epistemic.CONFIRMED if view.is_user else Epistemic.OBSERVED_ONCE
        claimed = draft.epistemic if view.is_user or draft.epistemic != Epistemic.CONFIRMED else None
        return {
            "id": item_id,
            "layer": draft.layer,
            "kind": kind_of(draft),
            "subject": draft.subject,
            "text": draft.text,
            "value": canonical(draft.value) if draft.subject is not None else None,
            "category": draft.category,
            "negative": draft.negative,
            "source": draft.source,
            "quote": draft.quote,
            "source_run": draft.source_run,
            "conversation": draft.conversation,
            "position": draft.position,
            "segment": segment,
            "origin": view.origin,
            "author": view.principal,
            "scope_kind": self.scope.kind,
            "scope_key": self.scope.key,
            "confidence": 1.0 if view.is_user else draft.confidence,
            "epistemic": claimed or default,
            "inspired_by": draft.inspired_by,
            "importance": draft.importance,
            "tags": json.dumps(list(draft.tags), ensure_ascii=False),
            "aliases": json.dumps(list(draft.aliases), ensure_ascii=False),
            "pinned": int(draft.pinned),
            "recorded_at": self.now,
            "offset_minutes": self._offset,
            "date": local_date(self.begins, self._offset),
            "valid_from": self.begins,
            "valid_to": ends,
            "fingerprint": fingerprint(draft.text),
        }

    def _enforce_cap(self) -> tuple[str, ...]:
        """At the cap nothing is lost: the least important, oldest items of the layer, in all scopes, are cooled."""
        cap = self.room.settings.cap
        if not cap:
            return ()
        over = self.connection.execute(
            "SELECT row, id, kind, origin FROM items INDEXED BY items_warm WHERE layer = ? AND live = 1 "
            "AND tier != 'cold' AND pinned = 0 ORDER BY importance DESC, recorded_at DESC, row DESC LIMIT -1 OFFSET ?",
            (self.draft.layer, cap),
        ).fetchall()
        # a current value stays, and what is the user's is cooled by the user's own writes only
        over = [found for found in over if found[2] != Kind.STATE and (self.view.is_user or found[3] != USER)]
        for row, item_id, _kind, _origin in over:
            self.connection.execute("UPDATE items SET tier = 'cold' WHERE row = ?", (row,))
            note_change(self.connection, row)
            self.event("cool", item_id, reason="cap")
        return tuple(item_id for _, item_id, _, _ in over)
