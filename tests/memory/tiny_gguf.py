"""Writes a GGUF embedding model of 60 KB: one layer of BERT with random weights, words of single letters."""

import struct
from pathlib import Path

import numpy as np

WIDTH, INNER, CONTEXT = 32, 64, 128
ALIGNMENT = 32
UINT32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _array(kind: int, parts: list[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(parts)) + b"".join(parts)


def _fields() -> list[tuple[str, int, bytes]]:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *(f"\u2581{letter}" for letter in letters), *letters]
    kinds = [struct.pack("<i", 3 if word in special else 1) for word in words]
    numbers = {
        "bert.context_length": CONTEXT,
        "bert.embedding_length": WIDTH,
        "bert.feed_forward_length": INNER,
        "bert.block_count": 1,
        "bert.attention.head_count": 2,
        "bert.pooling_type": 1,
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 3,
        "tokenizer.ggml.seperator_token_id": 3,
        "tokenizer.ggml.mask_token_id": 4,
    }
    return [
        ("general.architecture", STRING, _text("bert")),
        *((name, UINT32, struct.pack("<I", value)) for name, value in numbers.items()),
        ("bert.attention.layer_norm_epsilon", FLOAT32, struct.pack("<f", 1e-12)),
        ("bert.attention.causal", BOOL, b"\0"),
        ("tokenizer.ggml.model", STRING, _text("bert")),
        ("tokenizer.ggml.pre", STRING, _text("default")),
        ("tokenizer.ggml.tokens", ARRAY, _array(STRING, [_text(word) for word in words])),
        ("tokenizer.ggml.token_type", ARRAY, _array(INT32, kinds)),
    ]


def _tensors() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (77, WIDTH),
        "token_types.weight": (2, WIDTH),
        "position_embd.weight": (CONTEXT, WIDTH),
        **{f"blk.0.attn_{part}.weight": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")},
        "blk.0.ffn_up.weight": (INNER, WIDTH),
        "blk.0.ffn_down.weight": (WIDTH, INNER),
    }
    norms = ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm")
    zeros = {f"blk.0.attn_{part}.bias": WIDTH for part in ("q", "k", "v", "output")}
    zeros |= {"blk.0.ffn_up.bias": INNER, "blk.0.ffn_down.bias": WIDTH, **{f"{norm}.bias": WIDTH for norm in norms}}
    return {
        **{name: (random.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()},
        **{f"{norm}.weight": np.ones(WIDTH, np.float32) for norm in norms},
        **{name: np.zeros(size, np.float32) for name, size in zeros.items()},
    }


def write_tiny(path: Path) -> Path:
    """Write the model; equal bytes each time."""
    fields, tensors = _fields(), _tensors()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    for name, kind, value in fields:
        head += _text(name) + struct.pack("<I", kind) + value
    body = b""
    for name, tensor in tensors.items():
        sizes = tensor.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, len(body))
        body += tensor.tobytes() + b"\0" * (-tensor.nbytes % ALIGNMENT)
    path.write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + body)
    return path
