"""A host: the official client over the pipes of a real `afterwatch mcp`, with a hand on the wire."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, Implementation, TextContent, jsonrpc_message_adapter

from tests.conftest import command, environment

WORDS: dict[str, str | None] = {"AFTERWATCH_MEMORY_EMBEDDER": "none"}
NAME = Implementation(name="Test Host", version="1")


@asynccontextmanager
async def hosted(
    *args: str,
    env: Mapping[str, str | None] | None = None,
    mode: Any = "auto",
    log: Path | None = None,
    name: str = "Test Host",
) -> AsyncIterator[Client]:
    """A client of a server of its own; whatever stands on stdout and is no message fails the test."""
    stray: list[Exception] = []

    async def heard(message: Any) -> None:
        if isinstance(message, Exception):
            stray.append(message)

    script, *rest = command()
    started = StdioServerParameters(
        command=script, args=[*rest, "mcp", *args], env=environment({**WORDS, **(env or {})})
    )
    with (log or Path("/dev/null")).open("w") as errors:
        transport = stdio_client(started, errlog=errors)
        info = Implementation(name=name, version="1")
        async with Client(transport, client_info=info, mode=mode, message_handler=heard) as client:
            yield client
    assert not stray


class Wire:
    """The pipes of a server: what a client sends, and whatever a test writes between."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.answers: list[dict[str, Any]] = []

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(data)


@asynccontextmanager
async def wired(*args: str) -> AsyncIterator[tuple[Client, Wire]]:
    """The official client, and its wire."""
    async with await anyio.open_process(
        [*command(), "mcp", *args], env=environment(WORDS), stderr=sys.__stderr__
    ) as process:
        wire = Wire(process)
        async with Client(_pipes(wire), client_info=NAME, mode="legacy") as client:
            yield client, wire


@asynccontextmanager
async def _pipes(wire: Wire) -> AsyncIterator[Any]:
    to_client, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](100)
    outbox, from_client = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        kept = b""
        assert wire.process.stdout is not None
        async with to_client:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async for part in wire.process.stdout:
                    kept = await hear(kept + part)

    async def hear(data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        for line in lines:
            wire.answers.append(json.loads(line))
            await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))
        return rest

    async def write() -> None:
        async with from_client:
            async for message in from_client:
                await wire.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        yield inbox, outbox
        group.cancel_scope.cancel()


def text_of(result: CallToolResult) -> str:
    """The text of an answer."""
    part = result.content[0]
    assert isinstance(part, TextContent)
    return part.text


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed; its fields."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    found: dict[str, Any] = result.structured_content
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that must fail; what it says."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Run a scene; one that hangs fails."""

    async def bounded() -> None:
        with anyio.fail_after(120):
            await scene()

    anyio.run(bounded)
