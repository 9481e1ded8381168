"""Law: the demo needs nothing, touches nothing of the user's, fits a page, and its answers stand in what it quotes."""

import re

import pytest

from afterwatch.cli.demo import FACT, RULE, questions, turns
from afterwatch.settings.paths import home
from tests.cli.terminal import at_terminal
from tests.conftest import Run


def answers() -> list[str]:
    """For each question the words that answer it: of the turn named in the script, the fact, or the lesson."""
    from afterwatch.cli.demo import _data

    said = {draft.source: draft.text.partition(": ")[2] for draft in turns(_data("demo_conversation"))}
    found = {question.text: said[f"{question.conversation}:{question.turn}"] for question in questions()}
    return [
        {"When do we deploy routing now?": FACT[1][1]}.get(text, RULE if "told" in text else answer)
        for text, answer in found.items()
    ]


@pytest.mark.parametrize("embedder", ["bundled", "none"])
def test_one_page_that_answers_and_cites(afterwatch: Run, embedder: str) -> None:
    code, out, err = afterwatch("demo", env={"AFTERWATCH_MEMORY_EMBEDDER": embedder})
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert "scripted person" in lines[0]
    flat = re.sub(r"\s+", " ", out)
    parts = re.split(r" \? ", flat)
    assert len(parts) == 7
    for part, answer in zip(parts[1:], answers(), strict=True):
        assert answer in part
        assert re.search(r"— \w[\w ]+, 2026-\d\d-\d\d \[mem-2026-10-07-\d{3}\]", part)
    assert ("degraded: vectors: none" in out) is (embedder == "none")


def test_it_shows_a_history_and_what_an_agent_may_not_do(afterwatch: Run) -> None:
    out = afterwatch("demo", env={"AFTERWATCH_MEMORY_EMBEDDER": "none"}).stdout
    assert "superseded by mem-" in out
    assert re.search(r'"Fridays at 23:00" +refused \(user_holds\)', out)
    assert out.splitlines()[-1].startswith("  afterwatch memory ")


def test_it_touches_nothing_and_is_plain_on_a_terminal_too(afterwatch: Run) -> None:
    shown = at_terminal("demo", env={"AFTERWATCH_MEMORY_EMBEDDER": "none"})
    assert shown.code == 0
    assert "\x1b" not in shown.screen
    assert shown.screen == afterwatch("demo", env={"AFTERWATCH_MEMORY_EMBEDDER": "none"}).stdout
    assert not home().exists()
