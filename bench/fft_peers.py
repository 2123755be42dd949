"""The transforms of suite `fft` by cuFFT, in CuPy or PyTorch, each in a process of its own.

`python -m bench.fft_peers LIBRARY POINTS` prints {row: microseconds} as JSON.
"""

from __future__ import annotations

import json
import sys
from functools import partial

from pygpukit.benchmark.operator_peers import PEERS, Torch, device_us

# (function, length): one kernel, smooth lengths, two kernels, a prime.
CASES = (
    *(("fft", 1 << bits) for bits in (8, 9, 10, 11, 12, 14, 16, 20)),
    *(("fft", n) for n in (400, 480, 1000, 1536, 3000, 1009)),
    *(("rfft", n) for n in (400, 512, 1024, 2048, 4096)),
)
BYTES = {"fft": 16, "rfft": 8}  # a point


def transforms(n: int, points: int) -> int:
    """The number of transforms of n elements that have so many points together."""
    return max(points // n, 1)


def measure(library: str, points: int) -> dict[str, float]:
    """Microseconds by row."""
    peer = PEERS[library]()
    times = {}
    for name, n in CASES:
        shape = (transforms(n, points), n)
        if isinstance(peer, Torch):
            torch = peer.library
            x = torch.randn(*shape, dtype=torch.float32 if name == "rfft" else torch.complex64, device="cuda")
        else:
            x = peer.library.random.standard_normal(shape, dtype="float32")
            x = x if name == "rfft" else x * (1 + 1j)
        times[f"{name} of {n}"] = device_us(peer, partial(getattr(peer.library.fft, name), x))
    return times


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
