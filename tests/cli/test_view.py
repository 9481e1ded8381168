"""Law: who speaks is decided by the channel: a person's own terminal, or else an agent, and nothing in the text."""

import json
from pathlib import Path
from typing import Any

import pytest

from afterwatch.cli.view import MARKERS, agent_marker, user_name
from tests.cli.terminal import NO_AGENT, added, at_terminal, document
from tests.conftest import Run

FACT = "The payments queue is drained by hand on Fridays."


@pytest.fixture(autouse=True)
def words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFTERWATCH_MEMORY_EMBEDDER", "none")


def origin(afterwatch: Run, item: str) -> tuple[str, str]:
    found = document(afterwatch, "show", item)["item"]
    return found["origin"], found["author"]


def test_a_terminal_speaks_for_the_user_and_anything_else_for_an_agent(afterwatch: Run) -> None:
    mine = at_terminal("memory", "add", FACT)
    assert mine.code == 0, mine.screen
    item = mine.screen.split()[2]
    assert origin(afterwatch, item) == ("user_explicit", user_name())
    theirs = added(afterwatch, "Node 9 has the old network card.")
    assert origin(afterwatch, theirs)[0] == "agent"
    marked = at_terminal("memory", "add", "Node 10 has the new network card.", env={"CLAUDECODE": "1"})
    assert origin(afterwatch, marked.screen.split()[2])[0] == "agent"


def test_the_principal_is_the_systems_user_whatever_the_environment_says(afterwatch: Run) -> None:
    env = {"USER": "someone", "LOGNAME": "someone", "USERNAME": "someone"}
    item = json.loads(afterwatch("memory", "add", FACT, "--json", env=env).stdout)["id"]
    assert origin(afterwatch, item)[1] == user_name() != "someone"


def test_what_the_user_said_an_agent_cannot_change_and_is_told_why(afterwatch: Run) -> None:
    assert at_terminal("memory", "add", "--key", "pref.editor", "vim").code == 0
    error = document(afterwatch, "add", "--key", "pref.editor", "emacs", status=3)["error"]
    assert error["code"] == "user_holds"
    assert "no terminal" in error["remedy"]
    shown = at_terminal("memory", "add", "--key", "pref.editor", "emacs", env={"CURSOR_AGENT": "1"})
    assert shown.code == 3
    assert "CURSOR_AGENT" in shown.screen
    assert at_terminal("memory", "add", "--key", "pref.editor", "nano").code == 0
    history = document(afterwatch, "show", "pref.editor")["history"]
    assert [one["value"] for one in history] == ["vim", "nano"]
    assert history[0]["superseded_by"] == history[1]["id"]


def test_only_a_person_confirms_and_keeps(afterwatch: Run) -> None:
    item = added(afterwatch, FACT)
    assert document(afterwatch, "confirm", item, status=3)["error"]["code"] == "needs_user"
    assert origin(afterwatch, item)[0] == "agent"
    assert at_terminal("memory", "confirm", item).screen == f"{item}: confirmed\n"
    assert origin(afterwatch, item)[0] == "user_explicit"
    assert document(afterwatch, "cool", item, status=3)["error"]["code"] == "user_holds"
    codes = [event["code"] for event in document(afterwatch, "audit", "--item", item)["events"]]
    assert codes == ["cool-request", "confirm", "confirm-request", "add"]


def test_the_command_that_undoes_a_mark_is_the_one_that_was_printed(afterwatch: Run) -> None:
    added(afterwatch, "--key", "pref.editor", "vim", "--space", "team:ops")
    quote = added(afterwatch, "For logs the editor is vim as well.", "--space", "team:ops")
    undo = document(afterwatch, "add", "--key", "pref.editor", "nano", "--space", "team:ops")["undo"]
    words = undo.split()[1:]
    error = document(afterwatch, *words[1:], status=3)["error"]
    assert error["code"] == "needs_user"
    assert "no terminal" in error["remedy"]
    assert at_terminal(*words).screen == f"{quote}: kept\n"
    assert document(afterwatch, "show", quote, "--space", "team:ops")["item"]["status"] == "active"


def test_only_a_person_restores(afterwatch: Run, tmp_path: Path) -> None:
    """A backup that an agent made, put in the place of what the user said, would change it."""
    added(afterwatch, FACT)
    document(afterwatch, "backup", str(tmp_path / "old.db"))
    assert at_terminal("memory", "add", "--key", "pref.editor", "vim").code == 0
    words = ("restore", str(tmp_path / "old.db"))
    for more in ((), ("--yes",)):
        error = document(afterwatch, *words, *more, status=3)["error"]
        assert error["code"] == "needs_user"
        assert "no terminal" in error["remedy"]
    shown = at_terminal("memory", *words, "--yes", env={"CLAUDECODE": "1"})
    assert shown.code == 3
    assert "CLAUDECODE" in shown.screen
    assert len(document(afterwatch, "list")["items"]) == 2
    assert at_terminal("memory", *words, "--yes").code == 0
    assert [item["text"] for item in document(afterwatch, "list")["items"]] == [FACT]


def test_a_source_cannot_pass_for_the_users(afterwatch: Run) -> None:
    """Neither by the mark of the user's channel, nor by leaving the origin out of sight."""
    mine = at_terminal("memory", "add", "Node 9 has the old network card.").screen.split()[2]
    item = added(afterwatch, FACT, "--source", f"tty:{user_name()}")
    assert document(afterwatch, "show", item)["item"]["source"] == f"cli:tty:{user_name()}"
    found = document(afterwatch, "search", "queue")["hits"][0]
    assert (found["id"], found["origin"]) == (item, "agent")
    assert "  agent  cli:tty:" in afterwatch("memory", "search", "queue").stdout
    assert "  user_explicit  tty:" in afterwatch("memory", "search", "network card").stdout
    lines = afterwatch("memory", "list").stdout.splitlines()
    assert lines[0].split() == ["id", "date", "layer", "origin", "status", "key", "text"]
    assert {line.split()[0]: line.split()[3] for line in lines[1:]} == {item: "agent", mine: "user_explicit"}
    assert {one["origin"] for one in document(afterwatch, "list")["items"]} == {"agent", "user_explicit"}
    assert "origin:        agent" in afterwatch("memory", "show", item).stdout


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: marker.variable)
def test_each_known_agent_is_recognised_by_its_marker(marker: Any) -> None:
    assert agent_marker({marker.variable: f"x{marker.holds.upper()}1"}) == marker
    assert agent_marker({marker.variable: ""}) is None
    assert agent_marker({marker.variable: "false"}) is None
    assert marker.source


def test_settings_of_agents_are_no_markers() -> None:
    kept = ("CODEX_HOME", "AIDER_MODEL", "GEMINI_API_KEY", "ANTHROPIC_API_KEY", "TERM_PROGRAM", "OR_APP_NAME")
    assert agent_marker(dict.fromkeys(kept, "x")) is None
    assert set(NO_AGENT) >= {"CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "CURSOR_AGENT", "CI"}
