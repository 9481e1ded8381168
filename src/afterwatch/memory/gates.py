"""Gates that were fitted here, for embedders we never measured. In `<home>/gates.json`; standard library only."""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from afterwatch.errors import Unavailable
from afterwatch.memory.gate import GATES, NO_VECTORS, Gate, gate_for
from afterwatch.memory.words import TOKENIZER_VERSION

FILE = "gates.json"


def fitted(home: Path) -> Mapping[str, Gate]:
    """Embedder's id → the gate that `memory calibrate --save` kept for this tokenizer. Damaged entries are left out."""
    try:
        found = json.loads((home / FILE).read_text("utf-8"))
        entries = dict(found[str(TOKENIZER_VERSION)])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    gates = {}
    for model, figures in entries.items():
        gate = _gate(figures)
        if gate is not None:
            gates[str(model)] = gate
    return gates


def gate_of(model: str | None, kept: Mapping[str, Gate]) -> Gate:
    """The gate in force: one that was fitted here, else the shipped one, else the cautious one."""
    return kept.get(model or NO_VECTORS) or gate_for(model)


def origin_of(model: str | None, kept: Mapping[str, Gate]) -> str:
    """Where that gate comes from: `calibrated`, `shipped` or `cautious`."""
    if (model or NO_VECTORS) in kept:
        return "calibrated"
    return "shipped" if (model or NO_VECTORS, TOKENIZER_VERSION) in GATES else "cautious"


def keep(home: Path, model: str | None, gate: Gate) -> None:
    """Keep a gate for a model and this tokenizer; replaces the file at once, mode 0600.

    Raises:
        Unavailable: it cannot be written.
    """
    entries = {name: astuple(one) for name, one in fitted(home).items()} | {model or NO_VECTORS: astuple(gate)}
    try:
        handle, scratch = tempfile.mkstemp(prefix=".gates-", suffix=".tmp", dir=home)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump({str(TOKENIZER_VERSION): entries}, stream, indent=1)
            os.replace(scratch, home / FILE)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(scratch)
    except OSError as error:
        raise Unavailable(
            f"{home / FILE} cannot be written: {error.strerror}", remedy="check its folder", code="read_only"
        ) from error


def _gate(figures: object) -> Gate | None:
    """A gate of four figures between 0 and 1, the first of which may be missing; None if they are none."""
    if not isinstance(figures, list) or len(figures) != 4:
        return None
    cosine, *others = figures
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one <= 1 for one in others):
        return None
    if cosine is not None and (not isinstance(cosine, int | float) or not 0 < cosine <= 1):
        return None
    return Gate(cosine, *others)
