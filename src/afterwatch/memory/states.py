"""Admission of a key's value: judged by the ladder, then cut, superseded, stored. Links and revisions keep the rest."""

from dataclasses import replace

from afterwatch.memory import index
from afterwatch.memory.entry import Entry
from afterwatch.memory.intake import canonical
from afterwatch.memory.ladder import REASONS, Claim, Plan, begun, judge, rivals
from afterwatch.memory.model import USER, Item, Outcome, Result
from afterwatch.memory.sameness import normalise
from afterwatch.memory.store import note_change
from afterwatch.memory.texts import all_of, quote_pattern

MOST_PENDING = 3
"""Items that one new value may mark as quoting an old one."""


class StateEntry:
    """A new value of a key."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._rows = self._others()
        draft, view = entry.draft, entry.view
        self._claim = Claim(view.is_user, draft.confidence, entry.begins, draft.valid_to)
        self._plan = judge(self._claim, self._rows, entry.now)

    def repeated(self) -> Item | None:
        """The value that says the same already, if nothing else would have to give way to this one."""
        same = next((row for row in rivals(self._claim, self._rows) if self._says_the_same(row)), None)
        if same is None:
            return None
        rest = judge(self._claim, [row for row in self._rows if row is not same], self._entry.now)
        return same if rest.rival is None and not rest.cut else None

    def write(self) -> Outcome:
        """Refuse the value, or store it and let what it beats make room."""
        plan, entry = self._plan, self._entry
        if plan.rival is not None:
            event = entry.event("refused", plan.rival.id, reason=plan.reason)
            return Outcome(Result.REFUSED, plan.rival.id, plan.reason, REASONS[plan.reason], event=event)
        new_id = entry.new_id()
        followers = {row.row: after.id if after is not None else new_id for row, after in plan.former}
        for row in {row.row: row for row in (*plan.cut, *(row for row, _ in plan.former))}.values():
            self._make_room(row, followers.get(row.row))
        inserted = entry.insert(item_id=new_id, ends=plan.ends)
        outcome = self._note(plan, new_id, inserted)
        if plan.follower is not None:
            self._retire(new_id, plan.follower)
        return outcome

    # -- judging ------------------------------------------------------------------------------------------------

    def _others(self) -> list[Item]:
        """The rows of the key that are live, or hold after the beginning of this one."""
        entry = self._entry
        return entry.select(
            "subject = ? AND quarantined = 0 AND merged_into IS NULL "
            "AND (live = 1 OR valid_to IS NULL OR valid_to > max(?, valid_from))",
            entry.draft.subject,
            entry.begins,
        )

    def _says_the_same(self, row: Item) -> bool:
        draft, view, entry = self._entry.draft, self._entry.view, self._entry
        if canonical(row.value) != canonical(draft.value) or not begun(row, max(entry.begins, entry.now)):
            return False
        if draft.valid_to not in (None, row.valid_to):
            return False  # the same with another end says something new
        if row.origin == USER or not view.is_user:
            return True
        # an agent's wording, or its end, must not become the user's word
        return row.text == draft.text and row.valid_to == draft.valid_to

    # -- writing ------------------------------------------------------------------------------------------------

    def _make_room(self, row: Item, follower: str | None) -> None:
        """Cut a row where the new value begins; with a follower it is former from now on."""
        entry = self._entry
        if any(row is one for one in self._plan.cut):
            entry.revise(row)
            entry.update(row, "valid_to = min(coalesce(valid_to, ?), ?)", entry.begins, entry.begins)
        if follower is None:
            note_change(entry.connection, row.row)
        else:
            self._supersede(row, follower)

    def _supersede(self, row: Item, follower: str) -> None:
        entry = self._entry
        with index.Editing(entry.connection, [row.row]):
            entry.update(
                row,
                "status = 'superseded', status_by = ?, superseded_by = ?, superseded_at = ?",
                *(entry.view.principal, follower, entry.now),
            )
        note_change(entry.connection, row.row)

    def _retire(self, new_id: str, follower: Item) -> None:
        """The new value lies in the past, and another one has followed it already."""
        self._supersede(self._entry.select("id = ?", new_id)[0], follower.id)
        self._entry.event("supersede", follower.id, other=new_id)

    def _note(self, plan: Plan, new_id: str, inserted: Outcome) -> Outcome:
        """The events of what was displaced, the marks of quotes, and the outcome."""
        entry, former = self._entry, {row.row for row, _ in plan.former}
        displaced = tuple(row for row, after in plan.former if after is None)
        event = inserted.event or 0
        for row, after in plan.former:
            number = entry.event("supersede", after.id if after is not None else new_id, other=row.id)
            event = number if after is None else event
        for row in plan.cut:
            if row.row not in former:
                entry.event("cut", row.id, other=new_id)
        marked = self._mark_quotes([row for row, _ in plan.former], new_id, event)
        until = [row.id for row in plan.cut if row.live and row.row not in former]
        return replace(
            inserted,
            result=Result.SUPERSEDED if displaced else Result.INSERTED,
            displaced=tuple(row.id for row in displaced),
            pending_cleanup=marked,
            detail=f"until it begins, {until[0]} holds" if until else "",
            event=event,
        )

    def _mark_quotes(self, former: list[Item], new_id: str, event: int) -> tuple[str, ...]:
        """Mark knowledge that quotes the key with an old value; a person decides about it."""
        quoting: dict[int, Item] = {}
        for row in former:
            quoting |= {item.row: item for item in self._quoting(row)}
        marked = [quoting[row] for row in sorted(quoting)[:MOST_PENDING]]
        for item in marked:
            with index.Editing(self._entry.connection, [item.row]):
                self._entry.update(item, "status = 'pending-cleanup', status_by = ?", f"write:{event}")
            note_change(self._entry.connection, item.row)
            self._entry.event("pending-cleanup", item.id, other=new_id, write=event)
        return tuple(item.id for item in marked)

    def _quoting(self, old: Item) -> list[Item]:
        if not isinstance(old.value, str) or len(normalise(old.value)) < 3 or old.subject is None:
            return []
        wanted = quote_pattern(old.subject, old.value)
        rows = self._entry.connection.execute(
            "SELECT row FROM words_live JOIN items ON items.row = words_live.rowid "
            "WHERE words_live MATCH ? AND kind = 'knowledge' AND status = 'active' LIMIT 200",
            (all_of(f"{old.subject.rpartition('.')[2].replace('_', ' ')} {old.value}"),),
        ).fetchall()
        candidates = self._entry.room.store.by_rows(row for (row,) in rows).values()
        return [item for item in candidates if item.scope == old.scope and wanted.search(normalise(item.text))]
