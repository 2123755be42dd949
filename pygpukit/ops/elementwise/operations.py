"""The element-wise operations as a table: name, functor of the kernels, NumPy function, types and their promotion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import STORAGE_ONLY, DataType, bool_, float16, float32, float64, int8
from pygpukit.core.errors import DTypeError

# ---- types: what operands of a type are computed in; a type that is missing is refused ----

Types = dict[str, DataType]


def _own(*groups: tuple[DataType, ...]) -> dict[str, DataType]:
    return {dtype.name: dtype for group in groups for dtype in group}


# Integers become the smallest float that holds them, as in NumPy: 8 bits float16, 16 bits float32, others float64.
_FLOAT_OF_INTEGER: Types = {"bool": float16} | {
    dtype.name: {1: float16, 2: float32}.get(dtype.itemsize, float64) for dtype in promotion.SIGNED + promotion.UNSIGNED
}
_INTEGERS = promotion.SIGNED + promotion.UNSIGNED
_BOOL_AS_INT8: Types = {"bool": int8}

NUMBERS = _own(_INTEGERS, promotion.FLOATS, promotion.COMPLEX)
ANY = NUMBERS | _own((bool_,))
ORDERED = _own((bool_,), _INTEGERS, promotion.FLOATS)
DIVIDED = {name: promotion.true_divide(dtype) for name, dtype in ANY.items()}
FLOATS = _own(promotion.FLOATS) | _FLOAT_OF_INTEGER
FLOATS_AND_COMPLEX = FLOATS | _own(promotion.COMPLEX)
SIGNED_OR_FLOAT = _own(promotion.SIGNED, promotion.FLOATS, promotion.COMPLEX)
REALS = _own(_INTEGERS, promotion.FLOATS) | _BOOL_AS_INT8
POWERS = REALS | _own(promotion.COMPLEX)
BITS = _own((bool_,), _INTEGERS)
SHIFTED = _own(_INTEGERS) | _BOOL_AS_INT8
ONLY_FLOATS = _own(promotion.FLOATS)
ONLY_INEXACT = _own(promotion.FLOATS, promotion.COMPLEX)
ONLY_COMPLEX = _own(promotion.COMPLEX)


@dataclass(frozen=True, eq=False)
class Op:
    """An operation: its name in errors and records, its functor in operations.cuh, its NumPy function, its types.

    ufunc: in NumPy, or where NumPy has none in ops/elementwise/host_functions.py.
    """

    name: str
    functor: str
    ufunc: str
    types: Types
    result: Literal["same", "bool", "part"] = "same"  # part: of complex numbers, the type of their parts
    commutes: bool = False
    by_layout: bool = False  # a kernel of its own for dense operands, a scalar and other layouts
    by_size: bool = False  # kernels look at bits only: one for each item size
    refusal: str = ""  # what to say of a type that is missing
    operands: int = 2
    plain: native.DenseCall | None = field(init=False)  # by_layout: straight to the kernels it has learnt
    prepared: native.Prepared | None = field(init=False, default=None)  # the common path of elementwise, for this one

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", native.DenseCall(self.operands) if self.by_layout else None)

    def result_dtype(self, dtype: DataType) -> DataType:
        """Type of the result of operands of type dtype."""
        if self.result == "bool":
            return bool_
        if self.result == "part" and dtype in promotion.COMPLEX:
            return float32 if dtype.itemsize == 8 else float64
        return dtype

    @property
    def swapped(self) -> str:
        """The functor for operands the other way round."""
        return self.functor if self.commutes else f"pk::Swapped<{self.functor}>"

    def computed(self) -> dict[str, DataType]:
        """The types that kernels of this operation exist for."""
        return {dtype.name: dtype for dtype in self.types.values()}


def compute_dtype(op: Op, dtype: DataType) -> DataType:
    """The type that op computes in when its operands promote to dtype. Raises DTypeError where op does not exist."""
    computed = op.types.get(dtype.name)
    if computed is not None:
        return computed
    if dtype in STORAGE_ONLY:
        raise DTypeError(
            f"{op.name}: {dtype} is a storage type without arithmetic; convert to a type that computes first"
        )
    if op.refusal:
        raise DTypeError(f"{op.name}: {op.refusal}")
    remedy = ".astype('int8')" if dtype is bool_ else ".real" if dtype in promotion.COMPLEX else ".astype(...)"
    raise DTypeError(f"{op.name}: not defined for {dtype}; convert with {remedy} first")


# ---- the table ----

_NO_ORDER = "complex numbers have no order; compare their parts"
_NO_BOOL = "not defined for bool; convert with .astype('int8') first"


def _unary(name: str, types: Types, functor: str = "", ufunc: str = "", **more: object) -> Op:
    return Op(name, f"pk::{functor or name.capitalize()}", ufunc or name, types, **more)  # type: ignore[arg-type]


COPY = Op("copy", "pk::Copy", "asarray", ANY, by_layout=True, operands=1)
NEG = Op("neg", "pk::Negate", "negative", NUMBERS, by_layout=True, refusal=_NO_BOOL, operands=1)
ADD = Op("add", "pk::Add", "add", ANY, commutes=True, by_layout=True)
SUB = Op("sub", "pk::Subtract", "subtract", NUMBERS, by_layout=True, refusal=_NO_BOOL)
MUL = Op("mul", "pk::Multiply", "multiply", ANY, commutes=True, by_layout=True)
DIV = Op("div", "pk::Divide", "true_divide", DIVIDED, by_layout=True)
EQ = Op("eq", "pk::Equal", "equal", ANY, "bool", commutes=True, by_layout=True)
NE = Op("ne", "pk::NotEqual", "not_equal", ANY, "bool", commutes=True, by_layout=True)
LT = Op("lt", "pk::Less", "less", ORDERED, "bool", by_layout=True, refusal=_NO_ORDER)  # a > b is b < a
LE = Op("le", "pk::LessEqual", "less_equal", ORDERED, "bool", by_layout=True, refusal=_NO_ORDER)
ARITHMETIC = (ADD, SUB, MUL, DIV, EQ, NE, LT, LE)

ABS = _unary("abs", SIGNED_OR_FLOAT, "Absolute", "absolute", result="part")
CEIL = _unary("ceil", ONLY_FLOATS)
CONJ = _unary("conj", ONLY_COMPLEX, "Conjugate")
ERF = _unary("erf", FLOATS)
FLOOR = _unary("floor", ONLY_FLOATS)
GELU = _unary("gelu", FLOATS)
GELU_TANH = _unary("gelu_tanh", FLOATS, "GeluTanh")
ISFINITE = _unary("isfinite", ONLY_INEXACT, "IsFinite", result="bool")
ISINF = _unary("isinf", ONLY_INEXACT, "IsInfinite", result="bool")
ISNAN = _unary("isnan", ONLY_INEXACT, "IsNan", result="bool")
RECIPROCAL_OF_INTEGER = _unary("reciprocal", SHIFTED, "ReciprocalOfInteger", "reciprocal_of_integer")
RELU2 = _unary("relu2", FLOATS)
ROUND = _unary("round", ONLY_FLOATS, ufunc="rint")
RSQRT = _unary("rsqrt", FLOATS_AND_COMPLEX)
SIGMOID = _unary("sigmoid", FLOATS)
SIGN = _unary("sign", NUMBERS)
SIGNBIT = _unary("signbit", FLOATS, "SignBit", result="bool")
SILU = _unary("silu", FLOATS)
TRUNC = _unary("trunc", ONLY_FLOATS)
# NumPy's names of functions that exist for floats and complex numbers; their functors are named after C's.
_MATH = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "cos": "cos", "cosh": "cosh", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log10": "log10",
    "log1p": "log1p", "log2": "log2", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
MATH = {name: _unary(name, FLOATS_AND_COMPLEX, ufunc=ufunc) for name, ufunc in _MATH.items()}
UNARY = (
    ABS, CEIL, CONJ, ERF, FLOOR, GELU, GELU_TANH, ISFINITE, ISINF, ISNAN, RECIPROCAL_OF_INTEGER, RELU2, ROUND, RSQRT,
    SIGMOID, SIGN, SIGNBIT, SILU, TRUNC, *MATH.values(),
)  # fmt: skip

ATAN2 = Op("atan2", "pk::Atan2", "arctan2", FLOATS)
BITWISE_AND = Op("bitwise_and", "pk::BitAnd", "bitwise_and", BITS, by_size=True)
BITWISE_OR = Op("bitwise_or", "pk::BitOr", "bitwise_or", BITS, by_size=True)
BITWISE_XOR = Op("bitwise_xor", "pk::BitXor", "bitwise_xor", BITS, by_size=True)
COPYSIGN = Op("copysign", "pk::CopySign", "copysign", FLOATS)
FLOOR_DIVIDE = Op("floor_divide", "pk::FloorDivide", "floor_divide", REALS)
FMAX = Op("fmax", "pk::Fmax", "fmax", ONLY_FLOATS)
FMIN = Op("fmin", "pk::Fmin", "fmin", ONLY_FLOATS)
GEGLU = Op("geglu", "pk::Geglu", "geglu", FLOATS)
HYPOT = Op("hypot", "pk::Hypot", "hypot", FLOATS)
LOGADDEXP = Op("logaddexp", "pk::LogAddExp", "logaddexp", FLOATS)
MAXIMUM = Op("maximum", "pk::Maximum", "maximum", ORDERED, refusal=_NO_ORDER)
MINIMUM = Op("minimum", "pk::Minimum", "minimum", ORDERED, refusal=_NO_ORDER)
NEXTAFTER = Op("nextafter", "pk::NextAfter", "nextafter", FLOATS)
POWER = Op("power", "pk::Power", "power", POWERS)
REMAINDER = Op("remainder", "pk::Remainder", "remainder", REALS)
SHIFT_LEFT = Op("bitwise_left_shift", "pk::ShiftLeft", "left_shift", SHIFTED, by_size=True)
SHIFT_RIGHT = Op("bitwise_right_shift", "pk::ShiftRight", "right_shift", SHIFTED)
SWIGLU = Op("swiglu", "pk::Swiglu", "swiglu", FLOATS)
BINARY = (
    ATAN2, BITWISE_AND, BITWISE_OR, BITWISE_XOR, COPYSIGN, FLOOR_DIVIDE, FMAX, FMIN, GEGLU, HYPOT, LOGADDEXP, MAXIMUM,
    MINIMUM, NEXTAFTER, POWER, REMAINDER, SHIFT_LEFT, SHIFT_RIGHT, SWIGLU,
)  # fmt: skip

CLAMP = Op("clamp", "pk::Clamp", "clip", ORDERED, refusal=_NO_ORDER)
SELECT = Op("where", "pk::Select", "where", ANY, by_size=True)
