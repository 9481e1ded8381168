"""Law: a server of embeddings gets redacted text and nothing unasked; when it fails, memory goes on and says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afterwatch.errors import AfterwatchError, Unavailable, UserError
from afterwatch.memory import Memory
from afterwatch.memory.embedders import Loading, load
from afterwatch.memory.embedders.endpoint import Endpoint
from afterwatch.memory.settings import MemorySettings
from tests.memory.models_server import embeddings
from tests.memory.support import AGENT, Letters, ticking
from tests.net.server import Call, Server, serving

SECRET = "AKIA" + "IOSFODNN7EXAMPLE"


def settings_of(server: Server, key: str = "") -> MemorySettings:
    return MemorySettings(
        embedder="endpoint", endpoint_url=f"{server.url}/v1", endpoint_model="letters", endpoint_key=key
    )


def refused(call: Call) -> None:
    call.reply(500, b"out of order")


class Now:
    """A clock in seconds that is turned by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_vectors_come_in_order_at_length_one() -> None:
    texts = [f"text number {at} about {'cats' * at}." for at in range(70)]
    with serving(embeddings()) as server:
        model = Endpoint.chosen(settings_of(server))
        found = model.encode(texts)
        assert model.encode([]).shape == (0, 32)
    assert (model.id, model.dimensions) == (f"endpoint:127.0.0.1:{server.port}/letters@32", 32)
    assert found.shape == (70, 32)
    assert found.dtype == np.float32
    assert np.abs(found - Letters().encode(texts)).max() < 1e-4
    assert [len(json.loads(call.body)["input"]) for call in server.calls] == [1, 64, 6]
    assert server.calls[0].path == "/v1/embeddings"


def test_secrets_stay_here_and_the_key_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELS_KEY", "sesame")
    with serving(embeddings()) as server:
        Endpoint.chosen(settings_of(server, "MODELS_KEY")).encode([f"the key is {SECRET}"])
    assert all(call.headers["authorization"] == "Bearer sesame" for call in server.calls)
    assert SECRET not in server.calls[-1].body.decode()
    assert "the key is" in server.calls[-1].body.decode()


@pytest.mark.parametrize("value", ["", "two\nlines", "schlüssel"])
def test_a_key_that_is_none_is_the_users_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MODELS_KEY", value)
    with serving(embeddings()) as server, pytest.raises(UserError) as caught:
        Endpoint.chosen(settings_of(server, "MODELS_KEY"))
    assert caught.value.code == "no_key"
    assert not server.calls


def test_without_an_address_nothing_is_asked() -> None:
    with pytest.raises(UserError) as caught:
        Endpoint.chosen(MemorySettings(embedder="endpoint"))
    assert "embedder set endpoint" in caught.value.remedy


def rows(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda answer: {"data": change(answer["data"])}


SPOILT: dict[str, Callable[[Any], Any]] = {
    "no document": lambda answer: [],
    "no rows": lambda answer: {"error": "busy"},
    "too few": rows(lambda data: data[:-1]),
    "one twice": rows(lambda data: [data[0], data[0]]),
    "an index that is none": rows(lambda data: [{**row, "index": "first"} for row in data]),
    "words": rows(lambda data: [{**row, "embedding": ["a"]} for row in data]),
    "ragged": rows(lambda data: [{**row, "embedding": [1.0] * (at + 1)} for at, row in enumerate(data)]),
    "other dimensions": rows(lambda data: [{**row, "embedding": [1.0] * 31} for row in data]),
    "zero": rows(lambda data: [{**row, "embedding": [0.0] * 32} for row in data]),
    "no numbers": rows(lambda data: [{**row, "embedding": [float("nan")] * 32} for row in data]),
    "endless": rows(lambda data: [{**row, "embedding": [1e308] * 32} for row in data]),
    "huge": rows(lambda data: [{**row, "embedding": [1.0] * 9000} for row in data]),
    "numbers without an index": rows(lambda data: [row["embedding"] for row in data]),
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_no_vector_is_never_stored(name: str) -> None:
    with serving(embeddings(), embeddings(shape=SPOILT[name])) as server:
        model = Endpoint.chosen(settings_of(server))
        with pytest.raises(Unavailable) as caught:
            model.encode(["one", "two"])
    assert caught.value.code == "bad_vectors"


def test_a_server_that_fails_costs_vectors_and_nothing_else(home: Path) -> None:
    now = Now()
    answers = [embeddings()] * 3 + [refused] * 2 + [embeddings()]
    with serving(*answers) as server:
        loading = Loading(lambda: load("endpoint", home / "cache", settings_of(server)), retry_after=30, now=now)
        loading.wait()
        with Memory.open(home, clock=ticking(), embedder=loading) as memory:
            assert not memory.add(AGENT, "The quagga stable opens on Mondays").degraded
            assert not memory.search(AGENT, "quagga stable").degraded
            failing = memory.add(AGENT, "The okapi stable opens on Tuesdays")
            assert failing.stored
            assert "500" in failing.degraded[0]
            assert str(server.port) in failing.degraded[0]
            asked = len(server.calls)
            found = memory.search(AGENT, "okapi stable")
            assert found.hits[0].item.id == failing.id
            assert "500" in found.degraded[0]
            assert len(server.calls) == asked, "a server that failed is left alone for a while"
            now.seconds += 30
            assert "500" in memory.warm_up(AGENT)[0], "it failed again"
            now.seconds += 30
            assert memory.warm_up(AGENT) == ()
            assert not memory.search(AGENT, "okapi stable").degraded
            assert memory.stats(AGENT)[0]["vectors"] == {f"endpoint:127.0.0.1:{server.port}/letters@32": 2}


def test_a_search_that_meets_a_dead_server_answers_by_keywords(home: Path) -> None:
    with serving(embeddings(), embeddings(), refused) as server:
        loading = Loading(lambda: load("endpoint", home / "cache", settings_of(server)))
        loading.wait()
        with Memory.open(home, clock=ticking(), embedder=loading) as memory:
            memory.add(AGENT, "The quagga stable opens on Mondays")
            for found in (memory.search(AGENT, "quagga"), memory.relevant(AGENT, "when does the quagga stable open?")):
                assert len(found.hits) == 1
                assert any("500" in word for word in found.degraded)


def test_a_load_that_failed_is_tried_again_after_five_minutes() -> None:
    now, tries = Now(), []

    def start() -> Letters:
        tries.append(now())
        if len(tries) < 3:
            raise Unavailable("broken file")
        return Letters()

    loading = Loading(start, now=now)
    for second in (0, 1, 299):
        now.seconds = second
        assert loading.wait() is None
        assert loading.state == "broken file"
    now.seconds = 300
    assert loading.wait() is None
    now.seconds = 599
    assert loading.wait() is None
    now.seconds = 600
    assert loading.wait() is not None
    assert loading.state is None
    now.seconds = 5000
    loading.wait()
    assert tries == [0, 300, 600]


def test_the_default_asks_nobody(home: Path, bundled: Loading) -> None:
    """The harness fails any test that reaches beyond loopback; here not even that is reached."""
    with serving(embeddings()) as server:
        chosen = MemorySettings(endpoint_url=server.url, endpoint_model="letters")
        with Memory.open(home, settings=chosen, clock=ticking(), embedder=bundled) as memory:
            memory.add(AGENT, "The quagga stable opens on Mondays")
            memory.search(AGENT, "quagga")
            memory.relevant(AGENT, "quagga stable")
        assert not server.calls


def test_errors_are_ours() -> None:
    for url in ("nonsense", "http://models.example/v1"):
        with pytest.raises(AfterwatchError):
            Endpoint.chosen(MemorySettings(endpoint_url=url, endpoint_model="m"))
