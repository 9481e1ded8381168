"""Changes to items that are in: confirm, cool, warm, keep. Each is one transaction with its events."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from afterwatch.errors import UserError
from afterwatch.memory import index
from afterwatch.memory.model import USER, Item, Outcome, Result, View, micros
from afterwatch.memory.names import quoted
from afterwatch.memory.reading import Condition, Filter, admitted, in_scope
from afterwatch.memory.store import Store, keep_revision, note_change, note_event
from afterwatch.settings.clock import Clock

VERDICTS = ("helpful", "misleading", "neutral", "unknown")
"""The protocol's closed words for feedback (intervention-outcome-v1)."""


@dataclass(frozen=True, slots=True)
class Curator:
    """Changes in the space that a view writes."""

    store: Store
    clock: Clock

    def confirm(self, view: View, item_id: str) -> Outcome:
        """Make an item the user's own; on any other channel only the request is recorded.

        Raises:
            UserError: the view sees no such item.
        """
        with self.store.writing() as connection:
            item = self._visible(view, item_id)
            if not view.is_user:
                event = self._event(connection, view, "confirm-request", item)
                detail = "the request is recorded; a person confirms it at a terminal or in the portal"
                return Outcome(Result.REFUSED, item.id, "needs_user", detail, event=event)
            if item.origin == USER and item.epistemic == "confirmed":
                return Outcome(Result.UNCHANGED, item.id)
            keep_revision(connection, item.row, micros(self.clock.now()), view.principal)
            self._set(connection, item, "origin = ?, epistemic = 'confirmed', confidence = 1.0", (USER,))
            return Outcome(Result.CHANGED, item.id, event=self._event(connection, view, "confirm", item))

    def cool(self, view: View, ids: Sequence[str]) -> list[Outcome]:
        """Take items out of injection; they stay searchable and can be warmed."""
        return self._each(view, ids, self._cool)

    def warm(self, view: View, ids: Sequence[str]) -> list[Outcome]:
        """Bring cooled items back."""
        return self._each(view, ids, self._warm)

    def keep(self, view: View, *, ids: Sequence[str] = (), write: int | None = None) -> list[Outcome]:
        """Undo `pending-cleanup`: of these items, or of all that one write marked. A person decides it.

        Raises:
            UserError: the view is no user's, or the view sees no such item.
        """
        if not view.is_user:
            raise UserError("only the user clears pending-cleanup", remedy="run it yourself at a terminal")
        if write is not None:
            with self.store.reading() as connection:
                rows = connection.execute("SELECT id FROM items WHERE status_by = ?", (f"write:{write}",)).fetchall()
            ids = [*ids, *(row[0] for row in rows)]
        return self._each(view, ids, self._keep)

    def rate(self, view: View, item_id: str, verdict: str) -> Outcome:
        """Record whether an item helped; it changes nothing else.

        Raises:
            UserError: the verdict is not one of `VERDICTS`, or the view sees no such item.
        """
        if verdict not in VERDICTS:
            raise UserError(f"no verdict {quoted(verdict)}", remedy=f"use one of: {', '.join(VERDICTS)}")
        with self.store.writing() as connection:
            item = self._visible(view, item_id)
            at = micros(self.clock.now())
            connection.execute("INSERT INTO feedback VALUES (?, ?, ?, ?)", (item.row, at, verdict, view.principal))
        return Outcome(Result.UNCHANGED, item.id)

    def used(self, rows: Sequence[int]) -> None:
        """Count that these items were given to someone."""
        at = micros(self.clock.now())
        with self.store.writing() as connection:
            connection.executemany(
                "INSERT INTO usage VALUES (?, 1, ?) ON CONFLICT (item) DO UPDATE SET uses = uses + 1, "
                "last_used = max(last_used, excluded.last_used)",
                [(row, at) for row in rows],
            )

    # -- the steps ----------------------------------------------------------------------------------------------

    def _each(
        self, view: View, ids: Sequence[str], step: Callable[[sqlite3.Connection, View, Item], Outcome]
    ) -> list[Outcome]:
        with self.store.writing() as connection:
            return [step(connection, view, self._visible(view, item_id)) for item_id in dict.fromkeys(ids)]

    def _cool(self, connection: sqlite3.Connection, view: View, item: Item) -> Outcome:
        if item.tier == "cold":
            return Outcome(Result.UNCHANGED, item.id)
        if item.origin == USER and not view.is_user:
            event = self._event(connection, view, "cool-request", item)
            detail = "it is the user's own; the request is recorded"
            return Outcome(Result.REFUSED, item.id, "user_holds", detail, event=event)
        self._set(connection, item, "tier = 'cold'")
        event = self._event(connection, view, "cool", item)
        return Outcome(Result.CHANGED, item.id, cooled=(item.id,), event=event)

    def _warm(self, connection: sqlite3.Connection, view: View, item: Item) -> Outcome:
        if item.tier != "cold":
            return Outcome(Result.UNCHANGED, item.id)
        if item.origin == USER and not view.is_user:
            event = self._event(connection, view, "warm-request", item)
            return Outcome(Result.REFUSED, item.id, "user_holds", "it is the user's own; recorded", event=event)
        self._set(connection, item, "tier = 'hot'")
        return Outcome(Result.CHANGED, item.id, event=self._event(connection, view, "warm", item))

    def _keep(self, connection: sqlite3.Connection, view: View, item: Item) -> Outcome:
        if item.status != "pending-cleanup":
            return Outcome(Result.UNCHANGED, item.id)
        self._set(connection, item, "status = 'active', status_by = ?", (view.principal,))
        return Outcome(Result.CHANGED, item.id, event=self._event(connection, view, "keep", item))

    # -- small things -------------------------------------------------------------------------------------------

    def _visible(self, view: View, item_id: str) -> Item:
        view.check_names()
        wanted = Condition("id = ?", (item_id,)) & in_scope(view) & admitted(Filter())
        found = self.store.select(wanted.sql, wanted.values)
        if not found:
            raise UserError(
                f"no item {quoted(item_id)} in {self.store.space}", remedy="`afterwatch memory search …` shows ids"
            )
        return found[0]

    def _set(self, connection: sqlite3.Connection, item: Item, change: str, values: Sequence[Any] = ()) -> None:
        with index.Editing(connection, [item.row]):
            connection.execute(f"UPDATE items SET {change} WHERE row = ?", (*values, item.row))
        note_change(connection, item.row)

    def _event(self, connection: sqlite3.Connection, view: View, code: str, item: Item) -> int:
        at = micros(self.clock.now())
        return note_event(connection, code, at=at, item=item.id, by=view.principal, origin=view.origin)
