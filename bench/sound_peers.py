"""Measurements of suite `sound` in PyTorch or CuPy, each in a process of its own.

`python -m bench.sound_peers LIBRARY ITEMS SECONDS WINDOWS POINTS` prints {row | what it is: microseconds,
or the row's own unit} as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from pygpukit.benchmark.operator_peers import Cupy, Torch, call_us, device_us, reason

from . import sound_cases as cases

Measured = dict[str, "float | str"]


def measure(library: str, size: cases.Size) -> Measured:
    """Every row that the library has functions for; a row that failed has the reason."""
    measured: Measured = {}
    jobs = _of_torch(size) if library == "torch" else _of_cupy(size)
    for name, job in jobs.items():
        try:
            measured[name] = job()
        except Exception as error:  # it must not cost the figures of the others
            measured[name] = reason(error)
    return measured


def _of_torch(size: cases.Size) -> dict[str, Callable[[], float]]:
    peer = Torch()
    torch = peer.library
    length = size.seconds * cases.RATE
    y = torch.randn(size.items, length, device="cuda")
    jobs: dict[str, Callable[[], float]] = {}

    def forward(x: Any, n_fft: int, hop: int, mode: str = "constant") -> Any:
        window = windows[n_fft]
        return torch.stft(x, n_fft, hop, window=window, center=True, pad_mode=mode, return_complex=True)

    def backward(n_fft: int, hop: int) -> float:
        D = forward(y, n_fft, hop)
        return device_us(peer, lambda: torch.istft(D, n_fft, hop, window=windows[n_fft], length=length))

    windows = {n: torch.hann_window(n, device="cuda") for n in (400, 1024, cases.CALL_FFT)}
    for n_fft, hop in cases.SHAPES:
        jobs[f"stft {n_fft}/{hop} | torch.stft"] = partial(device_us, peer, partial(forward, y, n_fft, hop))
        jobs[f"istft {n_fft}/{hop} | torch.istft"] = partial(backward, n_fft, hop)
    weights = torch.rand(cases.MELS, 201, device="cuda")

    def mel(x: Any, mode: str = "constant") -> Any:
        return weights @ forward(x, 400, 160, mode).abs().square()

    try:
        from torchaudio.transforms import MelSpectrogram

        theirs: Any = MelSpectrogram(cases.RATE, 400, hop_length=160, n_mels=cases.MELS).cuda()
        name = "torchaudio MelSpectrogram"
    except (ImportError, OSError):
        theirs, name = mel, "torch.stft, power, matmul"
    jobs[f"mel 80 bands 400/160 | {name}"] = lambda: device_us(peer, lambda: theirs(y))

    def whisper(x: Any) -> Any:
        logarithms = mel(x, "reflect")[..., :-1].clamp(min=1e-10).log10()
        largest = logarithms.amax((-2, -1), keepdim=True)
        return (torch.maximum(logarithms, largest - 8) + 4) / 4

    def windows_of_whisper() -> float:
        x = torch.randn(size.windows, 30 * cases.RATE, device="cuda")
        return device_us(peer, lambda: whisper(x)) / size.windows

    jobs["Whisper log-mel, one window of 30 s | torch.stft, power, matmul, log10"] = windows_of_whisper
    one = torch.randn(cases.CALL_RATE * cases.CALL_SECONDS, device="cuda")

    def call() -> Any:
        return forward(one, cases.CALL_FFT, cases.CALL_HOP)

    jobs["stft of 10 s, a call from Python | torch.stft"] = lambda: call_us(peer, call)
    jobs["Griffin-Lim, 32 iterations on 10 s | torchaudio"] = lambda: _griffin_lim(peer, call().abs())
    return jobs


def _griffin_lim(peer: Torch, S: Any) -> float:
    """Milliseconds from the call to its end."""
    from torchaudio.functional import griffinlim

    window = peer.library.hann_window(cases.CALL_FFT, device="cuda")
    samples = []
    for _ in range(11):
        begin = time.perf_counter()
        griffinlim(S, window, cases.CALL_FFT, cases.CALL_HOP, cases.CALL_FFT, 1.0, cases.ITERATIONS, 0.99, None, False)
        peer.wait()
        samples.append((time.perf_counter() - begin) * 1e3)
    return median(samples[1:])


def _of_cupy(size: cases.Size) -> dict[str, Callable[[], float]]:
    def resample() -> float:
        from cupyx.scipy.signal import resample_poly

        peer = Cupy()
        y = peer.library.random.standard_normal(size.points, dtype="float32")
        return device_us(peer, lambda: resample_poly(y, 2, 3))

    return {"resample 2/3, polyphase | cupyx resample_poly": resample}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], cases.Size(*map(int, sys.argv[2:])))))
