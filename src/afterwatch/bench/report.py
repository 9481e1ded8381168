"""What every benchmark report carries, and how two reports are compared."""

import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from afterwatch import __version__
from afterwatch.errors import Unavailable, UserError
from afterwatch.memory.embedders import Embedder, Loading
from afterwatch.memory.index import signature

CONDITIONS = ("benchmark", "corpus", "embedder", "options", "tokenizer")
"""What two reports must share before their figures may be compared."""


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies (nearest rank); 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def digest(*texts: str) -> str:
    """sha256 of the corpus as read."""
    found = hashlib.sha256()
    for text in texts:
        found.update(text.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def whole(loading: Loading) -> Embedder:
    """The embedder, loaded; a benchmark must not measure a degraded one.

    Raises:
        Unavailable: it could not be loaded.
    """
    embedder = loading.wait()
    if embedder is None:
        raise Unavailable(
            f"the embedder is not there ({loading.state}), so the figures would be those of keywords alone",
            remedy="repair it (`afterwatch doctor`), or measure keywords on purpose with --no-vectors",
            code="degraded",
        )
    return embedder


def conditions(benchmark: str, *, corpus: str, embedder: str | None, **options: Any) -> dict[str, Any]:
    """The head of a report: what was measured on what, with what."""
    return {
        "benchmark": benchmark,
        "version": __version__,
        "corpus": corpus,
        "embedder": embedder or "none",
        "tokenizer": hashlib.sha256(signature().encode()).hexdigest()[:12],
        "python": platform.python_version(),
        "options": options,
    }


def compare(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, float]:
    """The difference of every number that both reports hold, ours minus theirs.

    Raises:
        UserError: the reports were not made under the same conditions.
    """
    for name in CONDITIONS:
        if ours.get(name) != theirs.get(name):
            raise UserError(
                f"the reports differ in {name}, so their figures cannot be compared",
                remedy="make both with the same data, options and embedder",
            )
    return {
        name: round(value - theirs[name], 6)
        for name, value in ours.items()
        if isinstance(value, int | float) and isinstance(theirs.get(name), int | float) and name not in CONDITIONS
    }


def parse(text: str) -> dict[str, Any]:
    """A report from its JSON.

    Raises:
        UserError: it is no report.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UserError("this is no report: not JSON", remedy="name a file made with --json") from error
    if not isinstance(found, dict) or "benchmark" not in found:
        raise UserError("this is no report of a benchmark", remedy="name a file made with --json")
    return found
