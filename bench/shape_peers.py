"""The operations of suite `shapes` in PyTorch or CuPy, in one process for each, so that contexts do not meet.

`python -m bench.shape_peers LIBRARY` prints a line of JSON for each row: [key, microseconds or why not].
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from pygpukit.benchmark.operator_peers import PEERS, Cupy, Torch, call_us, device_us, reason
from pygpukit.benchmark.result import BenchmarkResult

from .shape_cases import DTYPES, HOST_SHAPE, LAYOUTS, OPERATIONS, Layout, elements, function

CATEGORY = "shapes"
TIMEOUT_S = 600


def peer_times(library: str) -> Iterator[tuple[str, float | str]]:
    """(key of a row, microseconds or the reason for none), from a fresh process; those that it printed in time."""
    command = [sys.executable, "-m", __name__, library]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        text, problem = done.stdout, (done.stderr.strip().splitlines() or ["no message"])[-1][-200:]
        failed = done.returncode != 0
    except subprocess.TimeoutExpired as late:
        out: Any = late.stdout or b""
        text, problem, failed = out if isinstance(out, str) else out.decode(), f"not done after {TIMEOUT_S} s", True
    for line in text.splitlines():
        if line.startswith("["):
            yield tuple(json.loads(line))
    if failed:
        yield f"{CATEGORY}/all other rows", problem


def names_of(peer: Torch | Cupy, layout: Layout, dtype: str) -> dict[str, Any]:
    """The names that the expressions see in that library."""
    return _torch_names(peer.library, layout, dtype) if isinstance(peer, Torch) else _cupy_names(peer, layout, dtype)


def _torch_names(torch: Any, layout: Layout, dtype: str) -> dict[str, Any]:
    torch.manual_seed(4)

    def build() -> Any:
        whole = torch.randn(elements(layout), device="cuda")
        whole = (whole * 50 if dtype == "int64" else whole).to(getattr(torch, dtype))
        rows = whole[layout.offset :].view(*layout.shape[:-1], layout.shape[-1] + layout.margin)
        return rows[..., : layout.shape[-1]]

    x, y = build(), build()
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "x": x,
        "y": y,
        "r": x.reshape(-1, x.shape[-1])[0].clone(),
        "mask": torch.rand(layout.shape, device="cuda") < 0.5,
        "pick": torch.randperm(layout.shape[0], device="cuda"),
        "p": torch.randint(0, layout.shape[1], layout.shape, device="cuda"),
    }


def _cupy_names(peer: Cupy, layout: Layout, dtype: str) -> dict[str, Any]:
    cp = peer.library
    from cupyx.scipy import special

    if dtype == "bfloat16":
        raise TypeError("CuPy has no bfloat16 of its own")
    cp.random.seed(4)

    def build() -> Any:
        whole = cp.random.standard_normal(elements(layout), dtype=cp.float32)
        whole = (whole * 50 if dtype == "int64" else whole).astype(dtype)
        rows = whole[layout.offset :].reshape(*layout.shape[:-1], layout.shape[-1] + layout.margin)
        return rows[..., : layout.shape[-1]]

    return {
        "cp": cp,
        "special": special,
        "x": build(),
        "y": build(),
        "mask": cp.random.random(layout.shape, dtype=cp.float32) < 0.5,
        "pick": cp.random.permutation(layout.shape[0]),
        "p": cp.random.randint(0, layout.shape[1], layout.shape),
    }


def measure(library: str) -> Iterator[tuple[str, float | str]]:
    """Every operation that the library has a function for, at every shape and type; then the host's cost of each."""
    peer = PEERS[library]()
    for layout in LAYOUTS:
        for dtype in DTYPES:
            own = {"layout": layout.name, "shape": layout.label, "dtype": dtype}
            try:
                names = names_of(peer, layout, dtype)
            except Exception as error:  # a type that the library lacks
                yield f"{CATEGORY}/{layout.name} {dtype}", reason(error)
                continue
            for operation in OPERATIONS:
                expression = getattr(operation, library)
                if not expression or not operation.suits(dtype):
                    continue
                key = BenchmarkResult(operation.name, CATEGORY, own, value=0).key
                try:
                    yield key, device_us(peer, function(expression, names))
                except Exception as error:  # a function that this version lacks for the type
                    yield key, reason(error)
            names.clear()
    names = names_of(peer, Layout("", HOST_SHAPE), "float32")
    for operation in OPERATIONS:
        expression = getattr(operation, library)
        key = BenchmarkResult(f"{operation.name} on the host", CATEGORY, value=0).key
        if expression:
            try:
                yield key, call_us(peer, function(expression, names))
            except Exception as error:
                yield key, reason(error)


if __name__ == "__main__":
    for row in measure(sys.argv[1]):
        print(json.dumps(row), flush=True)
