"""What is known of the models that were chosen: the vector each gives for one text. In `<home>/embedder.json`.

A server may put another model behind the same name. Its vectors must not be compared with the old ones, so the vector
of one fixed text is kept, and compared whenever the model is loaded.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from afterwatch.errors import Unavailable
from afterwatch.memory.settings import MemorySettings

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Embedder, Vectors

FILE = "embedder.json"
PROBE = "The payments queue is drained by hand on Fridays. 每周五手动清空支付队列。"
SAME = 0.999
"""Least cosine of two vectors that one model gives for the probe: servers compute in half precision."""
KEYS = ("embedder", "endpoint_url", "endpoint_model", "endpoint_key", "gguf_file", "gguf_url")
"""Settings of the section `memory` that say which embedder it is."""

Choice = Mapping[str, str]


@dataclass(frozen=True)
class Known:
    """A model: the vector of the probe, how often what is behind the name changed (from 1), who chose it by what."""

    probe: tuple[float, ...]
    revision: int
    choice: Choice


@dataclass(frozen=True)
class Record:
    """All models that were chosen, by id, and the choice before the present one (None: there was none)."""

    known: Mapping[str, Known] = field(default_factory=dict)
    previous: Choice | None = None


def choice_of(settings: MemorySettings) -> dict[str, str]:
    """The settings that say which embedder it is; those of embedders that were not chosen are left empty."""
    name = settings.embedder
    ours = [key for key in KEYS if key == "embedder" or key.startswith(f"{name}_")]
    return {key: str(getattr(settings, key)) if key in ours else "" for key in KEYS}


def read_record(home: Path) -> Record:
    """The record of a home; an empty one if there is none or it cannot be understood."""
    try:
        found = json.loads((home / FILE).read_text("utf-8"))
        known = {
            str(name): Known(tuple(map(float, one["probe"])), int(one["revision"]), dict(one["choice"]))
            for name, one in found["known"].items()
        }
        previous = found["previous"]
        return Record(known, dict(previous) if previous is not None else None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Record()


def write_record(home: Path, record: Record) -> None:
    """Replace the record at once, mode 0600.

    Raises:
        Unavailable: it cannot be written.
    """
    try:
        handle, scratch = tempfile.mkstemp(prefix=".embedder-", suffix=".tmp", dir=home)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(asdict(record), stream, ensure_ascii=False)
            os.replace(scratch, home / FILE)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(scratch)
    except OSError as error:
        raise Unavailable(
            f"{home / FILE} cannot be written: {error.strerror}", remedy="check its folder", code="read_only"
        ) from error


def with_model(record: Record, model: str, vector: "Vectors", choice: Choice, previous: Choice) -> Record:
    """The record when a model was chosen; another vector under a known name is a new revision of it."""
    before = record.known.get(model)
    probe = tuple(round(float(value), 6) for value in vector)
    revision = 1
    if before is not None:
        revision = before.revision if alike(before.probe, vector) else before.revision + 1
    left = record.previous if dict(previous) == dict(choice) else previous
    return replace(record, known={**record.known, model: Known(probe, revision, choice)}, previous=left)


def alike(probe: tuple[float, ...], vector: "Vectors") -> bool:
    """Whether two vectors of the probe come from one model."""
    if len(probe) != len(vector):
        return False
    return sum(float(a) * float(b) for a, b in zip(probe, vector, strict=True)) >= SAME


def recognised(embedder: "Embedder", home: Path) -> "Embedder":
    """The embedder, named by its revision, if it is still the model that was chosen under its name.

    Raises:
        Unavailable: it gives other vectors than when it was chosen.
    """
    known = read_record(home).known.get(embedder.id)
    if known is None:
        return embedder
    if not alike(known.probe, embedder.encode([PROBE])[0]):
        raise Unavailable(
            f"{embedder.id} gives other vectors than when it was chosen",
            remedy="choose it again: `afterwatch memory embedder set …` embeds everything anew",
            code="embedder_changed",
        )
    embedder.id = revised(embedder.id, known.revision)
    return embedder


def revised(model: str, revision: int) -> str:
    """The id that stored vectors carry."""
    return model if revision == 1 else f"{model}#{revision}"


def model_of(settings: MemorySettings, home: Path) -> str | None:
    """The id that vectors of the chosen embedder carry, without loading it; None if that is not known yet."""
    from afterwatch.memory.embedders.bundled import Bundled
    from afterwatch.memory.embedders.minilm import MiniLM

    fixed = {"bundled": Bundled.id, "minilm": MiniLM.id}
    if settings.embedder in fixed:
        return fixed[settings.embedder]
    choice = choice_of(settings)
    for model, known in read_record(home).known.items():
        if dict(known.choice) == choice:
            return revised(model, known.revision)
    return None
