"""Law: what leaves is redacted and goes only where it was meant to; what comes back is capped and never trusted."""

import json
from typing import Any

import pytest

from afterwatch.errors import AfterwatchError, Unavailable, UserError
from afterwatch.net import client as net
from afterwatch.net.client import Client, NetStatusError, redacted
from afterwatch.net.settings import NetSettings
from tests.net.server import Call, serving

SECRET = "AKIA" + "IOSFODNN7EXAMPLE"


def echo(call: Call) -> None:
    call.reply(200, json.dumps({"got": json.loads(call.body), "headers": call.headers}).encode())


def test_a_document_goes_out_redacted_and_comes_back() -> None:
    with serving(echo) as server, Client(server.url + "/v1", NetSettings(), key="sesame") as client:
        answer = client.post_json(
            "/embeddings", {"input": [f"the key is {SECRET}", "plain"], "n": 3, "deep": {"a": SECRET}}
        )
    assert server.calls[0].path == "/v1/embeddings"
    assert SECRET not in server.calls[0].body.decode()
    assert answer["got"]["input"][1] == "plain"
    assert answer["got"]["n"] == 3
    assert answer["headers"]["authorization"] == "Bearer sesame"
    assert answer["headers"]["host"] == f"127.0.0.1:{server.port}"


def test_lone_surrogates_and_control_characters_can_be_sent() -> None:
    with serving(echo) as server, Client(server.url, NetSettings()) as client:
        assert client.post_json("/", {"input": "a\ud800\0b"})["got"]["input"].startswith("a")


def test_offline_wins_over_everything() -> None:
    with serving(echo) as server, Client(server.url, NetSettings(offline=True)) as client:
        with pytest.raises(Unavailable) as caught:
            client.post_json("/", {})
        with pytest.raises(Unavailable), client.fetch():
            pass
    assert caught.value.code == "net_offline"
    assert not server.calls


def test_a_name_that_leads_home_is_refused_and_never_connected() -> None:
    """The classic attack: a public name whose address is this machine."""
    with serving(echo) as server:
        url = f"https://evil.example:{server.port}"
        client = Client(url, NetSettings(), resolver=lambda host, port: ["127.0.0.1"])
        with client, pytest.raises(UserError) as caught:
            client.post_json("/", {})
        assert caught.value.code == "net_refused"
        assert not server.calls


def test_the_address_that_was_checked_is_the_one_connected_to() -> None:
    """A resolver that answers otherwise the second time is not asked a second time."""
    answers = iter([["127.0.0.1"]])
    with serving(echo) as server:
        url, settings = f"http://models.test:{server.port}", NetSettings(private_hosts=("models.test",))
        with Client(url, settings, resolver=lambda host, port: next(answers)) as client:
            answer = client.post_json("/", {"a": 1})
    assert answer["headers"]["host"] == f"models.test:{server.port}"


@pytest.mark.parametrize(
    "url",
    ["ftp://a.example", "https://user:pw@a.example", "https://", "a.example", "https://a.example/#x", "http://[", ""],
)
def test_what_is_no_address_is_the_users_error(url: str) -> None:
    with pytest.raises(UserError) as caught:
        Client(url, NetSettings())
    assert "pw" not in str(caught.value)


def test_plain_http_goes_to_private_servers_only() -> None:
    with pytest.raises(UserError) as caught:
        Client("http://models.example/v1", NetSettings())
    assert caught.value.code == "net_plain"


# -- answers ---------------------------------------------------------------------------------------------------------


def failure(server_answer: Any) -> AfterwatchError:
    with serving(server_answer) as server:
        client = Client(server.url, NetSettings(), key="sesame")
        with client, pytest.raises(AfterwatchError) as caught:
            client.post_json("/", {"input": "x"})
    assert "sesame" not in str(caught.value) + caught.value.remedy
    return caught.value


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 204, 302])
def test_other_statuses_name_the_number_and_never_the_body(status: int) -> None:
    found = failure(lambda call: call.reply(status, b"your key sesame is wrong" if status != 204 else b""))
    assert isinstance(found, NetStatusError)
    assert found.status == status
    assert str(status) in str(found)


@pytest.mark.parametrize("body", [b"", b"not json", b"[" * 100_000, b"\xff\xfe"])
def test_no_json_is_unavailable(body: bytes) -> None:
    assert failure(lambda call: call.reply(200, body)).code == "net_answer"


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net, "MOST_JSON", 1000)
    assert failure(lambda call: call.reply(200, b"[" + b"1," * 100_000 + b"1]")).code == "net_too_large"


def test_a_compressed_bomb_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    monkeypatch.setattr(net, "MOST_JSON", 100_000)
    bomb = gzip.compress(b" " * 10_000_000)
    assert failure(lambda call: call.reply(200, bomb, Content_Encoding="gzip")).code == "net_too_large"


def test_a_dripping_server_is_left() -> None:
    ticks = iter(range(0, 10_000, 100))
    with serving(lambda call: call.reply(200, b"[" + b"1," * 300_000 + b"1]")) as server:
        client = Client(server.url, NetSettings(), clock=lambda: float(next(ticks)))
        with client, pytest.raises(Unavailable) as caught:
            client.post_json("/", {})
    assert caught.value.code == "net_timeout"


def test_nobody_there_is_unavailable() -> None:
    with serving(echo) as server:
        url = server.url
    with Client(url, NetSettings()) as client, pytest.raises(Unavailable) as caught:
        client.post_json("/", {})
    assert caught.value.code == "net_failed"


def test_half_an_answer_is_unavailable() -> None:
    def half(call: Call) -> None:
        call.begin(200, 100)
        call.handler.wfile.write(b'{"a"')

    assert failure(half).code == "net_failed"


# -- files and redirects ---------------------------------------------------------------------------------------------


def test_a_file_from_its_middle_on() -> None:
    def answer(call: Call) -> None:
        assert call.headers["range"] == "bytes=4-"
        call.reply(206, b"efgh", Content_Range="bytes 4-7/8")

    with serving(answer) as server, Client(server.url + "/m.gguf", NetSettings()) as client, client.fetch(4) as body:
        assert (body.status, body.start, body.total, b"".join(body.chunks)) == (206, 4, 8, b"efgh")


def test_a_redirect_on_the_same_server_is_followed_and_an_endless_one_is_not() -> None:
    def answer(call: Call) -> None:
        if call.path == "/real":
            call.reply(200, b"file")
        else:
            call.reply(302, Location="/real" if call.path == "/once" else call.path)

    with serving(answer) as server:
        with Client(server.url + "/once", NetSettings()) as client, client.fetch() as body:
            assert b"".join(body.chunks) == b"file"
        with (
            Client(server.url + "/loop", NetSettings()) as client,
            pytest.raises(Unavailable) as caught,
            client.fetch(),
        ):
            pass
    assert caught.value.code == "net_redirect"


@pytest.mark.parametrize(
    "target", ["http://localhost:1/", "https://other.example/", "file:///etc/passwd", "//h\x00st/", "gopher:x"]
)
def test_a_redirect_to_another_server_is_refused(target: str) -> None:
    with serving(lambda call: call.reply(302, Location=target)) as server:
        client = Client(server.url, NetSettings(), redirects=("cdn.example",))
        with client, pytest.raises(AfterwatchError) as caught, client.fetch():
            pass
    assert caught.value.code in ("net_redirect", "net_failed")


def test_a_named_domain_is_followed_but_not_to_private_addresses_and_without_the_key() -> None:
    seen: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        seen.append(host)
        return ["127.0.0.1"]

    with serving(lambda call: call.reply(302, Location="https://a.cdn.example/file")) as server:
        client = Client(server.url, NetSettings(), key="sesame", redirects=("cdn.example",), resolver=resolver)
        with client, pytest.raises(UserError) as caught, client.fetch():
            pass
    assert seen == ["a.cdn.example"]
    assert caught.value.code == "net_refused"
    assert len(server.calls) == 1


def test_redaction_reaches_every_depth() -> None:
    found = redacted({"a": [SECRET, {"b": (SECRET, 1, None, True, 0.5)}]})
    assert SECRET not in json.dumps(found)
    assert found["a"][1]["b"][1:] == [1, None, True, 0.5]
