"""The tools as an MCP server, on the SDK's low-level server. The command gives the view, the host its name."""

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as Listed

from afterwatch import __version__
from afterwatch.errors import AfterwatchError, Defect
from afterwatch.memory.names import quoted, telling
from afterwatch.tools.memory import BY_NAME, TOOLS
from afterwatch.tools.quoting import NOTICE
from afterwatch.tools.registry import Desk, Tool
from afterwatch.tools.stdio import claimed, streams

INSTRUCTIONS = (
    "Durable memory of this user. Ask memory_context before you answer a question about the user, the project or an "
    "incident; cite ids. Record corrections with learn_add and lasting facts with memory_add; what you write is a "
    f"suggestion until the user confirms it. {NOTICE}"
)
CLIENT = "mcp-client"
"""The name of a host that gives none, or one that cannot be used."""
Context = ServerRequestContext[Any]


def serve(desk: Desk, *, reserved: Collection[str] = ()) -> None:
    """Serve one client on stdin and stdout until it leaves.

    Args:
        desk: the memory and the view; the client's name takes the place of the principal.
        reserved: names that no client may bear, such as the user's.
    """
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its records quote what clients send
    warming = WarmUp(desk)
    with claimed() as (source, sink):

        async def run() -> None:
            server = build(desk, begin=warming.begin, reserved=reserved)
            async with streams(source, sink) as (inbox, outbox):
                await server.run(inbox, outbox, server.create_initialization_options())

        anyio.run(run)
    if not warming.running:  # what a thread still uses stays open: the process ends now
        desk.memory.close()


def build(desk: Desk, *, begin: Callable[[], None], reserved: Collection[str] = ()) -> Server[Any]:
    """The server. `begin` is called once a client has shown that it stays; calls run one at a time, in their order."""
    turn = anyio.CapacityLimiter(1)

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        begin()
        return ListToolsResult(tools=[listed(tool) for tool in TOOLS])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        begin()
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {quoted(params.name)}")
        view = replace(desk.view, principal=client_name(context, reserved))
        # not abandoned when cancelled: a call that waits never begins, one that began ends whole
        return await anyio.to_thread.run_sync(answer, tool, replace(desk, view=view), params.arguments, limiter=turn)

    server: Server[Any] = Server(
        "afterwatch",
        version=__version__,
        title="afterwatch memory",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # traces, which an exporter named in the environment would send away
    return server


def answer(tool: Tool, desk: Desk, arguments: Mapping[str, Any] | None) -> CallToolResult:
    """What a call gives; an error says its cause and the next step, and is the model's to read."""
    try:
        found = tool.call(desk, arguments)
    except AfterwatchError as error:
        return _failed(error)
    # the boundary of a call: a defect must not end the session, and its text may quote what is remembered
    except Exception as error:  # noqa: BLE001
        return _failed(_defect(error))
    text = TextContent(type="text", text=found.text())
    return CallToolResult(content=[text], structured_content=found.model_dump(mode="json", exclude_none=True))


def listed(tool: Tool) -> Listed:
    """A tool as hosts see it."""
    return Listed(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        output_schema=tool.answer_schema(),
        annotations=ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.removes,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def client_name(context: Context, reserved: Collection[str]) -> str:
    """The name of the host as an id: plain letters, at most 60, no credential, nobody else's."""
    params = context.session.client_params
    name = re.sub(r"[^A-Za-z0-9_.@/+-]+", "_", params.client_info.name if params else "")[:60].strip("_")
    return name if name and name not in reserved and not telling(name) else CLIENT


class WarmUp:
    """Loads the embedder, and embeds what has no vector yet, in a thread that no call waits for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="afterwatch-warm-up", daemon=True)
            self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        with suppress(AfterwatchError):  # answers say what is missing
            self._desk.memory.warm_up(self._desk.view)


def _failed(error: AfterwatchError) -> CallToolResult:
    lines = [f"error ({error.code}): {error}", *([f"what to do: {error.remedy}"] if error.remedy else [])]
    return CallToolResult(content=[TextContent(type="text", text="\n".join(lines))], is_error=True)


def _defect(error: Exception) -> Defect:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "unknown"
    found = Defect(f"internal error ({type(error).__name__} at {place})", remedy="please report it")
    with suppress(OSError):
        print(f"afterwatch: {found}", file=sys.stderr)  # noqa: T201
    return found
