"""Products of few rows of each expert with its weight of 16 bits, as in decoding: by the bytes of the weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.core import device
from pygpukit.nn.linear.tensor import FORMS, TYPES, Form
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# A row has the same bits by all forms.
SOURCE = kernels.KernelSpec(__file__, "few_rows.cu", options=kernels.SAME_BITS)
_CALL = SOURCE.structure("LinearCall")
_THREADS = 256  # few_rows.cu: of a block


def product(x: GPUArray, weight: GPUArray, counts: GPUArray, out: GPUArray, form: Form | None = None) -> None:
    """out (C, n) = rows x (C, k) by experts, so many of each as counts (experts,) says, times its rows of the weight
    (experts * n, k). A row's bits depend on it and its expert alone."""
    (choices, columns), experts = out.shape, counts.shape[0]
    form = form or form_of(-(-choices // min(choices, experts)))
    call = _CALL.pack(n=columns, k=x.shape[1], rows=choices, has_bias=0, has_shift=0, epsilon=0.0)
    expression = f"pk::few_rows_of_experts<{_types(out.dtype.name, form)}>"
    spec = SOURCE.of(expression, shared_bytes=form.shared_bytes, overlapping=True)
    arrays = x, counts, weight, out, experts.to_bytes(4, "little"), call
    kernels.launch(spec, (device.current().sm_count, 1, 1), (_THREADS, 1, 1), *arrays)


def form_of(rows: int) -> Form:
    """The form of blocks for so many rows of an expert; experts have different numbers, so for twice as many."""
    fitting = [form for form in FORMS if form.fits]
    return next((form for form in fitting if 8 * form.across >= 2 * rows), max(fitting, key=lambda form: form.across))


def _types(dtype: str, form: Form) -> str:
    return f"{CTYPES[dtype]}, {form.down}, {form.across}, {form.stages}"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that experts of few rows can ask for."""
    for dtype in TYPES:
        yield tuple(f"pk::few_rows_of_experts<{_types(dtype.name, form)}>" for form in FORMS)
