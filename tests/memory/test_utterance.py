"""What kind of utterance a text is, and what a question asks for."""

import pytest

from afterwatch.memory.utterance import asks, named, says, speaker, wanted


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ann: the queue is full", "ann"),
        ("José Ortiz: hola", "jose ortiz"),
        ("no speaker here", ""),
        ("https://host/x: a link", ""),
        ("7: no name begins with a digit", ""),
        ("Ann:no space behind the colon", ""),
        ("x" * 60 + ": too long for a name", ""),
    ],
)
def test_the_speaker_stands_before_the_first_colon(text: str, name: str) -> None:
    assert speaker(text) == name


def test_a_speaker_is_named_by_the_whole_name_only() -> None:
    assert named("What did Ann Lee tell Ben?", ["ann lee", "ben", "ann ray", ""]) == ["ann lee", "ben"]
    assert named("What about Anna?", ["ann"]) == []
    assert says("then Ann Lee came", "ann lee")
    assert not says("then Ann came", "ann lee")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Did it restart?", True),
        ("It restarted.", False),
        ("你好吗？", True),
        ("Look at this? [image: a graph]", True),
        ("why? " + "because " * 10, False),
    ],
)
def test_a_question_ends_like_one(text: str, question: bool) -> None:
    assert asks(text) is question


@pytest.mark.parametrize(
    ("question", "gives", "lacks"),
    [
        ("When did it fail?", "it failed last night", "it failed badly"),
        ("How long was it down?", "for two hours", "it was down"),
        ("Who wrote it?", "it was Ben who wrote it", "It was written quickly"),
        ("Which service restarts?", "it is payments/api", "it restarts again"),
        ("What is the name of the host?", "that one is db-7", "that one is slow"),
        ("Where is the page?", 'look for "on call"', "look for it"),
    ],
)
def test_an_answer_is_of_the_kind_that_is_asked_for(question: str, gives: str, lacks: str) -> None:
    kinds = wanted(question)
    assert any(kind(gives) for kind in kinds)
    assert not any(kind(lacks) for kind in kinds)


def test_other_questions_want_no_kind() -> None:
    assert wanted("Is the queue full?") == []
