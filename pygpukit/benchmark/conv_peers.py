"""The convolutions of suite `conv` in PyTorch, in a process of its own.

`python -m pygpukit.benchmark.conv_peers SIZE` prints {row: [microseconds, error], or why there is no figure}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from .conv_cases import KINDS, LAYOUTS, Case, cases, ends, error, title
from .operator_peers import Torch, device_us, reason
from .result import BenchmarkResult


def measure(size: str) -> dict[str, tuple[float, float] | str]:
    """Every case; cuDNN tries its kernels for each and takes the fastest."""
    peer = Torch()
    torch = peer.library
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = True
    square = torch.ones(2048, 2048, dtype=torch.bfloat16, device="cuda")
    for _ in range(1000):  # until the device's clocks have risen
        torch.matmul(square, square)
    rates: dict[str, tuple[float, float] | str] = {}
    for kind in KINDS:
        for case in cases(size):
            for layout in LAYOUTS:
                key = BenchmarkResult(title(case, layout), "conv", {"dtype": kind}, value=0).key
                try:
                    call, wrong = _convolution(torch, case, kind, layout)
                    rates[key] = device_us(peer, call), wrong
                except Exception as failure:  # a type or a shape that this version does not take
                    rates[key] = reason(failure)
    return rates


def _convolution(torch: Any, case: Case, kind: str, layout: str) -> tuple[Callable[[], Any], float]:
    dtype = torch.float32 if kind == "tf32" else getattr(torch, kind)
    x, w = (torch.randn(*shape, device="cuda").to(dtype) for shape in (case.x, case.w))
    settings: dict[str, Any] = dict(case.settings)
    data, weight, dimensions = x, w, len(case.x) - 2
    if layout == "last":  # PyTorch has that layout for images alone: a signal is one of one row
        if dimensions == 1:
            data, weight, dimensions = x[:, :, None], w[:, :, None], 2
            rows = {"stride": 1, "dilation": 1, "padding": 0, "output_padding": 0}
            settings = {name: (rows[name], n) if name in rows else n for name, n in settings.items()}
        data, weight = (value.to(memory_format=torch.channels_last) for value in (data, weight))
    function = getattr(torch.nn.functional, f"conv{'_transpose' * case.transposed}{dimensions}d")

    def call() -> Any:
        return function(data, weight, **settings)

    values = [value.float().cpu().numpy() for value in (ends(x), w, ends(call().reshape(case.out)))]
    return call, error(case, values[0], values[1], values[2])


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
