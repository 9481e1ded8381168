"""Law: Ctrl-C ends a command with status 130, whatever it was doing, and says what was done until then."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import IO

import pytest

from tests.cli.terminal import added, document
from tests.conftest import Run, command, environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
FACT = "The payments queue is drained by hand on Fridays."


def begun(*args: str, stdin: IO[str] | int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command(), *args],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def test_a_search_that_loads_its_model_is_interrupted_cleanly(afterwatch: Run) -> None:
    """The model loads in a thread inside foreign code, which must not meet the end of the interpreter."""
    added(afterwatch, FACT)
    assert afterwatch("memory", "search", "queue").code == 0
    for step in range(24):
        process = begun("memory", "search", "queue")
        time.sleep(0.3 + 0.02 * step)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, 130), (step, err)
        assert err.strip() == ""


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_lines_that_went_in_before_an_interrupt_are_counted(afterwatch: Run, more: tuple[str, ...]) -> None:
    total = 4000
    lines = "".join(f"Node {number} has a network card of its own.\n" for number in range(total))
    process = begun("memory", "add", "--lines", *more, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(lines)
    process.stdin.close()
    process.stdin = None
    while not document(afterwatch, "list", "--limit", "1")["items"]:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    stored = sum(row["count"] for row in document(afterwatch, "stats")["spaces"][0]["items"])
    assert 0 < stored < total
    found = re.fullmatch(r"interrupted: (\d+) of 4000 lines were dealt with, (\d+) are remembered\n", err)
    assert found is not None, err
    assert found[1] == found[2] == str(stored)
    if more:
        answer = json.loads(out)
        assert answer["interrupted"] is True
        assert len(answer["outcomes"]) == stored


def test_an_interrupt_before_the_first_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFTERWATCH_MEMORY_EMBEDDER", "none")
    process = begun("memory", "add", "--lines", stdin=subprocess.PIPE)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "interrupted: nothing was remembered\n"


DROPPED = """
import signal, sys, time, weakref
from afterwatch.cli import interrupt
class Thing: pass
def gone(_reference):
    signal.raise_signal(signal.SIGINT)
    time.sleep(0)
interrupt.lose_none()
thing = Thing()
reference = weakref.ref(thing, gone)
try:
    del thing
    time.sleep(20)
except KeyboardInterrupt:
    print("raised again")
"""


def test_an_interrupt_that_python_drops_is_raised_again() -> None:
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("raised again\n", "")
