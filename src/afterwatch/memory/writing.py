"""Getting drafts ready for the gate: embedding, likely repeats, chunks; and filling in missing vectors."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from afterwatch.memory.admission import Admission, Prepared, Room
from afterwatch.memory.intake import LABELS, Checked, Refusal
from afterwatch.memory.model import Draft, Outcome, Result, View
from afterwatch.memory.settings import MemorySettings
from afterwatch.memory.spaces import Spaces
from afterwatch.memory.store import Store, note_change
from afterwatch.settings.clock import Clock

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Embedder

CHUNK = 64
"""Drafts of one transaction: long enough to embed in a batch, short enough to let other writers in."""


class Writer:
    """Carries drafts through `Admission` in chunks."""

    def __init__(self, spaces: Spaces, settings: MemorySettings, clock: Clock) -> None:
        self._spaces = spaces
        self._settings = settings
        self._clock = clock

    def add(
        self, view: View, drafts: Sequence[Draft], progress: Callable[[int, int], None] | None = None
    ) -> list[Outcome]:
        """Every draft's outcome, in order. A chunk is kept whole, refusals too, or, on an error, not at all.

        Raises:
            UserError: the name of the space or of who asks looks like a credential.
        """
        view.check_names()
        admission = self._admission(view.write)
        outcomes: list[Outcome] = []
        for start in range(0, len(drafts), CHUNK):
            lacking = self._spaces.lacking()
            done = self._chunk(admission, view, drafts[start : start + CHUNK])
            lacking = tuple(dict.fromkeys((*lacking, *self._spaces.lacking())))
            outcomes += [replace(outcome, degraded=lacking) for outcome in done] if lacking else done
            if progress is not None:
                progress(len(outcomes), len(drafts))
        return outcomes

    def _admission(self, space: str) -> Admission:
        spaces = self._spaces
        return Admission(Room(spaces.store(space), self._settings, self._clock, spaces.stem, spaces.written(space)))

    def _chunk(self, admission: Admission, view: View, drafts: Sequence[Draft]) -> list[Outcome]:
        checked = [admission.inspect(draft, view) for draft in drafts]
        prepared = iter(self._prepare([found.draft for found in checked if not isinstance(found, Refusal)]))
        entries = [found if isinstance(found, Refusal) else next(prepared) for found in checked]
        written = admission.admit(entries, view)
        return [
            outcome if isinstance(found, Refusal) else _with_notes(outcome, found)
            for found, outcome in zip(checked, written, strict=True)
        ]

    # -- vectors ------------------------------------------------------------------------------------------------

    def _prepare(self, drafts: Sequence[Draft]) -> list[Prepared]:
        found = self._spaces.encode([draft.text for draft in drafts])
        if found is None:
            return [Prepared(draft) for draft in drafts]
        model, vectors = found
        return [Prepared(draft, vector, model) for draft, vector in zip(drafts, vectors, strict=True)]

    def warm_up(self, view: View, progress: Callable[[int, int], None] | None) -> tuple[str, ...]:
        """Load the embedder, load the matrices of the view, and embed live items that have no vector yet."""
        embedder = self._spaces.embedder(wait=True)
        missing = list(self._spaces.lacking())
        for space in dict.fromkeys(self._spaces.there(replace(view, read=(*view.read, view.write))).read):
            store = self._spaces.store(space)
            if embedder is not None and not store.read_only:
                self._fill(store, embedder, progress)
            with store.reading() as connection:
                self._spaces.matrix(store, connection)
                missing += self._spaces.degraded(store, connection)
        return tuple(dict.fromkeys(missing))

    def _fill(self, store: Store, embedder: "Embedder", progress: Callable[[int, int], None] | None) -> None:
        from afterwatch.memory.vectors import missing

        done = 0
        while True:
            with store.reading() as connection:
                rows = missing(connection, embedder.id, CHUNK * 4)
            if not rows or not self._keep_vectors(store, rows):
                return
            done += len(rows)
            if progress is not None:
                progress(done, done + (len(rows) == CHUNK * 4))

    def _keep_vectors(self, store: Store, rows: Sequence[tuple[int, str]]) -> bool:
        """Embed rows and keep their vectors; False if the embedder failed."""
        from afterwatch.memory.vectors import store as keep

        found = self._spaces.encode([text for _, text in rows])
        if found is None:
            return False
        model, vectors = found
        with store.writing() as connection:
            for (row, text), vector in zip(rows, vectors, strict=True):
                # the text may have been changed while it was embedded; then the next round does it
                if connection.execute("SELECT 1 FROM items WHERE row = ? AND text = ?", (row, text)).fetchone():
                    keep(connection, row, model, vector)
                    note_change(connection, row)
        return True


def _with_notes(outcome: Outcome, found: Checked) -> Outcome:
    if outcome.result is Result.REFUSED:
        return outcome
    notes = [outcome.detail] if outcome.detail else []
    if found.masked:
        notes.append(f"{found.masked} secret(s) were masked before storing")
    if found.cut:
        notes.append(f"{found.cut} label(s) were left out or cut: {LABELS}")
    return replace(outcome, detail="; ".join(notes)) if notes else outcome
