"""Fits the weights of `memory.ranking` on conversations of a LoCoMo file.

    python -m afterwatch.bench.fit_ranking locomo10.json 1-5

For each question the gold turns compete with every candidate that recall found: listwise softmax, Adam, a small
L2 penalty. Prints one tuple with vectors and one without, in the order of `ranking.SIGNALS`.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from afterwatch.bench import retrieval
from afterwatch.memory import Memory, View
from afterwatch.memory.embedders import Embedder, load
from afterwatch.memory.ranking import SIGNALS
from afterwatch.security.reading import safe_read

STEPS, RATE, PENALTY = 400, 0.1, 1e-3
Floats = NDArray[np.float64]


def lists(text: str, numbers: Sequence[int], model: Embedder | None) -> Iterator[tuple[Floats, Floats]]:
    """For each question with a found answer: signals (candidates x signals) and gold shares (sum 1)."""
    for sample in retrieval.samples(text, numbers):
        turns = list(retrieval.turns_of(sample["conversation"]))
        with retrieval.filled(turns, model, "now") as (memory, view):
            asked = retrieval.questions(sample, {turn.id for turn in turns})
            found = [_weighed(memory, view, question, gold) for question, gold in asked]
        yield from ((signals, right / right.sum()) for signals, right in found if right.sum())


def _weighed(memory: Memory, view: View, question: str, gold: set[str]) -> tuple[Floats, Floats]:
    candidates, items = memory.candidates(view, question)
    right = [float(bool(gold & set(items[candidate.row].sources))) for candidate in candidates]
    return np.array([candidate.signals for candidate in candidates]), np.array(right)


def fit(questions: Sequence[tuple[Floats, Floats]]) -> Floats:
    """The weights that make gold turns most likely."""
    width = max(len(right) for _, right in questions)
    signals = np.zeros((len(questions), width, len(SIGNALS)), np.float32)
    gold = np.zeros((len(questions), width), np.float32)
    outside = np.full((len(questions), width), -1e9, np.float32)
    for at, (rows, right) in enumerate(questions):
        signals[at, : len(rows)], gold[at, : len(rows)], outside[at, : len(rows)] = rows, right, 0.0
    flat = signals.reshape(-1, len(SIGNALS))
    wanted = gold.reshape(-1) @ flat
    weights, first, second = (np.zeros(len(SIGNALS)) for _ in range(3))
    for step in range(1, STEPS + 1):
        logits = (flat @ weights.astype(np.float32)).reshape(gold.shape) + outside
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        slope = (likely.reshape(-1) @ flat - wanted) / len(questions) + PENALTY * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        weights -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def main(path: str, numbers: str = "1-5") -> None:
    """Fit with and without vectors and print both tuples."""
    low, _, high = numbers.partition("-")
    wanted = range(int(low), int(high or low) + 1)
    text = safe_read(path, max_bytes=64_000_000)
    with tempfile.TemporaryDirectory() as cache:
        for model in (load("bundled", Path(cache)), None):
            weights = fit(list(lists(text, wanted, model)))
            shown = ", ".join(f"{weight:.2f}" for weight in weights)
            sys.stdout.write(f"{model is not None}: ({shown}),  # {', '.join(SIGNALS)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
