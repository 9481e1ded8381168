"""Fits the two thresholds of the gate for an embedder, on labelled pairs of question and note that ship with us.

144 notes with a question each, in English and Chinese, short (a sentence) and long (a paragraph). Each question is
paired with its own note and with three others of its kind, one of which looks most like the question: 576 pairs. A
third of the questions, chosen by the sha256 of their text, is held back; its figures are those that count.
"""

import hashlib
import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from afterwatch.memory import keywords
from afterwatch.memory.embedders import Embedder
from afterwatch.memory.gate import Evidence, Gate, Question, about, admit, ask, stems_of
from afterwatch.memory.index import Stemmer
from afterwatch.memory.model import Draft, View
from afterwatch.memory.settings import MemorySettings
from afterwatch.memory.spaces import Spaces
from afterwatch.memory.spelling import corrections
from afterwatch.memory.stopwords import STOP_WORDS
from afterwatch.memory.writing import Writer
from afterwatch.settings.clock import SystemClock

LANGUAGES = ("en", "zh")
LENGTHS = ("short", "long")
OTHERS = (1, 7)
"""How far down the list the notes stand that a question is not about."""
COSINES = tuple(round(0.25 + 0.05 * step, 2) for step in range(13))
SHARES = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8)
WANTED = {"en": 0.9, "zh": 0.8}
"""F1 on the held-back third below which a gate is not good."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a note, and whether the note answers it; `held` pairs are never fitted on."""

    language: str
    length: str
    question: str
    note: str
    relevant: bool

    @property
    def held(self) -> bool:
        return hashlib.sha256(self.question.encode()).digest()[0] % 3 == 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair with what the gate looks at."""

    pair: Pair
    question: Question
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Figures:
    """How well a gate does on some pairs."""

    pairs: int
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / ((self.precision + self.recall) or 1.0)


@cache
def pairs() -> tuple[Pair, ...]:
    """All labelled pairs, in the order of the files."""
    found = []
    for language, length in itertools.product(LANGUAGES, LENGTHS):
        text = files("afterwatch.memory").joinpath(f"data/gate_{length}_{language}.tsv").read_text("utf-8")
        rows = [line.split("\t") for line in text.splitlines() if line]
        for at, (question, note) in enumerate(rows):
            found.append(Pair(language, length, question, note, True))
            others = [rows[(at + step) % len(rows)][1] for step in OTHERS]
            rest = [other for _, other in rows if other != note and other not in others]
            lookalike = max(rest, key=lambda other: _alike(question, other))
            found += [Pair(language, length, question, other, False) for other in (*others, lookalike)]
    return tuple(found)


def _alike(a: str, b: str) -> float:
    """The share of a text's pairs of letters that another has."""
    mine, others = ({text[at : at + 2] for at in range(len(text) - 1)} for text in (a.lower(), b.lower()))
    return len(mine & others) / len(mine)


def observe(model: Embedder | None, progress: Callable[[int, int], None] | None = None) -> list[Judged]:
    """Every pair as the gate would see it in a store that holds all the notes.

    Raises:
        Unavailable: the embedder failed.
    """
    texts = list(dict.fromkeys(text for pair in pairs() for text in (pair.question, pair.note)))
    cosine = _cosines(model, texts, progress)
    with tempfile.TemporaryDirectory() as home:
        spaces = Spaces(Path(home))
        try:
            notes = list(dict.fromkeys(pair.note for pair in pairs()))
            Writer(spaces, MemorySettings(), SystemClock()).add(View(), [Draft(note) for note in notes])
            asked = {question: _question(spaces, question) for question in {pair.question for pair in pairs()}}
            held = {note: stems_of(note, spaces.stem) for note in notes}
            return [_judged(pair, asked, held, spaces.stem, cosine) for pair in pairs()]
        finally:
            spaces.close()


def _judged(
    pair: Pair,
    asked: dict[str, Question],
    held: dict[str, frozenset[str]],
    stem: Stemmer,
    cosine: Callable[[str, str], float | None],
) -> Judged:
    evidence = about(None, (), held[pair.note], stem, cosine(pair.question, pair.note))
    return Judged(pair, asked[pair.question], evidence)


def _cosines(
    model: Embedder | None, texts: Sequence[str], progress: Callable[[int, int], None] | None
) -> Callable[[str, str], float | None]:
    if model is None:
        return lambda a, b: None
    vectors: dict[str, Any] = {}
    for start in range(0, len(texts), 16):
        part = texts[start : start + 16]
        vectors.update(zip(part, model.encode(part), strict=True))
        if progress is not None:
            progress(len(vectors), len(texts))
    return lambda a, b: float(vectors[a] @ vectors[b])


def _question(spaces: Spaces, question: str) -> Question:
    with spaces.store(View().write).reading() as connection:
        found = keywords.weigh(connection, spaces.stem, question)
        terms = [term for term in found if term.text not in STOP_WORDS]
        near = corrections(connection, spaces.stem, terms)
        return ask(question, terms, keywords.live_rows(connection), spaces.stem, near)


# -- fitting -------------------------------------------------------------------------------------------------------


def measure(judged: Sequence[Judged], gate: Gate) -> Figures:
    """Precision and recall of a gate that judges each pair by itself."""
    passed = [admit(one.question, [one.evidence], gate)[0].admitted for one in judged]
    right = sum(one.pair.relevant for one, admitted in zip(judged, passed, strict=True) if admitted)
    relevant = sum(one.pair.relevant for one in judged)
    return Figures(len(judged), right / (sum(passed) or 1), right / (relevant or 1))


def groups(judged: Sequence[Judged], *, held: bool) -> dict[tuple[str, str], list[Judged]]:
    """The held-back or the other pairs, by language and length."""
    return {
        (language, length): [
            one
            for one in judged
            if (one.pair.language, one.pair.length) == (language, length) and one.pair.held is held
        ]
        for language, length in itertools.product(LANGUAGES, LENGTHS)
    }


def fit(judged: Sequence[Judged], start: Gate, *, vectors: bool) -> Gate:
    """The gate with the best worst group on the pairs that are not held back; of equals the strictest.

    `generic` and `keep_up` stay as in `start`.
    """
    parts = list(groups(judged, held=False).values())
    best, found = (-1.0, -1.0), start
    for cosine, share in itertools.product(COSINES if vectors else (None,), SHARES):
        gate = replace(start, cosine=cosine, share=share)
        scores = [measure(part, gate).f1 for part in parts]
        rated = (round(sum(scores) + min(scores), 4), share + (cosine or 0.0))
        if rated > best:
            best, found = rated, gate
    return found


def run(
    model: Embedder | None, inforce: Gate, progress: Callable[[int, int], None] | None = None
) -> tuple[Gate, dict[str, Any]]:
    """Fit, and report on the held-back third: the gate in force, and the fitted one.

    Raises:
        Unavailable: the embedder failed.
    """
    judged = observe(model, progress)
    gate = fit(judged, inforce, vectors=model is not None)
    report = {
        "embedder": model.id if model is not None else None,
        "pairs": len(judged),
        "held_back": sum(one.pair.held for one in judged),
        "in_force": _report(judged, inforce),
        "fitted": _report(judged, gate),
    }
    return gate, report


def _report(judged: Sequence[Judged], gate: Gate) -> dict[str, Any]:
    rows = []
    for (language, length), part in groups(judged, held=True).items():
        figures = measure(part, gate)
        rows.append(
            {
                "language": language,
                "length": length,
                "pairs": figures.pairs,
                "precision": round(figures.precision, 3),
                "recall": round(figures.recall, 3),
                "f1": round(figures.f1, 3),
                "good": figures.f1 >= WANTED[language],
            }
        )
    names = ("cosine", "share", "generic", "keep_up")
    return {"gate": dict(zip(names, astuple(gate), strict=True)), "figures": rows}
