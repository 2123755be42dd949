"""No hidden copies: every public operation is called on device arrays, and what crosses to or from the host is counted.

The few that must look at data on the host, or whose argument comes from there, are listed with how much and why.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from public_operations import COLUMNS, ROWS, SPECIAL, call_of, expression, names, operations

import pygpukit as gp
from pygpukit import _core

pytestmark = pytest.mark.usefixtures("backend_name")

# Bytes that an operation may bring to the host: the extent of a result that depends on the data.
COUNTS = 16
TO_HOST = {
    "argwhere": COUNTS,
    "compress": COUNTS,
    "extract": COUNTS,
    "flatnonzero": COUNTS,
    "nonzero": COUNTS,
    "unique": COUNTS,
    "unique_all": COUNTS,
    "unique_counts": COUNTS,
    "unique_inverse": COUNTS,
    "unique_values": COUNTS,
    "array[mask]": COUNTS,
    "array_equal": COUNTS,  # the answer is a Python bool
    "allclose": COUNTS,
    "bincount": COUNTS,  # the smallest and the largest
    "ravel_multi_index": 2 * 16,  # the smallest and the largest index of each axis
    "unravel_index": 16,
    "digitize": COLUMNS * 4,  # the edges: whether they rise or fall, with NaN last
    "nanargmax": 1,  # whether a row is NaN only
    "nanargmin": 1,
    "item": 8,
}
# Operations whose operand is a list or a number sequence of the host's, with its bytes.
TO_DEVICE = {"array[list]": 2 * 8, "from_numpy": ROWS * COLUMNS * 4, "asarray": 3 * 8}
# Edges of bins, which are made on the host and copied as they are made.
TO_DEVICE |= {"histogram": 9 * 4, "histogram_bin_edges": 9 * 4, "histogram2d": 2 * 5 * 8, "histogramdd": 2 * 5 * 8}


# Methods, operators and indexing, and what makes arrays.
METHODS = {
    "x + y": "x + y",
    "x + 1": "x + 1",
    "x * row": "x * row",
    "x + i": "x + i",
    "x == y": "x == y",
    "x @ y.T": "x @ y.T",
    "x += y": "x.clone().__iadd__(y)",
    "astype": "x.astype('bfloat16')",
    "reshape": "x.T.reshape(-1)",
    "contiguous": "x.T.contiguous()",
    "clone": "x[::2, ::-1].clone()",
    "fill": "x.clone().fill(3)",
    "fill of a view": "x.clone()[::2].fill(3)",
    "array[...]": "x[1:, None, ::-2]",
    "array[...] = array": "x.clone().__setitem__(slice(1, 3), row)",
    "array[...] = number": "x.clone().__setitem__((slice(None), 2), 1.5)",
    "array[array]": "x[pick]",
    "array[array] = array": "x.clone().__setitem__(pick, row)",
    "array[mask]": "x[mask]",
    "array[mask] = number": "x.clone().__setitem__(mask, 0)",
    "array[list]": "x[[1, 2]]",
    "fused": "gp.fuse(lambda a, b: a * 2 + b)(x, row)",
    "zeros": "gp.zeros((3, 4))",
    "ones": "gp.ones((3, 4), 'bfloat16')",
    "full": "gp.full((3, 4), 2.5)",
    "empty": "gp.empty((3, 4))",
    "from_numpy": "gp.from_numpy(host)",
    "asarray": "gp.asarray([1, 2, 3])",
    "item": "row[0].item()",
}


def moved(call: Callable[[], object]) -> tuple[int, int]:
    """Bytes to the host and to the device during a call, after one that made what is made on first use.

    Copies are counted when they are queued; waiting may read what the device has to report, and is not of the call.
    """
    call()
    gp.synchronize()
    before = _core.counters()
    call()
    after = _core.counters()
    return after["d2h_bytes"] - before["d2h_bytes"], after["h2d_bytes"] - before["h2d_bytes"]


@pytest.mark.parametrize("name", operations())
def test_an_operation_copies_nothing_in_secret(name: str) -> None:
    to_host, to_device = moved(call_of(name))
    assert to_host <= TO_HOST.get(name, 0), f"{name} brought {to_host} bytes to the host"
    assert to_device <= TO_DEVICE.get(name, 0), f"{name} brought {to_device} bytes to the device"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_copies_nothing_in_secret(name: str) -> None:
    call = expression(METHODS[name])
    call()
    to_host, to_device = moved(call)
    assert to_host <= TO_HOST.get(name, 0), f"{name} brought {to_host} bytes to the host"
    assert to_device <= TO_DEVICE.get(name, 0), f"{name} brought {to_device} bytes to the device"


def test_the_counting_sees_copies() -> None:
    x = names()["x"]
    assert moved(lambda: x.to_numpy()) == (x.nbytes, 0)
    assert moved(lambda: gp.from_numpy(names()["host"])) == (0, x.nbytes)
    assert moved(lambda: gp.add(x, gp.from_numpy(x.to_numpy()))) == (x.nbytes, x.nbytes)


def test_every_line_is_of_an_operation_that_can_be() -> None:
    for name, text in SPECIAL.items():
        assert f"gp.{name}(" in text
    assert set(TO_DEVICE) <= {*METHODS, *operations()}
