"""The one gate in: every memory write passes `Admission.admit`.

gate (format, allow-list, confidence, redaction) → the same thing said before? → conflict ladder → item, revision,
index and event in one transaction. State is replaced only by byte-equal subject in the same scope.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from afterwatch.memory import index
from afterwatch.memory.index import Stemmer
from afterwatch.memory.intake import Refusal, canonical, check, kind_of
from afterwatch.memory.keywords import likely_repeats
from afterwatch.memory.model import (
    GLOBAL,
    USER,
    Draft,
    Epistemic,
    Item,
    Kind,
    Outcome,
    Result,
    Status,
    Tier,
    View,
    local_date,
    micros,
)
from afterwatch.memory.sameness import Sameness, compare, normalise, thresholds_for
from afterwatch.memory.settings import MemorySettings
from afterwatch.memory.store import Store, keep_revision, next_counter, note_change, note_event
from afterwatch.memory.texts import all_of, fingerprint, overlap, quote_pattern, union
from afterwatch.settings.clock import Clock

if TYPE_CHECKING:
    from afterwatch.memory.vectors import Vector

EQUAL_CONFIDENCE = 0.1
"""Confidences this close count as equal, and the newer `valid_from` wins."""
LEAST_OVERLAP = 0.25
"""Below this share of common words, and below the cosine of a nomination, two texts are not compared further."""
MOST_PENDING = 3
"""Items that one new value may mark as quoting the old one."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft with what was computed before the transaction began."""

    draft: Draft
    vector: "Vector | None" = None
    model: str | None = None


class Admission:
    """Writes into one space."""

    def __init__(self, store: Store, settings: MemorySettings, clock: Clock, stem: Stemmer, common: set[str]) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.stem = stem
        self.common = common

    def inspect(self, draft: Draft, view: View) -> tuple[Draft, int] | Refusal:
        """The draft as it would be stored, or the reason against it; nothing is written."""
        if draft.scope is not None and view.scopes and draft.scope not in (GLOBAL, *view.scopes):
            return Refusal("scope", "the view does not write this scope")
        return check(draft, view.origin, self.settings)

    def admit(self, prepared: Sequence[Prepared], view: View) -> list[Outcome]:
        """Write drafts that passed `inspect`, in order, in one transaction."""
        with self.store.writing() as connection:
            return [_Write(self, connection, one, view).run() for one in prepared]

    def refuse(self, refusal: Refusal, view: View) -> Outcome:
        """Record that a draft was refused: the code, never the text."""
        with self.store.writing() as connection:
            at = micros(self.clock.now())
            event = note_event(connection, "refused", at=at, reason=refusal.code, by=view.principal, origin=view.origin)
        return Outcome(Result.REFUSED, reason=refusal.code, detail=refusal.detail, event=event)


class _Write:
    """One draft on its way in, inside the transaction."""

    def __init__(self, admission: Admission, connection: sqlite3.Connection, prepared: Prepared, view: View) -> None:
        self._store = admission.store
        self._stem = admission.stem
        self._common = admission.common
        self._settings = admission.settings
        self._connection = connection
        self._prepared = prepared
        self._view = view
        self._offset = prepared.draft.offset_minutes
        if self._offset is None:
            self._offset = admission.clock.offset_minutes()
        self._now = micros(admission.clock.now())
        self._from = prepared.draft.valid_from if prepared.draft.valid_from is not None else self._now
        draft = prepared.draft
        self._draft = replace(draft, source=draft.source or f"{view.channel}:{view.principal}")
        self._scope = draft.scope or view.write_scope

    def run(self) -> Outcome:
        if kind_of(self._draft) is Kind.STATE:
            return self._state()
        same, near = self._repeats()
        if same is not None:
            return self._repeat(same, near)
        return self._insert(near=near)

    # -- state --------------------------------------------------------------------------------------------------

    def _state(self) -> Outcome:
        found = self._select("subject = ? AND status = 'active' AND live = 1", self._draft.subject)
        if not found:
            return self._insert()
        current = found[0]
        if self._says_the_same(current):
            return self._repeat(current, ())
        reason = self._outranked(current)
        if reason:
            event = self._event("refused", current.id, reason=reason)
            return Outcome(Result.REFUSED, current.id, reason, _REASONS[reason], event=event)
        return self._supersede(current)

    def _says_the_same(self, current: Item) -> bool:
        if canonical(current.value) != canonical(self._draft.value) or self._ended(current):
            return False
        # an agent's wording must not become the user's word
        return current.origin == USER or not self._view.is_user or current.text == self._draft.text

    def _ended(self, item: Item) -> bool:
        return item.valid_to is not None and item.valid_to <= self._from

    def _outranked(self, current: Item) -> str | None:
        if self._view.is_user and current.origin != USER:
            return None
        if current.origin == USER and not self._view.is_user:
            return "user_holds"
        if not self._view.is_user and round(abs(current.confidence - self._draft.confidence), 6) > EQUAL_CONFIDENCE:
            return "lower_confidence" if self._draft.confidence < current.confidence else None
        if self._from < current.valid_from:
            return "older"
        return "same_time" if self._from == current.valid_from else None

    def _supersede(self, old: Item) -> Outcome:
        new_id = self._new_id()
        keep_revision(self._connection, old.row, self._now, self._view.principal)
        with index.Editing(self._connection, [old.row]):
            self._connection.execute(
                "UPDATE items SET status = 'superseded', status_by = ?, superseded_by = ?, superseded_at = ?, "
                "valid_to = min(coalesce(valid_to, ?), ?) WHERE row = ?",
                (self._view.principal, new_id, self._now, self._from, self._from, old.row),
            )
        note_change(self._connection, old.row)
        inserted = self._insert(item_id=new_id)
        event = self._event("supersede", new_id, other=old.id)
        marked = self._mark_quotes(old, new_id, event)
        return replace(inserted, result=Result.SUPERSEDED, displaced=(old.id,), pending_cleanup=marked, event=event)

    def _mark_quotes(self, old: Item, new_id: str, event: int) -> tuple[str, ...]:
        """Mark knowledge that quotes the key with its old value; a person decides about it."""
        if not isinstance(old.value, str) or len(normalise(old.value)) < 3 or old.subject is None:
            return ()
        wanted = quote_pattern(old.subject, old.value)
        rows = self._connection.execute(
            "SELECT row FROM words_live JOIN items ON items.row = words_live.rowid "
            "WHERE words_live MATCH ? AND kind = 'knowledge' AND status = 'active' LIMIT 200",
            (all_of(f"{old.subject.rpartition('.')[2].replace('_', ' ')} {old.value}"),),
        ).fetchall()
        candidates = self._store.by_rows(row for (row,) in rows).values()
        quoting = [i for i in candidates if i.scope == old.scope and wanted.search(normalise(i.text))]
        marked = sorted(quoting, key=lambda item: item.row)[:MOST_PENDING]
        for item in marked:
            with index.Editing(self._connection, [item.row]):
                self._connection.execute(
                    "UPDATE items SET status = 'pending-cleanup', status_by = ? WHERE row = ?",
                    (f"write:{event}", item.row),
                )
            note_change(self._connection, item.row)
            self._event("pending-cleanup", item.id, other=new_id, write=event)
        return tuple(item.id for item in marked)

    # -- the same thing again -----------------------------------------------------------------------------------

    def _repeats(self) -> tuple[Item | None, tuple[str, ...]]:
        draft = self._draft
        limits = thresholds_for(self._prepared.model)
        for item in self._select("fingerprint = ? AND live = 1", fingerprint(draft.text)):
            same = compare(item.text, draft.text, None, limits.merge, limits.nominate) is Sameness.SAME
            if same and self._comparable(item):
                return item, ()
        near: list[str] = []
        rows = likely_repeats(self._connection, self._stem, draft.text, self._common)
        cosines = self._cosines(rows)
        for row, item in sorted(self._store.by_rows(rows).items()):
            if not self._comparable(item) or item.status != "active":
                continue
            if cosines.get(row, 0.0) < limits.nominate and overlap(item.text, draft.text) < LEAST_OVERLAP:
                continue
            verdict = compare(item.text, draft.text, cosines.get(row), limits.merge, limits.nominate)
            if verdict is Sameness.SAME:
                return item, ()
            if verdict is Sameness.NEAR:
                near.append(item.id)
        return None, tuple(near)

    def _cosines(self, rows: Sequence[int]) -> dict[int, float]:
        if self._prepared.vector is None or self._prepared.model is None:
            return {}
        from afterwatch.memory.vectors import stored_cosines

        return stored_cosines(self._connection, self._prepared.model, self._prepared.vector, rows)

    def _comparable(self, item: Item) -> bool:
        draft = self._draft
        return (
            item.kind == Kind.KNOWLEDGE
            and not self._ended(item)
            and item.layer == draft.layer
            and item.scope == self._scope
            and item.category == draft.category
            and normalise(item.negative or "") == normalise(draft.negative or "")
        )

    def _repeat(self, item: Item, near: tuple[str, ...]) -> Outcome:
        """Add the source to the item that says the same; who may change it adds labels, a user makes it theirs."""
        draft = self._draft
        raised = self._view.is_user and item.origin != USER
        changes = raised or (self._may_change(item) and self._adds(item))
        if draft.source in item.sources and not changes:
            return Outcome(Result.UNCHANGED, item.id, near=near)
        with index.Editing(self._connection, [item.row]):
            if changes:
                keep_revision(self._connection, item.row, self._now, self._view.principal)
                self._label(item, raised=raised)
            refs = dict.fromkeys((*item.corroborating_refs, draft.source))
            refs.pop(item.source, None)
            self._update(item, "corroborating_refs = ?", json.dumps(list(refs), ensure_ascii=False))
        note_change(self._connection, item.row)
        state = item.kind == Kind.STATE
        event = self._event("corroborate" if state else "merge", item.id)
        return Outcome(Result.CORROBORATED if state or raised else Result.MERGED, item.id, near=near, event=event)

    def _may_change(self, item: Item) -> bool:
        return self._view.is_user or item.origin != USER

    def _adds(self, item: Item) -> bool:
        """Whether a repeat brings anything beyond one more source."""
        draft = self._draft
        labels = ((item.tags, draft.tags), (item.aliases, draft.aliases))
        more = any(union(old, new) != union(old, ()) for old, new in labels)
        waits = self._view.is_user and item.status == Status.PENDING_CLEANUP
        return more or waits or item.tier == Tier.COLD or draft.importance > item.importance

    def _label(self, item: Item, *, raised: bool) -> None:
        draft = self._draft
        self._update(
            item,
            "importance = max(importance, ?), tags = ?, aliases = ?, tier = 'hot'",
            draft.importance,
            union(item.tags, draft.tags),
            union(item.aliases, draft.aliases),
        )
        if self._view.is_user and item.status == Status.PENDING_CLEANUP:
            self._update(item, "status = 'active', status_by = ?", self._view.principal)
        if raised:
            self._update(item, "origin = ?, epistemic = ?, confidence = 1.0", USER, Epistemic.CONFIRMED)

    def _update(self, item: Item, change: str, *values: Any) -> None:
        self._connection.execute(f"UPDATE items SET {change} WHERE row = ?", (*values, item.row))

    # -- a new item ---------------------------------------------------------------------------------------------

    def _insert(self, *, near: tuple[str, ...] = (), item_id: str | None = None) -> Outcome:
        draft, connection = self._draft, self._connection
        item_id = item_id or self._new_id()
        # A value is no turn: superseded, it would leave a gap, and every later segment would hold other turns.
        turn = draft.conversation is not None and kind_of(draft) is Kind.KNOWLEDGE
        place = "\x1f".join((self._scope.kind, self._scope.key, draft.conversation or ""))
        segment = index.choose_segment(connection, place) if turn else None
        before = index.segment_tokens(connection, segment) if segment else None
        values = self._values(item_id, segment)
        cursor = connection.execute(
            f"INSERT INTO items ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
            tuple(values.values()),
        )
        row = int(cursor.lastrowid or 0)
        entry = index.describe(connection, row)
        index.insert(connection, entry.table, row, entry.tokens)
        if segment:
            index.replace_segment(connection, segment, before)
        if self._prepared.vector is not None:
            from afterwatch.memory.vectors import store as store_vector

            store_vector(connection, row, self._prepared.model or "", self._prepared.vector)
        note_change(connection, row)
        event = self._event("add", item_id)
        for other in near:
            self._event("nominate", item_id, other=other, write=event)
        return Outcome(Result.INSERTED, item_id, near=near, cooled=self._enforce_cap(), event=event)

    def _values(self, item_id: str, segment: int | None) -> dict[str, Any]:
        draft, view = self._draft, self._view
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
            "scope_kind": self._scope.kind,
            "scope_key": self._scope.key,
            "confidence": 1.0 if view.is_user else draft.confidence,
            "epistemic": claimed or default,
            "inspired_by": draft.inspired_by,
            "importance": draft.importance,
            "tags": json.dumps(list(draft.tags), ensure_ascii=False),
            "aliases": json.dumps(list(draft.aliases), ensure_ascii=False),
            "pinned": int(draft.pinned),
            "recorded_at": self._now,
            "offset_minutes": self._offset,
            "date": local_date(self._from, self._offset or 0),
            "valid_from": self._from,
            "valid_to": draft.valid_to,
            "fingerprint": fingerprint(draft.text),
        }

    def _enforce_cap(self) -> tuple[str, ...]:
        """At the cap nothing is lost: the least important, oldest items are cooled."""
        if not self._settings.cap:
            return ()
        over = self._connection.execute(
            "SELECT row, id, kind, origin FROM items INDEXED BY items_warm WHERE layer = ? AND live = 1 "
            "AND tier != 'cold' AND pinned = 0 ORDER BY importance DESC, recorded_at DESC, row DESC LIMIT -1 OFFSET ?",
            (self._draft.layer, self._settings.cap),
        ).fetchall()
        # a current value stays, and what is the user's is cooled by the user's own writes only
        over = [found for found in over if found[2] != Kind.STATE and (self._view.is_user or found[3] != USER)]
        for row, item_id, _kind, _origin in over:
            self._connection.execute("UPDATE items SET tier = 'cold' WHERE row = ?", (row,))
            note_change(self._connection, row)
            self._event("cool", item_id, reason="cap")
        return tuple(item_id for _, item_id, _, _ in over)

    # -- small things -------------------------------------------------------------------------------------------

    def _select(self, where: str, value: Any) -> list[Item]:
        scoped = f"{where} AND +scope_kind = ? AND +scope_key = ?"  # +: not by the index of scopes, see `gather`
        return self._store.select(scoped, (value, self._scope.kind, self._scope.key), tail="ORDER BY row")

    def _new_id(self) -> str:
        day = local_date(self._now, self._offset or 0)
        return f"mem-{day}-{next_counter(self._connection, f'id:{day}'):03d}"

    def _event(self, code: str, item: str | None, **more: Any) -> int:
        view = self._view
        return note_event(
            self._connection, code, at=self._now, item=item, by=view.principal, origin=view.origin, **more
        )


_REASONS = {
    "user_holds": "the user gave the current value; only the user changes it",
    "lower_confidence": "the current value is held with more confidence",
    "older": "the current value is newer",
    "same_time": "two values for one moment have no order; say which one holds",
}
