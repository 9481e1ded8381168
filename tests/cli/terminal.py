"""Two ways to run the real command: for a document, as programs do, and on a pseudo-terminal, as a person does."""

import json
import os
import pty
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from afterwatch.cli.view import MARKERS
from tests.conftest import Run, command, environment

NO_AGENT: dict[str, str | None] = {marker.variable: None for marker in MARKERS}
"""The environment of a person: no agent and no continuous integration runs the command."""


class Shown(NamedTuple):
    """Exit status, and what stood on the screen, both streams in one."""

    code: int
    screen: str


def at_terminal(*args: str, typed: str = "", env: Mapping[str, str | None] | None = None) -> Shown:
    """Run `afterwatch` on a terminal of its own and type `typed` at once."""
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            [*command(), *args],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment({**NO_AGENT, **(env or {})}),
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    os.write(ours, typed.encode())
    parts: list[bytes] = []
    with suppress(OSError):  # the end of a terminal is an error on Linux
        while part := os.read(ours, 65536):
            parts.append(part)
    os.close(ours)
    return Shown(child.wait(timeout=60), b"".join(parts).decode("utf-8").replace("\r\n", "\n"))


def document(afterwatch: Run, *args: str, status: int = 0, stdin: str | None = None) -> dict[str, Any]:
    code, out, err = afterwatch("memory", *args, "--json", stdin=stdin)
    assert (code, err) == (status, ""), out + err
    found: dict[str, Any] = json.loads(out)
    return found


def added(afterwatch: Run, *args: str) -> str:
    return str(document(afterwatch, "add", *args)["id"])
