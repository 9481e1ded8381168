"""Scoring: pure functions over candidates. Standard library only.

A score is a weighted sum of signals between 0 and about 1, each cheap to explain: what the words say, what the
vector says, how much of the question the item and the turns before it cover, and what kind of utterance it is.
The logarithm of importance and recency is added, so both multiply odds; then diversity.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from afterwatch.memory import utterance

SIGNALS = ("keyword", "vector", "cover", "segment", "topic", "speaker", "statement", "length", "answer")
WEIGHTS = {
    True: (2.03, 3.95, 3.11, 1.62, 0.74, 2.53, 0.84, 1.59, 1.85),
    False: (4.56, 0.0, 2.98, 1.90, 0.0, 2.60, 0.70, 0.88, 1.89),
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


@dataclass(slots=True)
class Candidate:
    """An item that may answer, with raw evidence; `lent_*` already hold what its neighbours lend.

    `segment` is the BM25 of the turns around it taken as one text, `topic` the mean of the best cosines there,
    both None outside conversations;
    `held` are the stems of the question that the item itself holds, `speaker` the folded name its text begins with.
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
    speaker: str = ""
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


def rate(question: str, candidates: Sequence[Candidate], levels: Levels, now: int) -> None:
    """Fill in signals and score of every candidate."""
    names = utterance.named(question, (candidate.speaker for candidate in candidates))
    who = names[0] if len(names) == 1 else None
    answers = utterance.wanted(question)
    w0, w1, w2, w3, w4, w5, w6, w7, w8 = WEIGHTS[levels.vectors]
    priors: dict[tuple[float, int], float] = {}
    by_keyword, by_segment = 1 / (levels.keyword or 1.0), 1 / (levels.segment or 1.0)
    mean, by_vector = levels.cosine_mean, 1 / ((levels.cosine_max - levels.cosine_mean) or 1.0)
    for c in candidates:
        text, segment = c.text, c.segment
        words = c.lent_keyword * by_keyword if c.lent_keyword > 0.0 else 0.0
        lent, nearest = c.lent_vector, c.topic if segment is not None else c.cosine
        keyword = math.sqrt(words)
        vector = (lent - mean) * by_vector if lent is not None else 0.0
        # an item outside conversations is a conversation of its own
        around = segment * by_segment if segment is not None else words
        topic = (nearest - mean) * by_vector if nearest is not None else 0.0
        said = 1.0 if who and (c.speaker == who or (not c.speaker and utterance.says(text, who))) else 0.0
        statement = 0.0 if utterance.asks(text) else 1.0
        length = min(len(text), LONG_ENOUGH) / LONG_ENOUGH
        answer = 1.0 if any(gives(text) for gives in answers) else 0.0
        c.signals = (keyword, vector, c.cover, around, topic, said, statement, length, answer)
        key = (c.importance, c.valid_from)
        if key not in priors:
            priors[key] = math.log(prior(*key, now))
        c.score = (
            (w0 * keyword + w1 * vector + w2 * c.cover + w3 * around + w4 * topic)
            + (w5 * said + w6 * statement + w7 * length + w8 * answer)
            + priors[key]
        )


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
    """Greedy MMR: each place goes to the best worth less the likeness (Jaccard) to what is chosen already.

    A value only ever falls, so one that is out of date is a bound: only what comes to the top is compared.
    """
    left = [(-value, at) for at, value in enumerate(worth)]  # of equals the first, which is the better by score
    heapq.heapify(left)
    likeness, compared = [0.0] * len(worth), [0] * len(worth)
    chosen: list[int] = []
    while left and len(chosen) < limit:
        at = left[0][1]
        mine, most = words[at], likeness[at]
        if compared[at] == len(chosen):
            heapq.heappop(left)
            chosen.append(at)
            continue
        for other in chosen[compared[at] :]:
            theirs = words[other]
            like = (mine & theirs).bit_count() / ((mine | theirs).bit_count() or 1)
            if like > most:
                most = like
        likeness[at], compared[at] = most, len(chosen)
        heapq.heapreplace(left, (DIVERSITY * most - worth[at], at))
    return chosen
