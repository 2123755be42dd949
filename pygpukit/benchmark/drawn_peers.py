"""The cases of suite `random` in PyTorch, in a process of its own.

`python -m pygpukit.benchmark.drawn_peers SEED COUNT` prints {row: microseconds, or why there is no figure}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from .drawn_cases import Case, cases, function
from .operator_peers import Torch, device_us, reason


def measure(seed: int, count: int) -> dict[str, float | str]:
    """Every case; cuDNN tries its kernels for each and takes the fastest."""
    peer = Torch()
    torch = peer.library
    torch.backends.cudnn.benchmark = True
    square = torch.ones(2048, 2048, dtype=torch.bfloat16, device="cuda")
    for _ in range(1000):  # until the device's clocks have risen
        torch.matmul(square, square)
    times: dict[str, float | str] = {}
    for case in cases(seed, count):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case.dtype == "tf32"
        try:
            times[case.title] = device_us(peer, function(case.torch, operands(torch, case)))
        except Exception as failure:  # a type or a shape that this version does not take
            times[case.title] = reason(failure)
    return times


def operands(torch: Any, case: Case) -> dict[str, Any]:
    """The arrays that the case's expression sees."""
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    for name, shape in case.shapes.items():
        dtype = getattr(torch, case.element)
        drawn = torch.randn(*shape, device="cuda", dtype=dtype if dtype.is_complex else torch.float32)
        names[name] = drawn.to(dtype)
    if case.torch_weight:
        names["b"] = function(case.torch_weight, names)()
    return names


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
