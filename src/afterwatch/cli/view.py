"""Who asks: the view of a command and the memory it opens. The channel decides the authority, nothing else does."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from afterwatch.errors import ToolRefused
from afterwatch.memory.model import Channel, Scope, View
from afterwatch.memory.settings import MemorySettings
from afterwatch.settings.paths import ensure_home

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from afterwatch.memory.api import Memory


class Marker(NamedTuple):
    """A variable that says who runs a command; `holds` is a part of its value, empty for any."""

    variable: str
    who: str
    source: str
    holds: str = ""


MARKERS: tuple[Marker, ...] = (
    Marker("AI_AGENT", "an agent", "vercel/vercel packages/detect-agent/README.md"),
    Marker("AGENT", "an agent (Amp, Crush, Goose, opencode)", "aws/aws-cdk-cli#1855"),
    Marker("CLAUDECODE", "Claude Code", "anthropics/claude-code#531, #24838"),
    Marker("CLAUDE_CODE_ENTRYPOINT", "Claude Code", "anthropics/claude-code#24838"),
    Marker("CODEX_SANDBOX", "Codex", "google-gemini/gemini-cli#21032"),
    Marker("CODEX_SANDBOX_NETWORK_DISABLED", "Codex", "aws/aws-cdk-cli detect-agent.ts (all of CODEX_*)"),
    Marker("CODEX_THREAD_ID", "Codex", "openai/codex#36883"),
    Marker("GEMINI_CLI", "Gemini CLI", "google-gemini/gemini-cli docs/tools/shell"),
    Marker("QWEN_CODE", "Qwen Code", "aws/aws-cdk-cli#1855"),
    Marker("CURSOR_AGENT", "Cursor", "databricks/cli#4287"),
    Marker("CURSOR_EXTENSION_HOST_ROLE", "Cursor", "gitbutlerapp/gitbutler#14129", "agent-exec"),
    Marker("KIRO_SESSION_ID", "Kiro CLI", "dynatrace-oss/dtctl#282, seen with 2.6.1"),
    Marker("AGENT_CONTEXT_OUT", "Kiro CLI", "dynatrace-oss/dtctl#282; kiro.dev built-in tools, side channels"),
    Marker("KIRO_AGENT_PATH", "Kiro CLI", "vercel/vercel#16092"),
    Marker("AWS_EXECUTION_ENV", "Amazon Q CLI", "aws/aws-cdk-cli detect-agent.ts", "amazonq"),
    Marker("OPENCODE", "opencode", "aws/aws-cdk-cli#1855"),
    Marker("COPILOT_CLI", "GitHub Copilot CLI", "aws/aws-cdk-cli#1855"),
    Marker("COPILOT_AGENT_SESSION_ID", "GitHub Copilot", "aws/aws-sam-cli#9127"),
    Marker("AUGMENT_AGENT", "Augment", "docs.augmentcode.com/cli/reference#shell-environment"),
    Marker("GOOSE_TERMINAL", "Goose", "google-gemini/gemini-cli#21032"),
    Marker("OR_APP_NAME", "Aider", "Aider-AI/aider aider/llm.py", "aider"),
    Marker("CI", "continuous integration", "a convention: nobody sits there"),
)
"""Variables that known agents give to the commands they run. Settings that people keep in their profile (CODEX_HOME,
CODEX_API_KEY, AIDER_MODEL, GEMINI_API_KEY) are none, nor are those of an editor's own terminal (TERM_PROGRAM)."""

BY_USER = "the user does it at a terminal, with the same command"
_OFF = ("", "0", "false", "no", "off")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Place:
    """Options that name spaces and scopes."""

    space: Annotated[
        str | None, typer.Option("--space", help="Space to read and write, such as team:ops; default memory.space.")
    ] = None
    scope: Annotated[list[str] | None, typer.Option("--scope", help="Scope such as project:shop; may be repeated.")] = (
        None
    )
    read: Annotated[list[str] | None, typer.Option("--read", help="A further space to read; may be repeated.")] = None


def agent_marker(environment: Mapping[str, str]) -> Marker | None:
    """The first marker of a known agent that is set, or None."""
    for marker in MARKERS:
        value = environment.get(marker.variable, "").strip().lower()
        if value not in _OFF and marker.holds in value:
            return marker
    return None


def why_no_user() -> str:
    """Why this command does not speak for the user; empty if it does."""
    marker = agent_marker(os.environ)
    if marker is not None:
        return f"{marker.variable} is set, so {marker.who} runs this"
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        return "input or output is no terminal"
    return ""


def _is_terminal(stream: object) -> bool:
    ask = getattr(stream, "isatty", None)
    try:
        return bool(ask is not None and ask())
    except ValueError:  # closed
        return False


def user_name() -> str:
    """The name of the system's user, as an id; the environment has no say in it where the system knows it."""
    if sys.platform == "win32":
        import getpass

        name = getpass.getuser()
    else:
        import pwd

        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # a container's user without an entry
            name = str(os.getuid())
    return re.sub(r"[^\w.:@/+-]", "_", name)[:200] or "local"


def memory_settings() -> MemorySettings:
    """The settings of the memory room."""
    from afterwatch.cli.sections import load_config

    return load_config().section(MemorySettings)


def current_view(space: str | None = None, scope: Sequence[str] = (), read: Sequence[str] = ()) -> View:
    """The view of this command.

    Args:
        space: read and written; default `memory.space`.
        scope: scopes as text; default `memory.scope`.
        read: further spaces to read.

    Raises:
        UserError: no such space or scope.
    """
    settings = memory_settings()
    write = space or settings.space
    scopes = scope or ([settings.scope] if settings.scope else [])
    return View(
        principal=user_name(),
        read=tuple(dict.fromkeys((write, *read))),
        write=write,
        scopes=tuple(dict.fromkeys(Scope.parse(text) for text in scopes)),
        channel=Channel.CLI if why_no_user() else Channel.TTY,
    )


def open_memory() -> "Memory":
    """The memory of this home, with its settings."""
    from afterwatch.memory.api import Memory

    return Memory.open(settings=memory_settings())


def needs_user(what: str) -> None:
    """Refuse a caller that does not speak for the user.

    Raises:
        ToolRefused: with `what` as the reason.
    """
    why = why_no_user()
    if why:
        raise ToolRefused(f"refused: {what}", remedy=f"{BY_USER} ({why})", code="needs_user")


@contextmanager
def opened(place: Place, *, writes: bool = False, for_user: str = "") -> Iterator[tuple["Memory", View]]:
    """The memory and the view of a command; closed afterwards.

    Args:
        place: the spaces and scopes that were named.
        writes: make the home if it is missing; without, a command looks, and a closed home will do.
        for_user: what only the user does, said in the refusal of anyone else.

    Raises:
        ToolRefused: the command does not speak for the user.
        UserError, Unavailable: no such space or scope; the home cannot be used.
    """
    if for_user:
        needs_user(for_user)
    view = current_view(place.space, place.scope or (), place.read or ())
    if writes:
        ensure_home()
    with open_memory() as memory:
        yield memory, view


@contextmanager
def meter(label: str) -> Iterator[Progress | None]:
    """A callback (done, in all) that draws a bar on stderr; None if that is no terminal. Drawn at its first call."""
    if not _is_terminal(sys.stderr):
        yield None
        return
    bars: list[Bar] = []

    def advance(done: int, total: int) -> None:
        if not bars:
            bars.append(_bar(label))
        bars[0].update(bars[0].task_ids[0], completed=done, total=total)

    try:
        yield advance
    finally:
        for bar in bars:
            bar.stop()


def _bar(label: str) -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(label, total=None)
    bar.start()
    return bar
