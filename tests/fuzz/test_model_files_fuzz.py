"""Damaged model files: each opens or is refused with a ModelFileError; nothing stays open, nothing grows, nothing dies.

PYGPUKIT_FUZZ_FILES sets how many files are made. A failure prints the number of its file; PYGPUKIT_FUZZ_FIRST begins
there.
"""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import model_files
import numpy as np
import pytest
from safetensors.numpy import save

from pygpukit.core.errors import ModelFileError
from pygpukit.llm import ChatTemplate, SafeTensorsFile, ShardedSafeTensorsFile, Tokenizer
from pygpukit.models import open_checkpoint
from pygpukit.models.onnx import OnnxFile

FILES = int(os.environ.get("PYGPUKIT_FUZZ_FILES", "10000"))
FIRST = int(os.environ.get("PYGPUKIT_FUZZ_FIRST", "0"))
MOST_MIB = 400  # what the process may grow by; a length that is believed asks for more
NUMBERS = (0, 1, 2, 3, 7, 8, 31, 32, 255, 1 << 15, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, (1 << 64) - 1)
WORDS = (
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"1e999",
    b"-1",
    b"\\ud800",
    b"\xff",
    b"../",
    b"{%",
    b"{{",
    b"\0",
)


def seeds(folder: Path) -> dict[str, list[bytes]]:
    """Sound files of each kind, small ones so that most damage hits something that counts."""
    arrays = {"a": np.ones((3, 2), np.float32), "b": np.zeros(5, np.int8), "c": np.ones((), np.float16)}
    small = {**model_files.LLAMA, "tokenizer.ggml.model": "gpt2"}
    whole = model_files.llama(folder / "seed.gguf").read_bytes()
    tokenizer = json.loads(model_files.tokenizer_json())
    index = {"metadata": {"total_size": 9}, "weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}
    quantised = {"x": ("Q4_K", (2, 256), bytes(288)), "y": ("Q8_0", (64,), bytes(68)), "z": ("BF16", (3,), bytes(6))}
    quantised |= {
        "v": ("Q5_K", (1, 256), bytes(176)),
        "w": ("Q3_K", (1, 256), bytes(110)),
        "u": ("Q5_1", (32,), bytes(24)),
    }
    return {
        "safetensors": [save(arrays), save(arrays, {"format": "pt"}), save({})],
        "gguf": [
            whole,
            model_files.gguf(small, model_files.tensors(model_files.LLAMA_SHAPES)),
            model_files.gguf({}, quantised),
        ],
        "onnx": [model_files.onnx()],
        "index": [json.dumps(index).encode()],
        "tokenizer": [json.dumps(tokenizer).encode()],
        "template": [
            b"{% for m in messages %}{{ m['role'] + ': ' + m.content|trim }}{% endfor %}"
            b"{% if tools %}{{ tools|tojson }}{% endif %}"
        ],
    }


def damaged(rng: random.Random, seed: bytes) -> bytes:
    """The file with one to four faults: bits, bytes, lengths, words, parts taken out, doubled or cut off."""
    data = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(data) + 1) if rng.random() < 0.7 else rng.randrange(min(len(data), 64) + 1)
        kind = rng.choice((0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 2:
            size = rng.choice((4, 8))
            data[at : at + size] = struct.pack("<Q", rng.choice(NUMBERS))[:size]
        elif kind == 3:
            data[at:at] = rng.choice(WORDS)
        elif kind == 4:
            del data[at : at + rng.randrange(1, 40)]
        elif kind == 5:
            end = min(at + rng.randrange(1, 40), len(data))
            data[at:at] = data[at:end]
        else:
            del data[at:]
    return bytes(data)


def use_safetensors(path: Path) -> None:
    file = SafeTensorsFile(path)
    try:
        for name in file.tensor_names:
            assert file.array(name).nbytes == file.tensor_info(name).size_bytes <= file.file_size
    finally:
        file.close()


def use_index(path: Path) -> None:
    files = ShardedSafeTensorsFile(path)
    try:
        for name in files.tensor_names:
            files.array(name)
    finally:
        files.close()


def use_gguf(path: Path) -> None:
    model = open_checkpoint(path)
    try:
        for name in model.names():
            assert model.read(name).shape == model.shape(name)
        tokenizer = model.tokenizer()
        tokenizer.decode(tokenizer.encode("hello, world 12"))
    finally:
        model.close()


def use_onnx(path: Path) -> None:
    file = OnnxFile(path)
    try:
        for name in file.names():
            assert file.array(name).shape == file.shape(name)
    finally:
        file.close()


def use_tokenizer(path: Path) -> None:
    tokenizer = Tokenizer(path)
    tokenizer.decode(tokenizer.encode("hello, world 12"))


def use_template(path: Path) -> None:
    ChatTemplate(path.read_text(errors="replace")).render([{"role": "user", "content": " hi "}])


USES: dict[str, Callable[[Path], None]] = {
    "safetensors": use_safetensors,
    "gguf": use_gguf,
    "index": use_index,
    "onnx": use_onnx,
    "tokenizer": use_tokenizer,
    "template": use_template,
}
KINDS = ("safetensors",) * 9 + ("gguf",) * 7 + ("index",) * 2 + ("onnx",) * 4 + ("tokenizer",) + ("template",)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a million files are written."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as name:
        yield Path(name)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_damaged_file_does_harm(place: Path) -> None:
    made = seeds(place)
    (place / "one.safetensors").write_bytes(made["safetensors"][0])
    for kind, use in USES.items():  # what is loaded once is loaded, and what is sound opens
        for number, seed in enumerate(made[kind][:1]):
            (place / f"{kind}{number}").write_bytes(seed)
            use(place / f"{kind}{number}")
    before, opened = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(list(Path("/proc/self/fd").iterdir()))
    path = place / "damaged"
    outcomes = {kind: [0, 0] for kind in USES}
    for number in range(FIRST, FIRST + FILES):
        rng = random.Random(number)
        kind = rng.choice(KINDS)
        path.write_bytes(damaged(rng, rng.choice(made[kind])))
        try:
            USES[kind](path)
            outcomes[kind][0] += 1
        except ModelFileError as error:
            assert str(error)
            outcomes[kind][1] += 1
        except BaseException as error:
            raise AssertionError(f"file {number}, a {kind}: {type(error).__name__}: {error}") from error
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    assert grown < MOST_MIB, f"the process grew by {grown} MiB"
    assert len(list(Path("/proc/self/fd").iterdir())) <= opened + 3  # another renderer may have been started
    print(f"opened and refused, by kind: {outcomes}")
    if FILES >= 1000:
        assert all(refused for _, refused in outcomes.values()), outcomes
