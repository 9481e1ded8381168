"""The gate in front of a prompt: of the candidates a search found, those that a question is really about.

Standard library only, and pure. There are three ways in:

* *named*: a name of the item (alias, or last words of its subject) stands in the question, whole and close together;
* *words*: the terms it shares with the question hold a large enough share of the question's rare-term weight;
* *meaning*: its vector is near enough to the question's.

A rare-term weight falls with the number of live items that hold the term; words that every second question holds
(`configure`, `pattern`) weigh less still. In a long question only the heaviest terms are the measure, since nobody's
item covers a page. When a question names items, its words for them say nothing for other items that have names of
their own and merely mention them: those must come in on what is left. Whatever comes in by words or meaning must
also keep up with the best of its kind.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from afterwatch.memory.keywords import Term
from afterwatch.memory.stopwords import STOP_WORDS
from afterwatch.memory.words import TOKENIZER_VERSION, columns, fold

Stem = Callable[[Sequence[str]], list[str]]
"""Stems of tokens, same order and length: `Spaces.stem`."""

GENERIC_WORDS = tuple(
    """
    add adjust agree allow answer apply approach ask avoid begin bring build call care change check choose come compare
    complete configure consider continue create decide define depend describe design develop discuss enable ensure
    expect explain feel figure find fix follow forget give handle happen hear help hold imagine implement improve
    include install keep learn leave list live look maintain make manage matter mean meet mention move need offer open
    organize pick plan prefer prepare prevent provide put read recommend remember remove remind respond review run save
    say see seem select send set setup share show solve sort speak start stay stop structure suggest summarize support
    switch take talk think track try understand update use view wait walk want watch wonder work worry write
    area aspect basis bit case choice concern config configuration context day decision detail difference effort end
    example fact group guide hour idea info information issue item job kind level line minute month name note number one
    option order overview part past pattern people person place point practice preference problem process project
    purpose question reason result rule setting side situation solution step story strategy stuff style subject
    suggestion task team thing time tip today tomorrow tool topic type user value version week word year yesterday
    able actual available bad best big clear common correct current different early easy enough exact fine full general
    good great hard high important large last late little long low main many multiple new next nice old only overall
    possible previous quick ready real recent related right several short similar simple single small specific sure
    two three true usual whole wrong
    actually almost already always anymore basically currently else especially exactly finally generally honestly
    instead maybe mostly never normally often okay perhaps probably quickly quite rather recently simply sometimes soon
    still together usually well
    """.split()
)
"""Words that questions of every kind are full of; they tell little about what a question is about."""
LONG_TERMS = 8
"""Terms of a question against which a share is measured: the heaviest ones."""
SPREAD = 2
"""Other words that may stand among the words of a name in a question (stop words are not counted)."""
FEW_ROWS = 10
COMMON_SHARE = 0.1
"""A name is told by a word in at most this share of the live items, or in `FEW_ROWS`."""
NEAR_WEIGHT = 0.7
"""What a guessed spelling is worth of the word itself. This and the five above are set by hand, not fitted."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What one embedder and tokenizer need; every figure is fitted by `python -m afterwatch.bench.fit_gate`.

    `cosine` admits by itself (None: there are no vectors); `share` of the question's weight admits by words;
    `generic` is what words that are common in questions weigh; `keep_up` is the part of the best that others must
    reach, where reaching a limit exactly is 1.
    """

    cosine: float | None
    share: float
    generic: float
    keep_up: float


NO_VECTORS = "none"
GATES: Mapping[tuple[str, int], Gate] = {
    ("use-multilingual-3", 1): Gate(0.45, 0.3, 0.6, 0.5),
    (NO_VECTORS, 1): Gate(None, 0.3, 0.6, 0.7),
}
"""By embedder id and tokenizer version."""
CAUTIOUS = Gate(0.7, 0.4, 0.3, 0.8)
"""For an embedder or tokenizer that was never measured; set by hand."""


def gate_for(embedder: str | None, tokenizer: int = TOKENIZER_VERSION) -> Gate:
    """The gate of an embedder's id; None is the one without vectors."""
    return GATES.get((embedder or NO_VECTORS, tokenizer), CAUTIOUS)


@dataclass(frozen=True, slots=True)
class Sought:
    """A term of the question: its stem, the live items that hold it, and stems it may be a misspelling of."""

    stem: str
    rows: int
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question ready for the gate; `order` are its stems in order without stop words, `rows` all live items."""

    terms: tuple[Sought, ...]
    order: tuple[str, ...]
    folded: str
    rows: int
    generic: frozenset[str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for one item: its names, the stems its text holds, its cosine with the question if there is one."""

    names: tuple["Name", ...]
    stems: frozenset[str]
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, its stems without stop words, and its folded text if it is in a script without spaces."""

    text: str
    stems: tuple[str, ...]
    run: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an item may enter, by which way, how strongly (1: just enough; by name: 1), and why in a few words."""

    admitted: bool
    way: str
    strength: float
    why: str


# -- getting ready -------------------------------------------------------------------------------------------------


def ask(
    text: str, terms: Iterable[Term], rows: int, stem: Stem, near: Mapping[str, Sequence[str]] | None = None
) -> Question:
    """A question ready for the gate.

    Args:
        text: as it was asked.
        terms: all its terms with the live items that hold each (`keywords.weigh`).
        rows: live items in all (`keywords.live_rows`).
        stem: the stemmer of the index.
        near: by stem, the words it may be a misspelling of (`spelling.corrections`).
    """
    guesses = {one: tuple(stem(list(words))) for one, words in (near or {}).items()}
    sought = {term.stem: Sought(term.stem, term.rows, guesses.get(term.stem, ())) for term in terms}
    said = [word for word in columns(text).words.split() if word not in STOP_WORDS]
    return Question(tuple(sought.values()), tuple(stem(said)), fold(text), rows, frozenset(stem(GENERIC_WORDS)))


def about(
    subject: str | None, aliases: Sequence[str], held: Collection[str], stem: Stem, cosine: float | None = None
) -> Evidence:
    """The evidence of an item.

    Args:
        subject: its key; the last part is a name of it.
        aliases: its other names.
        held: the question's stems that the item holds anywhere (more do no harm: `stems_of` its text).
        stem: the stemmer of the index.
        cosine: with the question, if both have a vector.
    """
    spoken = (subject.rpartition(".")[2].replace("_", " "),) if subject else ()
    names = (_name(one, stem) for one in dict.fromkeys((*spoken, *aliases)))
    return Evidence(tuple(name for name in names if name.stems or name.run), frozenset(held), cosine)


def stems_of(text: str, stem: Stem) -> frozenset[str]:
    """Every stem that a text has in the index."""
    split = columns(text)
    return frozenset(stem(f"{split.words} {split.grams} {split.identifiers}".split()))


def _name(text: str, stem: Stem) -> Name:
    words, run = _words_of(text)
    return Name(text, tuple(stem(words)), run)


@lru_cache(maxsize=8192)
def _words_of(name: str) -> tuple[tuple[str, ...], str]:
    split = columns(name)
    words = tuple(split.words.split())
    return tuple(word for word in words if word not in STOP_WORDS) or words, fold(name).strip() if split.grams else ""


# -- judging -------------------------------------------------------------------------------------------------------


def admit(question: Question, evidence: Sequence[Evidence], gate: Gate) -> list[Verdict]:
    """A verdict for each candidate, in the order given."""
    judge = _Judge(question, gate)
    named = [judge.named(one) for one in evidence]
    claimed = frozenset(stem for name in named if name is not None for stem in judge.said(name))
    verdicts = [
        Verdict(True, "named", 1.0, f"the question says {name.text!r}")
        if name is not None
        else judge.weighed(one, claimed)
        for name, one in zip(named, evidence, strict=True)
    ]
    best = max((one.strength for one in verdicts if one.admitted and one.way != "named"), default=0.0)
    return [_kept_up(one, best * gate.keep_up) for one in verdicts]


def _kept_up(verdict: Verdict, least: float) -> Verdict:
    if not verdict.admitted or verdict.way == "named" or verdict.strength >= least:
        return verdict
    return Verdict(False, verdict.way, verdict.strength, f"{verdict.why}, far behind the best")


class _Judge:
    """Weighs candidates for one question."""

    def __init__(self, question: Question, gate: Gate) -> None:
        self._question = question
        self._gate = gate
        self._weights = {term.stem: self._weight(term) for term in question.terms}
        self._total = math.fsum(sorted(self._weights.values(), reverse=True)[:LONG_TERMS]) or 1.0
        self._rows = {term.stem: term.rows for term in question.terms}
        self._meant = {stem: frozenset((stem,)) for stem in question.order}
        self._meant |= {term.stem: frozenset((term.stem, *term.near)) for term in question.terms}
        self._all = self._meanings(self._meant)
        self._most = max(FEW_ROWS, COMMON_SHARE * question.rows)

    def _weight(self, term: Sought) -> float:
        rarity = math.log(1 + (self._question.rows + 1) / (max(term.rows, 1) + 0.5))
        weight = rarity * (self._gate.generic if term.stem in self._question.generic else 1.0)
        return weight * (NEAR_WEIGHT if term.near else 1.0)

    # -- by name --

    def named(self, evidence: Evidence) -> Name | None:
        """The longest name of an item that the question says and that tells it from others."""
        found = [name for name in evidence.names if self._stands(name) and self._tells(name)]
        return max(found, key=lambda name: len(name.stems), default=None)

    def said(self, name: Name) -> Iterable[str]:
        """The stems of the question that stand for a name."""
        wanted = frozenset(name.stems)
        return (stem for stem, meant in self._meant.items() if meant & wanted)

    def _tells(self, name: Name) -> bool:
        """Whether a name has a word that few items hold; in a script without spaces, more than one character."""
        if name.run:
            return len(name.run) > 1
        telling = (stem for stem in name.stems if len(stem) > 1 and stem not in self._question.generic)
        return any(self._rows.get(stem, 0) <= self._most for stem in telling)

    def _stands(self, name: Name) -> bool:
        """Whether the question holds a whole name, its words close together in any order."""
        if name.run:
            return name.run in self._question.folded
        wanted = frozenset(name.stems)
        if not wanted <= self._all:
            return False
        order, width = self._question.order, len(wanted) + SPREAD
        windows = (order[start : start + width] for start in range(max(1, len(order) - width + 1)))
        return len(wanted) == 1 or any(wanted <= self._meanings(window) for window in windows)

    def _meanings(self, stems: Iterable[str]) -> frozenset[str]:
        return frozenset(meaning for stem in stems for meaning in self._meant[stem])

    # -- by words and meaning --

    def weighed(self, evidence: Evidence, claimed: frozenset[str]) -> Verdict:
        """The verdict on an item that the question does not name."""
        held = self._shared(evidence, claimed if evidence.names else frozenset())
        share = min(1.0, math.fsum(self._weights[stem] for stem in held) / self._total)
        telling = sum(stem not in self._question.generic for stem in held)
        enough = telling >= (2 if evidence.names else min(2, len(self._question.terms)))
        why = f"{share:.0%} of the question's weight"
        by_words = Verdict(enough and share >= self._gate.share, "words", share / self._gate.share, why)
        if evidence.cosine is None or self._gate.cosine is None or (evidence.names and claimed):
            return by_words
        near, limit = evidence.cosine, self._gate.cosine
        by_meaning = Verdict(near >= limit, "meaning", near / limit, f"cosine {near:.2f}, {why}")
        return max(by_words, by_meaning, key=lambda one: (one.admitted, one.strength))

    def _shared(self, evidence: Evidence, taken: frozenset[str]) -> list[str]:
        """The question's stems that an item shares, in its text or in part of a name."""
        in_names = frozenset(stem for name in evidence.names for stem in name.stems)
        free = (term.stem for term in self._question.terms if term.stem not in taken)
        return [stem for stem in free if stem in evidence.stems or in_names & self._meant[stem]]
