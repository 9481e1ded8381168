"""Law: a correction is a lesson; only a user's is confirmed, and none is ever deleted."""

import json
from typing import Any

import pytest

from tests.cli.terminal import at_terminal
from tests.conftest import Run

RULE = "Ask before draining a node."


@pytest.fixture(autouse=True)
def words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFTERWATCH_MEMORY_EMBEDDER", "none")


def learn(afterwatch: Run, *args: str, status: int = 0) -> dict[str, Any]:
    code, out, err = afterwatch("learn", *args, "--json")
    assert (code, err) == (status, ""), out
    found: dict[str, Any] = json.loads(out)
    return found


def test_an_agents_lesson_is_a_suggestion_until_the_user_confirms_it(afterwatch: Run) -> None:
    found = learn(afterwatch, "add", RULE, "--not", "Drain at once.", "--category", "tool")
    assert found["confirmed"] is False
    out = afterwatch("learn", "add", "Send the number before the story.").stdout
    assert "suggestion" in out
    listed = learn(afterwatch, "list")
    assert (listed["confirmed"]["of"], listed["suggested"]["of"]) == (0, 2)
    assert at_terminal("memory", "confirm", found["id"]).code == 0
    listed = learn(afterwatch, "list")
    assert [one["id"] for one in listed["confirmed"]["shown"]] == [found["id"]]
    assert listed["confirmed"]["shown"][0]["negative"] == "Drain at once."
    assert listed["suggested"]["of"] == 1


def test_the_users_own_lesson_is_confirmed_at_once(afterwatch: Run) -> None:
    assert at_terminal("learn", "add", RULE).code == 0
    assert learn(afterwatch, "list")["confirmed"]["of"] == 1


def test_a_list_says_how_many_it_left_out(afterwatch: Run) -> None:
    for number in range(3):
        learn(afterwatch, "add", f"Rule {number}: look at graph {number} first.")
    lines = afterwatch("learn", "list", "--limit", "2").stdout.splitlines()
    assert lines[0] == "confirmed: shown 0 of 0"
    assert lines[2].startswith("suggested")
    assert lines[2].endswith("shown 2 of 3")
    assert "    > Rule 2: look at graph 2 first." in lines


def test_a_withdrawn_lesson_is_cooled_and_can_be_warmed(afterwatch: Run) -> None:
    item = learn(afterwatch, "add", RULE)["id"]
    out = afterwatch("learn", "remove", item).stdout
    assert "afterwatch memory warm" in out
    listed = learn(afterwatch, "list")
    assert (listed["suggested"]["of"], listed["cooled"]) == (0, 1)
    assert learn(afterwatch, "list", "--all")["suggested"]["of"] == 1
    assert afterwatch("memory", "warm", item).code == 0
    assert learn(afterwatch, "list")["suggested"]["of"] == 1


def test_only_lessons_are_withdrawn_here_and_the_users_by_the_user(afterwatch: Run) -> None:
    fact = json.loads(afterwatch("memory", "add", "Node 9 has the old network card.", "--json").stdout)["id"]
    assert learn(afterwatch, "remove", fact, status=2)["error"]["remedy"]
    mine = at_terminal("learn", "add", RULE).screen.split()[2]
    assert learn(afterwatch, "remove", mine, status=3)["error"]["code"] == "user_holds"
    assert learn(afterwatch, "list")["confirmed"]["of"] == 1


def test_a_refused_lesson_has_status_3(afterwatch: Run) -> None:
    assert learn(afterwatch, "add", "short", status=3)["error"]["code"] == "text_length"
    assert afterwatch("learn", "add", RULE, "--category", "weather").code == 2
