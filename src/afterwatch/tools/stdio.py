"""MCP over stdin and stdout: one JSON message a line, as UTF-8 bytes whatever the locale says.

The SDK's own transport drops a line that it cannot read, and then its sender waits for ever. Here each such line is
answered, halves of characters are replaced, and a line has a length at which it is no longer kept.
"""

import json
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from afterwatch.errors import UserError

MAX_LINE = 16_000_000
"""Bytes of a line that are kept: enough to answer a call that is far too long by its id."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_HALF = re.compile("[\ud800-\udfff]")
_GONE = (RuntimeError, CancelledError, anyio.ClosedResourceError, anyio.BrokenResourceError)
"""What tells the reading thread that nobody listens any more."""

Inbox = MemoryObjectReceiveStream[SessionMessage | Exception]
Outbox = MemoryObjectSendStream[SessionMessage]


@contextmanager
def claimed() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """stdin and stdout for the protocol alone: what else prints goes to stderr, what else reads finds the end.

    Raises:
        UserError: one of the two is closed.
    """
    if sys.__stdin__ is None or sys.__stdout__ is None:
        raise UserError("stdin or stdout is closed", remedy="a host that speaks MCP starts this command")
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # no stderr either: into a pipe that nobody reads
        os.dup2(writer, 1)
    os.close(writer)
    yield source, sink
    with suppress(OSError):
        sink.close()


@asynccontextmanager
async def streams(source: BinaryIO, sink: BinaryIO) -> AsyncIterator[tuple[Inbox, Outbox]]:
    """The two streams that the SDK's server runs on. They end with the input, or when nobody reads the output."""
    to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    pump = partial(_pump, source, to_server, outbox.clone(), anyio.lowlevel.current_token())
    async with anyio.create_task_group() as group:
        group.start_soon(_emit, from_server, sink, group.cancel_scope)
        # a thread of our own, and a daemon: it may wait for a line that never comes, and must not hold the process
        threading.Thread(target=pump, name="afterwatch-stdin", daemon=True).start()
        yield inbox, outbox


def read_message(line: bytes) -> SessionMessage | JSONRPCError:
    """A message, or what is answered to a line that is none. Halves of characters and broken bytes are replaced."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff")
    with suppress(ValidationError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    try:
        found = json.loads(text)
        whole = _HALF.sub("\ufffd", json.dumps(found, ensure_ascii=False))
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "this line is not JSON; send one message a line")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False))
    except ValidationError:
        return _error(_id_of(found), INVALID_REQUEST, "this is no JSON-RPC 2.0 message; batches are not taken")


def written_message(message: SessionMessage) -> bytes:
    """A message as one line."""
    plain = message.message.model_dump(by_alias=True, exclude_unset=True)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def lines(source: BinaryIO) -> Iterator[bytes | None]:
    """The lines of an input that are not empty; None for one that is too long, which is read to its end."""
    while line := source.readline(MAX_LINE):
        if len(line) < MAX_LINE or line.endswith(b"\n"):
            if line.strip():
                yield line
            continue
        while line and not line.endswith(b"\n"):
            line = source.readline(MAX_LINE)
        yield None


def _pump(
    source: BinaryIO,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    outbox: Outbox,
    token: anyio.lowlevel.EventLoopToken,
) -> None:
    def hand_over(line: bytes | None) -> None:
        found = _too_long() if line is None else read_message(line)
        if isinstance(found, JSONRPCError):
            anyio.from_thread.run(outbox.send, SessionMessage(found), token=token)
        else:
            anyio.from_thread.run(to_server.send, found, token=token)

    with suppress(*_GONE):
        with suppress(OSError):
            for line in lines(source):
                hand_over(line)
        anyio.from_thread.run_sync(outbox.close, token=token)
        anyio.from_thread.run_sync(to_server.close, token=token)


async def _emit(
    from_server: MemoryObjectReceiveStream[SessionMessage], sink: BinaryIO, everything: anyio.CancelScope
) -> None:
    try:
        async with from_server:
            async for message in from_server:
                await anyio.to_thread.run_sync(_put, sink, written_message(message))
    except OSError:  # the reader is gone; nobody waits for the rest
        everything.cancel()


def _put(sink: BinaryIO, line: bytes) -> None:
    sink.write(line)
    sink.flush()


def _too_long() -> JSONRPCError:
    return _error(None, INVALID_REQUEST, f"a line has at most {MAX_LINE} bytes; this one was left out")


def _error(of: Any, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=of, error=ErrorData(code=code, message=message))


def _id_of(found: Any) -> Any:
    given = found.get("id") if isinstance(found, dict) else None
    if isinstance(given, str) and len(given) <= 200:
        return _HALF.sub("\ufffd", given)
    return given if type(given) is int else None
