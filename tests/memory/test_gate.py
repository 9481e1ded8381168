"""Law: into a prompt comes what the question names, or is about; a word in passing is not enough."""

from collections.abc import Mapping, Sequence

import pytest

from afterwatch.memory.gate import CAUTIOUS, Gate, Verdict, about, admit, ask, gate_for, stems_of
from afterwatch.memory.index import Stemmer
from afterwatch.memory.keywords import Term
from afterwatch.memory.words import columns

ITEMS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "billing": (("billing service", "invoicer"), "Invoices are sent by the billing service each Monday."),
    "queue": (("rabbit", "message queue"), "RabbitMQ carries the events between the services."),
    "billing queue": (("billing backlog",), "The billing service reads its backlog from Rabbit."),
    "colour": (("house colours",), "Slides use dark green on white."),
}
STEM = Stemmer()
WORDS = gate_for(None)


def seen(
    question: str,
    items: Mapping[str, tuple[tuple[str, ...], str]] = ITEMS,
    *,
    gate: Gate = WORDS,
    cosines: Mapping[str, float] | None = None,
    near: Mapping[str, Sequence[str]] | None = None,
    rows: int = 30,
) -> dict[str, Verdict]:
    """The verdict on each item."""
    everything = {
        name: about(None, aliases, stems_of(text, STEM), STEM, (cosines or {}).get(name))
        for name, (aliases, text) in items.items()
    }
    stems = STEM(columns(question).words.split())
    held = [one.stems.union(*(name.stems for name in one.names)) for one in everything.values()]
    terms = [Term(one, one, sum(one in stems for stems in held)) for one in dict.fromkeys(stems)]
    asked = ask(question, terms, rows, STEM, near)
    return dict(zip(everything, admit(asked, list(everything.values()), gate), strict=True))


def admitted(question: str, items: Mapping[str, tuple[tuple[str, ...], str]] = ITEMS, **more: object) -> list[str]:
    return [name for name, verdict in seen(question, items, **more).items() if verdict.admitted]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("who looks after the billing service?", ["billing"]),
        ("INVOICER?", ["billing"]),
        ("the message that a queue lost", ["queue"]),
        ("how do I configure it?", []),
        ("", []),
        ("which colours has the house?", ["colour"]),
    ],
)
def test_a_whole_name_close_together_admits(question: str, wanted: list[str]) -> None:
    assert admitted(question) == wanted


def test_words_of_a_name_far_apart_are_no_name() -> None:
    question = "a message came from Anna about lunch on Friday at noon near Berlin and somebody stood in a queue"
    assert admitted(question) == []


def test_a_name_in_a_long_question_admits() -> None:
    rambling = "so I was wondering, since the team had a debate about deadlines and holidays last autumn, whether "
    assert admitted(rambling * 4 + "the invoicer may be moved") == ["billing"]


def test_a_word_that_names_one_item_does_not_admit_another_that_mentions_it() -> None:
    verdicts = seen("what is rabbit for?")
    assert verdicts["queue"].way == "named"
    assert not verdicts["billing queue"].admitted


def test_without_names_the_text_is_evidence() -> None:
    bare = {name: ((), text) for name, (_, text) in ITEMS.items()}
    assert admitted("does the billing backlog sit in rabbit?", bare) == ["billing queue"]
    assert admitted("does the weather in Lisbon change the billing?", bare) == []


def test_a_common_word_alone_is_no_name() -> None:
    items = {"a": (("setup",), "It was set up in May."), "b": (("question",), "Ask Jo.")}
    assert admitted("a question about the setup of nginx", items) == []


def test_a_name_that_many_items_hold_tells_nothing() -> None:
    items = {str(n): (("shop",), f"Fact {n} of the shop.") for n in range(40)}
    assert admitted("where is the shop?", items, rows=40) == []


def test_a_guessed_spelling_counts_for_names_only() -> None:
    near = {STEM(["invoicr"])[0]: ["invoicer"]}
    assert admitted("invoicr down", near=near) == ["billing"]
    bare = {name: ((), text) for name, (_, text) in ITEMS.items()}
    assert admitted("invoicr down", bare, near=near) == []


def test_a_script_without_spaces_is_matched_as_it_is_written() -> None:
    items = {"猫": (("三毛猫",), "名前はタマ。"), "犬": (("柴犬",), "散歩は朝。")}
    assert admitted("三毛猫の名前は?", items) == ["猫"]


def test_meaning_admits_at_the_threshold_and_falls_behind_the_best() -> None:
    gate = Gate(0.5, 0.3, 0.6, 0.8)
    cosines = {"billing": 0.45, "queue": 0.6, "billing queue": 0.9, "colour": 0.73}
    verdicts = seen("quelque chose de semblable", gate=gate, cosines=cosines)
    assert [name for name, one in verdicts.items() if one.admitted] == ["billing queue", "colour"]
    assert "cosine 0.60" in verdicts["queue"].why
    assert "far behind" in verdicts["queue"].why


def test_where_something_is_named_meaning_does_not_bring_other_named_items() -> None:
    gate = Gate(0.5, 0.3, 0.6, 0.5)
    assert admitted("invoicer", gate=gate, cosines=dict.fromkeys(ITEMS, 0.9)) == ["billing"]


def test_a_subject_names_its_item() -> None:
    one = about("pref.code_editor", (), (), STEM)
    assert [name.stems for name in one.names] == [tuple(STEM(["code", "editor"]))]


def test_an_unknown_embedder_gets_the_cautious_gate() -> None:
    assert gate_for("somebody/else") == CAUTIOUS
    assert gate_for(None, tokenizer=99) == CAUTIOUS
    assert CAUTIOUS.cosine is not None
    assert gate_for("use-multilingual-3").cosine is not None
    assert CAUTIOUS.cosine > (gate_for("use-multilingual-3").cosine or 0)
