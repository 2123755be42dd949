"""Local memory that kernels touch in loops: registers that were spilled there, and arrays that found none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pygpukit.jit.inspect.cubin import read_cubin
from pygpukit.jit.inspect.disassembly import disassembled

if TYPE_CHECKING:
    from pygpukit.jit.cache.image import Image
    from pygpukit.kernels.registry import Unit

# By source how many such instructions a kernel has at most, for any architecture: each was looked at with NVRTC 13.5.
# Where there are some, they stand around the loop over k, which has none: once for a tile, or for what a block makes in
# a round, beside at least 16 products on tensor cores and some hundred instructions.
HELD = {
    **dict.fromkeys(("ops/nn/attention/decode.cu", "ops/nn/attention/decode_mma.cu", "ops/nn/attention/mma.cu"), 0),
    **dict.fromkeys(("ops/matmul/sm90/cluster.cu", "ops/matmul/sm90/grouped.cu", "ops/matmul/sm90/pingpong.cu"), 0),
    "ops/nn/conv/mma.cu": 0,
    "ops/audio/recursive.cu": 0,
    "ops/nn/conv/few_channels.cu": 3,
    "nn/linear/in_blocks.cu": 6,
}
_SECTION = re.compile(r"\.text\.(\S+):")
_LABEL = re.compile(r"\s*\.(L_\w+):")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?P<guard>@\S+\s+)?(?P<name>\S+)\s*(?P<rest>[^;]*);")
_TARGET = re.compile(r"`\(\.(L_\w+)\)")


def check(unit: Unit, image: Image) -> None:
    """Say which kernels of a unit touch local memory in loops.

    Parameters
    ----------
    unit
        What was compiled.
    image
        Its machine code.

    Raises
    ------
    RuntimeError
        A kernel has more of it than its source is held to.
    GPUError
        As in_loops().
    """
    touching = {expression: count for expression, count in in_loops(image).items() if count}
    for expression, count in touching.items():
        print(f"  {image.arch} {unit.source}: {expression}: {count} of local memory in loops", flush=True)
    if beyond := [name for name, count in touching.items() if count > HELD.get(unit.source, count)]:
        raise RuntimeError(
            f"{unit} for {image.arch}: loops touch local memory, where registers spill, more often than "
            f"{HELD[unit.source]} times: {', '.join(beyond)}; keep less in registers, or more blocks apart"
        )


def in_loops(image: Image) -> dict[str, int]:
    """By kernel, how many instructions in its loops read or write local memory; of those that do so at all.

    Parameters
    ----------
    image
        Machine code of a real architecture.

    Returns
    -------
    dict[str, int]
        By name expression. Kernels without a byte of local memory are left out, and need no nvdisasm.

    Raises
    ------
    GPUError
        nvdisasm is not here, or cannot read the image.
    """
    kernels = read_cubin(image.image).kernels
    asked = {expression: symbol for expression, symbol in image.symbols.items() if kernels[symbol].local_bytes}
    if not asked:
        return {}
    code = dict(_sections(disassembled(image)))
    return {expression: local_in_loops(code[symbol]) for expression, symbol in asked.items()}


def _sections(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    starts = [(at, one[1]) for at, text in enumerate(lines) if (one := _SECTION.match(text))]
    ends = [at for at, _ in starts[1:]] + [len(lines)]
    for (start, symbol), end in zip(starts, ends, strict=True):
        yield symbol, list(lines[start:end])


def local_in_loops(lines: Sequence[str]) -> int:
    """Loads and stores of local memory (LDL, STL) that a kernel's code can come back to. Calls are not followed."""
    names, follows = _flow(lines)
    looping = _cyclic(follows)
    return sum(name.startswith(("LDL", "STL")) and looping[at] for at, name in enumerate(names))


def _flow(lines: Sequence[str]) -> tuple[list[str], list[list[int]]]:
    """The instructions' names, and which may follow each."""
    labels: dict[str, int] = {}
    code: list[re.Match[str]] = []
    for text in lines:
        if label := _LABEL.match(text):
            labels[label[1]] = len(code)
        elif instruction := _INSTRUCTION.match(text):
            code.append(instruction)
    follows: list[list[int]] = []
    for at, one in enumerate(code):
        name, rest = one["name"], one["rest"]
        target = _TARGET.search(rest) if name.startswith("BRA") else None
        # A branch goes there always where nothing stands before its target.
        ends = name.startswith(("EXIT", "RET", "BRX", "JMX")) or (
            target is not None and not rest[: target.start()].strip()
        )
        then = [at + 1] if at + 1 < len(code) and (one["guard"] or not ends) else []
        follows.append(
            [
                *then,
                *([labels[target[1]]] if target is not None and labels.get(target[1], len(code)) < len(code) else []),
            ]
        )
    return [one["name"] for one in code], follows


def _cyclic(follows: Sequence[Sequence[int]]) -> list[bool]:
    """Of each node of a graph, whether a way leads from it back to it (Tarjan's strongly connected components)."""
    number, lowest, on_path, cyclic = (
        [0] * len(follows),
        [0] * len(follows),
        [False] * len(follows),
        [False] * len(follows),
    )
    path: list[int] = []
    count = 0
    for root in range(len(follows)):
        if number[root]:
            continue
        waiting = [(root, iter(follows[root]))]
        count += 1
        number[root] = lowest[root] = count
        path.append(root)
        on_path[root] = True
        while waiting:
            node, rest = waiting[-1]
            for after in rest:
                if not number[after]:
                    count += 1
                    number[after] = lowest[after] = count
                    path.append(after)
                    on_path[after] = True
                    waiting.append((after, iter(follows[after])))
                    break
                if on_path[after]:
                    lowest[node] = min(lowest[node], number[after])
            else:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    own: list[int] = []
                    while not own or own[-1] != node:
                        own.append(path.pop())
                        on_path[own[-1]] = False
                    for one in own:
                        cyclic[one] = len(own) > 1 or one in follows[one]
    return cyclic
