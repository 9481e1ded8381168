"""Figures of the sameness rule on the shipped pairs, and the fit that chose its thresholds.

`sameness_twins.tsv` holds pairs of which a merge would lose a fact (kind `topic`: different sentences about
one subject, which should not be nominated often either); `sameness_repeats.tsv` holds true repeats. Rows
are kind, text, text. Even rows of each kind form one half, odd rows the other: fit on one, read the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from afterwatch.memory.sameness import CAUTIOUS, Sameness, Thresholds, compare, thresholds_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOPIC = "topic"
TOPIC_LIMIT = 0.10
"""Share of same-topic pairs a fitted threshold may nominate: a review has to stay worth its time."""
MERGE_FLOOR = 0.75
"""No fitted merge threshold is lower: words decide a merge, the cosine is the second lock on the door."""


class Encodes(Protocol):
    """Anything that turns texts into unit vectors; an attribute `id` selects measured thresholds."""

    def encode(self, texts: list[str], /) -> "NDArray[np.float32]":
        """Shape (number of texts, d), float32, L2-normalised."""
        ...


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of the shipped sets; `half` is 0 or 1."""

    kind: str
    a: str
    b: str
    repeat: bool
    half: int


def pairs() -> list[Pair]:
    """All shipped pairs: twins, same-topic pairs, then repeats."""
    return _load("sameness_twins.tsv", repeat=False) + _load("sameness_repeats.tsv", repeat=True)


def cosines(embedder: Encodes, rows: Sequence[Pair]) -> list[float]:
    """Cosine of each pair, in order."""
    if not rows:
        return []
    vectors = embedder.encode([text for row in rows for text in (row.a, row.b)])
    return [float(value) for value in (vectors[0::2] * vectors[1::2]).sum(axis=1)]


def run(embedder: Encodes | None, thresholds: Thresholds | None = None) -> dict[str, Any]:
    """Figures over all pairs, by half and by kind.

    Args:
        embedder: None measures the rule without vectors.
        thresholds: default: those of the embedder's `id`, else the cautious ones.

    Returns:
        `twins`, `repeats`, `topics`: numbers of pairs; `wrong_merges`: twins and topics merged, a number;
        `merged`, `nominated`, `merged_or_nominated`: shares of the repeats; `twins_nominated` and
        `topics_nominated`: shares; `halves`: the same for each half; `by_kind`; `thresholds`; `embedder`.
    """
    name = getattr(embedder, "id", None)
    chosen = thresholds or thresholds_for(name)
    rows = pairs()
    found = list(cosines(embedder, rows)) if embedder is not None else [None] * len(rows)
    judged = [
        (row, compare(row.a, row.b, cosine, chosen.merge, chosen.nominate))
        for row, cosine in zip(rows, found, strict=True)
    ]
    return {
        **_figures(judged),
        "halves": [_figures([pair for pair in judged if pair[0].half == half]) for half in (0, 1)],
        "by_kind": _by_kind(judged),
        "thresholds": {"merge": chosen.merge, "nominate": chosen.nominate},
        "embedder": name,
    }


def fit(embedder: Encodes, half: int = 0) -> Thresholds:
    """Thresholds of an embedder from one half of the pairs, rounded to a hundredth.

    Nominate: the lowest cosine at which at most `TOPIC_LIMIT` of the same-topic pairs are nominated.
    Merge: the lowest cosine, at least `MERGE_FLOOR`, at which no pair that must stay apart merges.
    """
    rows = [row for row in pairs() if row.half == half]
    found = list(zip(rows, cosines(embedder, rows), strict=True))
    steps = [hundredth / 100 for hundredth in range(30, 100)]
    nominate = next((at for at in steps if _topics(found, at) <= TOPIC_LIMIT), CAUTIOUS.nominate)
    merge = next((at for at in steps if at >= MERGE_FLOOR and not _wrong(found, at)), 1.0)
    return Thresholds(merge=merge, nominate=nominate)


def _load(name: str, *, repeat: bool) -> list[Pair]:
    text = files("afterwatch.bench").joinpath("data", name).read_text("utf-8")
    seen: dict[str, int] = {}
    found = []
    for line in text.split("\n"):
        if line:
            kind, a, b = line.split("\t")
            seen[kind] = seen.get(kind, 0) + 1
            found.append(Pair(kind, a, b, repeat, (seen[kind] - 1) % 2))
    return found


def _topics(found: Iterable[tuple[Pair, float]], nominate: float) -> float:
    return _share(
        compare(row.a, row.b, cosine, 1.0, nominate) is not Sameness.DIFFERENT
        for row, cosine in found
        if row.kind == TOPIC
    )


def _wrong(found: Iterable[tuple[Pair, float]], merge: float) -> int:
    apart = [(row, cosine) for row, cosine in found if not row.repeat]
    return sum(compare(row.a, row.b, cosine, merge) is Sameness.SAME for row, cosine in apart)


def _figures(judged: Sequence[tuple[Pair, Sameness]]) -> dict[str, Any]:
    repeats = [sameness for row, sameness in judged if row.repeat]
    topics = [sameness for row, sameness in judged if row.kind == TOPIC]
    twins = [sameness for row, sameness in judged if not row.repeat and row.kind != TOPIC]
    return {
        "twins": len(twins),
        "repeats": len(repeats),
        "topics": len(topics),
        "wrong_merges": (twins + topics).count(Sameness.SAME),
        "merged": _share(sameness is Sameness.SAME for sameness in repeats),
        "nominated": _share(sameness is Sameness.NEAR for sameness in repeats),
        "merged_or_nominated": _share(sameness is not Sameness.DIFFERENT for sameness in repeats),
        "twins_nominated": _share(sameness is Sameness.NEAR for sameness in twins),
        "topics_nominated": _share(sameness is Sameness.NEAR for sameness in topics),
    }


def _by_kind(judged: Sequence[tuple[Pair, Sameness]]) -> dict[str, dict[str, dict[str, int]]]:
    """`apart` and `repeats`, each kind with its number of pairs, merges and nominations."""
    found: dict[str, dict[str, dict[str, int]]] = {"apart": {}, "repeats": {}}
    for row, sameness in judged:
        group = found["repeats" if row.repeat else "apart"]
        counts = group.setdefault(row.kind, {"pairs": 0, "merged": 0, "nominated": 0})
        counts["pairs"] += 1
        counts["merged"] += sameness is Sameness.SAME
        counts["nominated"] += sameness is Sameness.NEAR
    return found


def _share(values: Iterable[bool]) -> float:
    counted = list(values)
    return sum(counted) / len(counted) if counted else 0.0
