"""Suite `loading`: how fast models come from the page cache to the device, and what limits it.

Files of random weights of a LLaMA's shapes: safetensors of bfloat16, and of FP8 with scales by blocks. Beside each what
its bytes take alone: out of the mapped file into pinned memory, by one thread and by eight, and from there to the
device. Rates are of the file's bytes.
"""

from __future__ import annotations

import json
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pygpukit.benchmark.result import BenchmarkResult

CATEGORY = "loading"
LAYERS = {"cuda": 32, "sim": 2}
_PIECE = 8 << 20
_BLOCK = 128  # of FP8's scales
_CONFIG = {
    "model_type": "llama",
    "vocab_size": 32000,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "attention_bias": False,
    "mlp_bias": False,
}


def shapes(layers: int, hidden: int, inner: int) -> dict[str, tuple[int, ...]]:
    """Of each tensor, by Hugging Face's names."""
    products = {
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (hidden // 4, hidden),
        "self_attn.v_proj": (hidden // 4, hidden),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    tensors: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (32000, hidden), "model.norm.weight": (hidden,)}
    for number in range(layers):
        for name, shape in products.items():
            tensors[f"model.layers.{number}.{name}.weight"] = shape
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{number}.{name}.weight"] = (hidden,)
    return tensors


def folder(path: Path, config: dict[str, Any], tensors: dict[str, tuple[str, tuple[int, ...], int]]) -> Path:
    """A folder in Hugging Face's layout. tensors: type, shape and bytes of an element."""
    head: dict[str, Any] = {}
    at = 0
    for name, (kind, shape, size) in tensors.items():
        count = size
        for extent in shape:
            count *= extent
        head[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + count]}
        at += count
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    text = json.dumps(head).encode()
    with (path / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        _fill(file, at)
    return path


def _fill(file: Any, count: int) -> None:
    """So many bytes that are small numbers in every type: no exponent is high."""
    import numpy as np

    some = np.random.default_rng(0).integers(0, 64, min(count, 64 << 20), np.uint8).tobytes()
    for start in range(0, count, len(some)):
        file.write(some[: count - start])


def bfloat16_folder(path: Path, layers: int, hidden: int, inner: int) -> Path:
    """Weights of 16 bits."""
    config = {**_CONFIG, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    return folder(path, config, {name: ("BF16", shape, 2) for name, shape in shapes(layers, hidden, inner).items()})


def fp8_folder(path: Path, layers: int, hidden: int, inner: int) -> Path:
    """Products' weights of FP8, a scale for 128 by 128."""
    config = {**_CONFIG, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [_BLOCK, _BLOCK]}
    tensors: dict[str, tuple[str, tuple[int, ...], int]] = {}
    for name, shape in shapes(layers, hidden, inner).items():
        if "_proj" in name:
            tensors[name] = "F8_E4M3", shape, 1
            tensors[f"{name}_scale_inv"] = "F32", tuple(-(-extent // _BLOCK) for extent in shape), 4
        else:
            tensors[name] = "BF16", shape, 2
    return folder(path, config, tensors)


def _seconds(run: Callable[[], None], rounds: int) -> list[float]:
    took = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        took.append(time.perf_counter() - begin)
    return took


def copies(path: Path, readers: int) -> Callable[[], None]:
    """The file's bytes into pinned memory, by so many threads, piece by piece."""
    import numpy as np

    from pygpukit.memory import pinned_empty

    rooms = [pinned_empty(_PIECE, "uint8") for _ in range(readers)]

    def run() -> None:
        mapped = np.memmap(path, np.uint8, "r")

        def read(number: int) -> None:
            for start in range(number * _PIECE, mapped.size, readers * _PIECE):
                piece = mapped[start : start + _PIECE]
                rooms[number][: piece.size] = piece

        with ThreadPoolExecutor(readers) as pool:
            list(pool.map(read, range(readers)))

    return run


def to_device(nbytes: int) -> Callable[[], None]:
    """As many bytes from pinned memory to the device."""
    import pygpukit as gp
    from pygpukit.memory import TransferEngine, pinned_empty

    size = min(nbytes, 1 << 30)
    source, target = pinned_empty(size, "uint8"), gp.empty(size, "uint8")
    source[...] = 1

    def run() -> None:
        with TransferEngine() as engine:
            for _ in range(0, nbytes, size):
                engine.to_device(target, source).wait()

    return run


def loads(model: Path) -> Callable[[], None]:
    """The model on the device, and gone again."""
    import pygpukit as gp

    def run() -> None:
        loaded = gp.llm.load(model, dtype="bfloat16", context=256, progress=False)
        gp.synchronize()
        del loaded

    return run


def rows(quick: bool) -> Iterator[BenchmarkResult]:
    """Rows of the suite."""
    import pygpukit as gp

    backend = "cuda" if gp.backend() == "cuda" else "sim"
    layers = LAYERS[backend] // (4 if quick and backend == "cuda" else 1)
    hidden, inner = (4096, 14336) if backend == "cuda" else (256, 512)
    with tempfile.TemporaryDirectory() as scratch:
        for name, make in (("safetensors bfloat16", bfloat16_folder), ("safetensors FP8", fp8_folder)):
            model = make(Path(scratch) / name.split()[-1], layers, hidden, inner)
            file = model / "model.safetensors"
            nbytes = file.stat().st_size
            ways = {"load": loads(model), "read by 1 thread": copies(file, 1), "read by 8 threads": copies(file, 8)}
            ways["copied to the device"] = to_device(nbytes)
            for way, run in ways.items():
                samples = [nbytes / took * 1e-9 for took in _seconds(run, 1 if quick else 3)]
                yield BenchmarkResult(
                    f"{name}: {way}",
                    CATEGORY,
                    {"bytes": nbytes},
                    value=max(samples),
                    unit="GB/s",
                    better="higher",
                    samples=samples,
                    iterations=len(samples),
                )
            file.unlink()
