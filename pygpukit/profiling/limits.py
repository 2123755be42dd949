"""limits(): what this device reaches, measured by our own kernels: bytes copied and float32 operations a second."""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass
from statistics import median

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.backend import backend, is_sim
from pygpukit.kernels import measure
from pygpukit.profiling import timing

_COPY_BYTES = 512 << 20  # each of two buffers: far out of every cache
_COPY_BYTES_SIM = 4 << 20
_COPY_THREADS = 256
_WORDS_A_THREAD = 4  # measure.cu: kWords
_FMA_THREADS = 512
_FMA_A_ROUND = 256  # measure.cu: kChains * kUnroll
_FMA_TARGET_US = 1000.0
_SHARE_OF_FREE = 8  # a buffer takes at most this part of the free memory

_measured: dict[int, Limits] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Limits:
    """The rates that a device reached. copy_gbps: read plus written, 10**9 bytes a second. fma_gflops: float32, a fused
    multiply-add counts as two. On the simulated device both are figures of the host."""

    copy_gbps: float
    fma_gflops: float
    backend: str
    device: str


def limits() -> Limits:
    """The limits of the current device: measured on the first call for a device in this process, then remembered.

    A vectorised copy between two buffers of 512 MiB (less where memory is short) and chains of float32 fused
    multiply-adds on every multiprocessor; the median of samples taken as bench() takes them. Never a data sheet's
    figure. Takes some hundred milliseconds on a GPU and two buffers for that time.

    Raises OutOfMemoryError when the buffers do not fit, NvrtcError when the kernels can neither be compiled nor found.
    """
    backend()  # opens it
    device = native.current_device()
    with _lock:
        if device not in _measured:
            info = native.device_info(device)
            _measured[device] = Limits(_copy_gbps(), _fma_gflops(info), str(backend()), str(info["name"]))
        return _measured[device]


def known_limits() -> Limits | None:
    """The limits of the current device, if this process has measured them."""
    with _lock:
        return _measured.get(native.current_device())


def _copy_gbps() -> float:
    nbytes = _COPY_BYTES_SIM if is_sim() else min(_COPY_BYTES, native.memory_info()[0] // _SHARE_OF_FREE)
    words = max(nbytes // 16, 1)
    source, target = native.empty(words * 16, "uint8"), native.empty(words * 16, "uint8")
    native.fill(source, b"\x5a")
    grid = (-(-words // (_COPY_THREADS * _WORDS_A_THREAD)), 1, 1)

    def run() -> None:
        kernels.launch(measure.COPY_WORDS, grid, (_COPY_THREADS, 1, 1), target, source, struct.pack("q", words))

    return 2 * words * 16 / _median_us(run) * 1e-3


def _fma_gflops(info: dict[str, int]) -> float:
    blocks = int(info["multiprocessor_count"]) * max(int(info["max_threads_per_multiprocessor"]) // _FMA_THREADS, 1)
    blocks = 1 if is_sim() else blocks
    out = native.empty(1, "float32")

    def launch(rounds: int) -> None:
        values = struct.pack("f", 0.999), struct.pack("f", 0.001), struct.pack("i", rounds)
        kernels.launch(measure.FMA_CHAINS, (blocks, 1, 1), (_FMA_THREADS, 1, 1), out, *values)

    short = 16
    rounds = max(round(short * _FMA_TARGET_US / _median_us(lambda: launch(short))), short)
    return 2 * blocks * _FMA_THREADS * rounds * _FMA_A_ROUND / _median_us(lambda: launch(rounds)) * 1e-3


def _median_us(run: timing.Run) -> float:
    samples = timing.sample(
        run, native.current_stream(), flush_l2=False, warmup_ms=20.0, max_samples=50, budget_ms=1000.0
    )
    return median(samples.us)
