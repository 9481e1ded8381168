"""The `gguf` embedder: a model file run by llama.cpp inside this process. Needs the extra `gguf`.

The package `xllamacpp` holds llama.cpp ready built. Its server object is used as a library; the port that it opens on
loopback wants a key that nobody has.
"""

import hashlib
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterwatch.errors import Unavailable, UserError
from afterwatch.memory.embedders import clean
from afterwatch.memory.embedders.download import QWEN, Downloads, Pin, Progress
from afterwatch.memory.settings import MemorySettings
from afterwatch.security.reading import sensitive_kind

MAGIC = b"GGUF"
VERSIONS = (2, 3)
CONTEXT = 2048
"""Tokens of one text: `MAX_CHARACTERS` of any script, nearly always; what is longer is cut in half until it fits."""


class Gguf:
    """Vectors of a GGUF model. One text at a time is computed: the model is not made for several threads."""

    def __init__(self, path: Path) -> None:
        """Load a model file.

        Raises:
            UserError: the file is no GGUF model. Unavailable: the extra is missing, or llama.cpp refuses the file.
        """
        digest = checked_file(path)
        try:
            import xllamacpp
        except ImportError as error:
            raise Unavailable(
                "the embedder gguf needs xllamacpp", remedy="pip install 'afterwatch[gguf]'", code="no_embedder"
            ) from error
        try:
            self._server: Any = xllamacpp.Server(_parameters(xllamacpp, path))
        except (RuntimeError, ValueError) as error:
            raise Unavailable(
                f"llama.cpp cannot load {path.name}", remedy="use a GGUF file of an embedding model", code="no_embedder"
            ) from error
        self._lock = threading.Lock()
        self.dimensions = 0
        self.dimensions = len(self._one("dimensions"))
        self.id = f"gguf:{digest[:16]}@{self.dimensions}"

    @classmethod
    def chosen(cls, cache: Path, settings: MemorySettings) -> "Gguf":
        """The user's own file, or the one that was downloaded. Downloads nothing.

        Raises:
            Unavailable: it was not downloaded yet. Otherwise as by loading it.
        """
        if settings.gguf_file:
            return cls(Path(settings.gguf_file).expanduser())
        path = downloads(cache, settings).path
        if not path.is_file():
            raise Unavailable(
                "the GGUF model is not downloaded yet", remedy="afterwatch memory embedder set gguf", code="no_model"
            )
        return cls(path)

    def close(self) -> None:
        """Let go of the model."""
        self._server = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of float32, shape (number of texts, `dimensions`)."""
        rows = [self._one(clean(text)) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.dimensions)

    def _one(self, text: str) -> NDArray[np.float64]:
        while True:
            with self._lock:
                answer = self._server.handle_embeddings({"input": [text]})
            if "data" in answer:
                break
            if len(text) <= 1:
                raise Unavailable("llama.cpp gives no vector", remedy="use an embedding model", code="bad_vectors")
            text = text[: len(text) // 2]  # more tokens than the model takes
        found = np.asarray(answer["data"][0]["embedding"], np.float64)
        norm = float(np.linalg.norm(found))
        if found.ndim != 1 or not np.isfinite(norm) or norm == 0:
            raise Unavailable("llama.cpp gives vectors that are no numbers", code="bad_vectors")
        return found / norm


def downloads(cache: Path, settings: MemorySettings) -> Downloads:
    """The download of the pinned model into a home's cache, from a mirror if one is set."""
    pin = QWEN
    if settings.gguf_url:
        pin = Pin(QWEN.name, settings.gguf_url, QWEN.sha256)
    return Downloads(cache / "models", pin)


def fetch(cache: Path, settings: MemorySettings, progress: Progress | None = None) -> None:
    """Download the model if the settings name no file of the user's own. For commands that were asked to.

    Raises:
        Unavailable, UserError: as by `Downloads.ensure`.
    """
    if not settings.gguf_file:
        downloads(cache, settings).ensure(progress=progress)


def checked_file(path: Path) -> str:
    """The sha256 of a file that begins like a GGUF model.

    Raises:
        UserError: it is none, or may hold a secret.
    """
    remedy = "name a .gguf file: afterwatch memory embedder set gguf --file PATH"
    if sensitive_kind(path) is not None or not path.is_file():
        raise UserError(f"{path} is no model file", remedy=remedy, code="no_model")
    try:
        with path.open("rb") as file:
            head = file.read(8)
            if head[:4] != MAGIC or int.from_bytes(head[4:], "little") not in VERSIONS:
                raise UserError(f"{path} is no GGUF model", remedy=remedy, code="no_model")
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be read: {error.strerror}", remedy="check its mode", code="no_model"
        ) from error


def _parameters(library: Any, path: Path) -> Any:
    found = library.CommonParams()
    found.model.path = str(path)
    found.embedding = True
    found.n_ctx = found.n_batch = found.n_ubatch = CONTEXT
    found.n_parallel = 1
    found.n_gpu_layers = 0
    found.warmup = False
    found.offline = True
    found.verbosity = -1
    found.port = 0
    found.api_keys = [secrets.token_urlsafe(32)]
    return found
