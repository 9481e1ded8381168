"""`Memory`: the one object that front doors use. Every method takes a `View` first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, Self

from afterwatch.errors import ToolRefused, Unavailable, UserError
from afterwatch.memory import backup as copies
from afterwatch.memory import index, reading
from afterwatch.memory.curation import Curator
from afterwatch.memory.embedders import Loading, load, retry_seconds
from afterwatch.memory.files import cache_in
from afterwatch.memory.model import Draft, Item, Layer, Outcome, View, micros
from afterwatch.memory.ranking import Candidate
from afterwatch.memory.reading import Filter
from afterwatch.memory.recall import Found, Recall
from afterwatch.memory.settings import MemorySettings
from afterwatch.memory.sources import vouched
from afterwatch.memory.spaces import Spaces
from afterwatch.memory.store import Store
from afterwatch.memory.writing import Writer
from afterwatch.security.audit import AuditLog
from afterwatch.settings.clock import Clock, SystemClock
from afterwatch.settings.paths import usable_home

Progress = Callable[[int, int], None]
"""Called with (done, in all) during long work."""


class Memory:
    """Durable, layered, auditable memory. Open it with `Memory.open()`; it may be used by several threads.

    Example:
        >>> with Memory.open() as memory:
        ...     memory.add(View(), "The payments queue is drained by hand on Fridays.")
        ...     memory.search(View(), "who drains the queue?").hits[0].item.text
    """

    def __init__(self, home: Path, settings: MemorySettings, clock: Clock, embedder: Loading) -> None:
        self._spaces = Spaces(home, embedder)
        self._home = home
        self._settings = settings
        self._clock = clock
        self._recall = Recall(self._spaces, clock)
        self._writer = Writer(self._spaces, settings, clock)

    @classmethod
    def open(
        cls,
        home: Path | None = None,
        *,
        settings: MemorySettings | None = None,
        clock: Clock | None = None,
        embedder: Loading | None = None,
    ) -> Self:
        """Open the memory of a home folder; nothing is created before the first write.

        Args:
            home: default `$AFTERWATCH_HOME`, else `~/.afterwatch`.
            settings: default values when omitted.
            clock: the machine's when omitted.
            embedder: loaded in the background by `settings.embedder` when omitted.

        Raises:
            Unavailable: the home cannot be used.
        """
        home = home or usable_home()
        settings = settings or MemorySettings()
        embedder = embedder or Loading(
            lambda: load(settings.embedder, cache_in(home), settings), retry_after=retry_seconds(settings.embedder)
        )
        return cls(home, settings, clock or SystemClock(), embedder)

    def close(self) -> None:
        """Close every file."""
        self._spaces.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- writing ------------------------------------------------------------------------------------------------

    def add(self, view: View, text: str, **more: Any) -> Outcome:
        """Remember a piece of knowledge; `more` are fields of `Draft`."""
        return self.add_many(view, [Draft(text, **more)])[0]

    def remember(self, view: View, key: str, value: Any, **more: Any) -> Outcome:
        """Set the current value of a key such as `pref.editor`; the former value is superseded, never lost."""
        return self.add_many(view, [Draft(subject=key, value=value, **more)])[0]

    def learn(self, view: View, rule: str, *, category: str, negative: str | None = None, **more: Any) -> Outcome:
        """Remember a correction: the rule, and what not to do."""
        return self.add_many(view, [Draft(rule, Layer.LESSON, category=category, negative=negative, **more)])[0]

    def add_many(self, view: View, drafts: Iterable[Draft], *, progress: Progress | None = None) -> list[Outcome]:
        """Put drafts through the gate in order; each has its own outcome."""
        return self._writer.add(view, [vouched(draft, view) for draft in drafts], progress)

    def confirm(self, view: View, item_id: str) -> Outcome:
        """Make an item the user's own; recorded in the audit log."""
        if view.is_user:
            self.get(replace(view, read=(view.write,)), item_id)  # a wrong id is no act
            self._audit("memory.confirm", view, [item_id])
        return self._curator(view).confirm(view, item_id)

    def cool(self, view: View, ids: Sequence[str]) -> list[Outcome]:
        """Take items out of injection; they stay searchable."""
        return self._curator(view).cool(view, ids)

    def warm(self, view: View, ids: Sequence[str]) -> list[Outcome]:
        """Bring cooled items back."""
        return self._curator(view).warm(view, ids)

    def keep(self, view: View, *, ids: Sequence[str] = (), write: int | None = None) -> list[Outcome]:
        """Clear `pending-cleanup` from items, or from all that one write marked."""
        return self._curator(view).keep(view, ids=ids, write=write)

    def rate(self, view: View, item_id: str, verdict: str) -> Outcome:
        """Say whether an item was helpful, misleading, neutral or unknown."""
        return self._curator(view).rate(view, item_id, verdict)

    # -- reading ------------------------------------------------------------------------------------------------

    def search(
        self,
        view: View,
        question: str,
        *,
        limit: int | None = None,
        where: Filter | None = None,
        explain: bool = False,
    ) -> Found:
        """The best matches, ungated; `explain` keeps each term of the score."""
        limit = self._settings.search_limit if limit is None else limit
        return self._recall.search(
            self._spaces.there(view), question, limit=limit, where=where or Filter(), explain=explain
        )

    def relevant(
        self,
        view: View,
        question: str,
        *,
        limit: int | None = None,
        where: Filter | None = None,
        explain: bool = False,
    ) -> Found:
        """What may enter a prompt for this question: gated, warm, current. Often nothing."""
        if where is not None and where.past:
            raise UserError("what enters a prompt holds now", remedy="ask about the past with a search, ungated")
        limit = self._settings.context_limit if limit is None else limit
        found = self._recall.relevant(
            self._spaces.there(view), question, limit=limit, where=where or Filter(), explain=explain
        )
        rows = [hit.item.row for hit in found.hits if hit.item.space == view.write]
        store = self._spaces.store(view.write) if rows else None
        return found if store is None or store.read_only else self._count_use(store, rows, found)

    def _count_use(self, store: Store, rows: Sequence[int], found: Found) -> Found:
        try:
            Curator(store, self._clock).used(rows)
        except Unavailable as error:  # what was read is read, even if nothing can be written now
            return replace(found, degraded=(*found.degraded, f"usage: not counted, {error}"))
        return found

    def candidates(self, view: View, question: str) -> tuple[Sequence[Candidate], dict[int, Item]]:
        """Everything that was weighed for a question in the first space read, with its signals: for fitting."""
        rated = self._recall.rated(self._spaces.there(view), question, Filter()).candidates
        ours = [candidate for candidate in rated if candidate.space == view.read[0]]
        return ours, self._spaces.store(view.read[0]).by_rows(candidate.row for candidate in ours)

    def get(self, view: View, item_id: str) -> Item:
        """One item by its id."""
        return reading.get(self._spaces.store, self._spaces.there(view), item_id)

    def history(self, view: View, key_or_id: str) -> list[Item]:
        """Every value a key had, oldest first."""
        return reading.history(self._spaces.store, self._spaces.there(view), key_or_id)

    def current(self, view: View, key: str) -> Item | None:
        """The value of a key that holds now, if one does."""
        return reading.current(self.history(view, key), micros(self._clock.now()))

    def items(
        self,
        view: View,
        where: Filter | None = None,
        *,
        limit: int = 50,
        offset: int = 0,
        everything: bool = False,
    ) -> list[Item]:
        """Items newest first; former ones too with `everything`."""
        now = micros(self._clock.now())
        return reading.listing(
            self._spaces.store,
            self._spaces.there(view),
            where or Filter(),
            limit=limit,
            offset=offset,
            now=now,
            everything=everything,
        )

    def events(self, view: View, *, item_id: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """What happened, newest first: ids and codes."""
        return reading.events(self._spaces.store, self._spaces.there(view), item_id=item_id, limit=limit)

    def stats(self, view: View) -> list[dict[str, Any]]:
        """Counts of each space read."""
        return reading.stats(self._spaces.store, self._spaces.there(view))

    def problems(self, view: View) -> dict[str, list[str]]:
        """Integrity of each space read: space → what is wrong (empty when whole)."""
        there = self._spaces.there(view).read
        return {space: self._spaces.store(space).problems() if space in there else [] for space in view.read}

    # -- upkeep -------------------------------------------------------------------------------------------------

    def warm_up(self, view: View, *, progress: Progress | None = None) -> tuple[str, ...]:
        """Load the embedder now and embed what has no vector yet. Returns what is still missing."""
        return self._writer.warm_up(view, progress)

    def backup(self, view: View, target: Path) -> None:
        """Write a consistent copy of the space that the view writes."""
        self._require(view)
        self._audit("memory.backup", view, [view.write])
        copies.backup(self._spaces.store(view.write), target)

    def restore(self, view: View, source: Path, *, progress: Progress | None = None) -> Path:
        """Replace the space's content by a backup. Returns where the former content was kept.

        Raises:
            ToolRefused: the view is not the user's; what the user said could be replaced.
        """
        if not view.is_user:
            raise ToolRefused(
                "only the user replaces what a space holds", remedy="run it yourself at a terminal", code="needs_user"
            )
        self._audit("memory.restore", view, [view.write])
        stamp = self._clock.now().astimezone(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        aside = self._spaces.set_aside_if_damaged(view.write, stamp)
        kept = copies.restore(self._spaces.store(view.write), source, stamp=stamp)
        self._spaces.finish_index(self._spaces.store(view.write), progress)
        return aside or kept

    def reindex(self, view: View, *, progress: Progress | None = None) -> None:
        """Build the keyword index of the written space anew; items are not touched."""
        store = self._spaces.store(view.write)
        with store.writing() as connection:
            index.start_rebuild(connection, index.signature())
        self._spaces.finish_index(store, progress)

    def _require(self, view: View) -> None:
        if not self._spaces.exists(view.write):
            raise UserError(f"nothing is remembered in {view.write}", remedy="`afterwatch memory add …` begins it")

    def _curator(self, view: View) -> Curator:
        self._require(view)
        return Curator(self._spaces.store(view.write), self._clock)

    def _audit(self, what: str, view: View, subjects: Sequence[str]) -> None:
        view.check_names()
        AuditLog(self._home / "audit.db", self._clock).append(what, view.principal, subjects)
