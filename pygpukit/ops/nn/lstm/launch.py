"""The LSTM's kernels: one launch for all steps where the weights fit into a cluster's registers, else one a step.

Both give the same bits, so which one runs may follow from the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import sharing
from pygpukit.core.choices import by_device
from pygpukit.core.device import device_facts
from pygpukit.core.dtypes import DataType, float32, float64
from pygpukit.ops import copying
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn.lstm.work import Work

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "lstm.cu")
PERSISTENT = kernels.KernelSpec(__file__, "persistent.cu", ahead=("sm_90a", "sm_100a", "sm_120a"))
_LSTM = SOURCE.structure("Lstm")
_UNITS = 4  # of a block: a warp each
_BLOCKS, _THREADS, _TOGETHER = 8, 512, 8  # persistent.cu: kBlocks, 32 kWarps, kTogether
_CLUSTERS = 8  # of a direction, before one takes more sequences: with both directions they fill an H100
_FORMS = {128: (1, 4), 256: (2, 8)}  # largest H: units of a warp, elements of a lane


def run(work: Work) -> GPUArray:
    """Fill out and c; the last hidden states."""
    directions, sequences, hidden = work.h.shape
    last = copying.clone(work.h)
    spans = work.bias if work.spans is None else work.spans.device
    batch, steps = work.out.shape[:2]
    longest = max(length for _, length in work.pairs)
    fields = {
        "sequences": sequences,
        "hidden": hidden,
        "rows": batch * steps,
        "directions": directions,
        "steps": steps,
        "has_spans": work.spans is not None,
        "reverse": work.reverse,
    }
    arrays = work.products, work.h, work.matrices[0], work.matrices[-1], work.bias, work.c, last, work.out, spans
    if not refusal(work.out.dtype, hidden):
        form = next(form for max_hidden, form in _FORMS.items() if hidden <= max_hidden)
        together = min(_TOGETHER, -(-sequences // _CLUSTERS))
        spec = PERSISTENT.of(_expression(form), cluster=(_BLOCKS, 1, 1))
        grid = _BLOCKS, -(-sequences // together), directions
        kernels.launch(spec, grid, (_THREADS, 1, 1), *arrays, _LSTM.pack(**fields, number=0, together=together))
        return last
    spec = SOURCE.of(f"pk::lstm_step<{CTYPES[work.out.dtype.name]}>")
    grid = sequences, -(-hidden // _UNITS), directions
    for number in range(longest):
        packed = _LSTM.pack(**fields, number=number, together=0)
        kernels.launch(spec, grid, (32 * _UNITS, 1, 1), *arrays, packed)
    return last


def refusal(dtype: DataType, hidden: int) -> str:
    """Why an LSTM of `hidden` units takes a launch a step on the current device, "" where one launch has all steps."""
    if dtype != float32:
        return f"{dtype} has twice the bytes of float32, whose weights just fit into registers"
    if hidden > max(_FORMS):
        return f"the weights of {hidden} units do not fit into the registers of {_BLOCKS} blocks, {max(_FORMS)} do"
    if sharing.divided():
        return "the multiprocessors are divided: those of a part may lie too far apart for a cluster of blocks"
    return _no_cluster(native.current_device())


@by_device
def _no_cluster(device: int) -> str:
    """Why that device cannot run one, "" where it can: asking the driver takes a millisecond."""
    info = device_facts(device)
    if int(info["compute_major"]) < 9:
        return f"SM {info['compute_major']}.{info['compute_minor']} has no clusters of blocks"
    if int(info["multiprocessor_count"]) < _BLOCKS:
        return (
            f"a cluster of {_BLOCKS} blocks needs {_BLOCKS} multiprocessors, there are {info['multiprocessor_count']}"
        )
    return ""


def _expression(form: tuple[int, int]) -> str:
    return f"pk::lstm_persistent<{form[0]}, {form[1]}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel of a step that the LSTM can ask for."""
    yield tuple(f"pk::lstm_step<{CTYPES[dtype.name]}>" for dtype in (float32, float64))


@PERSISTENT.lists
def persistent_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel of all steps."""
    yield tuple(_expression(form) for form in _FORMS.values())
