"""Scoring: pure functions over candidates. Standard library only.

A score is a weighted sum of signals between 0 and about 1, each cheap to explain: what the words say, what the
vector says, how much of the question the item and the turns before it cover, and what kind of utterance it is.
The logarithm of importance and recency is added, so both multiply odds; then diversity.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


def speakers(texts: Iterable[str]) -> list[str]:
    """Of each text the folded name before its first colon, or nothing."""
    known: dict[str, str] = {"": ""}
    return [_speaker(text, known) for text in texts]


def _speaker(text: str, known: dict[str, str]) -> str:
    start = text[: text.find(": ", 0, 42) + 2] if ": " in text[:42] else ""
    if start not in known:
        found = _SPEAKER.match(start)
        known[start] = fold(found.group(1)) if found else ""
    return known[start]


def named(question: str, names: Iterable[str]) -> list[str]:
    """The speakers whose whole name stands in the question."""
    said = set(_WORD.findall(fold(question)))
    return [name for name in dict.fromkeys(names) if name and set(_WORD.findall(name)) <= said]


def rate(question: str, candidates: Sequence[Candidate], levels: Levels, now: int) -> None:
    """Fill in signals and score of every candidate."""
    said_by = speakers(candidate.text for candidate in candidates)
    names = named(question, said_by)
    one = names[0] if len(names) == 1 else None
    when = _ASKS_WHEN.search(question) is not None
    weights = WEIGHTS[levels.vectors]
    priors: dict[tuple[float, int], float] = {}
    by_keyword, by_segment = 1 / (levels.keyword or 1.0), 1 / (levels.segment or 1.0)
    mean, by_vector = levels.cosine_mean, 1 / ((levels.cosine_max - levels.cosine_mean) or 1.0)
    for candidate, name in zip(candidates, said_by, strict=True):
        text, segment = candidate.text, candidate.segment
        keyword = max(0.0, candidate.lent_keyword) * by_keyword
        lent, topic = candidate.lent_vector, candidate.topic if segment is not None else candidate.cosine
        candidate.signals = (
            math.sqrt(keyword),
            (lent - mean) * by_vector if lent is not None else 0.0,
            candidate.cover,
            # an item outside conversations is a conversation of its own
            segment * by_segment if segment is not None else keyword,
            (topic - mean) * by_vector if topic is not None else 0.0,
            float(one is not None and (name == one or (not name and _says(text, one)))),
            float(not _asks(text)),
            min(len(text), LONG_ENOUGH) / LONG_ENOUGH,
            float(when and _speaks_of_time(text)),
        )
        key = (candidate.importance, candidate.valid_from)
        if key not in priors:
            priors[key] = math.log(prior(*key, now))
        candidate.score = sum(map(mul, weights, candidate.signals)) + priors[key]


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
        for word in candidate.text.lower().split():
            bits |= 1 << known.setdefault(word, len(known))
        found.append(bits)
    return found


def _diverse(worth: Sequence[float], words: Sequence[int], limit: int) -> list[int]:
    """Greedy MMR: each place goes to the best worth less the likeness (Jaccard) to what is chosen already."""
    value = list(worth)
    likeness = [0.0] * len(worth)
    left = list(range(len(worth)))
    chosen: list[int] = []
    while left and len(chosen) < limit:
        best = max(left, key=value.__getitem__)  # of equals the first, which is the better by score
        left.remove(best)
        chosen.append(best)
        mine = words[best]
        for at in left:
            like = (mine & words[at]).bit_count() / ((mine | words[at]).bit_count() or 1)
            if like > likeness[at]:
                likeness[at] = like
                value[at] = worth[at] - DIVERSITY * like
    return chosen


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
