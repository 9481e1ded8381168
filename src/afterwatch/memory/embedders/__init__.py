"""Embedders: texts to unit vectors. One protocol, sibling implementations, loaded in the background.

Vectors of two models are never compared: every stored vector carries its embedder's `id`.
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from afterwatch.errors import AfterwatchError, Unavailable, UserError
from afterwatch.memory.settings import MemorySettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

MAX_CHARACTERS = 2000
"""Longer texts are cut before embedding: time grows with length (20,000 characters took 0.6 s)."""


class Embedder(Protocol):
    """Contract: `encode` never raises for any text, and equal texts give equal vectors.

    Only a model in another process may raise `Unavailable`; `Spaces.encode` then goes on without vectors.
    """

    id: str
    """Names the model and everything that shapes its vectors."""
    dimensions: int

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """Unit vectors of float32, shape (number of texts, `dimensions`)."""
        ...


def clean(text: str) -> str:
    """What embedders are given: cut, without lone surrogates and NUL, never empty."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8").replace("\0", " ").strip() or " "


def _bundled(cache: Path, settings: MemorySettings) -> Embedder:
    from afterwatch.memory.embedders.bundled import Bundled

    return Bundled(cache)


def _minilm(cache: Path, settings: MemorySettings) -> Embedder:
    from afterwatch.memory.embedders.minilm import MiniLM

    return MiniLM()


def _endpoint(cache: Path, settings: MemorySettings) -> Embedder:
    from afterwatch.memory.embedders.endpoint import Endpoint

    return Endpoint.chosen(settings)


def _gguf(cache: Path, settings: MemorySettings) -> Embedder:
    from afterwatch.memory.embedders.gguf import Gguf

    return Gguf.chosen(cache, settings)


EMBEDDERS: dict[str, Callable[[Path, MemorySettings], Embedder]] = {
    "bundled": _bundled,
    "minilm": _minilm,
    "gguf": _gguf,
    "endpoint": _endpoint,
}
"""The names that may stand in `memory.embedder`, beside `none`."""
REPLACEABLE = ("endpoint",)
"""Embedders whose model may become another under the same name."""
RETRY_SECONDS = 300.0
"""After this long a load that failed is tried again: a broken model must not be loaded for each question."""
RETRY_ENDPOINT_SECONDS = 30.0


def retry_seconds(name: str) -> float:
    """How long after a failure an embedder is loaded again: a server comes back sooner than a broken file."""
    return RETRY_ENDPOINT_SECONDS if name == "endpoint" else RETRY_SECONDS


def load(name: str, cache: Path, settings: MemorySettings | None = None) -> Embedder | None:
    """Load an embedder now; `none` gives None.

    Args:
        name: a key of `EMBEDDERS`, or `none`.
        cache: a folder for unpacked weights; it need not be writable.
        settings: where an endpoint or a model file is; default values when omitted.

    Raises:
        UserError: the name is unknown, or what it needs is not set.
        Unavailable: its package or file is missing or not the one we know, or its server does not answer.
    """
    if name == "none":
        return None
    if name not in EMBEDDERS:
        raise UserError(f"no embedder {name!r}", remedy=f"use one of: none, {', '.join(EMBEDDERS)}")
    embedder = EMBEDDERS[name](cache, settings or MemorySettings())
    if name not in REPLACEABLE:
        return embedder
    from afterwatch.memory.embedders.record import recognised

    return recognised(embedder, cache.parent)


def build(name: str, cache: Path, settings: MemorySettings) -> Embedder:
    """Load a candidate, not compared with what was recorded when it was chosen before. Raises as `load`."""
    if name not in EMBEDDERS:
        raise UserError(f"no embedder {name!r}", remedy=f"use one of: {', '.join(EMBEDDERS)}")
    return EMBEDDERS[name](cache, settings)


class Loading:
    """An embedder that loads in a thread of its own, so that no search ever waits for it."""

    def __init__(
        self,
        start: Callable[[], Embedder | None],
        *,
        retry_after: float = RETRY_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is loaded yet.

        Args:
            start: loads the embedder.
            retry_after: seconds after which a load that failed is tried again, at the next question.
            now: seconds from any beginning.
        """
        self._start = start
        self._retry_after = retry_after
        self._now = now
        self._failed_at = 0.0
        self._changing = False
        self._embedder: Embedder | None = None
        self._failure: str | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @classmethod
    def done(cls, embedder: Embedder | None) -> "Loading":
        """An embedder that is there already."""
        loading = cls(lambda: embedder, retry_after=RETRY_ENDPOINT_SECONDS)
        loading.wait()
        return loading

    def begin(self) -> None:
        """Start loading: once, and again when a load that failed is due."""
        with self._lock:
            if not self._changing and self._embedder is None and (self._thread is None or self._due()):
                self._failure = None
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

    def failed(self, error: AfterwatchError) -> None:
        """The embedder was there and failed: go on without it, and load it anew when that is due."""
        with self._lock:
            self._embedder = None
            self._failure, self._failed_at = str(error), self._now()

    # -- changing the model (see `swap`) --

    def retire(self) -> None:
        """Let go of the embedder, and load none until `resume` or `replace`."""
        with self._lock:
            self._changing, thread = True, self._thread
        if thread is not None:
            thread.join()
        with self._lock:
            self._embedder = None

    def resume(self) -> None:
        """After `retire`: load the same embedder again when somebody asks."""
        with self._lock:
            self._changing, self._thread, self._failure = False, None, None

    def replace(self, embedder: Embedder | None) -> None:
        """After `retire`: serve this one."""
        with self._lock:
            self._start = lambda: embedder
            self._changing, self._embedder, self._failure = False, embedder, None

    def _due(self) -> bool:
        gone = self._failure is not None and (self._thread is None or not self._thread.is_alive())
        return gone and self._now() - self._failed_at >= self._retry_after

    @property
    def state(self) -> str | None:
        """None when ready; otherwise why there are no vectors: `none`, `loading`, or the failure."""
        if self._embedder is not None:
            return None
        if self._changing:
            return "changing, search is by keywords"
        if self._failure is not None:
            return self._failure
        running = self._thread is None or self._thread.is_alive()
        return "loading" if running else "none"

    def _run(self) -> None:
        try:
            self._embedder = self._start()
            return
        except (Unavailable, UserError) as error:
            failure = str(error)
        # the end of a thread: whatever a model library raises, search goes on and says so
        except Exception as error:  # noqa: BLE001
            failure = f"cannot be loaded ({type(error).__name__})"
        self._failure, self._failed_at = failure, self._now()
