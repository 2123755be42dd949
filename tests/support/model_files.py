"""Small model files made here: GGUF, a byte-level tokenizer, a folder in Hugging Face's layout."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from pygpukit.models.dequantise import BLOCKS

_FORMS = {int: (4, "<I"), float: (6, "<f"), bool: (7, "<?")}
NUMBER_OF = {block.name: number for number, block in BLOCKS.items()}


def text(value: str) -> bytes:
    """A GGUF string."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def field(value: Any) -> bytes:
    """A GGUF value with its type. Python's int becomes uint32, a list takes the type of its first element."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        if value and isinstance(value[0], str):
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    number, form = _FORMS[type(value)]
    return struct.pack("<I", number) + struct.pack(form, value)


def gguf(fields: dict[str, Any], tensors: dict[str, tuple[str, tuple[int, ...], bytes]], align: int = 32) -> bytes:
    """A GGUF file of version 3; tensors are (type, shape with rows first, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    head += b"".join(text(key) + field(value) for key, value in fields.items())
    data = b""
    for name, (kind, shape, raw) in tensors.items():
        data += b"\0" * (-len(data) % align)
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        head += struct.pack("<IQ", NUMBER_OF[kind], len(data))
        data += raw
    return head + b"\0" * (-len(head) % align) + data


def byte_vocabulary() -> list[str]:
    """One token a byte, as GPT-2 spells them."""
    from pygpukit.models.tokenizer.text_stream import byte_letters

    return list(byte_letters())


def tokenizer_fields(pre: str = "smollm", **more: Any) -> dict[str, Any]:
    """The GGUF metadata of a tokenizer of single bytes, a few merges and three special tokens."""
    tokens = [*byte_vocabulary(), "he", "ll", "hell", "hello", "<|a|>", "<|b|>", "<|c|>"]
    kinds = [1] * (len(tokens) - 3) + [3, 3, 4]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": ["h e", "l l", "he ll", "hell o"],
        "tokenizer.ggml.bos_token_id": tokens.index("<|a|>"),
        "tokenizer.ggml.eos_token_id": tokens.index("<|b|>"),
        **more,
    }


LLAMA = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.context_length": 64,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
}
LLAMA_SHAPES = {
    "token_embd.weight": (263, 32), "output_norm.weight": (32,), "blk.0.attn_norm.weight": (32,),
    "blk.0.attn_q.weight": (32, 32), "blk.0.attn_k.weight": (16, 32), "blk.0.attn_v.weight": (16, 32),
    "blk.0.attn_output.weight": (32, 32), "blk.0.ffn_norm.weight": (32,), "blk.0.ffn_gate.weight": (64, 32),
    "blk.0.ffn_up.weight": (64, 32), "blk.0.ffn_down.weight": (32, 64),
}  # fmt: skip


def tensors(shapes: dict[str, tuple[int, ...]], kind: str = "F32", seed: int = 0) -> dict[str, Any]:
    """Random tensors: floats for F32, else random bytes."""
    rng = np.random.default_rng(seed)
    block = BLOCKS[NUMBER_OF[kind]]
    made = {}
    for name, shape in shapes.items():
        if kind == "F32":
            raw = rng.standard_normal(shape).astype("<f4").tobytes()
        else:
            raw = rng.integers(0, 256, block.size(shape), dtype=np.uint8).tobytes()
        made[name] = (kind, shape, raw)
    return made


def llama(path: Path, **more: Any) -> Path:
    """A whole small LLaMA as a GGUF file."""
    path.write_bytes(gguf({**LLAMA, **tokenizer_fields(), **more}, tensors(LLAMA_SHAPES)))
    return path


def tokenizer_json() -> str:
    """A tokenizer.json of the same tokens."""
    from pygpukit.models.tokenizer.gguf import from_fields

    return str(from_fields(tokenizer_fields(), "made here")._tokenizer.to_str())


def folder(path: Path, weights: dict[str, np.ndarray[Any, Any]], **config: Any) -> Path:
    """A folder in Hugging Face's layout."""
    from safetensors.numpy import save_file

    path.mkdir(exist_ok=True)
    save_file(weights, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    (path / "tokenizer.json").write_text(tokenizer_json())
    settings = {"bos_token": "<|a|>", "eos_token": {"content": "<|b|>"}, "chat_template": "{{ bos_token }}x"}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path


def varint(value: int) -> bytes:
    """An integer of Protocol Buffers."""
    value &= (1 << 64) - 1
    raw = b""
    while value > 127:
        raw, value = raw + bytes([value & 127 | 128]), value >> 7
    return raw + bytes([value])


def message(*fields: tuple[int, Any]) -> bytes:
    """A message of Protocol Buffers: integers as varints, floats as 4 bytes, text and bytes with their length."""
    raw = b""
    for number, value in fields:
        if isinstance(value, int):
            raw += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            raw += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            given = value.encode() if isinstance(value, str) else value
            raw += varint(number << 3 | 2) + varint(len(given)) + given
    return raw


def onnx() -> bytes:
    """An ONNX file with two nodes and initialisers in every form that is read."""
    attributes = (
        message((1, "alpha"), (2, 0.5)),
        message((1, "axis"), (3, -1)),
        message((1, "pads"), (8, 1), (8, 2)),
        message((1, "strides"), (8, varint(3) + varint(-4))),
    )
    nodes = [
        message((1, "x"), (1, "w"), (2, "y"), (3, "/part/conv/Conv"), (4, "Conv"), *((5, a) for a in attributes)),
        message((1, "y"), (2, "z"), (4, "Relu")),
    ]
    weight = np.arange(6, dtype="<f4")
    tensors = [
        message((1, 2), (1, 3), (2, 1), (8, "w"), (9, weight.tobytes())),
        message((1, varint(2)), (2, 3), (8, "q"), (9, b"\x01\xff")),
        message((1, 3), (2, 7), (7, varint(1) + varint(-2) + varint(3)), (8, "shape")),
        message((2, 1), (4, struct.pack("<f", 1.5)), (8, "one")),
        message((2, 2), (5, 200), (8, "byte")),
    ]
    graph = message(*((1, node) for node in nodes), (2, "g"), *((5, tensor) for tensor in tensors))
    return message((1, 8), (7, graph), (8, message((1, ""), (2, 17))))
