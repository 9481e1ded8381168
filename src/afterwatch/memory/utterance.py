"""What kind of utterance a text is, and what kind a question asks for. Pure and remembered; standard library only.

These are hints for the order of what was found, never a reason to leave something out. The words are English;
in other languages the hints are simply absent.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from afterwatch.memory.words import fold

LONGEST_NAME = 40
REMEMBERED = 8192
"""Texts whose kind is remembered: the same few hundred are rated for every question."""

_SPEAKER = re.compile(r"([^\W\d_][^:\n]*): ")
_NOTE = re.compile(r"\s*\[[^\]]*\]$")
_WORD = re.compile(r"[^\W_]+")
_ASKS_NAME = re.compile(
    r"\b(?:who|whose|where|which|what(?:'s| is| was| are| were)? (?:the )?(?:\w+ )?"
    r"(?:name|title|book|movie|film|game|city|country|band|song|place|state|company|show|series)s?)\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    # a capitalised word inside a sentence, a quoted one, or an identifier
    r"(?<=[^.!?:\s] )(?!I\b)[A-ZÀ-ÖØ-Þ][^\W\d_]+|\"[^\"]+\"|\b\w+[-./]\w*\d|[^\W_]_[^\W_]|\w/\w"
)
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


def speaker(text: str) -> str:
    """The folded name before a text's first colon, or nothing."""
    end = text.find(": ", 0, LONGEST_NAME + 2)
    return _name(text[: end + 2]) if end > 0 else ""


@lru_cache(REMEMBERED)
def _name(start: str) -> str:
    found = _SPEAKER.match(start)
    return fold(found.group(1)) if found else ""


def named(question: str, names: Iterable[str]) -> list[str]:
    """The speakers whose whole name stands in the question."""
    said = set(_WORD.findall(fold(question)))
    return [name for name in dict.fromkeys(names) if name and set(_WORD.findall(name)) <= said]


def says(text: str, name: str) -> bool:
    """Whether a whole name stands in a text."""
    return set(name.split()) <= set(_WORD.findall(fold(text)))


def asks(text: str) -> bool:
    """Whether a text ends with a question; a note in brackets behind it does not count."""
    end = _NOTE.sub("", text)[-30:] if text.endswith("]") else text[-30:]
    return "?" in end or "？" in end or "؟" in end


def wanted(question: str) -> list[Callable[[str], bool]]:
    """What a text must hold to be of the kind that a question asks for: a time, or a name."""
    kinds = ((_ASKS_WHEN, _speaks_of_time), (_ASKS_NAME, _names))
    return [gives for asked, gives in kinds if asked.search(question)]


@lru_cache(REMEMBERED)
def _names(text: str) -> bool:
    return _NAME.search(text) is not None


@lru_cache(REMEMBERED)
def _speaks_of_time(text: str) -> bool:
    lowered = text.lower()
    words = set(_WORD.findall(lowered))
    if words & _TIME_WORDS:
        return True
    maybe = words & _MAYBE_TIME or any(digit in lowered for digit in "0123456789")
    return bool(maybe) and _TIME.search(lowered) is not None
