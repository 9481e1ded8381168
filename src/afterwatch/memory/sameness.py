"""Whether two remembered texts say the same: merge, nominate for review, or keep apart.

A wrong merge loses a fact, a nomination costs a glance. No cosine separates "is allowed" from "is not
allowed", so a merge needs equal text after normalisation, or a high cosine, equal marks *and* the same
words in the same order once harmless spellings (contractions, units, number words, a few abbreviations,
"the") are folded. Clauses are never reordered and synonyms never trusted: "review the changes after the
incident" has two readings, one of which "after the incident, review the changes" lacks. Everything is
linear in the length of the texts.
Standard library only.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from functools import lru_cache
from itertools import pairwise


class Sameness(Enum):
    """What to do with a pair: merge it by itself, show it to somebody, or nothing."""

    SAME = "same"
    NEAR = "near"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosines of one embedder: at `merge` words may decide, from `nominate` on a pair is shown for review."""

    merge: float
    nominate: float


CAUTIOUS = Thresholds(merge=0.95, nominate=0.85)
"""For an embedder nobody has measured: few merges; pairs that share most words are nominated anyway."""
THRESHOLDS = {"use-multilingual-3": Thresholds(merge=0.75, nominate=0.65)}
"""By embedder id; fitted by `afterwatch.bench.sameness.fit` on one half of the shipped pairs."""
OVERLAP = 0.4
"""Share of words in common (Jaccard) from which a pair is nominated, with or without vectors."""

# --- words ----------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    """`a=b, c=d` as a mapping."""
    pairs = (pair.split("=") for pair in text.split(","))
    return {word.strip(): " ".join(meaning.split()) for word, meaning in pairs}


def _spellings(text: str) -> dict[str, str]:
    """One group a comma: every spelling leads to the first one."""
    groups = [group.split() for group in text.split(",")]
    return {spelling: group[0] for group in groups for spelling in group}


_CONTRACTIONS = _pairs("""
cannot=can not, can't=can not, won't=will not, shan't=shall not, i'm=i am, let's=let us, it's=it is,
he's=he is, she's=she is, that's=that is, there's=there is, here's=here is, what's=what is, who's=who is,
nobody's=nobody is, somebody's=somebody is, everything's=everything is
""")
_ABBREVIATIONS = _pairs("""
k8s=kubernetes, postgres=postgresql, db=database, dbs=databases, repo=repository, repos=repositories,
config=configuration, configs=configurations, prod=production, app=application, apps=applications,
docs=documentation, info=information, &=and, tue=tuesday, tues=tuesday, thu=thursday, thurs=thursday,
fri=friday, feb=february, sept=september, oct=october, nov=november, dec=december
""")
_SPELLED_OUT = frozenset(_ABBREVIATIONS.values())
_LEAD_INS = [  # longest first
    tuple(words.split("_"))
    for words in (
        *("please_note_that", "please_remember_that", "note_that", "remember_that", "heads-up_:", "note_:"),
        *("remember_:", "reminder_:", "fyi_:", "fyi_,", "nb_:", "please"),
    )
]
_LEADING = frozenset(word for words in _LEAD_INS for word in words)
_NUMBER_WORDS = _pairs("""
two=2, three=3, four=4, five=5, six=6, seven=7, eight=8, nine=9, ten=10, eleven=11, twelve=12,
thirteen=13, fourteen=14, fifteen=15, sixteen=16, seventeen=17, eighteen=18, nineteen=19, twenty=20,
thirty=30, forty=40, fifty=50, sixty=60, seventy=70, eighty=80, ninety=90, zwei=2, drei=3, vier=4, fünf=5,
sechs=6, sieben=7, acht=8, neun=9, zehn=10, zwölf=12, deux=2, trois=3, quatre=4, cinq=5, huit=8, dix=10,
cuatro=4, cinco=5, siete=7, ocho=8
""")
_UNITS = _spellings("""
s sec secs second seconds, min mins minute minutes, h hr hrs hour hours, d day days, w week weeks,
mo month months, y yr yrs year years, ms msec millisecond milliseconds, μs microsecond microseconds,
ns nanosecond nanoseconds, % percent, am a.m, pm p.m, KB kilobyte kilobytes, MB megabyte megabytes,
GB gigabyte gigabytes, TB terabyte terabytes, KiB kib kibibytes, MiB mib mebibytes, GiB gib gibibytes,
TiB tib tebibytes, km kilometre kilometres kilometer kilometers, metre metres meter meters, mm millimetre
millimetres, cm centimetre centimetres, mile miles, kg kilogram kilograms, mg milligram milligrams, g gram
grams, ml millilitre millilitres, litre litres liter liters, gallon gallons, euro euros, dollar dollars,
cent cents, celsius, fahrenheit, watt watts, volt volts
""")
_CASED_UNITS = _words("m mb kb gb tb pb mb/s kb/s gb/s mw")
_CASED_WORDS = _words("US IT WHO")
_THE_MATTERS_BEFORE = _words("most least few only first last one other same more less")
_NEGATIONS = _words("""
not never no none without neither nor nobody nothing nowhere hardly barely dont doesnt isnt wont cant
nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne weder nirgends ne n pas jamais
aucun aucune sans rien personne ni nunca jamás nada nadie sin ningún ninguna ninguno não nem ninguém sem
nenhum nenhuma non mai senza nessuno nessuna niente né niet geen nooit niemand zonder niets не нет ни никогда
без нельзя никто ничего нигде
""")
_TURNS = _words("""
allowed forbidden allow deny allows denies permitted banned enable disable enabled disabled enables disables
before after until since up down above below over under upper lower increase decrease increased decreased
increases decreases rise fall rises falls rose fell grow shrink more less fewer most least faster slower
always sometimes often rarely usually seldom all some every each both either any few many several only even
must may should could can might mandatory optional required exactly nearly about on off in out to from
inbound outbound first last next previous min max minimum maximum read write primary replica secondary leader
follower source target staging production dev test qa preprod sandbox live canary stable internal public
private north south east west northern southern eastern western left right open closed start stop begin end
with was were is are had has have will today tomorrow yesterday tonight odd am pm if unless because although
monday tuesday wednesday thursday friday saturday sunday january february march april june july august
september october november december red green blue yellow amber orange black white grey purple
vor nach erlaubt verboten immer manchmal alle einige nur erste letzte an aus ein mehr weniger muss darf soll
kann links rechts oben unten montag dienstag mittwoch donnerstag freitag samstag sonntag
avant après toujours parfois tous toutes certains certaines seulement premier dernier plus moins gauche droite
lundi mardi mercredi jeudi vendredi samedi dimanche
antes después siempre todos todas algunos algunas solo primero último más menos lunes martes miércoles jueves
viernes depois sempre alguns prima dopo tutti alcuni voor altijd до после всегда все некоторые только
""")
_UNSPACED_NEGATIONS = re.compile("[不没沒無无别別勿未非안않없못]|ない|なかっ|ません|禁止|말")
_UNSPACED_TURNS = re.compile(
    "[前后後上下左右东西南北東全部所有只必可以先每毎秒分时時天周週月年日一二三四五六七八九十百千万]|测试|生产"
)

# --- scanning --------------------------------------------------------------------------------------

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
LETTER = f"[^\\W{_UNSPACED}]"
_TOKEN = re.compile(
    f"[{_UNSPACED}]"
    f"|(?:(?<!\\S)(?:--?|[+~@#$]|[~.]{{0,2}}/|\\.))?{LETTER}+"
    f"(?:(?:[-._/:@'+#=\\\\]+|(?<=\\d),(?=\\d)){LETTER}+)*[%+#]*"
    "|\\S"
)
_QUANTITY = re.compile(r"([-+~]?\d+(?:[.,:]\d+)*)-?([^\W\d_][\w/]*|%)?")
_START = re.compile("(?:[\"'` ¡]|[-*•] (?!\\d))+")
_ENDS = "\"'` .!,;"
_FOLDS = str.maketrans(
    dict.fromkeys("“”„‟«»「」『』〝〞‹›", '"')
    | dict.fromkeys("‘’‚‛´", "'")
    | dict.fromkeys("‐‑‒–−﹣－", "-")
    | dict.fromkeys("—―", " - ")
    | dict.fromkeys("\u200b\u2060\ufeff\u00ad", "")
    | {"。": ". ", "№": "#"}  # NFKC would make a "No" of the numero sign
    | {sign: f"^{digit}" for sign, digit in zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True)}  # 10² is not 102
    | {sign: f"_{digit}" for sign, digit in zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)}
)
_STOPS = frozenset(".;")
_QUOTES = frozenset("\"'`")
_BULLETS = frozenset("-*•")
_PRIME = re.compile(r"\d(['\"])(?!\w)")
_OPENERS = frozenset(".!?;:")


@dataclass(frozen=True, slots=True)
class Marks:
    """What turns a sentence into another one when it changes; sequences keep the order of the text.

    Numbers with their units, identifiers, negations, turns (before/after, all/some, staging/production
    …), units standing alone, tokens whose case carries meaning (`-a`/`-A`, `100m`/`100M`, `us`/`US`),
    names and words with folded case. A name is compared with the other text's words, as its capital may
    be missing there.
    """

    numbers: tuple[str, ...]
    identifiers: tuple[str, ...]
    negations: tuple[str, ...]
    turns: tuple[str, ...]
    units: tuple[str, ...]
    cased: tuple[str, ...]
    names: frozenset[str]
    words: frozenset[str]

    def differences(self, other: "Marks") -> tuple[str, ...]:
        """Names of the fields that differ, in their order; empty if nothing speaks against sameness."""
        exact = (field.name for field in fields(self) if field.name not in ("names", "words"))
        found = [name for name in exact if getattr(self, name) != getattr(other, name)]
        if not (self.names <= other.words and other.names <= self.words):
            found.append("names")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One text as compared: normalised, in canonical tokens, with marks."""

    normal: str
    tokens: tuple[str, ...]
    marks: Marks


def thresholds_for(embedder_id: str | None) -> Thresholds:
    """Measured thresholds of an embedder, or the cautious ones."""
    return THRESHOLDS.get(embedder_id or "", CAUTIOUS)


@lru_cache(2048)
def normalise(text: str) -> str:
    """Text without the differences nobody means: width, case, quotes, dashes, spaces, bullets, closing stop.

    Idempotent. Question marks, accents and inner punctuation stay.
    """
    before = None
    while text != before:  # two or three rounds: casefolding may leave NFKC, and stripping may bare a space
        before = text
        text = " ".join(_fold(text).casefold().split())
        text = _START.sub("", text, count=1) if _START.match(text) else text
        text = text.rstrip(_ENDS)
    return text


def marks(text: str) -> Marks:
    """The marks of one text; any string is accepted."""
    return _read(text).marks


def compare(a: str, b: str, cosine: float | None, threshold: float, nominate: float = CAUTIOUS.nominate) -> Sameness:
    """How `a` relates to `b`; symmetric. `cosine` is None while there are no vectors.

    SAME: equal after normalisation; or cosine ≥ `threshold`, equal marks and equal canonical words in order.
    NEAR: cosine ≥ `nominate`, or a share of `OVERLAP` of the words in common. Take both thresholds of
    one embedder from `thresholds_for`.
    """
    if a == b:
        return Sameness.SAME
    left, right = _read(a), _read(b)
    if _merges(left, right, cosine, threshold):
        return Sameness.SAME
    if left.normal == right.normal or (cosine is not None and cosine >= nominate):
        return Sameness.NEAR
    return Sameness.NEAR if _overlap(left.marks.words, right.marks.words) >= OVERLAP else Sameness.DIFFERENT


def _merges(left: _Reading, right: _Reading, cosine: float | None, threshold: float) -> bool:
    if left.marks.cased != right.marks.cased:
        return False
    if left.normal == right.normal:
        return True
    if cosine is None or not cosine >= threshold:  # written so that NaN never merges
        return False
    return bool(left.tokens) and left.tokens == right.tokens and not left.marks.differences(right.marks)


def _overlap(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right) if left and right else 0.0


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text.translate(_FOLDS))
    return folded.translate(_FOLDS)  # again, as NFKC turns small and wide forms into foldable ones


def _read(text: str) -> _Reading:
    folded = _fold(text)
    raw = [token for token in _TOKEN.findall(folded) if token not in _QUOTES]
    if raw and raw[0] in _BULLETS:
        del raw[0]
    tokens = tuple(_without_lead_in(_stops(_canonical(raw))))
    primes = [sign for sign in _PRIME.findall(folded) if folded.count(sign) % 2]  # 5" and 5', not "5"
    return _Reading(normalise(text), tokens, _marks(raw, tokens, primes))


def _canonical(raw: list[str]) -> Iterator[str]:
    """Tokens in one spelling: contractions opened, quantities joined with their unit, case folded."""
    at = 0
    while at < len(raw):
        token, after = raw[at], raw[at + 1] if at + 1 < len(raw) else ""
        quantity = _quantity(token, after)
        if quantity:
            yield quantity[0]
            at += quantity[1]
            continue
        word = token.casefold()
        if word != "the" or after.casefold() in _THE_MATTERS_BEFORE or not after[:1].isalnum():
            yield from _opened(word)
        at += 1


def _quantity(token: str, after: str) -> tuple[str, int] | None:
    """A number with its unit in one spelling, and how many tokens it took; None for other words."""
    word = token.casefold()
    number = _NUMBER_WORDS.get(word, "1" if word == "one" and _unit(after) else token)
    match = _QUANTITY.fullmatch(number)
    if not match:
        return None
    amount, suffix = match[1], match[2] or ""
    if suffix:
        unit = _unit(suffix)
        return (amount + unit, 1) if unit else None
    unit = _unit(after)
    return (amount + unit, 2) if unit else (amount, 1)


def _unit(word: str) -> str:
    """One spelling of a unit; its case is kept where it carries meaning (Mb, MB, m, M)."""
    low = word.casefold()
    if low in _CASED_UNITS:
        return word
    return _UNITS.get(word, "") if len(word) == 1 else _UNITS.get(low, "")


def _opened(word: str) -> Iterator[str]:
    if word in _CONTRACTIONS:
        yield from _CONTRACTIONS[word].split()
        return
    for ending, opened in (("n't", "not"), ("'ll", "will"), ("'re", "are"), ("'ve", "have")):
        if word.endswith(ending) and len(word) > len(ending):
            yield word.removesuffix(ending)
            yield opened
            return
    yield _ABBREVIATIONS.get(word, word)


def _stops(tokens: Iterator[str]) -> list[str]:
    """Sentence ends in one form, none doubled, none at the end."""
    found: list[str] = []
    for token in tokens:
        stop = token in _STOPS
        if stop and (not found or found[-1] == "."):
            continue
        found.append("." if stop else token)
    while found and found[-1] in _ENDS:
        found.pop()
    return found


def _without_lead_in(tokens: list[str]) -> list[str]:
    for lead_in in _LEAD_INS:
        if tuple(tokens[: len(lead_in)]) == lead_in and len(tokens) > len(lead_in) + 1:
            return tokens[len(lead_in) :]
    return tokens


def _marks(raw: list[str], tokens: tuple[str, ...], primes: list[str]) -> Marks:
    run = "".join(token if token.isalnum() and not token.isascii() else " " for token in raw)
    return Marks(
        numbers=tuple(token for token in tokens if token[:1].isdigit() or token[1:2].isdigit()),
        identifiers=tuple(token.casefold() for token in raw if _is_identifier(token)),
        negations=tuple(token for token in tokens if token in _NEGATIONS) + tuple(_UNSPACED_NEGATIONS.findall(run)),
        turns=tuple(token for token in tokens if token in _TURNS) + tuple(_UNSPACED_TURNS.findall(run)),
        units=tuple(_UNITS[token] for token in tokens if len(token) > 1 and token in _UNITS),
        cased=(*_cased(raw), *primes),
        names=frozenset(_names(raw)),
        words=frozenset(token for token in tokens if token[-1].isalnum()),
    )


def _is_spelling(token: str) -> bool:
    """Whether a token has other spellings, so that its looks tell nothing."""
    low = token.casefold()
    return low in _LEADING or low in _ABBREVIATIONS or low in _SPELLED_OUT or bool(_unit(token))


def _is_identifier(token: str) -> bool:
    """Words of machines: with a digit or an inner sign beside letters, in camel case, flags and paths."""
    if not any(letter.isalpha() for letter in token) or token[:1].isdigit() or _is_spelling(token):
        return False
    signs = any(sign in token for sign in "-._/:@=\\")
    camel = any(x.islower() and y.isupper() for x, y in pairwise(token))
    return signs or camel or any(letter.isdigit() for letter in token)


def _cased(raw: list[str]) -> Iterator[str]:
    """Tokens whose case is part of their meaning."""
    shouted = not any(letter.islower() for token in raw for letter in token)
    for before, token in zip(["", *raw], raw, strict=False):
        match = _QUANTITY.fullmatch(token)
        unit = _unit(match[2] or "") if match else _unit(token) if before[-1:].isdigit() else ""
        flag = token.startswith("-") and token[1:2].isalpha() and len(token) <= 3
        path = "/" in token[:3] and len(token) > 1 and not token[0].isalnum()
        if flag or path or (token in _CASED_WORDS and not shouted):
            yield token
        elif unit.casefold() in _CASED_UNITS:
            yield unit


def _names(raw: list[str]) -> Iterator[str]:
    """Capitalised words that do not open a sentence, and words in capitals, with folded case."""
    opens = True
    for token in raw:
        capitals = len(token) > 1 and token.isupper()
        if (capitals or (token[:1].isupper() and not opens)) and token.isalpha() and not _is_spelling(token):
            yield token.casefold()
        opens = token in _OPENERS
