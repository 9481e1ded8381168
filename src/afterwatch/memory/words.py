"""The tokenizer: text to the three columns of the keyword index, and questions to terms.

Words are folded (case, accents, width); scripts written without spaces become single characters and pairs;
identifiers are kept whole and split at case, digits and separators, with neighbouring parts joined, so that
`crashloop` finds `CrashLoopBackOff` and `podspec` finds `getPodSpec`. Stemming is left to the index.
Standard library only: the hook's read path runs this code.
"""

import re
import unicodedata
from dataclasses import dataclass

from afterwatch.memory.stopwords import STOP_WORDS

TOKENIZER_VERSION = 1
SEPARATORS = "-_./:"
MAX_TERMS = 200
"""Terms of one question that are looked at; of these the rarest few are searched."""

_LATIN_MARKS = re.compile("[\u0300-\u036f\u064b-\u0652\u0640]")
# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, Kana, Han, Hangul (after composition).
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)
_EMOJI = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# Vowel signs and points that are no letters to `re`, yet part of words (Hebrew, Arabic, Indic, Tibetan).
_SIGNS = "\u0591-\u05c7\u0610-\u061a\u0653-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff\u0f00-\u0fff"
_SCAN = re.compile(f"(?P<run>[{_UNSPACED}]+)|(?P<emoji>[{_EMOJI}])|(?P<word>(?:[^\\W_]|[{_SIGNS}])+)")
_IDENTIFIER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[-_./:]+(?=[A-Za-z0-9]))*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class Columns:
    """One text as it stands in the keyword index; each field is space-separated tokens."""

    words: str
    grams: str
    identifiers: str


def fold(text: str) -> str:
    """Compatibility-normalise, case-fold and drop accents; letters of every script survive."""
    if text.isascii():
        return text.lower()
    wide = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFKC", _LATIN_MARKS.sub("", wide))


def columns(text: str) -> Columns:
    """Tokens of a text for the three index columns."""
    words, grams = _scan(fold(text))
    return Columns(" ".join(words), " ".join(grams), " ".join(identifiers(text)))


def terms(question: str) -> list[str]:
    """Distinct search terms of a question in the order they appear, at most `MAX_TERMS`.

    Stop words are dropped unless nothing else is left; unspaced runs of two or more characters
    search by pairs, single characters by themselves.
    """
    folded = fold(question)
    words, grams = _scan(folded, query=True)
    wanted = [word for word in words if word not in STOP_WORDS] or words
    whole = [token for token in _wholes(question) if token not in wanted]
    return list(dict.fromkeys(wanted + whole + grams))[:MAX_TERMS]


def identifiers(text: str) -> list[str]:
    """Whole identifiers, their parts, and their neighbouring parts joined in twos and threes."""
    found: list[str] = []
    for match in _IDENTIFIER.finditer(text):
        token = match.group()
        parts = [part.lower() for part in _PART.findall(token)]
        if len(parts) < 2:
            continue
        found.append(token.lower())
        found.extend(parts)
        for width in (2, 3):
            found.extend("".join(parts[i : i + width]) for i in range(len(parts) - width + 1))
    return found


def _wholes(question: str) -> list[str]:
    tokens = (match.group() for match in _IDENTIFIER.finditer(question))
    return [token.lower() for token in tokens if len(_PART.findall(token)) > 1]


def _scan(folded: str, *, query: bool = False) -> tuple[list[str], list[str]]:
    words: list[str] = []
    grams: list[str] = []
    for match in _SCAN.finditer(folded):
        token = match.group()
        if match.lastgroup == "word":
            words.append(token)
        elif match.lastgroup == "emoji":
            grams.append(token)
        else:
            grams.extend(_grams(token, query=query))
    return words, grams


def _grams(run: str, *, query: bool) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs if query and pairs else [*run, *pairs]
