"""How fast is memory with many items? Generated texts, real files, one search of a new process.

Texts are words drawn from a Zipf distribution; vectors are random (their values do not change the cost), stored
under the bundled model's name so that a new process searches them with the real model.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afterwatch.bench.report import conditions, percentile
from afterwatch.errors import Unavailable, UserError
from afterwatch.memory import Channel, Draft, Memory, View
from afterwatch.memory.embedders import Loading
from afterwatch.memory.settings import MemorySettings

if TYPE_CHECKING:
    from afterwatch.memory.embedders import Vectors

WORDS = 30_000
WORDS_A_TEXT = (8, 40)
QUERIES = 200
TERMS_A_QUERY = (3, 8)
SINGLE_ADDS = 600
BATCH = 4096
SEED = 7


class RandomVectors:
    """An embedder whose vectors are random: for costs, never for quality."""

    id = "use-multilingual-3"
    dimensions = 512

    def __init__(self) -> None:
        import numpy as np

        self._random = np.random.default_rng(SEED)

    def encode(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np

        drawn = self._random.standard_normal((len(texts), self.dimensions), dtype=np.float32)
        unit: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return unit


def run(items: int, command: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Fill a store with this many items and measure it.

    Args:
        items: how many.
        command: what starts the command line; `memory search …` is put behind it.
        progress: called with (items added, in all).

    Returns:
        `adds_per_s` (each its own durable transaction), `recall_ms_p50/p95` (warm, without embedding),
        `cold_search_s` and `rss_mb` (a whole `afterwatch memory search` process), `open_s` (a new `Memory`
        until its first answer with vectors), `store_mb`.

    Raises:
        UserError: fewer items than are needed to measure adds.
    """
    if items < 2 * SINGLE_ADDS:
        raise UserError(f"{items} items are too few", remedy=f"give at least {2 * SINGLE_ADDS}")
    generate, view = _Generator(), View(principal="bench", channel=Channel.IMPORT)
    loading, settings = Loading.done(RandomVectors()), MemorySettings(cap=0)
    with tempfile.TemporaryDirectory(prefix="afterwatch-bench-") as folder:
        home = Path(folder)
        with Memory.open(home, settings=settings, embedder=loading) as memory:
            _fill(memory, view, generate, items - SINGLE_ADDS, progress)
            adds = _time_adds(memory, view, generate)
        started = time.perf_counter()
        with Memory.open(home, settings=settings, embedder=loading) as memory:
            opened, times = _time_queries(memory, view, generate, started)
        cold, rss = _cold(home, [*command, "memory", "search", generate.query(), "--json"])
        size = (home / "spaces" / "local" / "memory.db").stat().st_size
    return {
        **conditions("scale", corpus=f"generated/{SEED}", embedder="random", items=items),
        "adds_per_s": round(adds),
        "recall_ms_p50": round(percentile(times, 0.5), 2),
        "recall_ms_p95": round(percentile(times, 0.95), 2),
        "cold_search_s": round(cold, 3),
        "rss_mb": round(rss, 1),
        "open_s": round(opened, 3),
        "store_mb": round(size / 1e6, 1),
    }


class _Generator:
    """Texts and queries of pseudo-words; the same for every run."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        pick = self._random.choice
        self._words = list(dict.fromkeys("".join(pick(syllables) for _ in range(4)) for _ in range(WORDS * 2)))[:WORDS]
        self._weights = list(accumulate(1 / (rank + 1) for rank in range(len(self._words))))

    def text(self) -> str:
        count = self._random.randint(*WORDS_A_TEXT)
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=count))

    def query(self) -> str:
        """Words in the proportion in which documents hold them."""
        count = self._random.randint(*TERMS_A_QUERY)
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=count))


def _fill(
    memory: Memory, view: View, generate: _Generator, items: int, progress: Callable[[int, int], None] | None
) -> None:
    for start in range(0, items, BATCH):
        memory.add_many(view, [Draft(generate.text()) for _ in range(min(BATCH, items - start))])
        if progress is not None:
            progress(min(start + BATCH, items), items)


def _time_adds(memory: Memory, view: View, generate: _Generator) -> float:
    texts = [generate.text() for _ in range(SINGLE_ADDS)]
    started = time.perf_counter()
    for text in texts:
        memory.add(view, text)
    return SINGLE_ADDS / (time.perf_counter() - started)


def _time_queries(memory: Memory, view: View, generate: _Generator, start: float) -> tuple[float, list[float]]:
    """Seconds from `start` to the first answer, and the milliseconds of the queries after it."""
    memory.search(view, generate.query())
    opened, times = time.perf_counter() - start, []
    for query in [generate.query() for _ in range(QUERIES)]:
        started = time.perf_counter()
        memory.search(view, query)
        times.append((time.perf_counter() - started) * 1000)
    return opened, times


def _cold(home: Path, command: Sequence[str]) -> tuple[float, float]:
    """Seconds and peak megabytes of a whole search command, the second of two runs (the model is unpacked once)."""
    environment = {**os.environ, "AFTERWATCH_HOME": str(home)}
    seconds = peak = 0.0
    for _ in range(2):
        started = time.perf_counter()
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603
        out, err = child.communicate()
        seconds = time.perf_counter() - started
        if child.returncode != 0 or "hits" not in json.loads(out):
            raise Unavailable(f"the search command failed: {err.decode(errors='replace')[-300:]}")
        peak = _peak_mb(command, environment)
    return seconds, peak


def _peak_mb(command: Sequence[str], environment: dict[str, str]) -> float:
    """Peak resident memory of a command, by the system's own count of a finished child."""
    pid = os.posix_spawn(
        command[0], list(command), environment, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
