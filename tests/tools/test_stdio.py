"""Law: whatever stands on a line, it is a message or is answered; and stdout carries the protocol alone."""

import io
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse

from afterwatch.tools import stdio
from afterwatch.tools.stdio import lines, read_message, written_message

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "jsonrpc", "method", "params", "x"]), inner),
)


def answered(line: bytes) -> None:
    found = read_message(line)
    assert isinstance(found, SessionMessage | JSONRPCError)
    back = written_message(found if isinstance(found, SessionMessage) else SessionMessage(found))
    assert back.endswith(b"\n")
    assert back.count(b"\n") == 1
    back.decode("utf-8")


@given(st.binary())
def test_any_bytes_are_a_message_or_an_error(line: bytes) -> None:
    answered(line)


@given(JSON)
def test_any_json_is_a_message_or_an_error(value: Any) -> None:
    answered(json.dumps(value).encode())


@given(st.text(st.characters(categories=["Cs", "Ll", "Lo", "So"])), st.booleans())
def test_halves_of_characters_are_replaced(text: str, escaped: bool) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"text": text}}
    found = read_message(json.dumps(message, ensure_ascii=escaped).encode("utf-8", "surrogatepass"))
    assert isinstance(found, SessionMessage)
    json.dumps(found.message.model_dump(), ensure_ascii=False).encode("utf-8")  # raises for a half


def test_a_half_that_goes_out_is_replaced() -> None:
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "half \ud83d of a cat"})
    assert json.loads(written_message(SessionMessage(answer)))["result"]["text"] == "half ? of a cat"


def test_an_error_bears_the_id_of_what_was_wrong() -> None:
    for line, number in ((b'{"id": 7}', 7), (b'{"id": "a"}', "a"), (b'{"id": true}', None), (b"[1]", None)):
        found = read_message(line)
        assert isinstance(found, JSONRPCError)
        assert found.id == number


def test_a_line_that_is_too_long_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE", 10)
    data = b"\n \r\nshort\n" + b"a" * 10 + b"\n" + b"b" * 35 + b"\nlast one\nno end"
    assert list(lines(io.BytesIO(data))) == [b"short\n", None, None, b"last one\n", b"no end"]
    assert list(lines(io.BytesIO(b"c" * 99))) == [None]


STRAY = """
import os, subprocess, sys
from afterwatch.tools.stdio import claimed
with claimed() as (source, sink):
    print("stray", flush=True)
    subprocess.run([sys.executable, "-c", "print('child', input('?'))"], stderr=subprocess.DEVNULL)
    sink.write(source.readline())
"""


def test_what_else_prints_or_reads_is_kept_from_the_wire() -> None:
    done = subprocess.run([sys.executable, "-c", STRAY], input=b"wire\n", capture_output=True, check=True)
    assert done.stdout == b"wire\n"
    assert done.stderr.splitlines()[0] == b"stray"


@pytest.mark.parametrize(("closing", "status"), [("<&-", 2), (">&-", 2), ("2>&-", 0)])
def test_closed_streams_end_the_command_cleanly(closing: str, status: int) -> None:
    line = f"{sys.executable} -m afterwatch.cli mcp {closing}"
    done = subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
