"""The kernels of collectives: each launched as one rank of three, whose peers are played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from played_peers import PEER, RANK, SIZE, play, play_pair
from sweep.engine import Call, Family, first_type, numbers

import pygpukit as gp
from pygpukit.comm import collectives, pairs, planning
from pygpukit.ops.elementwise.pointwise import CTYPES

_NAMES = {ctype: name for name, ctype in CTYPES.items()}
_WORDS = dict(zip(collectives.WORDS.values(), ("uint8", "uint16", "uint32", "uint64", "complex128"), strict=True))


def _reduced(rows: Any, op: str) -> Any:
    """Of (size, count) as the kernels have it: bool adds up as or, small integers wrap."""
    rows = np.asarray(rows)
    result = rows[0]
    for row in rows[1:]:
        result = {"sum": np.add, "max": np.maximum, "min": np.minimum}[op](result, row)
    return result


def _once(x: gp.GPUArray, op: str, scatter: bool) -> gp.GPUArray:
    """x: (size, size, count) with scatter, what each rank has for each; else (size, count)."""
    rows = x.to_numpy()
    own, sent = x[RANK].clone(), [row[RANK] if scatter else row for row in rows]
    out = gp.empty(x.shape[-1], x.dtype)
    play(
        [sent],
        lambda peers, call: collectives.reduce(own, out, peers, call, SIZE, op=op, scatter=scatter),
    )
    return out


def _twice(x: gp.GPUArray, op: str) -> gp.GPUArray:
    """x: (size, count). What the others combine, in the second round, is what NumPy says."""
    rows = x.to_numpy()
    own, out = x[RANK].clone(), gp.empty(x.shape[1], x.dtype)
    total = x[0]
    for rank in range(1, SIZE):
        total = {"sum": gp.add, "max": gp.maximum, "min": gp.minimum}[op](total, x[rank])
    piece = planning.two_shot(out.nbytes, SIZE).piece_bytes // x.itemsize
    pieces = [slice(rank * piece, (rank + 1) * piece) for rank in range(SIZE)]
    combined = total.to_numpy()
    play(
        [[row[pieces[RANK]] for row in rows], [combined[piece] for piece in pieces]],
        lambda peers, call: collectives.reduce_twice(own, out, peers, call, SIZE, op=op),
    )
    return out


def _reductions(variant: str) -> Iterator[Call]:
    dtype = _NAMES[variant]
    ops = ("sum",) if dtype.startswith("complex") else ("sum", "max", "min")
    for op in ops:
        for count in (1, 37):
            yield Call(
                lambda x, op=op: _once(x, op, False),
                (numbers(dtype, SIZE, count),),
                lambda x, op=op: _reduced(x, op),
            )
            yield Call(lambda x, op=op: _twice(x, op), (numbers(dtype, SIZE, count),), lambda x, op=op: _reduced(x, op))
        yield Call(
            lambda x, op=op: _once(x, op, True),
            (numbers(dtype, SIZE, SIZE, 5),),
            lambda x, op=op: _reduced(x[:, RANK], op),
        )


def _added(x: gp.GPUArray, onto: gp.GPUArray) -> gp.GPUArray:
    """x: (size, count); onto of the first `count` elements, one beyond a multiple of a pack's address."""
    rows = x.to_numpy()
    shifted = gp.zeros(onto.size + 1)[1:]
    shifted[:] = onto
    own, out = x[RANK].clone(), shifted if onto.size > 1 else onto.clone()
    play([list(rows)], lambda peers, call: collectives.add(own, out, peers, call, SIZE))
    return out


def _added_twice(x: gp.GPUArray, onto: gp.GPUArray) -> gp.GPUArray:
    """As _twice(), onto an array."""
    rows = x.to_numpy()
    own, out = x[RANK].clone(), onto.clone()
    combined = _sum(x).astype(x.dtype).to_numpy()
    piece = planning.two_shot(x[0].nbytes, SIZE).piece_bytes // x.itemsize
    pieces = [slice(rank * piece, (rank + 1) * piece) for rank in range(SIZE)]
    play(
        [[row[pieces[RANK]] for row in rows], [combined[piece] for piece in pieces]],
        lambda peers, call: collectives.add_twice(own, out, peers, call, SIZE),
    )
    return out


def _sum(x: gp.GPUArray) -> gp.GPUArray:
    """Of the ranks, in float32, rounded once."""
    wide = x.astype("float32")
    return (wide[0] + wide[1] + wide[2]).astype(x.dtype).astype("float32")


def _additions(variant: str) -> Iterator[Call]:
    dtype = _NAMES[variant]
    for count in (1, 37):
        inputs = numbers(dtype, SIZE, count), numbers("float32", count)
        for function in (_added, _added_twice):
            yield Call(function, inputs, lambda x, onto: onto + _sum(gp.from_numpy(x).astype(dtype)).to_numpy())


def _gathered(x: gp.GPUArray) -> gp.GPUArray:
    out = gp.empty(x.shape, x.dtype)
    own, count = x[RANK].clone(), x.shape[1]
    play(
        [list(x.to_numpy())],
        lambda peers, call: collectives.exchange(
            own, out, peers, call, SIZE, name="all_gather", count=count, step=count
        ),
    )
    return out


def _exchanges(variant: str) -> Iterator[Call]:
    for count in (1, 37):
        yield Call(_gathered, (numbers(_WORDS[variant], SIZE, count),), lambda x: x)


def _received(x: gp.GPUArray) -> gp.GPUArray:
    out = gp.empty(x.shape, x.dtype)
    play_pair([x.to_numpy()], lambda peers, call: pairs.receive(out, peers, call, SIZE, PEER))
    return out


def _sent(x: gp.GPUArray) -> gp.GPUArray:
    """The elements as they lie in the peer's window."""
    there = play_pair([x.to_numpy()], lambda peers, call: pairs.send(x, peers, call, SIZE, PEER))
    second = there[len(there) // 2 :][: x.nbytes]
    return gp.from_numpy(np.frombuffer(second, x.dtype.to_numpy_dtype()))


def _pairs(variant: str) -> Iterator[Call]:
    for count in (1, 37):
        for function in (_received, _sent):
            yield Call(function, (numbers(_WORDS[variant], count),), lambda x: x)


def _variant(expression: str) -> str:
    kind = "moves" if "exchange" in expression else "adds" if "::add_" in expression else "reduces"
    return f"{kind} {first_type(expression)}"


def _calls(variant: str) -> Iterator[Call]:
    kind, _, ctype = variant.partition(" ")
    return {"moves": _exchanges, "adds": _additions, "reduces": _reductions}[kind](ctype)


FAMILIES = (
    Family("collectives", (collectives.SOURCE.source,), _variant, _calls),
    Family("pairs", (pairs.SOURCE.source,), first_type, _pairs),
)
