"""Launching a send and a receive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.comm.collectives import WORDS, threads
from pygpukit.comm.planning import plan

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "pair.cu")
_PAIR = SOURCE.structure("Pair")


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel, by the size of elements."""
    yield tuple(f"pk::{name}<{word}>" for word in WORDS.values() for name in ("send", "receive"))


def send(x: GPUArray, peers: bytes, call: int, size: int, peer: int) -> None:
    """The elements of a contiguous array to a rank. The kernel ends when they have been received."""
    _launch("send", x, peers, call, size, peer)


def receive(out: GPUArray, peers: bytes, call: int, size: int, peer: int) -> None:
    """Elements of a rank into a contiguous array."""
    _launch("receive", out, peers, call, size, peer)


def _launch(name: str, array: GPUArray, peers: bytes, call: int, size: int, peer: int) -> None:
    chosen = plan(array.nbytes, array.dtype, "send", size=size)
    fields = _PAIR.pack(count=array.size, piece=chosen.piece_bytes // array.itemsize, peer=peer, call=call)
    spec = SOURCE.of(f"pk::{name}<{WORDS[array.itemsize]}>")
    kernels.launch(spec, (chosen.blocks, 1, 1), (threads(), 1, 1), array, peers, fields)
