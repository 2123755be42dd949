"""Changes to a few headers of CUTLASS with which NVRTC compiles them as nvcc does.

The files stay as they are: a compile is given these texts in their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

# libcu++ declares these itself, and since 3.1 with one parameter instead of any number.
_FORWARD = re.compile(
    r"#if defined\(__CUDACC_RTC__\)\n(template <class\.\.\. \w+>\nstruct tuple_size;\n\n"
    r"template <size_t \w+, class\.\.\. \w+>\nstruct tuple_element;\n)#endif\n"
)
_SEQUENCES = re.compile(
    r"using CUTE_STL_NAMESPACE::integer_sequence;\nusing CUTE_STL_NAMESPACE::make_integer_sequence;\n"
)
_OWN_SEQUENCES = (
    "template <class T, T... I> struct integer_sequence { typedef T value_type; "
    "static constexpr size_t size() { return sizeof...(I); } }; "
    "template <class S> struct own_sequence; template <class T, T... I> "
    "struct own_sequence<CUTE_STL_NAMESPACE::integer_sequence<T, I...>> { typedef integer_sequence<T, I...> type; };\n"
    "template <class T, T N> using make_integer_sequence = "
    "typename own_sequence<CUTE_STL_NAMESPACE::make_integer_sequence<T, N>>::type;\n"
)
_DECLARE_TUPLES = tuple(
    f"cute/{name}.hpp"
    for name in ("container/array", "container/array_subbyte", "container/tuple", "container/type_list",
                 "numeric/arithmetic_tuple")
)  # fmt: skip


def _without_forward(text: str) -> str:
    return _FORWARD.sub(lambda match: "\n" * match.group().count("\n"), text)


# The first branch is nvcc's. In its place, line for line: a map that lies elsewhere, among a kernel's parameters; where
# the headers take its address, they have that.
_DESCRIPTORS = re.compile(
    r"#if \(__CUDACC_VER_MAJOR__ >= 12\) && !defined\(__CUDACC_RTC__\)\n"
    r"[ \t]*using TmaDescriptor = CUtensorMap;\n[ \t]*using Im2ColTmaDescriptor = CUtensorMap;\n"
    r"(#else\n[ \t]*using TmaDescriptor = struct alignas\(64\) \{ char bytes\[128\]; \};\n"
    r"[ \t]*using Im2ColTmaDescriptor = struct alignas\(64\) \{ char bytes\[128\]; \};\n)"
)
_ELSEWHERE = (
    "#if defined(PK_TENSOR_MAPS_ELSEWHERE)\n"
    "struct TmaDescriptor { TmaDescriptor const* at; "
    "CUTE_HOST_DEVICE constexpr TmaDescriptor const* operator&() const { return at; } };\n"
    "using Im2ColTmaDescriptor = TmaDescriptor;\n"
)


def _aligned(text: str) -> str:
    """A tensor map has 128 bytes' alignment since CUDA 13: with less, host and device see different parameters."""
    return _DESCRIPTORS.sub(lambda match: _ELSEWHERE + match[1].replace("alignas(64)", "alignas(128)"), text)


def _with_own_sequences(text: str) -> str:
    """libcu++ 3.1 has a get() for its sequences, which would be as good as CuTe's: CuTe gets a type of its own."""
    return _SEQUENCES.sub(_OWN_SEQUENCES, text)


def _named(text: str) -> str:
    """A few headers say std:: where NVRTC has only cuda::std."""
    names = ("is_pointer_v", "void_t", "max", "min", "numeric_limits")
    using = " ".join(f"using cuda::std::{name};" for name in names)
    headers = "".join(f"#include CUDA_STD_HEADER({name})\n" for name in ("type_traits", "limits"))
    headers += "#if __has_include(<cuda/std/algorithm>)\n#include CUDA_STD_HEADER(algorithm)\n#else\n"  # libcu++ 3.0
    headers += "#include CUDA_STD_HEADER(__algorithm/max.h)\n#include CUDA_STD_HEADER(__algorithm/min.h)\n#endif\n"
    return f"{text}\n#if defined(__CUDACC_RTC__)\n{headers}namespace std {{ {using} }}\n#endif\n"


def _by_full_name(text: str) -> str:
    """NVRTC would read the file beside this one, too, where the mended text is given by the header's full name."""
    return text.replace('#include "cutlass.h"', '#include "cutlass/cutlass.h"')


MENDS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(_DECLARE_TUPLES, _without_forward),
    "cute/arch/copy_sm90_desc.hpp": _aligned,
    "cute/numeric/integer_sequence.hpp": _with_own_sequences,
    "cutlass/cutlass.h": _named,
    "cutlass/workspace.h": _by_full_name,
}
# What libcu++ asks for and no wheel of NVRTC's has: the compiler itself knows what they declare.
_EMPTY = ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "driver_types.h", "vector_functions.h", "vector_types.h")


@cache
def texts(include: Path) -> dict[str, str]:
    """The mended headers' texts by name."""
    return {name: mend((include / name).read_text(encoding="utf-8")) for name, mend in MENDS.items()}


def stubs() -> dict[str, str]:
    """Empty headers by name, for an NVRTC that brings its own."""
    return dict.fromkeys(_EMPTY, "")
