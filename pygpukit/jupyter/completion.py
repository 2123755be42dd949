"""Completion inside %%cuda cells, as one matcher of IPython's: our flags, array names, CUDA's words; never Python's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from pygpukit._core import native
from pygpukit.jit.source.signature import scan
from pygpukit.jupyter.compiled import python_name
from pygpukit.jupyter.vocabulary import BUILT_IN, words_in

_PRIORITY = 1000.0  # before every other matcher, which then need not run
_ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a", "sim")
_MAGIC = re.compile(r"\s*%%cuda(?=\s)")
_INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")


class _Matches(list[SimpleCompletion]):
    """Completions that IPython takes as an answer also when there are none: it asks others after an empty list."""

    def __len__(self) -> int:
        return super().__len__() or 1


def cuda_matcher(magics: Any) -> Callable[[CompletionContext], dict[str, Any]]:
    """The matcher of one shell. Outside %%cuda cells it has nothing to say."""

    @context_matcher(identifier="pygpukit.cuda_matcher", priority=_PRIORITY)
    def matcher(context: CompletionContext) -> dict[str, Any]:
        if not _MAGIC.match(context.full_text + " "):
            return {"completions": [], "suppress": False}
        lines = context.full_text.split("\n")
        magic_line = next(at for at, line in enumerate(lines) if line.strip())
        before = context.text_until_cursor
        if context.cursor_line <= magic_line:
            if not _MAGIC.match(before):  # the cursor is in the magic's own name
                return {"completions": [], "suppress": False}
            fragment, candidates, kind = _on_magic_line(magics, before, "\n".join(lines[magic_line + 1 :]))
        else:
            fragment, candidates, kind = _in_body(magics, before, "\n".join(lines[magic_line + 1 :]))
        names = sorted({name for name in candidates if name.startswith(fragment)})
        return {
            "completions": _Matches(SimpleCompletion(text=name, type=kind) for name in names),
            "matched_fragment": fragment,
            "suppress": True,
            "ordered": True,
        }

    return matcher


def _on_magic_line(magics: Any, before: str, body: str) -> tuple[str, Iterable[str], str]:
    """(what is being written, what it may become, kind)."""
    words = before.split()
    if not before[-1:].isspace():
        words.pop()
    flag = words[-1] if words else ""
    fragment = re.search(r"[^\s,=\[\]()'\"]*$", before)
    written = fragment.group() if fragment else ""
    if flag in ("-i", "--input", "-o", "--output") or re.search(r"(^|\s)-[io]\s*\S*$", before):
        return written.removeprefix("-i").removeprefix("-o"), _arrays(magics.shell.user_ns), "instance"
    values: dict[str, Callable[[], Iterable[str]]] = {
        "--kernel": lambda: _kernels(body),
        "--with": magics.named_cells.names,
        "--arch": lambda: _ARCHITECTURES,
        "--check": lambda: ("memory",),
    }
    if flag in values:
        return written, values[flag](), "instance"
    flags = [flag for action in magics.cuda.parser._actions for flag in action.option_strings]
    return written, flags, "param"


def _in_body(magics: Any, before: str, body: str) -> tuple[str, Iterable[str], str]:
    match = re.search(r"(?:(\w+)\s*\.\s*)?(\w*)$", before)
    owner, written = (match.group(1), match.group(2)) if match else (None, "")
    if owner is not None:
        return written, ("x", "y", "z") if owner in _INDICES else (), "instance"
    return written, (BUILT_IN | magics.vocabulary.names | words_in(body)) - {written}, "keyword"


def _arrays(namespace: dict[str, Any]) -> list[str]:
    return [
        name for name, value in namespace.items() if isinstance(value, native.ArrayBase) and not name.startswith("_")
    ]


def _kernels(body: str) -> Sequence[str]:
    try:
        return [python_name(one.name) for one in scan(body)]
    except ValueError:
        return []
