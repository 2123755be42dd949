"""cuBLASLt, opened at run time by ctypes: one handle a device; descriptors and one algorithm for each kind of product.

tests/ops/matmul/test_cublaslt.py holds the arguments against a library of the test's own.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pygpukit._core import native
from pygpukit.core.errors import GPUError
from pygpukit.core.extras import install_command
from pygpukit.jit.toolchain import libraries
from pygpukit.ops.matmul import precision

WORKSPACE = 32 << 20  # bytes that an algorithm may use, the same on every stream
_FORBID = "PYGPUKIT_NO_CUBLASLT"
_NO_ALGORITHM = (7, 15)  # cublasStatus_t: it cannot be so, it is not supported
_COMPUTE_TYPE = 2  # cublasLtReductionScheme_t: parts of a sum are added as they were summed, and rounded once


class Types(NamedTuple):
    """Numbers of cudaDataType_t and cublasComputeType_t, and what alpha and beta are."""

    operand: int
    result: int
    compute: int
    scale: int
    number: Any


TYPES = {
    "float16": Types(2, 2, 68, 0, ctypes.c_float),
    "bfloat16": Types(14, 14, 68, 0, ctypes.c_float),
    "float32": Types(0, 0, 68, 0, ctypes.c_float),
    "tf32": Types(0, 0, 77, 0, ctypes.c_float),
    "float64": Types(1, 1, 70, 1, ctypes.c_double),
    "int8": Types(3, 10, 72, 10, ctypes.c_int32),
}


class Form(NamedTuple):
    """The layout of a stack of matrices in memory.

    transposed: its columns are dense, not its rows. lead, step: elements between neighbours of those, and between
    matrices. alignment: of the first element, in bytes.
    """

    transposed: bool
    lead: int
    step: int
    alignment: int


class Signature(NamedTuple):
    """The key by which an algorithm is chosen. types: a key of TYPES. out is not transposed."""

    device: int
    types: str
    batches: int
    m: int
    n: int
    k: int
    a: Form
    b: Form
    out: Form


class Result(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


class Call:
    """Products of one signature, by one algorithm: the library's first, kept. workspace: bytes that it needs."""

    def __init__(self, asked: Signature, library: Any) -> None:
        self._library, self._types = library, TYPES[asked.types]
        self._handle = _created(library, asked.device)[0]
        self._unit, self._zero = self._types.number(1), self._types.number(0)
        self._owned: list[tuple[str, ctypes.c_void_p]] = []
        weakref.finalize(self, _destroy, library, self._owned).atexit = False
        # The library thinks in columns: rows of the result are columns of its transpose, which is b.T @ a.T.
        self._descriptor = self._create(
            "MatmulDesc", ctypes.c_int(self._types.compute), ctypes.c_int(self._types.scale)
        )
        self._set("MatmulDesc", self._descriptor, 3, ctypes.c_int32(asked.b.transposed))
        self._set("MatmulDesc", self._descriptor, 4, ctypes.c_int32(asked.a.transposed))
        operand, result, batches = self._types.operand, self._types.result, asked.batches
        self._layouts = (
            self._layout(operand, asked.b, asked.k, asked.n, batches),
            self._layout(operand, asked.a, asked.m, asked.k, batches),
            self._layout(result, asked.out, asked.m, asked.n, batches),
        )
        self._heuristic = self._first(asked)
        self.workspace = int(self._heuristic.workspace)

    def __call__(self, a: int, b: int, out: int, workspace: int, stream: int) -> None:
        """out = a @ b, all of them addresses, queued on a stream. Raises GPUError."""
        left, right, result = self._layouts
        target = ctypes.c_void_p(out)
        status = self._library.cublasLtMatmul(
            self._handle,
            self._descriptor,
            ctypes.byref(self._unit),
            ctypes.c_void_p(b),
            left,
            ctypes.c_void_p(a),
            right,
            ctypes.byref(self._zero),
            target,
            result,
            target,
            result,
            ctypes.byref(self._heuristic.algorithm),
            ctypes.c_void_p(workspace),
            ctypes.c_size_t(self.workspace),
            ctypes.c_void_p(stream),
        )
        _check("cublasLtMatmul", status)

    def _first(self, asked: Signature) -> Result:
        """The library's first algorithm. Raises NoAlgorithm."""
        wishes = self._create("MatmulPreference")
        self._set("MatmulPreference", wishes, 1, ctypes.c_uint64(WORKSPACE))
        self._set("MatmulPreference", wishes, 3, ctypes.c_uint32(_COMPUTE_TYPE))
        for attribute, form in enumerate((asked.b, asked.a, asked.out, asked.out), 5):
            self._set("MatmulPreference", wishes, attribute, ctypes.c_uint32(form.alignment))
        heuristic, count = Result(), ctypes.c_int()
        left, right, result = self._layouts
        status = self._library.cublasLtMatmulAlgoGetHeuristic(
            self._handle,
            self._descriptor,
            left,
            right,
            result,
            result,
            wishes,
            ctypes.c_int(1),
            ctypes.byref(heuristic),
            ctypes.byref(count),
        )
        if status in _NO_ALGORITHM or (not status and (not count.value or heuristic.state)):
            raise NoAlgorithm
        _check("cublasLtMatmulAlgoGetHeuristic", status)
        return heuristic

    def _layout(self, dtype: int, form: Form, rows: int, columns: int, batches: int) -> ctypes.c_void_p:
        """Of a stack of matrices of so many rows and columns, seen by columns."""
        dense, lines = (rows, columns) if form.transposed else (columns, rows)
        handle = self._create(
            "MatrixLayout",
            ctypes.c_int(dtype),
            ctypes.c_uint64(dense),
            ctypes.c_uint64(lines),
            ctypes.c_int64(form.lead),
        )
        if batches > 1:
            self._set("MatrixLayout", handle, 5, ctypes.c_int32(batches))
            self._set("MatrixLayout", handle, 6, ctypes.c_int64(form.step))
        return handle

    def _create(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        handle, name = ctypes.c_void_p(), f"cublasLt{kind}Create"
        _check(name, getattr(self._library, name)(ctypes.byref(handle), *arguments))
        self._owned.append((kind, handle))
        return handle

    def _set(self, kind: str, handle: ctypes.c_void_p, attribute: int, value: Any) -> None:
        name, size = f"cublasLt{kind}SetAttribute", ctypes.c_size_t(ctypes.sizeof(value))
        _check(name, getattr(self._library, name)(handle, ctypes.c_int(attribute), ctypes.byref(value), size))


class NoAlgorithm(Exception):
    """The library has none for a signature."""


@lru_cache(maxsize=1024)
def call(asked: Signature) -> Call | None:
    """The call for a signature, the same one each time; None where the library has no algorithm for it. Only where
    missing() is ""."""
    try:
        return Call(asked, opened()[0])
    except NoAlgorithm:
        return None


def missing() -> str:
    """Why cuBLASLt cannot be used here, "" where it can."""
    return opened()[1]


@cache
def opened() -> tuple[Any, str]:
    """The library, and "" or why there is none that works here. Raises ValueError as precision.switched_on()."""
    if precision.switched_on(_FORBID):
        return None, f"{_FORBID}=1 forbids cuBLASLt"
    why = f"cuBLASLt was not found: {install_command('cublas')}, or set CUDA_PATH to a toolkit that has it"
    for path in libraries.cublaslt_candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        status = _created(library, native.current_device())[1]
        if not status:
            return library, ""
        why = f"{path} does not start on this device (status {status}); install the one of the driver's CUDA version"
    return None, why


@cache
def _created(library: Any, device: int) -> tuple[ctypes.c_void_p, int]:
    """A handle of the current device, which has that number, and the library's status."""
    native.memory_info()  # makes the device's context that of this thread
    handle = ctypes.c_void_p()
    return handle, int(library.cublasLtCreate(ctypes.byref(handle)))


def _destroy(library: Any, owned: list[tuple[str, ctypes.c_void_p]]) -> None:
    for kind, handle in owned:
        getattr(library, f"cublasLt{kind}Destroy")(handle)


def _check(name: str, status: int) -> None:
    if status:
        raise GPUError(f"{name}: cuBLASLt answers with status {status}; its documentation lists them (cublasStatus_t)")
