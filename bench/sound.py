"""Suite `sound`: spectra, mel bands, resampling and Griffin-Lim in batches, and what one call costs from Python.

A row has the first item's error against float64 (sound_cases.py). PyTorch and CuPy do the same in processes of their
own (sound_peers.py): what a peer's row is made of stands in its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pygpukit.benchmark.measure import device_times_us, host_ns, measure_kernel
from pygpukit.benchmark.operator_peers import process_times
from pygpukit.benchmark.operators import Ruler, beside, device_us
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

from . import sound_cases as cases

CATEGORY = "sound"
OVER = ", speed over "
OF_COPY = ", of the copy"
_HEARD = 10_000  # samples of a resampled signal that are compared


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()
    size = cases.size(native.backend_name(), quick)
    yield from _batches(size, quick)
    yield _whisper(size, quick)
    yield from _one_signal(quick)
    yield from _resampling(size, quick)


def _batches(size: cases.Size, quick: bool) -> Iterator[BenchmarkResult]:
    import numpy as np

    import pygpukit as gp

    audio = gp.ops.audio
    y = gp.random.Generator(1).standard_normal((size.items, size.seconds * cases.RATE))
    first = y[0].to_numpy()
    for n_fft, hop in cases.SHAPES:

        def forward(n_fft: int = n_fft, hop: int = hop) -> Any:
            return audio.stft(y, n_fft=n_fft, hop_length=hop)

        exact = cases.stft(first, n_fft, hop)
        yield _timed(f"stft {n_fft}/{hop}", forward, exact, size.params, quick)
        D = forward()

        def backward(D: Any = D, hop: int = hop) -> Any:
            return audio.istft(D, hop_length=hop, length=y.shape[-1])

        yield _timed(f"istft {n_fft}/{hop}", backward, first, size.params, quick)

    def mel() -> Any:
        return audio.melspectrogram(y=y, sr=cases.RATE, n_fft=400, hop_length=160, n_mels=cases.MELS)

    exact = cases.bands(np.abs(cases.stft(first, 400, 160)) ** 2)
    yield _timed("mel 80 bands 400/160", mel, exact, size.params, quick)


def _whisper(size: cases.Size, quick: bool) -> BenchmarkResult:
    import pygpukit as gp

    y = gp.random.Generator(2).standard_normal((size.windows, 30 * cases.RATE))
    exact = cases.whisper(y[0].to_numpy())
    params = {"windows": size.windows}
    name = "Whisper log-mel, one window of 30 s"
    return _timed(name, lambda: gp.ops.audio.whisper_log_mel(y), exact, params, quick, size.windows)


def _one_signal(quick: bool) -> Iterator[BenchmarkResult]:
    import pygpukit as gp

    audio = gp.ops.audio
    how: dict[str, Any] = {"n_fft": cases.CALL_FFT, "hop_length": cases.CALL_HOP}
    y = gp.random.Generator(3).standard_normal(cases.CALL_RATE * cases.CALL_SECONDS)
    error = cases.error(audio.stft(y, **how).to_numpy(), cases.stft(y.to_numpy(), cases.CALL_FFT, cases.CALL_HOP))
    calls, batches = (10, 2) if quick else (cases.CALLS, cases.BATCHES)
    samples = [ns * 1e-3 for ns in host_ns(lambda: audio.stft(y, **how), calls, batches, gp.synchronize)]
    yield from_samples("stft of 10 s, a call from Python", CATEGORY, samples, "us", rel_error=error)
    alone = device_times_us(lambda: audio.stft(y, **how), 3, 3 if quick else 20)
    yield from_samples("stft of 10 s, on the device", CATEGORY, alone, "us")

    S = gp.abs(audio.stft(y, **how))
    iterate: dict[str, Any] = {"n_iter": cases.ITERATIONS, "hop_length": cases.CALL_HOP, "init": None}
    exact = audio.griffinlim(S.astype("float64"), **iterate).to_numpy()
    error = cases.error(audio.griffinlim(S, **iterate).to_numpy(), exact)
    middle, low, high, _ = measure_kernel(lambda: audio.griffinlim(S, **iterate), 1, 2 if quick else 10, gp.synchronize)
    yield BenchmarkResult(
        "Griffin-Lim, 32 iterations on 10 s",
        CATEGORY,
        median_us=middle,
        min_us=low,
        max_us=high,
        value=middle * 1e-3,
        unit="ms",
        rel_error=error,
    )


def _resampling(size: cases.Size, quick: bool) -> Iterator[BenchmarkResult]:
    import pygpukit as gp

    y = gp.random.Generator(4).standard_normal(size.points)
    moved = 4 * (size.points + 2 * size.points // 3)
    copy = Ruler(moved, quick).us(moved)
    for res_type in ("polyphase", "soxr_hq"):

        def call(res_type: str = res_type) -> Any:
            return gp.ops.audio.resample(y, orig_sr=3, target_sr=2, res_type=res_type)

        exact = cases.resampled(y[: 4 * _HEARD].to_numpy(), res_type, _HEARD)
        error = cases.error(call()[:_HEARD].to_numpy(), exact)
        us = device_us(call, quick)
        params = {"points": size.points}
        yield from_samples(f"resample 2/3, {res_type}", CATEGORY, us, "us", params=params, rel_error=error)
        share = [100 * copy / t for t in us]
        yield from_samples(
            f"resample 2/3, {res_type}{OF_COPY}", CATEGORY, share, "%", better="higher", params=dict(params)
        )


def _timed(
    name: str, call: Callable[[], Any], exact: Any, params: dict[str, int], quick: bool, parts: int = 1
) -> BenchmarkResult:
    """A row in microseconds of a part of the batch, with the first item's error."""
    error = cases.error(call()[0].to_numpy(), exact)
    us = [t / parts for t in device_us(call, quick)]
    return from_samples(name, CATEGORY, us, "us", params=dict(params), rel_error=error)


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """The peers' times beside ours, and our speed over each."""
    from pygpukit._core import native

    if native.backend_name() == "sim":
        yield Unavailable(f"{CATEGORY}/peers", "the simulated device is no GPU to compare peers on")
        return
    by_name = {row.name: row for row in ours}
    for library in ("torch", "cupy"):
        sizes = cases.size(native.backend_name(), quick).words
        for name, theirs in process_times(f"{__package__}.sound_peers", library, *sizes):
            row, _, peer = name.partition(" | ")
            mine = by_name.get(row)
            if isinstance(theirs, str) or mine is None or not mine.value:
                yield Unavailable(f"{CATEGORY}/{name} {library}", str(theirs))
                continue
            yield beside(mine, peer, theirs)
            yield BenchmarkResult(
                f"{row}{OVER}{library}",
                CATEGORY,
                dict(mine.params),
                value=theirs / mine.value,
                unit="x",
                better="higher",
            )
