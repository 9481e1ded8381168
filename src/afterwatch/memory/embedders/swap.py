"""Changing the embedder: the candidate is built apart, tried, recorded, and named in the settings last.

Until the last step a fault leaves the old model and the old settings. The old model is let go of before the candidate
is built, so that two large ones are never in memory; meanwhile search is by keywords and says so.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from afterwatch.errors import AfterwatchError, Unavailable
from afterwatch.memory.embedders import Embedder, Loading
from afterwatch.memory.embedders.record import PROBE, Choice, alike, read_record, revised, with_model, write_record

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Vectors

MOST_SECONDS = 600.0
"""How long a candidate may take to load."""
TEXTS = (PROBE, PROBE, "A cat sleeps on the warm server.", "猫", " ")
"""What a candidate is tried on: the first two are equal, the others are not."""
EQUAL = 1e-3

Build = Callable[[], Embedder]


@dataclass(frozen=True)
class Change:
    """A change of the embedder.

    `build` loads the candidate; `choice` are the settings that name it, `previous` those in force; `configure` writes
    settings, all of them or none.
    """

    home: Path
    build: Build
    choice: Choice
    previous: Choice
    configure: Callable[[Mapping[str, str]], object]


@dataclass(frozen=True)
class Tried:
    """A candidate that passed, and its vector of the probe."""

    embedder: Embedder
    probe: "Vectors"


def change(plan: Change, serving: Loading, *, validate_only: bool = False, seconds: float = MOST_SECONDS) -> Embedder:
    """Put another embedder in the place of the one that serves. What has no vector of it yet is not embedded here.

    Args:
        plan: what is changed.
        serving: the loader whose embedder is replaced; after a fault, or `validate_only`, it loads the old one again.
        validate_only: build and try the candidate, change nothing.
        seconds: how long the candidate may take.

    Raises:
        Unavailable, UserError: the candidate cannot be loaded, is not sound, or a file cannot be written.
    """
    with _alone(plan.home):
        serving.retire()
        changed = False
        try:
            tried = tried_out(plan.build, seconds)
            if not validate_only:
                _record_and_configure(plan, tried)
                changed = True
        finally:
            if not changed:
                serving.resume()
        if changed:
            serving.replace(tried.embedder)
        return tried.embedder


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One change at a time, of all processes: a second one is told so and not kept waiting."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(home / ".embedder.lock", timeout=0, mode=0o600):
            yield
    except Timeout as error:
        raise Unavailable(
            "the embedder is being changed already", remedy="wait for the end of it", code="busy"
        ) from error
    except OSError as error:
        raise Unavailable(f"{home} cannot be written: {error.strerror}", remedy="check it", code="read_only") from error


def _record_and_configure(plan: Change, tried: Tried) -> None:
    before, model = read_record(plan.home), tried.embedder.id
    record = with_model(before, model, tried.probe, plan.choice, plan.previous)
    write_record(plan.home, record)
    configured = False
    try:
        kept = read_record(plan.home).known.get(model)
        if kept is None or not alike(kept.probe, tried.probe):
            raise Unavailable("the record of the model does not hold", remedy="check the disk", code="io_error")
        plan.configure(plan.choice)
        configured = True
    finally:
        if not configured:
            with suppress(Unavailable):  # what made it fail may also keep this from being written; it does no harm
                write_record(plan.home, before)
    tried.embedder.id = revised(model, record.known[model].revision)


def tried_out(build: Build, seconds: float = MOST_SECONDS) -> Tried:
    """Build a candidate within a bounded time, and see whether its vectors are sound.

    Raises:
        Unavailable: it is not ready in time, or not sound. UserError: as by `build`.
    """
    embedder = _built(build, seconds)
    vectors = embedder.encode(TEXTS)
    reason = _unsound(vectors, embedder.dimensions)
    if reason:
        raise Unavailable(f"the candidate is no embedder: {reason}", remedy="choose another model", code="bad_vectors")
    return Tried(embedder, vectors[0])


def _built(build: Build, seconds: float) -> Embedder:
    done: list[Embedder | AfterwatchError] = []
    thread = threading.Thread(target=_build_into, args=(build, done), name="afterwatch-candidate", daemon=True)
    thread.start()
    thread.join(seconds)
    if not done:
        late = thread.is_alive()
        what = f"is not ready after {seconds:g} seconds" if late else "cannot be loaded"
        raise Unavailable(f"the candidate {what}", remedy="nothing was changed; try again", code="no_embedder")
    if isinstance(done[0], AfterwatchError):
        raise done[0]
    return done[0]


def _build_into(build: Build, done: list[Embedder | AfterwatchError]) -> None:
    try:
        done.append(build())
    except AfterwatchError as error:
        done.append(error)
    # the end of a thread: whatever a model library raises, the old embedder stays and the caller is told
    except Exception as error:  # noqa: BLE001
        done.append(Unavailable(f"the candidate cannot be loaded ({type(error).__name__})", code="no_embedder"))


def _unsound(vectors: "Vectors", dimensions: int) -> str:
    """Why these are no vectors of `TEXTS`; empty if they are."""
    if vectors.shape != (len(TEXTS), dimensions) or dimensions < 1:
        return f"vectors of shape {vectors.shape} instead of {(len(TEXTS), dimensions)}"
    if not np.isfinite(vectors).all():
        return "vectors that are no numbers"
    if np.abs(np.linalg.norm(vectors, axis=1) - 1).max() > EQUAL:
        return "vectors that have not length one"
    cosines = vectors @ vectors[0]
    if cosines[1] < 1 - EQUAL:
        return "two vectors for one text"
    return "one vector for all texts" if cosines[2:4].min() > 1 - EQUAL else ""
