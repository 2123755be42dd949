"""Which measurements docs/performance.md shows: its words, the file, and the row there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A line of the table. name, params, peer: of the result in docs/results/FILE.json; peer as it begins, or none."""

    what: str
    file: str
    name: str
    peer: str = ""
    params: dict[str, Any] = field(default_factory=dict)


_BATCH = {"items": 64}
_FOUR = {"shares": "20/50/20/10"}
_LOAD = {"bandwidth": 0.9, "load": "triad"}
_MI = {"Mi": 64}

ROWS = (
    Row(
        "`import pygpukit`, all but 7 of its modules loaded before",
        "h200/sharing",
        "import pygpukit over a bare interpreter",
        "numpy",
    ),
    Row("`gp.empty` and its release", "h200/sharing", "gp.empty and release, Python", "cupy"),
    Row("a bound kernel launched from Python", "h200/sharing", "bound kernel from Python", "cuda-core"),
    Row("the same beside CuPy", "h200/sharing", "bound kernel from Python", "cupy"),
    Row("that launch over a C++ loop of the driver's", "h200/sharing", "Python launch over C++ loop"),
    Row("a new small kernel, compiled", "h200/benchmark", "new small kernel"),
    Row("from the disk cache in a new process", "h200/benchmark", "disk hit in a new process"),
    Row("the same `%%cuda` cell again", "h200/benchmark", "unchanged cell again"),
    Row("simulated device: a cell until it runs", "h200/benchmark", "cell to runnable"),
    Row("simulated device: a barrier of 256 threads", "h200/benchmark", "barrier, 256 threads"),
    Row(
        "simulated device: checked over plain, vector addition",
        "h200/benchmark",
        "vector addition of 1M float32, checked over plain",
    ),
    Row(
        "four tenants, promises 20/50/20/10: worst error in a second",
        "h200/sharing",
        "worst share error over 1 s",
        params=_FOUR,
    ),
    Row("the same on plain streams", "h200/sharing", "worst share error, plain streams", params=_FOUR),
    Row("the same by stream priorities", "h200/sharing", "worst share error, priorities only", params=_FOUR),
    Row("work kept of what each does alone", "h200/sharing", "throughput kept", params=_FOUR),
    Row(
        "guaranteed 90 %: p99 beside a triad over alone",
        "h200/sharing",
        "guaranteed request beside a load over alone, p99",
        params=_LOAD,
    ),
    Row("work kept of both", "h200/sharing", "total throughput kept", params=_LOAD),
    Row("`Scheduler.submit`", "h200/sharing", "Scheduler.submit, Python"),
    Row(
        "Ctrl-C in a cell that waits for a kernel, worst of 5",
        "h200/sharing",
        "Ctrl-C in a cell that waits for a kernel",
    ),
    Row(
        "1 GiB moved out, of a plain pinned copy's speed",
        "h200/sharing",
        "evict, speed of the plain pinned copy",
        params={"MiB": 1024},
    ),
    Row("an urgent 64 KiB copy beside 1 GiB", "h200/sharing", "urgent 64 KiB beside a large copy"),
    Row("the same as plain copies", "h200/sharing", "urgent 64 KiB beside a large copy, plain"),
    Row("add float32", "h200/benchmark", "add float32", "torch", _MI),
    Row("gelu bfloat16", "h200/benchmark", "gelu bfloat16", "torch", _MI),
    Row("softmax float32", "h200/benchmark", "softmax float32", "torch", _MI),
    Row("layernorm float32", "h200/benchmark", "layernorm float32", "torch", _MI),
    Row("transpose float32", "h200/benchmark", "transpose float32", "torch", _MI),
    Row("sum bfloat16", "h200/benchmark", "sum bfloat16", "torch", _MI),
    Row("take rows of 4 KiB float32", "h200/benchmark", "take rows of 4 KiB float32", "torch", _MI),
    Row("sort float32, speed over CuPy's", "h200/benchmark", "sort float32, speed over cupy's", params=_MI),
    Row("product of bfloat16, 4096 cubed", "h200/matmul", "bfloat16 1 4096 4096 4096 beside PyTorch", "torch"),
    Row("product of bfloat16, 8192 cubed", "h200/matmul", "bfloat16 1 8192 8192 8192 beside PyTorch", "torch"),
    Row("one row, bfloat16, 4096 x 4096", "h200/matmul", "bfloat16 1 1 4096 4096 t beside PyTorch", "torch"),
    Row("product of int8, 8192 cubed", "h200/matmul", "int8 1 8192 8192 8192 t beside PyTorch", "torch"),
    Row("product of tf32, 8192 cubed", "h200/matmul", "tf32 1 8192 8192 8192 t beside PyTorch", "torch"),
    Row("product of fp8, 8192 cubed", "h200/matmul", "float8_e4m3 1 8192 8192 8192 t beside PyTorch", "torch"),
    Row(
        "causal attention, 16 heads of 128, 16384 positions",
        "h200/attention",
        "prompt 1 16 16 16384 128 causal beside PyTorch",
        "torch (cuDNN)",
    ),
    Row(
        "causal attention, 32 heads of 128, 2048 positions",
        "h200/attention",
        "prompt 1 32 32 2048 128 causal beside PyTorch",
        "torch (cuDNN)",
    ),
    Row("fft of 1024, complex64", "h200/fft", "fft of 1024", "cupy"),
    Row("fft of 400, complex64", "h200/fft", "fft of 400", "cupy"),
    Row("fft of 2^20, complex64", "h200/fft", "fft of 1048576", "cupy"),
    Row("stft 400/160 of 64 x 30 s", "h200/sound", "stft 400/160", "torch", _BATCH),
    Row("istft 400/160 of the same", "h200/sound", "istft 400/160", "torch", _BATCH),
    Row("mel, 80 bands, of the same", "h200/sound", "mel 80 bands 400/160", "torchaudio", _BATCH),
    Row(
        "convolutions of ResNet-50, Whisper and Kokoro over cuDNN's, bfloat16",
        "h100/conv",
        "speed over PyTorch, geometric mean",
        params={"dtype": "bfloat16", "of": "all", "channels": "last"},
    ),
    Row(
        "the same in tf32",
        "h100/conv",
        "speed over PyTorch, geometric mean",
        params={"dtype": "tf32", "of": "all", "channels": "last"},
    ),
    Row(
        "Whisper large-v3, 16 windows together",
        "h200/voice",
        "large-v3: windows, 16 together beside transformers",
        "transformers",
    ),
    Row("Whisper large-v3, one window", "h200/voice", "large-v3: one window beside transformers", "transformers"),
    Row("Kokoro, 32 sentences together", "h100/voice", "Kokoro: 32 sentences of 40 phonemes together"),
    Row(
        "a question's end to the first sound of the answer",
        "h200/voice",
        "conversation: from the end of a question to the first sound",
    ),
    Row("decoding, 1B, random weights", "h200/llm", "1B (Llama 3.2): decode beside transformers eager", "transformers"),
    Row("decoding, 7B, random weights", "h200/llm", "7B (Qwen 2.5): decode beside transformers eager", "transformers"),
    Row(
        "answer of SmolLM2 135M on two cores",
        "sim/cpu_models",
        "smollm2-135m-instruct: tokens of an answer",
        "xllamacpp",
    ),
    Row(
        "answer of Qwen2.5-Coder 1.5B on two cores",
        "sim/cpu_models",
        "qwen2.5-coder-1.5b-instruct: tokens of an answer",
        "xllamacpp",
    ),
)
