"""`afterwatch mcp`: the memory tools for a host that speaks MCP, over stdin and stdout."""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from afterwatch.cli.options import Json, grouped
from afterwatch.cli.output import print_json, say
from afterwatch.cli.view import Place, current_view, open_memory, user_name
from afterwatch.memory.model import Channel

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: afterwatch mcp --scope project:shop")
@grouped
def mcp(
    place: Place,
    tools: Annotated[bool, typer.Option("--tools", help="Print what it offers, and end.")] = False,
    as_json: Json = False,
) -> None:
    """Serve memory to an agent over stdin and stdout, until it leaves. A host that speaks MCP starts this command.

    What comes in this way is an agent's, until you confirm it. The space and the scopes are the ones named here.
    """
    if tools or as_json:
        _say_tools(as_json)
        return
    view = current_view(place.space, place.scope or (), place.read or ())
    if sys.stdin.isatty():
        say("serving MCP on stdin and stdout, one JSON message a line; Ctrl-D ends it", error=True)
    from afterwatch.tools.mcp_server import CLIENT, serve
    from afterwatch.tools.registry import Desk

    memory = open_memory()
    serve(Desk(memory, replace(view, channel=Channel.MCP, principal=CLIENT)), reserved=(user_name(),))


def _say_tools(as_json: bool) -> None:
    from afterwatch.tools.memory import TOOLS

    if as_json:
        found = [
            {"name": t.name, "description": t.description, "arguments": t.schema(), "answer": t.answer_schema()}
            for t in TOOLS
        ]
        print_json({"tools": found})
        return
    for tool in TOOLS:
        say(f"{tool.name}\n    {tool.description}")
