"""Law: a host that speaks MCP gets an answer to every call, whatever came before, and the authority of an agent."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from afterwatch.cli.view import user_name
from afterwatch.memory import Channel, Memory, View
from afterwatch.memory.embedders import Loading
from afterwatch.memory.files import database_path
from tests.cli.terminal import at_terminal
from tests.conftest import Run, command, environment
from tests.tools.host import WORDS, ask, hosted, play, refused, text_of, wired

FACT = "The payments queue is drained by hand on Fridays: 猫 🐈."
QUESTION = "who drains the payments queue?"
NO_NETWORK = """
import sys
def watch(event, args):
    reaches = event == "socket.connect" and args[0].family.name != "AF_UNIX"
    if reaches or event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.bind"):
        sys.stderr.write(f"network: {event}\\n")
        raise OSError("no network")
sys.addaudithook(watch)
"""


def home() -> Path:
    return Path(os.environ["AFTERWATCH_HOME"])


def here() -> Memory:
    return Memory.open(home(), embedder=Loading.done(None))


@contextmanager
def locked() -> Iterator[None]:
    """Inside, another process writes the space: a call that wants to write waits."""
    with closing(sqlite3.connect(database_path(home(), "local"), isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def walk(client: Client) -> None:
    """Every tool, with success; the client itself holds each answer against its schema."""
    listed = await client.list_tools()
    assert len(listed.tools) == 8
    fact = await ask(client, "memory_add", text=FACT, tags=["queue"], source="OPS-1")
    await ask(client, "memory_add", key="pref.editor", value="vim")
    newer = await ask(client, "memory_add", key="pref.editor", value="emacs")
    assert newer["result"] == "superseded"
    found = await ask(client, "memory_search", question=QUESTION, limit=3)
    assert (found["items"][0]["id"], found["items"][0]["text"]) == (fact["id"], FACT)
    assert (found["items"][0]["origin"], found["items"][0]["source"]) == ("agent", "OPS-1")
    got = await ask(client, "memory_get", id="pref.editor")
    assert (got["item"]["text"], [one["text"] for one in got["history"]]) == ("emacs", ["vim"])
    assert got["item"]["source"] == "mcp:Test_Host"
    context = await ask(client, "memory_context", question="when is the payments queue drained?")
    assert context["ids"] == [fact["id"]]
    assert f"    > {FACT}" in context["context"].splitlines()
    rule = await ask(client, "learn_add", rule="Ask before draining a node.", category="tool", negative="Drain.")
    assert rule["confirmed"] is False
    assert rule["id"] in rule["next"]
    listing = await ask(client, "learn_list")
    assert (listing["suggested"], listing["items"][0]["negative"]) == (1, "Drain.")
    gone = await ask(client, "learn_remove", ids=[rule["id"]])
    assert gone["outcomes"] == [{"id": rule["id"], "result": "forgotten"}]
    assert (await ask(client, "learn_list"))["items"] == []
    await ask(client, "memory_forget", ids=[fact["id"]])
    assert (await ask(client, "memory_context", question=QUESTION))["ids"] == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_tool_answers_in_any_locale_and_without_network(mode: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK, "utf-8")
    odd = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "cp1252:strict", "PYTHONUTF8": "0"}
    log = tmp_path / "log"

    async def scene() -> None:
        async with hosted(env={**odd, "PYTHONPATH": str(tmp_path)}, mode=mode, log=log) as client:
            await walk(client)

    play(scene)
    assert log.read_text("utf-8") == ""


def test_a_wrong_call_is_answered_and_the_next_one_works() -> None:
    async def scene() -> None:
        async with hosted() as client:
            with pytest.raises(MCPError, match="no tool 'memory_erase'"):
                await client.call_tool("memory_erase", {})
            assert "unknown argument 'txt'" in await refused(client, "memory_add", text=FACT, txt="x")
            assert "text: input should be a valid string" in await refused(client, "memory_add", text=5)
            assert "limit" in await refused(client, "memory_search", question=QUESTION, limit="3")
            assert "question: field required" in await refused(client, "memory_search")
            long = await refused(client, "memory_add", text="a" * 5_000_000)
            assert "too_large" in long
            assert len(long) < 300
            assert "no date" in await refused(client, "memory_search", question=QUESTION, as_of="yesterday")
            assert "what to do" in await refused(client, "memory_get", id="mem-2020-01-01-001")
            assert (await ask(client, "memory_add", text=FACT))["result"] == "inserted"

    play(scene)


BROKEN = [
    b"\n",
    b"\xef\xbb\xbf\r\n",
    b"no json\n",
    b'{"jsonrpc": "2.0", "id": 7, "method":\n',
    b"\xff\xfe\x00\x81\n",
    b"[" * 100_000 + b"\n",
    b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]\n',
    b'{"id": 901, "method": "ping"}\n',
    b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}\n',
    b'{"jsonrpc": "2.0", "id": 902, "method": 5}\n',
    b'{"jsonrpc": "2.0", "id": 903, "result": {}}\n',
    b"9" * 5000 + b"\n",
    b"a" * 16_000_001 + b"\n",
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}\n',
]


def test_after_broken_lines_the_next_call_answers() -> None:
    async def scene() -> None:
        async with wired() as (client, wire):
            for line in BROKEN:
                await wire.write(line)
                await ask(client, "learn_list")
            errors = {answer["id"]: answer["error"] for answer in wire.answers if "error" in answer}
            assert {901, 902, None} <= set(errors)
            assert all("JSON" in error["message"] or "bytes" in error["message"] for error in errors.values())
            assert (await ask(client, "memory_add", text=FACT))["result"] == "inserted"

    play(scene)


def raw_call(number: int, tool: str, arguments: str) -> bytes:
    head = f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": '
    return (head + f'{{"name": "{tool}", "arguments": {arguments}}}}}\n').encode("utf-8", "surrogatepass")


def test_halves_of_characters_are_replaced_and_answered() -> None:
    async def scene() -> None:
        async with wired() as (client, wire):
            await wire.write(raw_call(701, "memory_add", r'{"text": "An escaped half \ud83d of a cat."}'))
            await wire.write(raw_call(702, "memory_add", '{"text": "A raw half \udc08 of another cat."}'))
            await wire.write(raw_call(703, "memory_add", r'{"text": "A whole \ud83d\udc08 cat.", "x\udfff": 1}'))
            await wire.write(raw_call(704, "memory_add", '{"text": "Not a number here.", "importance": NaN}'))
            found = await ask(client, "memory_search", question="half cat")
            said = {answer["id"]: answer["result"] for answer in wire.answers if "result" in answer}
            assert [said[number].get("isError", False) for number in (701, 702, 703, 704)] == [False, False, True, True]
            assert {one["text"][:12] for one in found["items"]} == {"An escaped h", "A raw half \ufffd"}

    play(scene)


def test_a_cancelled_call_ends_whole_or_never_begins() -> None:
    with here() as memory:
        memory.add(View(), "The space is there already.")

    async def scene() -> None:
        async with hosted() as client:
            with locked():
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, "memory_add", {"text": "The first waits for the lock."})
                    await anyio.wait_all_tasks_blocked()
                    group.start_soon(client.call_tool, "memory_add", {"text": "The second waits for its turn."})
                    await anyio.wait_all_tasks_blocked()
                    await client.list_tools()  # it is read after the two, and answered before them
                    group.cancel_scope.cancel()
                await client.list_tools(cache_mode="refresh")  # by now the server has read that they are cancelled
            assert (await ask(client, "memory_add", text=FACT))["result"] == "inserted"

    play(scene)
    with here() as memory:
        texts = [item.text for item in memory.items(View())]
    assert texts == [FACT, "The first waits for the lock.", "The space is there already."]


def test_a_host_that_leaves_in_the_middle_of_a_call_ends_the_server() -> None:
    with here() as memory:
        memory.add(View(), "The space is there already.")

    async def scene() -> None:
        async with wired() as (client, wire):
            await client.list_tools()
            with locked():
                await wire.write(raw_call(801, "memory_add", json.dumps({"text": FACT})))
                await wire.write(raw_call(802, "memory_add", '{"text": "cut off'))
                assert wire.process.stdin is not None
                await wire.process.stdin.aclose()
            assert await wire.process.wait() == 0

    play(scene)
    with here() as memory:
        assert memory.problems(View()) == {"local": []}


def started() -> "subprocess.Popen[bytes]":
    """A server that has answered a first line."""
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [*command(), "mcp"],
        env=environment(WORDS),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        bufsize=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # who runs the tests may ignore Ctrl-C
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b"x\n")
    assert b"not JSON" in server.stdout.readline()
    return server


def test_a_reader_that_is_gone_ends_the_server() -> None:
    with started() as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        server.stdin.write(b"x\n")
        assert server.wait(60) == 0
        assert server.stderr.read() == b""


def test_ctrl_c_ends_the_server_without_a_trace() -> None:
    with started() as server:
        assert server.stderr is not None
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert server.stderr.read() == b""


def test_two_clients_share_one_home() -> None:
    taken: list[str] = []

    async def write(client: Client, who: str) -> None:
        for number in range(10):
            fact = await ask(client, "memory_add", text=f"Host {who} counted pod number {number}.")
            taken.append(fact["id"])

    async def scene() -> None:
        async with hosted() as first, hosted() as second, anyio.create_task_group() as group:
            group.start_soon(write, first, "alpha")
            group.start_soon(write, second, "omega")
        async with hosted() as third:
            found = await ask(third, "memory_search", question="counted pod omega", limit=50)
            assert len(found["items"]) == 20

    play(scene)
    assert len(set(taken)) == 20


def test_the_model_loads_behind_the_answers() -> None:
    """The first answers do not wait for it, and what came in meanwhile is embedded afterwards."""

    async def scene() -> None:
        async with hosted(env={"AFTERWATCH_MEMORY_EMBEDDER": None}) as client:
            await client.list_tools()
            await ask(client, "memory_add", text=FACT)
            while (await ask(client, "memory_search", question=QUESTION)).get("degraded"):
                await anyio.sleep(0.1)

    play(scene)
    with Memory.open(home(), embedder=Loading.done(None)) as memory:
        assert list(memory.stats(View())[0]["vectors"].values()) == [1]


def test_an_agent_does_not_change_what_the_user_said() -> None:
    user = View(channel=Channel.TTY)
    with here() as memory:
        editor = str(memory.remember(user, "pref.editor", "vim").id)
        rule = str(memory.learn(user, "Ask before draining a node.", category="tool").id)
        before = [memory.get(user, one) for one in (editor, rule)]

    async def scene() -> None:
        async with hosted() as client:
            said = await refused(client, "memory_add", key="pref.editor", value="emacs")
            assert "user_holds" in said
            gone = await ask(client, "memory_forget", ids=[editor])
            assert gone["outcomes"][0]["result"] == "requested"
            gone = await ask(client, "learn_remove", ids=[rule])
            assert gone["outcomes"][0]["result"] == "requested"
            assert (await ask(client, "learn_list"))["confirmed"] == 1

    play(scene)
    with here() as memory:
        assert [memory.get(user, one) for one in (editor, rule)] == before


def test_what_an_agent_wrote_is_the_users_once_confirmed(afterwatch: Run) -> None:
    rule: dict[str, Any] = {}

    async def scene() -> None:
        async with hosted() as client:
            rule.update(await ask(client, "learn_add", rule="Look at the graphs first.", category="knowledge"))
            assert at_terminal("memory", "confirm", rule["id"], env=WORDS).code == 0
            listing = await ask(client, "learn_list")
            assert (listing["confirmed"], listing["suggested"]) == (1, 0)

    play(scene)


def test_space_and_scope_are_those_of_the_command() -> None:
    async def scene() -> None:
        async with hosted("--space", "team:ops", "--scope", "project:shop") as client:
            fact = await ask(client, "memory_add", text=FACT)
            wide = await ask(client, "memory_add", text="Everybody here uses tabs.", scope="global")
            said = await refused(client, "memory_add", text="A fact for the bank.", scope="project:bank")
            assert "outside this server" in said
            assert fact["next"].endswith("--space team:ops")
        async with hosted("--space", "team:ops", "--scope", "project:bank") as client:
            await refused(client, "memory_get", id=fact["id"])
            assert (await ask(client, "memory_get", id=wide["id"]))["item"]["space"] == "team:ops"
        async with hosted() as client:
            result = await client.call_tool("memory_search", {"question": QUESTION})
            assert text_of(result).splitlines()[0] == "nothing found"

    play(scene)


def test_a_host_bears_a_plain_name_and_nobody_elses() -> None:
    given = {"tty:ines\n\u202e x": "mcp:tty_ines_x", user_name(): "mcp:mcp-client", "猫": "mcp:mcp-client"}

    async def scene() -> None:
        for name, source in given.items():
            async with hosted(name=name) as client:
                fact = await ask(client, "memory_add", text=f"A fact of host number {list(given).index(name)}.")
                assert (await ask(client, "memory_get", id=fact["id"]))["item"]["source"] == source

    play(scene)


def test_a_person_who_starts_it_is_told_how_to_end_it() -> None:
    code, screen = at_terminal("mcp", typed="\x04", env=WORDS)
    assert code == 0
    assert "Ctrl-D" in screen
    assert "Traceback" not in screen


def test_reading_makes_no_home() -> None:
    async def scene() -> None:
        async with hosted() as client:
            assert (await ask(client, "memory_search", question=QUESTION))["items"] == []

    play(scene)
    assert not home().exists()


def test_the_command_says_what_it_offers(afterwatch: Run) -> None:
    code, out, err = afterwatch("mcp", "--tools")
    assert (code, err) == (0, "")
    assert "memory_context" in out
    tools = json.loads(afterwatch("mcp", "--tools", "--json").stdout)["tools"]
    assert len(tools) == 8
    assert all(tool["arguments"]["additionalProperties"] is False for tool in tools)
