"""Fits the constants of `memory.gate` on one half of PrecisionMemBench and reports on the other.

    python -m afterwatch.bench.fit_gate FOLDER

The halves are split by a hash of the question's text. Each question meets every item its view shows, once with the
items' names and once without them (so that words and vectors must do), because most remembered text has no name.
The constants are those with the best F1 without names among those within `SLACK` of the best F1 with names; of equals
the strictest win. Prints the constants and the figures with vectors and without. The cases ask for named things only,
so they say little about `share` and `cosine` beyond where noise begins.
"""

import hashlib
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from afterwatch.bench.precision import Case, Seeded, expected_of, is_persona, is_question, read, view_of
from afterwatch.memory import keywords
from afterwatch.memory.embedders import Embedder, load
from afterwatch.memory.gate import Evidence, Gate, Question, about, admit, ask, stems_of
from afterwatch.memory.model import Item
from afterwatch.memory.reading import Filter
from afterwatch.memory.spaces import Spaces
from afterwatch.memory.spelling import corrections
from afterwatch.memory.stopwords import STOP_WORDS

COSINES = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7)
SHARES = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
GENERIC = (0.15, 0.3, 0.6, 1.0)
KEEP_UP = (0.5, 0.6, 0.7, 0.8)
SLACK = 0.005
MARGIN = 0.05
"""Added to the cosine: a store of thousands has nearer strangers than one of thirty."""
PART = 20
"""Words of a question that are cut into terms at a time; a search looks at the first few terms only."""
EVERYTHING = 10_000


@dataclass(frozen=True, slots=True)
class Seen:
    """A question with the evidence of every item in view; `slot` marks those that may stand in the relevant slot."""

    question: Question
    evidence: tuple[Evidence, ...]
    ids: tuple[str, ...]
    slot: tuple[bool, ...]
    expected: frozenset[str]
    fitted: bool

    def nameless(self) -> "Seen":
        """The same when nobody had given the items names."""
        return replace(self, evidence=tuple(replace(one, names=()) for one in self.evidence))


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over cases, as in the benchmark."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / ((self.precision + self.recall) or 1.0)


def observe(folder: Path, model: Embedder | None) -> list[Seen]:
    """Every case with a question and room for an answer, with its evidence."""
    _, beliefs, cases = read(folder)
    pinned = {one["_id"] for one in beliefs if one["pinned"]}
    found: list[Seen] = []
    with tempfile.TemporaryDirectory() as home, Seeded(Path(home), beliefs, model) as bench:
        spaces = Spaces(Path(home))
        for case in cases:
            if case.question.strip():
                found += _seen(bench, spaces, case, pinned, model)
            bench.after(case)
        spaces.close()
    return found


def _seen(bench: Seeded, spaces: Spaces, case: Case, pinned: set[str], model: Embedder | None) -> Iterator[Seen]:
    items = bench.memory.items(view_of(case.user, case.scopes), Filter(), limit=EVERYTHING)
    slot = tuple(not (item.pinned or is_persona(item) or is_question(item)) for item in items)
    if sum(item.pinned for item in items if not is_persona(item)) >= case.budget["maxBeliefs"]:
        return
    cosines = _cosines(case.question, items, model)
    yield Seen(
        _question(spaces, case),
        tuple(
            about(item.subject, item.aliases, stems_of(item.text, spaces.stem), spaces.stem, cosine)
            for item, cosine in zip(items, cosines, strict=True)
        ),
        tuple(item.source for item in items),
        slot,
        frozenset(expected_of(case, pinned)),
        hashlib.sha256(case.question.encode()).digest()[0] % 2 == 0,
    )


def _question(spaces: Spaces, case: Case) -> Question:
    words = case.question.split()
    parts = [" ".join(words[at : at + PART]) for at in range(0, len(words), PART)]
    with spaces.store(f"user:{case.user}").reading() as connection:
        found = [term for part in parts for term in keywords.weigh(connection, spaces.stem, part)]
        terms = [term for term in found if term.text not in STOP_WORDS]
        near = corrections(connection, spaces.stem, terms)
        return ask(case.question, terms, keywords.live_rows(connection), spaces.stem, near)


def _cosines(question: str, items: Sequence[Item], model: Embedder | None) -> list[float | None]:
    if model is None or not items:
        return [None] * len(items)
    vectors = model.encode([question, *(item.text for item in items)])
    return [float(vector @ vectors[0]) for vector in vectors[1:]]


# -- fitting -------------------------------------------------------------------------------------------------------


def measure(seen: Sequence[Seen], gate: Gate) -> Figures:
    """The figures of a gate over cases."""
    precision, recall = [], []
    for one in seen:
        verdicts = admit(one.question, one.evidence, gate)
        passed = zip(one.ids, one.slot, verdicts, strict=True)
        returned = {item for item, may, verdict in passed if may and verdict.admitted}
        right = len(returned & one.expected)
        if returned or one.expected:
            precision.append(right / len(returned) if returned else 0.0)
        if one.expected:
            recall.append(right / len(one.expected))
    return Figures(sum(precision) / max(len(precision), 1), sum(recall) / max(len(recall), 1))


def fit(seen: Sequence[Seen], *, vectors: bool) -> Gate:
    """The gate that does best on these cases."""
    nameless = [one.nameless() for one in seen]
    grid = itertools.product(COSINES if vectors else (None,), SHARES, GENERIC, KEEP_UP)
    rated = [(measure(seen, gate).f1, gate) for gate in (Gate(*values) for values in grid)]
    best = max(f1 for f1, _ in rated)
    good = [gate for f1, gate in rated if f1 >= best - SLACK]
    found = max(good, key=lambda gate: (round(measure(nameless, gate).f1, 4), gate.keep_up, gate.share))
    return found if found.cosine is None else replace(found, cosine=round(found.cosine + MARGIN, 3))


def report(name: str, model: Embedder | None, folder: Path) -> None:
    """Fit, and print what came of it."""
    seen = observe(folder, model)
    halves = {"fitted": [one for one in seen if one.fitted], "held out": [one for one in seen if not one.fitted]}
    gate = fit(halves["fitted"], vectors=model is not None)
    _say(f"{name}: Gate{astuple(gate)}")
    for half, cases in {**halves, "all": seen}.items():
        named, bare = measure(cases, gate), measure([one.nameless() for one in cases], gate)
        _say(
            f"  {half} ({len(cases)}): precision {named.precision:.3f} recall {named.recall:.3f}; "
            f"without names {bare.precision:.3f} {bare.recall:.3f}"
        )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def main(arguments: Sequence[str]) -> int:
    """`FOLDER`: the folder of the benchmark's files."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m afterwatch.bench.fit_gate FOLDER\n")
        return 2
    folder = Path(arguments[0])
    with tempfile.TemporaryDirectory() as cache:
        model = load("bundled", Path(cache))
        report(model.id if model else "none", model, folder)
    report("none", None, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
