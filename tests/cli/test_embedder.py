"""Law: the user alone chooses where remembered text goes; what fails leaves settings and vectors as they were."""

import json
from pathlib import Path

import pytest

from afterwatch.settings.paths import config_file, home
from tests.cli.terminal import added, at_terminal, document
from tests.conftest import Run
from tests.memory.models_server import embeddings
from tests.memory.tiny_gguf import WIDTH, write_tiny
from tests.net.server import Call, serving


def chosen(afterwatch: Run) -> dict[str, object]:
    return document(afterwatch, "embedder", "show")


def choose(*args: str, status: int = 0) -> dict[str, object]:
    code, screen = at_terminal("memory", "embedder", *args, "--json")
    assert code == status, screen
    found: dict[str, object] = json.loads(screen[screen.index("{") :])
    return found


def checks(afterwatch: Run) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in json.loads(afterwatch("doctor", "--json").stdout)["checks"]}


def test_the_default_is_shown_and_nothing_is_made(afterwatch: Run) -> None:
    found = chosen(afterwatch)
    assert (found["embedder"], found["model"], found["text_goes_to"]) == ("bundled", "use-multilingual-3", "")
    assert not home().exists()


@pytest.mark.parametrize(
    "args", [("set", "none"), ("set", "bundled"), ("revert",), ("set", "bundled", "--validate-only")]
)
def test_an_agent_chooses_nothing(afterwatch: Run, args: tuple[str, ...]) -> None:
    code, out, _ = afterwatch("memory", "embedder", *args, "--json")
    assert code == 3
    assert json.loads(out)["error"]["code"] == "needs_user"
    assert not config_file().exists()


def test_a_server_is_chosen_used_shown_and_left_again(afterwatch: Run) -> None:
    added(afterwatch, "The quagga stable opens on Mondays")
    with serving(embeddings()) as server:
        url, model = f"{server.url}/v1", f"endpoint:127.0.0.1:{server.port}/letters@32"
        tried = choose("set", "endpoint", "--url", url, "--model", "letters", "--validate-only")
        assert (tried["changed"], tried["model"]) == (False, model)
        assert chosen(afterwatch)["embedder"] == "bundled"
        assert not config_file().exists()
        found = choose("set", "endpoint", "--url", url, "--model", "letters")
        assert (found["changed"], found["model"], found["dimensions"], found["degraded"]) == (True, model, 32, [])
        shown = chosen(afterwatch)
        assert (shown["embedder"], shown["model"]) == ("endpoint", model)
        assert shown["text_goes_to"] == f"127.0.0.1:{server.port}"
        assert shown["vectors"] == {"local": {model: 1}}
        assert not document(afterwatch, "search", "quagga")["degraded"]
        row = checks(afterwatch)["memory embedder"]
        assert row["status"] == "ok"
        assert f"sent to 127.0.0.1:{server.port}" in row["what"]
        asked = len(server.calls)
        chosen(afterwatch)
        checks(afterwatch)
        assert len(server.calls) == asked, "to look sends nothing"
    back = choose("revert")
    assert (back["embedder"], back["degraded"]) == ("bundled", [])
    assert chosen(afterwatch)["vectors"] == {"local": {"use-multilingual-3": 1}}


def test_doctor_says_that_text_leaves(afterwatch: Run) -> None:
    for key, value in (
        ("embedder", "endpoint"),
        ("endpoint_url", "https://models.example/v1"),
        ("endpoint_model", "m"),
    ):
        assert at_terminal("config", "set", f"memory.{key}", value).code == 0
    row = checks(afterwatch)["memory embedder"]
    assert row["status"] == "warn"
    assert "text leaves this machine" in row["what"]
    assert "models.example" in row["what"]
    assert "embedder set bundled" in row["remedy"]


def test_doctor_says_that_a_model_is_missing(afterwatch: Run) -> None:
    pytest.importorskip("xllamacpp")
    assert afterwatch("config", "set", "memory.embedder", "gguf").code == 0
    row = checks(afterwatch)["memory embedder"]
    assert row["status"] == "warn"
    assert "embedder set gguf" in row["remedy"]


def test_a_file_of_ones_own_is_chosen(afterwatch: Run, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    added(afterwatch, "The quagga stable opens on Mondays")
    path = write_tiny(tmp_path / "tiny.gguf")
    found = choose("set", "gguf", "--file", str(path))
    assert (found["dimensions"], found["degraded"]) == (WIDTH, [])
    assert chosen(afterwatch)["vectors"] == {"local": {found["model"]: 1}}
    assert not document(afterwatch, "search", "quagga")["degraded"]
    assert checks(afterwatch)["memory embedder"]["status"] == "ok"
    path.unlink()
    missing = document(afterwatch, "search", "quagga")
    assert missing["hits"]
    assert "no model file" in missing["degraded"][0]


def test_the_command_downloads_and_a_wrong_file_changes_nothing(afterwatch: Run) -> None:
    with serving(lambda call: call.reply(200, b"x" * 2_000_000)) as server:
        found = choose("set", "gguf", "--mirror", f"{server.url}/m.gguf", status=4)
    assert "not the model we know" in str(found["error"])
    assert len(server.calls) == 3
    assert chosen(afterwatch)["embedder"] == "bundled"
    assert not config_file().exists()


def broken(call: Call) -> None:
    call.reply(500)


def test_a_server_that_fails_leaves_everything(afterwatch: Run) -> None:
    added(afterwatch, "The quagga stable opens on Mondays")
    before = chosen(afterwatch)
    with serving(broken) as server:
        found = choose("set", "endpoint", "--url", server.url, "--model", "letters", status=4)
    assert "500" in str(found["error"])
    assert chosen(afterwatch) == before
    assert not config_file().exists()


def test_what_something_stronger_decides_is_not_written(afterwatch: Run) -> None:
    code, screen = at_terminal("memory", "embedder", "set", "none", env={"AFTERWATCH_MEMORY_EMBEDDER": "bundled"})
    assert code == 2
    assert "AFTERWATCH_MEMORY_EMBEDDER" in screen


def test_options_of_another_embedder_and_unknown_names_are_errors(afterwatch: Run) -> None:
    for args in (("bundled", "--url", "https://a.example"), ("endpoint", "--file", "x"), ("nosuch",)):
        assert at_terminal("memory", "embedder", "set", *args).code == 2
    assert (
        at_terminal("memory", "embedder", "set", "endpoint", "--url", "https://u:p@a.example", "--model", "m").code == 2
    )


def test_keywords_only_and_back(afterwatch: Run, tmp_path: Path) -> None:
    added(afterwatch, "The quagga stable opens on Mondays")
    assert choose("set", "none")["model"] is None
    assert document(afterwatch, "search", "quagga")["degraded"] == ["vectors: none"]
    assert choose("set", "bundled")["model"] == "use-multilingual-3"
    assert not document(afterwatch, "search", "quagga")["degraded"]


def test_calibrate_prints_figures_and_saves_for_the_user_alone(afterwatch: Run) -> None:
    assert choose("set", "none")["model"] is None
    found = document(afterwatch, "calibrate")
    assert (found["pairs"], found["saved"], found["in_force"]["from"]) == (576, False, "shipped")
    assert {(row["language"], row["length"]) for row in found["fitted"]["figures"]} == {
        ("en", "short"),
        ("en", "long"),
        ("zh", "short"),
        ("zh", "long"),
    }
    code, out, _ = afterwatch("memory", "calibrate", "--save", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (3, "needs_user")
    code, screen = at_terminal("memory", "calibrate", "--save")
    assert code == 0
    assert "F1" in screen
    assert "in force now" in screen
    assert chosen(afterwatch)["gate"] == "calibrated"
