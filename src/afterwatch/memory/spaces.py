"""The open spaces of one process: a store each, a vector matrix each, one embedder for all. Lazy throughout."""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from afterwatch.errors import Unavailable
from afterwatch.memory import gates, index
from afterwatch.memory.files import database_path, parts_of, prepare_database
from afterwatch.memory.keywords import Frequent
from afterwatch.memory.model import View
from afterwatch.memory.store import Store

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Embedder, Loading, Vectors
    from afterwatch.memory.gate import Gate
    from afterwatch.memory.vectors import Matrix


class Spaces:
    """Opens stores on first use and keeps their indexes true."""

    def __init__(self, home: Path, embedder: "Loading | None" = None) -> None:
        self._home = home
        self._embedder = embedder
        self._stores: dict[str, Store] = {}
        self._matrices: dict[tuple[str, str], Matrix] = {}
        self._gates: Mapping[str, Gate] | None = None
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._rebuilding: list[threading.Thread] = []
        self._signature = index.signature()
        self.stem = index.Stemmer()
        self._written: dict[str, Frequent] = {}
        self._frequent: dict[str, Frequent] = {}

    def close(self) -> None:
        """Close every store; a rebuild under way stops after its step and goes on at the next opening."""
        self._closing.set()
        for thread in self._rebuilding:
            thread.join()
        with self._lock:
            self._rebuilding.clear()
            self._closing.clear()
            for store in self._stores.values():
                store.close()
            self._stores.clear()
            self._matrices.clear()

    def store(self, space: str) -> Store:
        """The store of a space.

        Raises:
            UserError: no such name. Unavailable: see `Store`.
        """
        with self._lock:
            if space not in self._stores:
                prepare_database(database_path(self._home, space))
                store = Store(self._home, space)
                self._stores[space] = store
                self._check_index(store)
            return self._stores[space]

    def set_aside_if_damaged(self, space: str, stamp: str) -> Path | None:
        """Move a damaged file out of the way, so that a backup can take its place. Returns where it is kept."""
        path = database_path(self._home, space)
        try:
            if not parts_of(path) or not self.store(space).problems():
                return None
        except Unavailable as error:
            if error.code != "damaged":
                raise
        store = self._stores.pop(space, None)
        if store is not None:
            store.close()
        kept = [
            part.rename(part.with_name(part.name.replace(path.name, f"damaged-{stamp}.db"))) for part in parts_of(path)
        ]
        return kept[0]

    def there(self, view: View) -> View:
        """The view without spaces in which nothing was ever written: reading creates none."""
        return replace(view, read=tuple(space for space in view.read if self.exists(space)))

    def exists(self, space: str) -> bool:
        """Whether anything was ever written in a space."""
        return space in self._stores or bool(parts_of(database_path(self._home, space)))

    def frequent(self, space: str) -> Frequent:
        """Counts of the commonest terms of a space, see `keywords.Frequent`."""
        return self._frequent.setdefault(space, Frequent())

    def written(self, space: str) -> Frequent:
        """What the writer of a space knows of its terms, see `keywords.likely_repeats`."""
        return self._written.setdefault(space, Frequent(least=0))

    def embedder(self, *, wait: bool = False) -> "Embedder | None":
        """The embedder if it is there; only a caller that chose to waits for it."""
        if self._embedder is None:
            return None
        return self._embedder.wait() if wait else self._embedder.now()

    def gate(self, model: str | None) -> "Gate":
        """The gate in force for an embedder's id, None: without vectors. Read once from the home."""
        if self._gates is None:
            self._gates = gates.fitted(self._home)
        return gates.gate_of(model, self._gates)

    def encode(self, texts: Sequence[str]) -> "tuple[str, Vectors] | None":
        """(embedder's id, a vector a text); None without an embedder, or when one elsewhere fails just now."""
        embedder = self.embedder()
        if embedder is None or self._embedder is None or not texts:
            return None
        try:
            return embedder.id, embedder.encode(texts)
        except Unavailable as error:
            self._embedder.failed(error)
            return None

    def degraded(self, store: Store, connection: sqlite3.Connection) -> tuple[str, ...]:
        """What this space lacks right now, for the answer to say so."""
        found = []
        if not index.ready(connection, self._signature):
            found.append("index: rebuilding, some items cannot be found by keyword yet")
        found += self.lacking()
        if len(found) == 0 and self._lacks_vectors(store, connection):
            found.append("vectors: some items have none yet")
        if store.read_only:
            found.append("store: read-only")
        return tuple(found)

    def lacking(self) -> tuple[str, ...]:
        """Why there are no vectors, if there are none."""
        state = "none" if self._embedder is None else self._embedder.state
        return (f"vectors: {state}",) if state is not None else ()

    def matrix(self, store: Store, connection: sqlite3.Connection) -> "Matrix | None":
        """The vectors of a space, up to date with this transaction; None without an embedder or any vector of it."""
        embedder = self.embedder()
        if embedder is None:
            return None
        from afterwatch.memory.vectors import Matrix

        with self._lock:
            key = (store.space, embedder.id)
            if key not in self._matrices:
                self._matrices[key] = Matrix(embedder)
            matrix = self._matrices[key]
        matrix.follow(connection)
        return matrix if len(matrix) else None

    def _lacks_vectors(self, store: Store, connection: sqlite3.Connection) -> bool:
        matrix = self.matrix(store, connection)
        live, upto = connection.execute("SELECT live, upto FROM index_state").fetchone() or (0, 0)
        return upto is None and (len(matrix) if matrix is not None else 0) < live

    # -- the keyword index --------------------------------------------------------------------------------------

    def _check_index(self, store: Store) -> None:
        if store.read_only:
            return
        with store.reading() as connection:
            if index.ready(connection, self._signature):
                return
        try:
            done, total = self._begin_rebuild(store)
        except Unavailable:  # a newer store, a full disk: it is still read, and `degraded` says what is missing
            return
        if done < total:
            name = f"afterwatch-index-{store.space}"
            thread = threading.Thread(target=self._finish_unseen, args=(store,), name=name, daemon=True)
            self._rebuilding.append(thread)
            thread.start()

    def _begin_rebuild(self, store: Store) -> tuple[int, int]:
        with store.writing() as connection:
            state = connection.execute("SELECT signature, upto FROM index_state").fetchone()
            if state is None or state[0] != self._signature:
                index.start_rebuild(connection, self._signature)
            return index.rebuild_step(connection)

    def _finish_unseen(self, store: Store) -> None:
        with suppress(Unavailable):  # a full disk, say: answers stay marked as degraded, the next opening tries again
            self.finish_index(store, None)

    def finish_index(self, store: Store, progress: Callable[[int, int], None] | None) -> None:
        """Step until the index is complete; other writers get their turn between steps."""
        done, total = 0, 1
        while done < total and not self._closing.is_set():
            with store.writing() as connection:
                done, total = index.rebuild_step(connection)
            if progress is not None:
                progress(done, total)
