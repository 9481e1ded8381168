"""Law: an output that is closed, full or no longer read ends in a status and at most one line, never in a trace."""

import os
import subprocess

import pytest

from tests.cli.terminal import added
from tests.conftest import Run, command, environment

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full and a shell")
COMMANDS = ["memory list", "memory list --json", "config list", "--help", "memory add --help", "--version", "doctor"]


@pytest.fixture(autouse=True, params=["buffered", "unbuffered"])
def words_alone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Python fails at the end of a command or at each line, by a variable of the caller."""
    monkeypatch.setenv("AFTERWATCH_MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1" if request.param == "unbuffered" else "")


def shell(script: str) -> tuple[int, str, str]:
    """Run a line of bash in which `afterwatch` is ours: status, stdout, stderr."""
    whole = f'afterwatch() {{ {command()[0]} "$@"; }}\n{script}'
    done = subprocess.run(["bash", "-c", whole], capture_output=True, text=True, env=environment(), check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_is_said_in_one_line(words: str) -> None:
    code, out, err = shell(f"afterwatch {words} > /dev/full")
    assert (code, out) == (4, "")
    assert err.count("\n") == 1
    assert err.startswith("error: the output cannot be written: No space left on device")


def test_an_error_that_finds_no_room_is_not_lost() -> None:
    code, _, err = shell("afterwatch nope --json > /dev/full")
    assert code == 4
    assert err.startswith("error: ")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_closed_output_is_no_failure(words: str) -> None:
    assert shell(f"afterwatch {words} >&-") == (0, "", "")


def test_a_closed_input_or_error_output_is_no_defect() -> None:
    code, out, err = shell("afterwatch memory add - <&-")
    assert (code, out) == (2, "")
    assert "nothing to remember" in err
    assert shell("afterwatch nope 2>&-") == (2, "", "")
    assert shell("afterwatch nope 2>/dev/full") == (2, "", "")
    assert shell("afterwatch memory list <&- >&- 2>&-") == (0, "", "")


@pytest.mark.parametrize("words", [*COMMANDS, "memory list --limit 300", "nope --json"])
def test_a_reader_that_left_ends_it_quietly_as_the_signal_would(afterwatch: Run, words: str) -> None:
    added(afterwatch, "The payments queue is drained by hand on Fridays.")
    code, _, err = shell(f"afterwatch {words} | true; exit ${{PIPESTATUS[0]}}")
    assert err == ""
    assert code == 141


def test_the_first_lines_are_enough(afterwatch: Run) -> None:
    lines = "\n".join(f"Node {number} has a network card of its own." for number in range(900))
    assert afterwatch("memory", "add", "--lines", stdin=lines).code == 0
    code, out, err = shell("afterwatch memory list --limit 900 | head -1; exit ${PIPESTATUS[0]}")
    assert (code, err) == (141, "")
    assert out.startswith("id ")
