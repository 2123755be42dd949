"""Suite `attention`, and `--attention` and `--decode` of chosen lengths: prompts and decoding in bfloat16, with errors;
PyTorch's kernels beside them.

`python -m pygpukit.benchmark.attention JSON` prints PyTorch's microseconds and errors of the rows that JSON lists.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from . import operator_peers
from .base import Benchmark
from .measure import device_times_us, simulated
from .operators import device_us
from .products import HOST, cold_us
from .result import BenchmarkResult, Unavailable

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

CATEGORY = "attention"
DTYPE = "bfloat16"
TIMEOUT_S = 240
KINDS = ("prompt", "decode")
LENGTHS, SMALL_LENGTHS = (512, 1024, 2048, 4096, 8192), (64, 128)  # on a GPU; on the simulated device
# Prompts: batch, query heads, heads of keys, positions, head dimension. Every query sees all keys unless "causal".
PROMPTS = tuple(
    f"{shape}{causal}"
    for shape in (
        "1 32 32 2048 128", "1 32 32 8192 128", "1 16 16 16384 128", "1 32 8 8192 128",
        "1 32 32 8192 64", "1 16 16 16384 64", "1 16 16 8192 256",
    )
    for causal in (" causal", "")
)  # fmt: skip
# Decoding: the same of one query for each sequence, on caches that are full.
DECODES = ("32 32 8 4096 128", "1 32 8 4096 128", "8 32 32 4096 128", "1 32 8 32768 128")
SMALL = 2**36  # operations of a prompt in a quick run
WARM_UPS = 1000  # of 0.1 ms
CHECKED = 16  # queries of a head that are compared with float64


def _numbers(shape: str) -> tuple[int, int, int, int, int]:
    batch, heads, shared, positions, dim = map(int, shape.split()[:5])
    return batch, heads, shared, positions, dim


def _flops(shape: str) -> float:
    batch, heads, _, positions, dim = _numbers(shape)
    return 4 * batch * heads * positions**2 * dim * (0.5 if shape.endswith("causal") else 1)


def _cache_bytes(shape: str) -> int:
    batch, _, shared, positions, dim = _numbers(shape)
    return 2 * batch * shared * positions * dim * 2


def _prompts(quick: bool) -> list[str]:
    return [shape for shape in PROMPTS if not quick or _flops(shape) <= SMALL]


def _decodes(quick: bool) -> list[str]:
    return [shape for shape in DECODES if not quick or _cache_bytes(shape) <= 1 << 25]


def ends(array: Any) -> Any:
    """The first and the last head of the first batch element."""
    return array[0, :: max(array.shape[1] - 1, 1)]


def error(q: Any, k: Any, v: Any, result: Any, causal: bool) -> float:
    """The largest error of some queries over the largest result: NumPy arrays, (heads, positions, D)."""
    import numpy as np

    queries, keys = q.shape[1], k.shape[1]
    worst = largest = 0.0
    for head in range(q.shape[0]):
        own_k, own_v = (x[head].astype(np.float64) for x in (k, v))
        for i in np.unique(np.linspace(0, queries - 1, CHECKED).astype(int)):
            seen = keys - queries + i + 1 if causal else keys
            scores = own_k[:seen] @ q[head, i].astype(np.float64) / np.sqrt(q.shape[2])
            weights = np.exp(scores - scores.max())
            expected = weights @ own_v[:seen] / weights.sum()
            worst = max(worst, float(np.abs(result[head, i] - expected).max()))
            largest = max(largest, float(np.abs(expected).max()))
    return worst / largest


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import pygpukit as gp

    from ..core.backend import ensure, is_sim

    ensure()
    if is_sim():
        yield Unavailable(CATEGORY, "the simulated device computes attention with NumPy")
        return
    warm = gp.random.randn(1, 32, 2048, 128, dtype=DTYPE)
    for _ in range(WARM_UPS):  # until the device's clocks have risen
        gp.sdpa_causal(warm, warm, warm)
    for shape in _prompts(quick):
        yield _prompt(shape, partial(device_us, quick=quick))
    for shape in _decodes(quick):
        yield _decode(shape, partial(device_us, quick=quick))


class Attention(Benchmark):
    """Prompts, causal, and steps of decoding of one sequence, by its length.

    kinds: "prompt", "decode". On the simulated device the times are those of the host.
    """

    category = CATEGORY
    warmup, iterations = 3, 20

    def __init__(
        self,
        kinds: Sequence[str] = KINDS,
        seq_lens: Sequence[int] | None = None,
        num_heads: int = 32,
        num_kv_heads: int = 8,
        head_dim: int = 128,
        warmup: int | None = None,
        iterations: int | None = None,
        peers: bool = False,
    ) -> None:
        super().__init__(warmup, iterations)
        self.kinds, self.seq_lens, self.peers = kinds, seq_lens, peers
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim

    def run(self) -> list[BenchmarkResult | Unavailable]:
        """A row of each kind and length, and those of peers where they are asked for."""
        on_host = simulated()
        lengths = self.seq_lens or (SMALL_LENGTHS if on_host else LENGTHS)
        mine = [self._row(kind, length) for kind in self.kinds for length in lengths]
        if not self.peers:
            return [*mine]
        if on_host:
            reason = "the simulated device is no GPU to compare peers on"
            return [*mine, Unavailable(f"{CATEGORY}/torch", reason)]
        return [*mine, *peer_rows(mine, False)]

    def _row(self, kind: str, length: int) -> BenchmarkResult:
        on_host = simulated()
        shape = f"1 {self.num_heads} {self.num_kv_heads} {length} {self.head_dim}"
        times = partial(device_times_us if on_host else cold_us, warmup=self.warmup, iterations=self.iterations)
        row = _decode(shape, times) if kind == "decode" else _prompt(f"{shape} causal", times)
        row.params["times" if on_host else "cache"] = HOST if on_host else "cold"
        return row


def _prompt(shape: str, times_us: Callable[[Callable[[], object]], list[float]]) -> BenchmarkResult:
    import pygpukit as gp

    batch, heads, shared, positions, dim = _numbers(shape)
    causal = shape.endswith("causal")
    q, k, v = (gp.random.randn(batch, count, positions, dim, dtype=DTYPE) for count in (heads, shared, shared))
    out = gp.empty(q.shape, DTYPE)
    operation = gp.sdpa_causal if causal else gp.sdpa
    samples = [_flops(shape) / us * 1e-6 for us in times_us(lambda: operation(q, k, v, out=out))]
    return BenchmarkResult(
        f"prompt {shape}",
        CATEGORY,
        params={"error": _error(q, k, v, out, causal)},
        value=median(samples),
        unit="TFLOP/s",
        better="higher",
        samples=samples,
        iterations=len(samples),
    )


def _decode(shape: str, times_us: Callable[[Callable[[], object]], list[float]]) -> BenchmarkResult:
    import pygpukit as gp

    from .._core import native

    batch, heads, shared, positions, dim = _numbers(shape)
    q = gp.random.randn(batch, heads, 1, dim, dtype=DTYPE)
    k, v = (gp.random.randn(batch, shared, positions, dim, dtype=DTYPE) for _ in range(2))
    out, lengths, copy = gp.empty(q.shape, DTYPE), gp.full((batch,), positions, "int32"), gp.empty(k.shape, DTYPE)
    samples = times_us(lambda: gp.sdpa_decode(q, k, v, lengths, out=out))
    copied = median(times_us(lambda: native.copy(copy, k)))  # moves as many bytes as keys and values have
    return BenchmarkResult(
        f"decode {shape}",
        CATEGORY,
        params={"error": _error(q, k, v, out, False), "per cent of a copy's rate": 100 * copied / median(samples)},
        value=median(samples),
        unit="us",
        better="lower",
        samples=samples,
        iterations=len(samples),
    )


def _error(q: GPUArray, k: GPUArray, v: GPUArray, out: GPUArray, causal: bool) -> float:
    first = [ends(x).astype("float32").to_numpy() for x in (q, k, v, out)]
    return error(first[0], first[1], first[2], first[3], causal)


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """PyTorch's figure beside each of ours, by each of its kernels that takes the shape."""
    command = [sys.executable, "-m", __name__, json.dumps([mine.name for mine in ours])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        yield Unavailable(f"{CATEGORY}/torch", (done.stderr.strip().splitlines() or ["no message"])[-1][-200:])
        return
    theirs: dict[str, dict[str, tuple[float, float]]] = json.loads(lines[-1])
    for mine in ours:
        shape = mine.name.partition(" ")[2]
        for peer, (us, wrong) in theirs[mine.name].items():
            yield BenchmarkResult(
                f"{mine.name} beside PyTorch",
                CATEGORY,
                params={**mine.params, "peer's error": wrong},
                value=mine.value,
                unit=mine.unit,
                better=mine.better,
                peer=f"torch ({peer})",
                peer_value=us if mine.unit == "us" else _flops(shape) / us * 1e-6,
            )


def _torch(names: list[str]) -> dict[str, dict[str, tuple[float, float]]]:
    """(microseconds, error) by shape and kernel."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    library = operator_peers.Torch()
    torch = library.library
    kinds = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    warm = torch.randn(1, 32, 2048, 128, device="cuda").to(torch.bfloat16)
    for _ in range(WARM_UPS):
        scaled_dot_product_attention(warm, warm, warm, is_causal=True)
    rates: dict[str, dict[str, tuple[float, float]]] = {}
    for name in names:
        kind, _, shape = name.partition(" ")
        batch, heads, shared, positions, dim = _numbers(shape)
        causal = shape.endswith("causal")
        q, k, v = (
            torch.randn(batch, count, length, dim, device="cuda").to(torch.bfloat16)
            for count, length in (
                (heads, positions if kind == "prompt" else 1),
                (shared, positions),
                (shared, positions),
            )
        )
        rates[name] = {}
        for peer, backend in kinds.items():
            with sdpa_kernel(backend):
                call = partial(scaled_dot_product_attention, q, k, v, is_causal=causal, enable_gqa=heads != shared)
                try:
                    out = call()
                except RuntimeError:
                    continue  # this kernel does not take the shape
                first = [ends(x).float().cpu().numpy() for x in (q, k, v, out)]
                wrong = error(first[0], first[1], first[2], first[3], causal)
                rates[name][peer] = (operator_peers.device_us(library, call), wrong)
    return rates


if __name__ == "__main__":
    print(json.dumps(_torch(json.loads(sys.argv[1]))))
