"""The one gate in: every memory write passes `Admission.admit`.

gate (format, allow-list, confidence, redaction: `intake`) → the same thing said before (`repeats`)? → conflict ladder
(`ladder`, `states`) → item, revision, index and event in one transaction (`entry`). State is replaced only by
byte-equal subject in the same scope.
"""

import sqlite3
from collections.abc import Sequence

from afterwatch.memory.entry import Entry, Prepared, Room
from afterwatch.memory.intake import BACKWARDS, Checked, Refusal, check, kind_of
from afterwatch.memory.model import GLOBAL, Draft, Kind, Outcome, Result, View, micros
from afterwatch.memory.names import telling
from afterwatch.memory.repeats import add_to, repeats
from afterwatch.memory.states import StateEntry
from afterwatch.memory.store import note_event

__all__ = ["Admission", "Prepared", "Room"]


class Admission:
    """Writes into one space."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def inspect(self, draft: Draft, view: View) -> Checked | Refusal:
        """The draft as it would be stored, or the reason against it; nothing is written."""
        if draft.scope is not None and view.scopes and draft.scope not in (GLOBAL, *view.scopes):
            return Refusal("scope", "the view does not write this scope")
        if telling((draft.scope or view.write_scope).key):
            return Refusal("secret_name", "the key of the scope looks like a credential; nothing of it is kept")
        return check(draft, view.origin, self._room.settings)

    def admit(self, entries: Sequence[Prepared | Refusal], view: View) -> list[Outcome]:
        """Write drafts that passed `inspect`, and record the refusals of others, in order, in one transaction."""
        with self._room.store.writing() as connection:
            return [
                self._refuse(connection, one, view) if isinstance(one, Refusal) else self._write(connection, one, view)
                for one in entries
            ]

    def _write(self, connection: sqlite3.Connection, prepared: Prepared, view: View) -> Outcome:
        entry = Entry(self._room, connection, prepared, view)
        if entry.draft.valid_to is not None and entry.draft.valid_to <= entry.begins:
            return self._refuse(connection, BACKWARDS, view)
        if kind_of(entry.draft) is Kind.STATE:
            state = StateEntry(entry)
            held = state.repeated()
            return state.write() if held is None else add_to(entry, held)
        same, near = repeats(entry)
        return entry.insert(near=near) if same is None else add_to(entry, same)

    def _refuse(self, connection: sqlite3.Connection, refusal: Refusal, view: View) -> Outcome:
        """Record that a draft was refused: the code, never the text."""
        at = micros(self._room.clock.now())
        event = note_event(connection, "refused", at=at, reason=refusal.code, by=view.principal, origin=view.origin)
        return Outcome(Result.REFUSED, reason=refusal.code, detail=refusal.detail, event=event)
