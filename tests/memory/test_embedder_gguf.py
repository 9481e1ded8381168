"""Law: a model file is looked at before llama.cpp sees it, and any text has a vector."""

import os
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory import Memory
from afterwatch.memory.embedders import load
from afterwatch.memory.embedders.gguf import Gguf
from afterwatch.memory.settings import MemorySettings
from tests.memory.support import AGENT, ticking
from tests.memory.tiny_gguf import WIDTH, write_tiny

ODD = ["", " ", "\0", "\ud800", "zebra " * 3334, "猫" * 20_000, "🚀" * 500, "\n" * 20_000, "a1" * 4000]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "tiny.gguf")


def test_any_text_has_a_vector_of_length_one(tiny: Path) -> None:
    pytest.importorskip("xllamacpp")
    model = Gguf(tiny)
    assert model.id.startswith("gguf:")
    assert model.id.endswith(f"@{WIDTH}")
    found = model.encode([*ODD, "the queue is drained", "the queue is drained"])
    assert found.shape == (len(ODD) + 2, WIDTH)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-3)
    assert np.abs(found[-1] - found[-2]).max() < 1e-5
    assert model.encode([]).shape == (0, WIDTH)


def test_threads_may_ask_at_once(tiny: Path) -> None:
    pytest.importorskip("xllamacpp")
    model, texts = Gguf(tiny), [f"text {at}" for at in range(4)]
    alone, found = model.encode(texts), {}
    threads = [threading.Thread(target=lambda at=at: found.update({at: model.encode(texts)})) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.abs(one - alone).max() < 1e-5 for one in found.values())
    assert len(found) == 3


def test_the_port_of_the_library_serves_nobody(tiny: Path) -> None:
    pytest.importorskip("xllamacpp")
    model = Gguf(tiny)
    request = urllib.request.Request(f"{model._server.listening_address}/v1/embeddings", b'{"input": ["x"]}')
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 401
    caught.value.close()


def test_memory_works_with_it(home: Path, tiny: Path) -> None:
    pytest.importorskip("xllamacpp")
    settings = MemorySettings(embedder="gguf", gguf_file=str(tiny))
    with Memory.open(home, settings=settings, clock=ticking()) as memory:
        memory.warm_up(AGENT)
        memory.add(AGENT, "The quagga stable opens on Mondays")
        assert not memory.search(AGENT, "quagga").degraded
        ((model, count),) = memory.stats(AGENT)[0]["vectors"].items()
    assert model.startswith("gguf:")
    assert count == 1


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x09\0\0\0", b"PK\3\4" + b"x" * 100, b"<html>"])
def test_what_is_no_model_is_the_users_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        Gguf(path)
    assert caught.value.code == "no_model"
    with pytest.raises(UserError):
        Gguf(tmp_path / "missing.gguf")
    with pytest.raises(UserError):
        Gguf(tmp_path)


def test_a_key_file_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / ".ssh" / "id_ed25519"
    path.parent.mkdir()
    path.write_bytes(b"GGUF\x03\0\0\0")
    with pytest.raises(UserError):
        Gguf(path)


@pytest.mark.skipif(os.name != "posix", reason="a pipe is POSIX")
def test_a_pipe_does_not_hold_us(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(UserError):
        Gguf(tmp_path / "pipe.gguf")


def test_a_file_that_only_begins_like_a_model_is_unavailable(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + b"\xff" * 1000)
    with pytest.raises(Unavailable) as caught:
        Gguf(path)
    assert caught.value.code == "no_embedder"


def test_without_a_file_nothing_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        load("gguf", tmp_path / "cache", MemorySettings(embedder="gguf"))
    assert caught.value.code == "no_model"
    assert "embedder set gguf" in caught.value.remedy
