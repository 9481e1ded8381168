"""Law: only the pinned file gets the model's name, whatever the network does; and nobody downloads unasked."""

import hashlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from afterwatch.errors import AfterwatchError, Unavailable
from afterwatch.memory import Memory
from afterwatch.memory.embedders import Loading
from afterwatch.memory.embedders.download import BACKGROUND, INTERACTIVE, SKIP, Downloads, Means, Pin
from afterwatch.memory.embedders.gguf import downloads
from afterwatch.memory.settings import MemorySettings
from afterwatch.net.client import Client
from afterwatch.net.settings import NetSettings
from tests.memory.support import AGENT, ticking
from tests.net.server import Answer, Call, Server, serving

MODEL = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(MODEL).hexdigest()
HALF = len(MODEL) // 2


@dataclass
class World:
    """What a download meets: pauses that it asks for, without waiting; variables; free space."""

    environment: dict[str, str] = field(default_factory=dict)
    pauses: list[float] = field(default_factory=list)
    free: int = 1 << 40
    settings: NetSettings = field(default_factory=NetSettings)

    def means(self, home: Path) -> Means:
        def pause(seconds: float) -> bool:
            self.pauses.append(seconds)
            return False

        elsewhere = {"OLLAMA_MODELS": str(home / "ollama"), "HF_HOME": str(home / "hub")}
        return Means(
            lambda pin: Client(pin.url, self.settings, redirects=pin.redirects),
            pause,
            {**elsewhere, **self.environment},
            lambda folder: self.free,
        )


def pinned(server: Server, **more: Any) -> Pin:
    return replace(Pin("m.gguf", f"{server.url}/m.gguf", SHA256, least_bytes=1000), **more)


def ranged(call: Call) -> None:
    """A server that can begin in the middle."""
    asked = call.headers.get("range")
    if asked is None:
        call.reply(200, MODEL)
        return
    start = int(asked.removeprefix("bytes=").rstrip("-"))
    if start >= len(MODEL):
        call.reply(416)
    else:
        call.reply(206, MODEL[start:], Content_Range=f"bytes {start}-{len(MODEL) - 1}/{len(MODEL)}")


def whole(call: Call) -> None:
    """A server that cannot."""
    call.reply(200, MODEL)


def dropped(call: Call) -> None:
    call.begin(200, len(MODEL))
    call.handler.wfile.write(MODEL[:HALF])


def answering(status: int, body: bytes = b"") -> Answer:
    return lambda call: call.reply(status, body)


def got(home: Path, *answers: Answer, world: World | None = None, **pin: Any) -> tuple[Downloads, Server]:
    """A finished download, good or bad."""
    with serving(*answers) as server:
        found = Downloads(home, pinned(server, **pin), (world or World()).means(home))
        found.start(INTERACTIVE).join()
    return found, server


def pieces(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir() if path.is_file() and not path.name.endswith(".lock"))


def test_a_file_comes_is_checked_and_named(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with serving(ranged) as server:
        found = Downloads(tmp_path, pinned(server), World().means(tmp_path))
        path = found.ensure(progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == MODEL
    assert pieces(tmp_path) == ["m.gguf"]
    assert found.status.step == "ready"
    assert seen[-1] == (len(MODEL), len(MODEL))
    assert seen == sorted(seen)
    assert found.ensure() == path, "the server is gone and not asked again"


def test_a_connection_that_breaks_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    world = World()
    found, server = got(tmp_path, dropped, ranged, world=world)
    assert found.path.read_bytes() == MODEL
    start = int(server.calls[1].headers["range"].removeprefix("bytes=").rstrip("-"))
    assert 0 < start <= HALF
    assert world.pauses == [1.0]


def test_a_server_without_ranges_begins_anew(tmp_path: Path) -> None:
    found, server = got(tmp_path, dropped, whole)
    assert found.path.read_bytes() == MODEL
    assert "range" in server.calls[1].headers


def test_a_part_at_another_place_is_not_believed(tmp_path: Path) -> None:
    """A part that was not asked for is left, and what was loaded before is kept."""

    def shifted(call: Call) -> None:
        call.reply(206, MODEL[HALF:], Content_Range=f"bytes 10-{len(MODEL)}/{len(MODEL)}")

    found, server = got(tmp_path, dropped, shifted, ranged)
    assert found.path.read_bytes() == MODEL
    assert len(server.calls) == 3


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_server_that_recovers_is_asked_again(tmp_path: Path, status: int) -> None:
    world = World()
    found, _ = got(tmp_path, answering(status), answering(status), ranged, world=world)
    assert found.path.read_bytes() == MODEL
    assert world.pauses == list(INTERACTIVE)
    assert found.status.attempt == 3


def test_a_server_that_does_not_recover_is_given_up(tmp_path: Path) -> None:
    found, server = got(tmp_path, answering(500))
    assert (found.status.step, len(server.calls)) == ("failed", 3)
    assert "500" in found.status.error
    assert pieces(tmp_path) == []


@pytest.mark.parametrize(
    "answer", [answering(404), answering(403), lambda call: call.reply(302, Location="https://a.example/")]
)
def test_what_cannot_get_better_is_not_tried_again(tmp_path: Path, answer: Answer) -> None:
    found, server = got(tmp_path, answer)
    assert (found.status.step, len(server.calls)) == ("failed", 1)


@pytest.mark.parametrize("body", [b"x" * len(MODEL), MODEL[:-1], MODEL + b"x", b"<html>", b""])
def test_another_file_never_gets_the_name(tmp_path: Path, body: bytes) -> None:
    found, _ = got(tmp_path, answering(200, body))
    assert found.status.step == "failed"
    assert "not the model we know" in found.status.error
    assert pieces(tmp_path) == []


def test_a_pinned_file_that_is_too_small_is_none(tmp_path: Path) -> None:
    found, _ = got(tmp_path, answering(200, b"tiny"), sha256=hashlib.sha256(b"tiny").hexdigest())
    assert found.status.step == "failed"


def test_a_full_disk_is_noticed_before_it_is_full(tmp_path: Path) -> None:
    found, server = got(tmp_path, ranged, world=World(free=len(MODEL)))
    assert "too full" in found.status.error
    assert len(server.calls) == 1
    assert pieces(tmp_path) == []


def test_the_piece_of_a_process_that_died_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / ".m.gguf.999999.part").write_bytes(MODEL[: HALF + 7])
    (tmp_path / ".m.gguf.999998.part").write_bytes(MODEL[:5])
    found, server = got(tmp_path, ranged)
    assert server.calls[0].headers["range"] == f"bytes={HALF + 7}-"
    assert found.path.read_bytes() == MODEL
    assert pieces(tmp_path) == ["m.gguf"]


def test_a_whole_piece_is_not_loaded_again_and_a_spoilt_one_is_thrown_away(tmp_path: Path) -> None:
    part = tmp_path / f".m.gguf.{os.getpid()}.part"
    part.write_bytes(MODEL)
    found, _ = got(tmp_path, ranged)
    assert found.path.read_bytes() == MODEL
    found.path.unlink()
    part.write_bytes(b"x" * len(MODEL))
    found, server = got(tmp_path, ranged)
    assert found.path.read_bytes() == MODEL
    assert len(server.calls) == 2


# -- without the network ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["ollama/blobs/sha256-{}", "hub/hub/models--qwen/blobs/{}"])
def test_an_identical_file_of_another_program_is_copied(tmp_path: Path, place: str) -> None:
    blob = tmp_path / place.format(SHA256)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(MODEL)
    home = tmp_path / "models"
    with serving(ranged) as server:
        found = Downloads(home, pinned(server), World().means(tmp_path))
        assert found.ensure().read_bytes() == MODEL
    assert not server.calls
    assert blob.exists()


def test_a_file_that_only_claims_to_be_identical_is_not(tmp_path: Path) -> None:
    blob = tmp_path / "ollama/blobs" / f"sha256-{SHA256}"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"x" * len(MODEL))
    home = tmp_path / "models"
    with serving(ranged) as server:
        found = Downloads(home, pinned(server), World().means(tmp_path))
        assert found.ensure().read_bytes() == MODEL
    assert len(server.calls) == 1
    assert pieces(home) == ["m.gguf"]


def test_the_variable_that_forbids_it_forbids_it(tmp_path: Path) -> None:
    with serving(ranged) as server:
        found = Downloads(tmp_path, pinned(server), World({SKIP: "1"}).means(tmp_path))
        with pytest.raises(Unavailable) as caught:
            found.ensure()
    assert caught.value.code == "skipped"
    assert not server.calls


def test_offline_forbids_it_too(tmp_path: Path) -> None:
    found, server = got(tmp_path, ranged, world=World(settings=NetSettings(offline=True)))
    assert "offline" in found.status.error
    assert not server.calls


# -- several at once -------------------------------------------------------------------------------------------------


def held(gate: threading.Event, come: threading.Event) -> Answer:
    def answer(call: Call) -> None:
        come.set()
        gate.wait(30)
        ranged(call)

    return answer


def test_threads_share_one_download_and_nobody_is_held_by_it(tmp_path: Path) -> None:
    gate, come = threading.Event(), threading.Event()
    with serving(held(gate, come)) as server:
        found = Downloads(tmp_path, pinned(server), World().means(tmp_path))
        first = found.start(BACKGROUND)
        assert come.wait(30)
        assert first.daemon
        assert found.start() is first
        assert found.status.step == "downloading"
        gate.set()
        assert found.ensure().read_bytes() == MODEL
    assert len(server.calls) == 1


def test_two_that_know_nothing_of_each_other_download_once(tmp_path: Path) -> None:
    """As two processes do: each has its own object, and the lock of the file system is between them."""
    gate, come = threading.Event(), threading.Event()
    with serving(held(gate, come)) as server:
        both = [Downloads(tmp_path, pinned(server), World().means(tmp_path)) for _ in range(2)]
        threads = [both[0].start()]
        assert come.wait(30)
        threads.append(both[1].start())
        gate.set()
        for thread in threads:
            thread.join()
    assert [one.status.step for one in both] == ["ready", "ready"]
    assert len(server.calls) == 1


def test_the_ladder_of_the_background_takes_hours_at_most() -> None:
    assert len(BACKGROUND) == 5
    assert BACKGROUND[0] == 60
    assert max(BACKGROUND) <= 1800
    assert all(late == 2 * early for early, late in pairwise(BACKGROUND))


def test_memory_never_downloads(home: Path) -> None:
    """With the model missing, `add` and `search` say so; they ask no server."""
    with serving(ranged) as server:
        settings = MemorySettings(embedder="gguf", gguf_url=f"{server.url}/m.gguf")
        home.mkdir()
        with Memory.open(home, settings=settings, clock=ticking()) as memory:
            for act in (
                lambda: memory.add(AGENT, "The quagga stable opens on Mondays").degraded,
                lambda: memory.search(AGENT, "quagga").degraded,
                lambda: memory.relevant(AGENT, "quagga stable").degraded,
                lambda: memory.warm_up(AGENT),
            ):
                degraded: Callable[[], tuple[str, ...]] = act
                assert degraded()
            assert "not downloaded" in memory.warm_up(AGENT)[0]
    assert not server.calls
    assert downloads(home / "cache", settings).path == home / "cache/models/qwen3-embedding-0.6b-q8_0.gguf"


def test_errors_of_the_user_come_through(tmp_path: Path) -> None:
    found = Downloads(tmp_path, Pin("m.gguf", "http://models.example/m", SHA256), World().means(tmp_path))
    with pytest.raises(AfterwatchError):
        found.ensure()
    assert Loading.done(None).state == "none"
