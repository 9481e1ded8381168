"""The command tree. Each entry names a module with an `app`; the module loads when its command is used."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from afterwatch import __version__
from afterwatch.errors import Unavailable


@dataclass(frozen=True)
class Entry:
    """One word after `afterwatch`: the module that holds it, one line of help, a group or a single command."""

    module: str
    help: str
    group: bool = True


ENTRIES: dict[str, Entry] = {
    "memory": Entry("afterwatch.cli.memory", "Remember, recall, correct and forget."),
    "learn": Entry("afterwatch.cli.learn", "Record, list and withdraw corrections."),
    "mcp": Entry("afterwatch.cli.mcp", "Serve memory to an agent that speaks MCP.", group=False),
    "config": Entry("afterwatch.cli.config", "Show and change settings."),
    "security": Entry("afterwatch.cli.security", "Read and verify the audit log."),
    "bench": Entry("afterwatch.cli.bench", "Measure speed and quality."),
    "doctor": Entry("afterwatch.cli.doctor", "Check the installation and say what repairs it.", group=False),
    "demo": Entry("afterwatch.cli.demo", "Show the main job in one page; needs nothing.", group=False),
}


def load(name: str) -> Any:
    """Return the real command behind an entry; Unavailable if this installation lacks it."""
    entry = ENTRIES[name]
    try:
        module = import_module(entry.module)
    except ModuleNotFoundError as exc:
        if exc.name != entry.module:
            raise
        raise Unavailable(f"`{name}` is not part of this installation", remedy="install the whole package") from exc
    command: Any = get_group(module.app) if entry.group else get_command(module.app)
    command.name = name
    return command


class LazyGroup(TyperGroup):
    """Stands for a group until one of its commands is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        commands: list[str] = load(str(self.name)).list_commands(ctx)
        return commands

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load(str(self.name)).get_command(ctx, cmd_name)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return load(str(self.name)).make_context(*args, **kwargs)


class LazyCommand(TyperCommand):
    """Stands for a single command until it is asked for."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return load(str(self.name)).make_context(*args, **kwargs)


class Root(TyperGroup):
    """The first level: lists what is installed without loading any of it."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        for name, entry in ENTRIES.items():
            if find_spec(entry.module) is not None:
                self.add_command(_stub(name, entry))


def _stub(name: str, entry: Entry) -> Any:
    # Typer's own types are private, hence Any.
    if entry.group:
        return LazyGroup(name=name, help=entry.help, rich_markup_mode=None)
    return LazyCommand(name, help=entry.help, callback=None, params=[], rich_markup_mode=None)


app = typer.Typer(
    cls=Root,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"afterwatch {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
) -> None:
    """Memory for any agent. Try `afterwatch demo`; `afterwatch doctor` checks the installation."""
