"""Small measures of texts that admission needs: fingerprint, word overlap, labels, quotes of a value."""

import hashlib
import re
from collections.abc import Sequence

from afterwatch.memory.sameness import LETTER, normalise
from afterwatch.memory.words import columns

MOST_LABELS = 20
"""Tags, and aliases, that an item has at most after repeats."""


def fingerprint(text: str) -> int:
    """64 bits of the normalised text, signed: finds exact repeats by an index."""
    digest = hashlib.blake2b(normalise(text).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def all_of(text: str) -> str:
    """An index query for rows that hold every term of a text."""
    split = columns(text)  # plain words and characters: whole identifiers depend on what stands next to them
    return " AND ".join(f'"{token}"' for token in f"{split.words} {split.grams}".split()[:50]) or '""'


def quote_pattern(subject: str, value: str) -> re.Pattern[str]:
    """Finds a key (or its last part) directly followed by a value, as whole words, in normalised text."""
    last = subject.rpartition(".")[2]
    keys = "|".join(re.escape(normalise(key)) for key in {subject, last, last.replace("_", " ")})
    return re.compile(rf"(?<!\w)(?:{keys})(?:\s*[:=]\s*|\s+is\s+|\s+)[\"'`]?{re.escape(normalise(value))}(?!\w)")


def overlap(one: str, other: str) -> float:
    """Share of words that two texts have in common (Jaccard), roughly: spares most texts the full comparison."""
    left, right = set(normalise(one).split()), set(normalise(other).split())
    return len(left & right) / max(1, len(left | right))


def union(old: Sequence[str], new: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Old labels, then new ones, at most `MOST_LABELS`; and how many found no place."""
    both = tuple(dict.fromkeys((*old, *new)))
    return both[:MOST_LABELS], len(both[MOST_LABELS:])


def says(text: str, value: str) -> bool:
    """Whether a text holds a value as whole words, after normalisation. In scripts without spaces any place will do."""
    wanted = normalise(value)
    if not wanted:
        return value in text
    before = rf"(?<!{LETTER})" if re.match(LETTER, wanted) else ""
    after = rf"(?!{LETTER})" if re.search(f"{LETTER}$", wanted) else ""
    return re.search(f"{before}{re.escape(wanted)}{after}", normalise(text)) is not None
