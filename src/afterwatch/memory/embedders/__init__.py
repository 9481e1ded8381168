"""Embedders: texts to unit vectors. One protocol, sibling implementations, loaded in the background.

Vectors of two models are never compared: every stored vector carries its embedder's `id`.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from afterwatch.errors import Unavailable, UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

MAX_CHARACTERS = 2000
"""Longer texts are cut before embedding: time grows with length (20,000 characters took 0.6 s)."""


class Embedder(Protocol):
    """Contract: `encode` never raises for any text, and equal texts give equal vectors."""

    id: str
    """Names the model and everything that shapes its vectors."""
    dimensions: int

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """Unit vectors of float32, shape (number of texts, `dimensions`)."""
        ...


def clean(text: str) -> str:
    """What embedders are given: cut, without lone surrogates and NUL, never empty."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8").replace("\0", " ").strip() or " "


def _bundled(cache: Path) -> Embedder:
    from afterwatch.memory.embedders.bundled import Bundled

    return Bundled(cache)


def _minilm(cache: Path) -> Embedder:
    from afterwatch.memory.embedders.minilm import MiniLM

    return MiniLM()


EMBEDDERS: dict[str, Callable[[Path], Embedder]] = {"bundled": _bundled, "minilm": _minilm}
"""The names that may stand in `memory.embedder`, beside `none`."""


def load(name: str, cache: Path) -> Embedder | None:
    """Load an embedder now; `none` gives None.

    Args:
        name: a key of `EMBEDDERS`, or `none`.
        cache: a folder for unpacked weights; it need not be writable.

    Raises:
        UserError: the name is unknown.
        Unavailable: its package is missing or not the one we know.
    """
    if name == "none":
        return None
    if name not in EMBEDDERS:
        raise UserError(f"no embedder {name!r}", remedy=f"use one of: none, {', '.join(EMBEDDERS)}")
    return EMBEDDERS[name](cache)


class Loading:
    """An embedder that loads in a thread of its own, so that no search ever waits for it."""

    def __init__(self, start: Callable[[], Embedder | None]) -> None:
        self._start = start
        self._embedder: Embedder | None = None
        self._failure: str | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @classmethod
    def done(cls, embedder: Embedder | None) -> "Loading":
        """An embedder that is there already."""
        loading = cls(lambda: embedder)
        loading.wait()
        return loading

    def begin(self) -> None:
        """Start loading, once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="afterwatch-embedder", daemon=True)
                self._thread.start()

    def wait(self) -> Embedder | None:
        """Load if needed, and wait for the end: for callers that chose to."""
        self.begin()
        if self._thread is not None:
            self._thread.join()
        return self._embedder

    def now(self) -> Embedder | None:
        """The embedder if it is ready; starts loading otherwise. Returns at once."""
        self.begin()
        return self._embedder

    @property
    def state(self) -> str | None:
        """None when ready; otherwise why there are no vectors: `none`, `loading`, or the failure."""
        if self._embedder is not None:
            return None
        if self._failure is not None:
            return self._failure
        running = self._thread is None or self._thread.is_alive()
        return "loading" if running else "none"

    def _run(self) -> None:
        try:
            self._embedder = self._start()
        except (Unavailable, UserError) as error:
            self._failure = str(error)
        # the end of a thread: whatever a model library raises, search goes on and says so
        except Exception as error:  # noqa: BLE001
            self._failure = f"cannot be loaded ({type(error).__name__})"
