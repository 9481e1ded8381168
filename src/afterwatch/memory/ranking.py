"""Scoring: pure functions over candidates. Standard library only."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

RECENCY_FLOOR = 0.9
RECENCY_RATE = 0.03
DAY = 86_400_000_000


@dataclass(slots=True)
class Candidate:
    row: int
    conversation: str | None
    position: int | None
    segment: int | None
    importance: float
    valid_from: int
    bm25: float = 0.0
    cosine: float | None = None
    segment_score: float = 0.0
    terms: dict[str, float] = field(default_factory=dict)
    score: float = 0.0


def score(candidates: Sequence[Candidate], now: int) -> None:
    top = max((c.bm25 for c in candidates), default=0.0) or 1.0
    seg = max((c.segment_score for c in candidates), default=0.0) or 1.0
    cosines = [c.cosine for c in candidates if c.cosine is not None]
    low, high = (min(cosines), max(cosines)) if cosines else (0.0, 1.0)
    base: dict[tuple[str | None, int | None], float] = {}
    for c in candidates:
        keyword = c.bm25 / top
        if cosines:
            vector = ((c.cosine if c.cosine is not None else low) - low) / ((high - low) or 1.0)
            c.terms = {"keyword": 0.5 * keyword, "vector": 0.5 * vector}
        else:
            c.terms = {"keyword": keyword}
        base[(c.conversation, c.position)] = sum(c.terms.values())
    for c in candidates:
        if c.conversation is not None and c.position is not None:
            near = 0.0
            for d, w in ((-2, 0.15), (-1, 0.3), (1, 0.3), (2, 0.15)):
                near += w * base.get((c.conversation, c.position + d), 0.0)
            c.terms["neighbours"] = near
            c.terms["segment"] = 0.45 * c.segment_score / seg
        days = max(0.0, (now - c.valid_from) / DAY)
        recency = RECENCY_FLOOR + (1 - RECENCY_FLOOR) * math.exp(-RECENCY_RATE * days)
        c.score = sum(c.terms.values()) * recency * (0.9 + 0.2 * c.importance)
