"""A whole program where kernels are wanted: what main() does is Python's part there, and the message says so."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from pygpukit.jit.source.lexer import lex
from pygpukit.jit.source.lines import Lines

_OUTSIDE = {"__CUDACC__": "1", "__CUDACC_RTC__": "1"}
_TEXT = (
    "main() is no device code: this takes kernels (__global__), __device__ functions, types and constants; what "
    "main() does is Python here: x = gp.zeros(n) makes an array, kernel[grid, block](x, n) launches, x.to_numpy() "
    "copies it back; a whole program runs as a %%cuda cell, and by pygpukit run"
)


def refusal(source: str, name: str, defines: Mapping[str, str] | None = None) -> str:
    """A compiler's message about the source's main(), or ""."""
    if "main" not in source:
        return ""
    tokens = [token for token in lex(source, {**_OUTSIDE, **(defines or {})}).tokens if token.certain]
    depth = 0
    for token, following in pairwise(tokens):
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.text == "main" and following.text == "(":
            text = source.splitlines()[token.line - 1]
            file, line = Lines(source, name).origin(token.line)
            return f"{file}:{line}:{text.find('main') + 1}: error: {_TEXT}"
    return ""
