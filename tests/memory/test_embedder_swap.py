"""Law: whatever goes wrong while the embedder changes, the old one and its settings stay; two are never in memory."""

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory import Memory
from afterwatch.memory.embedders import Embedder, Loading, load
from afterwatch.memory.embedders.record import FILE, PROBE, Record, choice_of, model_of, read_record, recognised
from afterwatch.memory.embedders.swap import Change, change
from afterwatch.memory.settings import MemorySettings
from tests.memory.models_server import embeddings
from tests.memory.support import AGENT, Letters, ticking
from tests.net.server import serving

OLD, NEW = {"embedder": "old"}, {"embedder": "new"}


class Written:
    """Stands for the settings: what was written, and a fault if one is planned."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.values: dict[str, str] = dict(OLD)
        self.fault = fault

    def __call__(self, values: Any) -> None:
        if self.fault is not None:
            raise self.fault
        self.values = dict(values)


def plan(home: Path, build: Callable[[], Embedder], configure: Callable[[Any], None]) -> Change:
    home.mkdir(exist_ok=True)
    return Change(home=home, build=build, choice=NEW, previous=OLD, configure=configure)


def served() -> Loading:
    loading = Loading(lambda: Letters("old-1"))
    loading.wait()
    return loading


def spoilt(change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Callable[[], Embedder]:
    class Spoilt(Letters):
        def encode(self, texts: Sequence[str]) -> Any:
            return change(super().encode(texts))

    return lambda: Spoilt("new-1")


def fails(error: Exception) -> Callable[[], Embedder]:
    def build() -> Embedder:
        raise error

    return build


def test_the_new_one_serves_and_the_settings_name_it(home: Path) -> None:
    serving_, written = served(), Written()
    found = change(plan(home, lambda: Letters("new-1"), written), serving_)
    assert found.id == "new-1"
    assert serving_.now() is found
    assert serving_.state is None
    assert written.values == NEW
    record = read_record(home)
    assert record.previous == OLD
    assert record.known["new-1"].choice == NEW


FAULTS: dict[str, Callable[[], Embedder]] = {
    "no such file": fails(Unavailable("no such file")),
    "wrong address": fails(UserError("wrong address")),
    "a library's own error": fails(RuntimeError("segment of the model")),
    "out of memory": fails(MemoryError()),
    "too few vectors": spoilt(lambda found: found[:-1]),
    "other dimensions": spoilt(lambda found: found[:, :5]),
    "no numbers": spoilt(lambda found: found * np.nan),
    "not of length one": spoilt(lambda found: found * 2),
    "one vector for all": spoilt(lambda found: np.repeat(found[:1], len(found), axis=0)),
    "another vector each time": spoilt(lambda found: np.roll(np.eye(*found.shape, dtype=np.float32), 1, axis=1)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_candidate_that_fails_changes_nothing(home: Path, name: str) -> None:
    serving_, written = served(), Written()
    with pytest.raises((Unavailable, UserError)):
        change(plan(home, FAULTS[name], written), serving_)
    left_as_it_was(home, serving_, written)


def left_as_it_was(home: Path, serving_: Loading, written: Written) -> None:
    assert written.values == OLD
    assert read_record(home) == Record()
    old = serving_.wait()
    assert old is not None
    assert old.id == "old-1"
    assert serving_.state is None


def test_a_candidate_that_never_comes_changes_nothing(home: Path) -> None:
    gate, serving_, written = threading.Event(), served(), Written()

    def build() -> Embedder:
        gate.wait()
        return Letters("new-1")

    with pytest.raises(Unavailable) as caught:
        change(plan(home, build, written), serving_, seconds=0.01)
    gate.set()
    assert "not ready" in str(caught.value)
    left_as_it_was(home, serving_, written)


def test_a_record_that_cannot_be_written_changes_nothing(home: Path) -> None:
    serving_, written = served(), Written()
    planned = plan(home, lambda: Letters("new-1"), written)
    (home / FILE).mkdir()
    with pytest.raises(Unavailable):
        change(planned, serving_)
    left_as_it_was(home, serving_, written)
    assert {path.name for path in home.iterdir()} <= {FILE, ".embedder.lock"}, "no scratch file stays"


@pytest.mark.parametrize("fault", [Unavailable("disk full"), UserError("enforced"), KeyboardInterrupt()])
def test_settings_that_cannot_be_written_change_nothing(home: Path, fault: Exception) -> None:
    serving_, written = served(), Written(fault)
    with pytest.raises(type(fault)):
        change(plan(home, lambda: Letters("new-1"), written), serving_)
    left_as_it_was(home, serving_, written)


def test_trying_out_changes_nothing(home: Path) -> None:
    serving_, written = served(), Written()
    assert change(plan(home, lambda: Letters("new-1"), written), serving_, validate_only=True).id == "new-1"
    left_as_it_was(home, serving_, written)


def test_a_second_change_meanwhile_is_refused(home: Path) -> None:
    serving_, written, second = served(), Written(), Written()

    def build() -> Embedder:
        with pytest.raises(Unavailable) as caught:
            change(plan(home, lambda: Letters("other-1"), second), Loading(lambda: Letters("old-1")))
        assert caught.value.code == "busy"
        return Letters("new-1")

    assert change(plan(home, build, written), serving_).id == "new-1"
    assert (written.values, second.values) == (NEW, OLD)


def test_the_old_model_is_gone_before_the_new_one_is_built(home: Path) -> None:
    serving_ = served()
    old = serving_.now()
    assert old is not None
    alive, seen = weakref.ref(old), []
    del old

    def build() -> Embedder:
        gc.collect()
        seen.append((alive(), serving_.now(), serving_.state))
        return Letters("new-1")

    change(plan(home, build, Written()), serving_)
    assert seen == [(None, None, "changing, search is by keywords")]


def test_search_and_writes_go_on_meanwhile_and_the_sweep_repairs(home: Path) -> None:
    serving_ = served()
    with Memory.open(home, clock=ticking(), embedder=serving_) as memory:
        memory.add(AGENT, "The quagga stable opens on Mondays")
        degraded: list[tuple[str, ...]] = []

        def build() -> Embedder:
            degraded.append(memory.search(AGENT, "quagga").degraded)
            degraded.append(memory.add(AGENT, "The okapi stable opens on Tuesdays").degraded)
            assert len(memory.search(AGENT, "okapi stable").hits) == 2
            return Letters("new-1", 16)

        change(plan(home, build, Written()), serving_)
        assert all("changing" in word for words in degraded for word in words)
        assert "some items have none yet" in memory.search(AGENT, "quagga").degraded[0]
        steps: list[tuple[int, int]] = []
        assert memory.warm_up(AGENT, progress=lambda done, total: steps.append((done, total))) == ()
        assert steps == [(2, 2)]
        assert memory.stats(AGENT)[0]["vectors"] == {"new-1": 2}
        assert not memory.search(AGENT, "okapi").degraded


def test_a_sweep_that_breaks_off_is_finished_by_the_next(home: Path) -> None:
    class Failing(Letters):
        broken = False

        def encode(self, texts: Sequence[str]) -> Any:
            if self.broken:
                raise Unavailable("the server is gone")
            return super().encode(texts)

    serving_, candidate = served(), Failing("new-1")
    with Memory.open(home, clock=ticking(), embedder=serving_) as memory:
        memory.add(AGENT, "The quagga stable opens on Mondays")
        change(plan(home, lambda: candidate, Written()), serving_)
        candidate.broken = True
        assert "the server is gone" in memory.warm_up(AGENT)[0]
        assert memory.search(AGENT, "quagga").hits
        assert memory.stats(AGENT)[0]["vectors"] == {"old-1": 1}
    candidate.broken = False
    with Memory.open(home, clock=ticking(), embedder=Loading.done(candidate)) as memory:
        assert memory.warm_up(AGENT) == ()
        assert memory.stats(AGENT)[0]["vectors"] == {"new-1": 1}


# -- the record ------------------------------------------------------------------------------------------------------


def test_another_model_behind_the_same_name_is_noticed_and_its_vectors_kept_apart(home: Path) -> None:
    home.mkdir()
    first, second = Letters("first", 32), Turned("second", 32)
    with serving(*[embeddings(first)] * 4, embeddings(second)) as server:
        settings = MemorySettings(embedder="endpoint", endpoint_url=server.url, endpoint_model="m")
        planned = Change(
            home=home,
            build=lambda: build(home, settings),
            choice=choice_of(settings),
            previous=OLD,
            configure=Written(),
        )
        one = change(planned, served()).id
        assert model_of(settings, home) == one
        assert load("endpoint", home / "cache", settings) is not None
        with pytest.raises(Unavailable) as caught:
            load("endpoint", home / "cache", settings)
        assert caught.value.code == "embedder_changed"
        two = change(planned, served()).id
        assert two == f"{one}#2"
        assert model_of(settings, home) == two
        again = load("endpoint", home / "cache", settings)
        assert again is not None
        assert again.id == two


class Turned(Letters):
    """The same dimensions, other vectors."""

    def encode(self, texts: Sequence[str]) -> Any:
        return np.roll(super().encode(texts), 7, axis=1)


def build(home: Path, settings: MemorySettings) -> Embedder:
    from afterwatch.memory.embedders import build as build_

    return build_("endpoint", home / "cache", settings)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"known": {"a": 1}, "previous": null}', "[" * 100_000, "\0"])
def test_a_damaged_record_is_no_record(home: Path, text: str) -> None:
    home.mkdir()
    (home / FILE).write_text(text)
    assert read_record(home) == Record()
    assert recognised(Letters(), home).id == "letters-1"
    assert PROBE
