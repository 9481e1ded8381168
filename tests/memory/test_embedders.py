"""Law: vectors help and are never needed: missing, loading, changed or of another model, search goes on and says so."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory import Draft, Memory
from afterwatch.memory.embedders import Embedder, Loading, load
from afterwatch.memory.embedders.bundled import Bundled, weight_files
from afterwatch.memory.reading import Condition
from afterwatch.memory.vectors import Matrix
from tests.memory.support import AGENT, USER, Letters, connect, ids, keywords_only, ticking

TEXT = "The zebra crossing is closed on Mondays"


def opened(home: Path, embedder: Loading) -> Memory:
    return Memory.open(home, clock=ticking(), embedder=embedder)


def works(memory: Memory) -> tuple[str, ...]:
    """Writes and finds, and returns what search says is missing."""
    kept = memory.add(AGENT, TEXT)
    found = memory.search(AGENT, "zebra")
    assert [hit.item.id for hit in found.hits] == [kept.id]
    assert memory.relevant(AGENT, "the zebra crossing").hits
    return found.degraded


def absent() -> Embedder:
    raise Unavailable("the weights package is not installed", remedy="install it", code="no_embedder")


def uninstalled() -> Embedder:
    raise ModuleNotFoundError("No module named 'numpy'")


def unreadable() -> Embedder:
    raise OSError("cache")


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (absent, "vectors: the weights package is not installed"),
        (uninstalled, "vectors: cannot be loaded (ModuleNotFoundError)"),
        (unreadable, "vectors: cannot be loaded (OSError)"),
        (lambda: load("no such", Path()), "vectors: no embedder 'no such'"),
        (lambda: load("none", Path()), "vectors: none"),
    ],
)
def test_without_an_embedder_everything_works_and_says_so(
    home: Path, start: Callable[[], Embedder | None], said: str
) -> None:
    loading = Loading(start)
    assert loading.wait() is None
    with opened(home, loading) as memory:
        assert works(memory) == (said,)
        assert memory.warm_up(AGENT) == (said,)


def test_search_never_waits_for_a_model(home: Path) -> None:
    """The model is released only after everything was answered: whoever waited for it would wait for ever."""
    release, model = threading.Event(), Letters()

    def start() -> Embedder:
        release.wait()
        return model

    with opened(home, Loading(start)) as memory:
        assert works(memory) == ("vectors: loading",)
        assert model.encoded == 0
        release.set()
        assert memory.warm_up(AGENT) == ()
        assert memory.search(AGENT, "zebra").degraded == ()
        assert model.encoded > 0


def test_items_written_meanwhile_are_said_to_lack_vectors(home: Path) -> None:
    with keywords_only(home) as memory:
        memory.add(AGENT, TEXT)
    with opened(home, Loading.done(Letters())) as memory:
        assert memory.search(AGENT, "zebra").degraded == ("vectors: some items have none yet",)
        memory.add(AGENT, "The quagga stable opens on Tuesdays")
        assert memory.search(AGENT, "zebra").degraded == ("vectors: some items have none yet",)
        assert memory.warm_up(AGENT) == ()
        assert memory.search(AGENT, "zebra").degraded == ()


# --- two models -------------------------------------------------------------------------------------


def models(home: Path) -> dict[str, int]:
    with closing(connect(home)) as connection:
        return dict(connection.execute("SELECT model, count(*) FROM vectors GROUP BY model"))


def test_vectors_of_two_models_are_never_mixed(home: Path) -> None:
    drafts = [Draft(f"Note {at} is about zebras and their stripes") for at in range(7)]
    with opened(home, Loading.done(Letters("one", 16))) as memory:
        memory.add_many(AGENT, drafts)
    with keywords_only(home) as memory:
        by_words = [(hit.item.id, round(hit.score, 6)) for hit in memory.search(AGENT, "zebras").hits]
    with opened(home, Loading.done(Letters("two", 24))) as memory:
        found = memory.search(AGENT, "zebras", explain=True)
        assert [(hit.item.id, round(hit.score, 6)) for hit in found.hits] == by_words, "as if there were none"
        assert found.degraded == ("vectors: some items have none yet",)
        assert models(home) == {"one": 7}
        assert memory.warm_up(AGENT) == ()
        assert models(home) == {"two": 7}
        assert memory.search(AGENT, "zebras").degraded == ()


def test_a_repeat_is_not_judged_by_a_vector_of_another_model(home: Path) -> None:
    with opened(home, Loading.done(Letters("one"))) as memory:
        memory.add(AGENT, "Keep 30 days of logs on the zebra host")
    with opened(home, Loading.done(Letters("two"))) as memory:
        other = memory.add(AGENT, "Keep 90 days of logs on the zebra host")
        assert len(ids(memory, "zebra")) == 2
        assert other.near


# --- the matrix -------------------------------------------------------------------------------------


def test_the_matrix_follows_other_writers_and_a_restore(home: Path, tmp_path: Path) -> None:
    with opened(home, Loading.done(Letters())) as one, opened(home, Loading.done(Letters())) as other:
        first = one.add(AGENT, TEXT).id
        one.backup(USER, tmp_path / "backup.db")
        assert ids(other, "striped horse crossing") == [first]
        value = one.remember(AGENT, "pref.animal", "okapi", valid_from=1)
        assert set(ids(other, "xyz")) == {first, value.id}, "without a common word the vectors find it"
        newer = one.remember(AGENT, "pref.animal", "tapir", valid_from=2)
        assert set(ids(other, "xyz")) == {first, newer.id}
        one.restore(USER, tmp_path / "backup.db")
        assert ids(other, "xyz") == [first]


@pytest.fixture
def snapshots(home: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    """Two readers of one store: the first began before the second item was written."""
    with opened(home, Loading.done(Letters())) as memory:
        memory.add(AGENT, TEXT)
        with closing(connect(home)) as older, closing(connect(home)) as newer:
            older.execute("BEGIN")
            older.execute("SELECT count(*) FROM items").fetchone()
            memory.add(AGENT, "The quagga stable opens on Tuesdays")
            yield older, newer


def test_a_reader_of_an_older_state_leaves_nothing_behind(
    snapshots: tuple[sqlite3.Connection, sqlite3.Connection],
) -> None:
    """Two threads share the matrix: what one that began earlier may see is no measure for the others."""
    older, newer = snapshots
    model = Letters()
    matrix, asked, wanted = Matrix(model), model.encode(["quagga"])[0], Condition("layer = ?", ("episodic",))
    matrix.follow(newer)
    assert matrix.nearest(older, asked, 10, wanted).rows == [1]
    assert matrix.nearest(newer, asked, 10, wanted).rows == [2, 1]
    assert len(matrix) == 2


# --- the bundled weights ----------------------------------------------------------------------------


def test_near_meanings_without_a_common_word(home: Path, bundled: Loading) -> None:
    with opened(home, bundled) as memory:
        memory.add_many(AGENT, [Draft("My cat is called Miso"), Draft("The invoices are sent on Fridays")])
        for question in ("a kitten's name", "¿Cómo se llama el gato?", "猫の名前"):
            assert memory.search(AGENT, question).hits[0].item.text == "My cat is called Miso", question


ODD = ["", " ", "\0", "\ud800", "a\ud800b\udfff", "zebra " * 3334, "猫" * 20_000, "🚀" * 500, "\u202e", "\n" * 20_000]


def test_odd_texts_have_vectors(bundled: Loading) -> None:
    model = bundled.wait()
    assert model is not None
    vectors = model.encode(ODD)
    assert vectors.shape == (len(ODD), model.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-3)
    assert model.encode([]).shape == (0, model.dimensions)


@settings(max_examples=10)
@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=400), min_size=1, max_size=12))
def test_a_batch_equals_its_parts(texts: list[str], bundled: Loading) -> None:
    model = bundled.wait()
    assert model is not None
    together = model.encode(texts)
    apart = np.concatenate([model.encode([text]) for text in texts])
    assert np.abs(together - apart).max() <= 1e-5
    assert np.array_equal(model.encode(texts), together), "equal texts give equal vectors"


@pytest.mark.parametrize("name", ["weights.npz", "sp.model"])
def test_changed_weights_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "resources"
    folder.mkdir()
    for file in weight_files().values():
        shutil.copy(file, folder)
    with (folder / name).open("r+b") as changed:
        changed.seek(1000)
        byte = changed.read(1)
        changed.seek(1000)
        changed.write(bytes([byte[0] ^ 1]))
    with pytest.raises(Unavailable) as caught:
        Bundled(tmp_path / "cache", folder)
    assert caught.value.code == "weights_changed"
    assert caught.value.remedy
    assert not (tmp_path / "cache").exists(), "nothing of it was unpacked"


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        Bundled(tmp_path / "cache", tmp_path)
    assert caught.value.code == "no_embedder"


def test_an_unknown_name_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        load("no such", tmp_path)
