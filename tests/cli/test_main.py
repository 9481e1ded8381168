"""Law: every failure says who must act, in words or as a document, with a status of its own and no trace."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from afterwatch.cli import EXIT_CODES, main
from afterwatch.cli.root import ENTRIES, app, load
from afterwatch.errors import Defect, ToolRefused, Unavailable, UserError
from tests.conftest import Run, command, environment


def test_help_lists_what_is_installed_and_loads_none_of_it(afterwatch: Run) -> None:
    code, out, err = afterwatch("--help")
    assert (code, err) == (0, "")
    assert all(f"\n  {name} " in out for name in ("config", "security", "doctor"))
    probe = (
        "import sys; from afterwatch.cli import main; main(['--help'])\n"
        "heavy = {'rich', 'numpy', 're2', 'pydantic', 'afterwatch.memory'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_version_is_said_in_both_ways(afterwatch: Run) -> None:
    assert afterwatch("--version") == afterwatch("--version", "--help")


def test_nothing_asked_shows_the_help(afterwatch: Run) -> None:
    code, out, err = afterwatch()
    assert (code, out) == (2, "")
    assert "Usage: afterwatch" in err


def test_a_misspelt_command_names_the_nearest(afterwatch: Run) -> None:
    code, out, err = afterwatch("confg")
    assert (code, out) == (2, "")
    assert "'config'" in err
    assert "afterwatch --help" in err
    code, out, err = afterwatch("config", "get", "--nope")
    assert code == 2
    assert "afterwatch config get --help" in err


@pytest.mark.parametrize("args", [("config", "get", "nope", "--json"), ("config", "list", "--nope", "--json")])
def test_an_error_of_a_json_command_is_a_document(afterwatch: Run, args: tuple[str, ...]) -> None:
    code, out, err = afterwatch(*args)
    assert (code, err) == (2, "")
    error = json.loads(out)["error"]
    assert set(error) == {"code", "message", "remedy"}
    assert all(error.values())


def test_each_class_of_error_has_a_status() -> None:
    assert dict(EXIT_CODES) == {UserError: 2, ToolRefused: 3, Unavailable: 4, Defect: 70}


def test_a_place_that_cannot_be_written_is_unavailable(afterwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    args = ("config", "set", "memory.search_limit", "3")
    code, out, err = afterwatch(*args, env={"AFTERWATCH_HOME": str(tmp_path / "file/home")})
    assert (code, out) == (4, "")
    assert "AFTERWATCH_HOME" in err
    assert "Traceback" not in err


BROKEN = """
import importlib.machinery, sys, types, typer
from afterwatch.cli import main
from afterwatch.cli.root import ENTRIES
module = types.ModuleType(ENTRIES["doctor"].module)
module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
module.app = typer.Typer(rich_markup_mode=None)
@module.app.command()
def doctor() -> None:
    raise KeyError("what a user remembered")
sys.modules[module.__name__] = module
sys.exit(main(["doctor"]))
"""


def test_a_defect_asks_for_a_report_and_quotes_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (70, "")
    assert "KeyError" in done.stderr
    assert "report" in done.stderr
    assert "remembered" not in done.stderr
    assert "Traceback" not in done.stderr
    env = {**os.environ, "AFTERWATCH_DEBUG": "1"}
    shown = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, env=env, check=False)
    assert "Traceback" in shown.stderr


SLOW = BROKEN.replace(
    'raise KeyError("what a user remembered")', "import time; print('on', flush=True); time.sleep(60)"
)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt_ends_quietly() -> None:
    process = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.strip()) == (130, "", "")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("args", ["config list", "config list --json", "--help"])
def test_a_closed_pipe_ends_quietly(args: str) -> None:
    script = f"{command()[0]} {args} | true"
    for _ in range(3):
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=environment(), check=False)
        assert done.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_locale_can_be_written_to(afterwatch: Run, encoding: str) -> None:
    env = {"PYTHONUTF8": None, "LC_ALL": "C", "PYTHONIOENCODING": encoding, "AFTERWATCH_MEMORY_SCOPE": "project:日本 é"}
    code, out, _ = afterwatch("config", "get", "memory.scope", "--json", env=env)
    assert code == 0
    if encoding != "latin-1":
        assert json.loads(out)["value"] == "project:日本 é"
    assert afterwatch("config", "list", env={**env, "PYTHONIOENCODING": "ascii"}).code == 0


def test_completion_knows_groups_and_their_commands(afterwatch: Run) -> None:
    shown = afterwatch("--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert "complete" in shown.stdout
    assert "_AFTERWATCH_COMPLETE" in shown.stdout

    def complete(words: str, at: int) -> list[str]:
        env = {"_AFTERWATCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return afterwatch(env=env).stdout.split()

    assert "config" in complete("afterwatch con", 1)
    assert complete("afterwatch config s", 2) == ["set"]
    assert "--anchor" in complete("afterwatch security verify --a", 3)


def test_a_missing_module_breaks_no_other() -> None:
    present = [name for name in ENTRIES if name in __import__("typer").main.get_command(app).commands]
    for name in present:
        assert load(name).name == name
    with pytest.raises(Unavailable, match="not part"):
        load_missing()


def load_missing() -> None:
    from afterwatch.cli.root import Entry

    ENTRIES["nowhere"] = Entry("afterwatch.cli.nowhere", "")
    try:
        load("nowhere")
    finally:
        del ENTRIES["nowhere"]


def commands(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    names = getattr(group, "commands", None)
    if names is None:
        return [path]
    return [leaf for name, child in names.items() for leaf in commands(child, (*path, name))]


@pytest.mark.parametrize("name", ["config", "security", "doctor"])
def test_every_command_shows_an_example(afterwatch: Run, name: str) -> None:
    for path in commands(load(name), (name,)):
        code, out, err = afterwatch(*path, "--help")
        assert (code, err) == (0, "")
        assert f"Example: afterwatch {' '.join(path)}" in out


def test_the_module_runs_like_the_script(afterwatch: Run) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "afterwatch.cli", "config", "get", "memory.space"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, afterwatch("config", "get", "memory.space").stdout)


def test_main_returns_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("afterwatch ")
