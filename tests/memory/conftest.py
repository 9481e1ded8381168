"""What the tests of memory stand on: a home, and the bundled embedder loaded once."""

from pathlib import Path

import pytest

from afterwatch.memory.embedders import Loading, load


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "memory-home"


@pytest.fixture(scope="session")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Loading:
    """The bundled embedder, unpacked and loaded once a session."""
    return Loading.done(load("bundled", tmp_path_factory.mktemp("embedder")))
