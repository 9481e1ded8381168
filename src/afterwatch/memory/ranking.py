"""Scoring: pure functions over candidates. Standard library only.

A score is a weighted sum of signals between 0 and about 1, each cheap to explain: what the words say, what the
vector says, how much of the question the item and the turns before it cover, and what kind of utterance it is.
The logarithm of importance and recency is added, so both multiply odds; then diversity.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import mul

from afterwatch.memory.words import fold

SIGNALS = ("keyword", "vector", "cover", "segment", "topic", "speaker", "statement", "length", "time")
WEIGHTS = {
    True: (2.05, 4.01, 3.11, 1.65, 0.63, 2.52, 0.85, 1.65, 2.09),
    False: (4.54, 0.0, 3.01, 1.89, 0.0, 2.59, 0.70, 0.97, 2.16),
}
"""With and without vectors; fitted by `python -m afterwatch.bench.fit_ranking` on LoCoMo conversations 1 to 5."""

RECENCY_FLOOR = 0.8
RECENCY_RATE = 0.03
"""A day takes 3 % of what is above the floor. A floor of 0 (the usual formula) buries all that is older than weeks:
strict session@5 on LoCoMo with real dates was .26 with it, .79 with .8."""
IMPORTANCE_BASE = 0.7
DIVERSITY = 0.1
"""Share of the final order that goes to unlike texts (MMR)."""
DIVERSE_POOL = 80
LONG_ENOUGH = 250
DAY = 86_400_000_000

_SPEAKER = re.compile(r"([^\W\d_][^:\n]{0,39}):\s")
_NOTE = re.compile(r"\s*\[[^\]]*\]$")
_WORD = re.compile(r"[^\W_]+")
_ASKS_WHEN = re.compile(r"\b(?:when|how long|(?:what|which) (?:date|day|month|year|time))\b", re.IGNORECASE)
_TIME_WORDS = frozenset(
    """
    yesterday today tonight tomorrow ago since recently just weekend january february march april june july august
    september october november december monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
_MAYBE_TIME = frozenset("last next this past few two three four five six couple".split())
_TIME = re.compile(
    r"\b(?:(?:19|20)\d\d|\d+:\d\d|(?:last|next|this|past) (?:night|week|month|year|spring|summer|fall|autumn|winter)"
    r"|(?:few|two|three|four|five|six|couple of|\d+) (?:day|week|month|year|hour|minute)s?)\b"
)


@dataclass(slots=True)
class Candidate:
    """An item that may answer, with raw evidence; `lent_*` already hold what its neighbours lend.

    `segment` is the BM25 of the turns around it taken as one text, `topic` the mean of the best cosines there,
    both None outside conversations;
    `held` are the stems of the question that the item itself holds.
    """

    row: int
    space: str
    text: str
    importance: float
    valid_from: int
    lent_keyword: float = 0.0
    lent_vector: float | None = None
    cosine: float | None = None
    cover: float = 0.0
    segment: float | None = None
    topic: float | None = None
    held: frozenset[str] = frozenset()
    signals: tuple[float, ...] = ()
    score: float = 0.0


@dataclass(slots=True)
class Levels:
    """What the signals are measured against, over all spaces of a question."""

    keyword: float = 0.0
    segment: float = 0.0
    cosine_mean: float = 0.0
    cosine_max: float = 0.0
    vectors: bool = False
    folded: str = ""
    speakers: set[str] = field(default_factory=set)


def speaker(text: str) -> str:
    """The folded name before the first colon, or nothing."""
    found = _SPEAKER.match(text) if ":" in text[:42] else None
    return fold(found.group(1)) if found else ""


def named(question: str, speakers: Sequence[str] | set[str]) -> list[str]:
    """The speakers whose whole name stands in the question."""
    said = set(_WORD.findall(fold(question)))
    return [name for name in speakers if name and set(_WORD.findall(name)) <= said]


def rate(question: str, candidates: Sequence[Candidate], levels: Levels, now: int) -> None:
    """Fill in signals and score of every candidate."""
    speakers = [speaker(candidate.text) for candidate in candidates]
    names = named(question, set(speakers))
    one = names[0] if len(names) == 1 else None
    when = _ASKS_WHEN.search(question) is not None
    weights = WEIGHTS[levels.vectors]
    for candidate, name in zip(candidates, speakers, strict=True):
        keyword = max(0.0, candidate.lent_keyword) / (levels.keyword or 1.0)
        candidate.signals = (
            math.sqrt(keyword),
            _vector(candidate.lent_vector, levels),
            candidate.cover,
            # an item outside conversations is a conversation of its own
            keyword if candidate.segment is None else candidate.segment / (levels.segment or 1.0),
            _vector(candidate.cosine if candidate.segment is None else candidate.topic, levels),
            float(one is not None and (name == one or (not name and _says(candidate.text, one)))),
            float(not _asks(candidate.text)),
            min(len(candidate.text), LONG_ENOUGH) / LONG_ENOUGH,
            float(when and _speaks_of_time(candidate.text)),
        )
        weighed = sum(map(mul, weights, candidate.signals))
        candidate.score = weighed + math.log(prior(candidate.importance, candidate.valid_from, now))


def _says(text: str, name: str) -> bool:
    return set(name.split()) <= set(_WORD.findall(fold(text)))


def prior(importance: float, valid_from: int, now: int) -> float:
    """What importance (0 to 1) and age multiply the odds by."""
    days = max(0.0, (now - valid_from) / DAY)
    recency = RECENCY_FLOOR + (1 - RECENCY_FLOOR) * math.exp(-RECENCY_RATE * days)
    return (IMPORTANCE_BASE + (1 - IMPORTANCE_BASE) * importance) * recency


def explain(candidate: Candidate, levels: Levels, now: int) -> dict[str, float]:
    """The terms of a score by name; they add up to it."""
    weighed = zip(SIGNALS, WEIGHTS[levels.vectors], candidate.signals, strict=True)
    terms = {name: weight * signal for name, weight, signal in weighed if weight}
    return {**terms, "prior": math.log(prior(candidate.importance, candidate.valid_from, now))}


def order(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Best first; scores compare at 1e-6, ties by newer `valid_from`, then by row; then diversity."""
    ranked = sorted(candidates, key=lambda c: (-round(c.score, 6), -c.valid_from, c.space, c.row))
    pool = ranked[: max(DIVERSE_POOL, limit)]
    if len(pool) < 2:
        return pool[:limit]
    lowest, highest = ranked[-1].score, ranked[0].score
    span = (highest - lowest) or 1.0
    worth = [(1 - DIVERSITY) * (candidate.score - lowest) / span for candidate in pool]
    return [pool[at] for at in _diverse(worth, _word_bits(pool), limit)]


def _word_bits(pool: Sequence[Candidate]) -> list[int]:
    """Each text's set of words as the bits of a number: sets are compared in no time."""
    known: dict[str, int] = {}
    found = []
    for candidate in pool:
        bits = 0
        for word in _WORD.findall(fold(candidate.text)):
            bits |= 1 << known.setdefault(word, len(known))
        found.append(bits)
    return found


def _diverse(worth: Sequence[float], words: Sequence[int], limit: int) -> list[int]:
    """Greedy MMR: each place goes to the best worth less the likeness (Jaccard) to what is chosen already."""
    likeness = [0.0] * len(worth)
    left = list(range(len(worth)))
    chosen: list[int] = []
    while left and len(chosen) < limit:
        # left keeps the order of the scores, and max takes the first of equals
        best = max(left, key=lambda at: round(worth[at] - DIVERSITY * likeness[at], 9))
        left.remove(best)
        chosen.append(best)
        mine = words[best]
        for at in left:
            like = (mine & words[at]).bit_count() / ((mine | words[at]).bit_count() or 1)
            if like > likeness[at]:
                likeness[at] = like
    return chosen


def _vector(cosine: float | None, levels: Levels) -> float:
    if cosine is None:
        return 0.0
    return (cosine - levels.cosine_mean) / ((levels.cosine_max - levels.cosine_mean) or 1.0)


def _speaks_of_time(text: str) -> bool:
    lowered = text.lower()
    words = set(_WORD.findall(lowered))
    if words & _TIME_WORDS:
        return True
    maybe = words & _MAYBE_TIME or any(digit in lowered for digit in "0123456789")
    return bool(maybe) and _TIME.search(lowered) is not None


def _asks(text: str) -> bool:
    end = _NOTE.sub("", text)[-30:] if text.endswith("]") else text[-30:]
    return "?" in end or "？" in end or "؟" in end
