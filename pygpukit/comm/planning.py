"""plan(): which way a collective takes, in how many blocks, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.comm.windows import CHANNELS, PAIR_CHANNELS, part_bytes
from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import InvalidSpecError

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DTypeLike

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier", "send", "recv")
PAIRS = ("send", "recv")
ONE_SHOT, TWO_SHOT = "one shot", "two shot"
_PACK_BYTES = 16
# Fewest us on two H200: 8 KB by one block, 64 KB by 8, 1 MB by 128. It is what 512 threads move in a pass.
_BLOCK_BYTES = 8 << 10
# From here on bytes outweigh a second meeting: with two ranks those that are combined (59 us for 16 MB, not 65), with
# more also those on the links.
_TWO_SHOT_BYTES = {2: 8 << 20}
_TWO_SHOT_BYTES_OF_MORE = 256 << 10


@dataclass(frozen=True)
class Plan:
    """The way of a collective: algorithm ("one shot" or "two shot"), blocks, bytes of a piece, and the reason."""

    algorithm: str
    blocks: int
    piece_bytes: int
    reason: str


def plan(nbytes: int, dtype: DTypeLike = "float32", op: str = "all_reduce", *, size: int = 2) -> Plan:
    """Which way a collective takes, and why. It depends on nothing but the arguments.

    Parameters
    ----------
    nbytes : int
        Bytes that a rank sends to each other one: of x, or of one part of it for reduce_scatter and all_to_all.
    dtype : dtype, default "float32"
        Type of the elements.
    op : str, default "all_reduce"
        Name of the collective.
    size : int, default 2
        Ranks of the group.

    Returns
    -------
    Plan
        algorithm, blocks, piece_bytes, reason.

    Raises
    ------
    InvalidSpecError
        There is no such collective, or a number is negative.

    Examples
    --------
    >>> gp.comm.plan(8192).algorithm
    'one shot'
    """
    if op not in COLLECTIVES:
        raise InvalidSpecError(f"plan: op={op!r} is no collective; it is one of {', '.join(COLLECTIVES)}", "op")
    if nbytes < 0 or size < 1:
        raise InvalidSpecError(f"plan: nbytes={nbytes}, size={size}: give at least 0 bytes and 1 rank", "nbytes")
    as_dtype(dtype)
    if op == "all_reduce" and size > 1 and nbytes >= _TWO_SHOT_BYTES.get(size, _TWO_SHOT_BYTES_OF_MORE):
        return two_shot(nbytes, size)
    reason = "the ranks meet once a piece" if nbytes else "the ranks meet, nothing moves"
    if op in PAIRS:
        return Plan(ONE_SHOT, *_cut(nbytes, size, PAIR_CHANNELS), "the sender waits until all is received")
    return Plan(ONE_SHOT, *_cut(nbytes, size), reason)


def two_shot(nbytes: int, size: int) -> Plan:
    """An all-reduce of so many bytes by two shots."""
    sent, direct = 2 * nbytes * (size - 1) // size, nbytes * (size - 1)
    return Plan(TWO_SHOT, *_cut(-(-nbytes // size), size), f"a rank sends {sent} bytes, by one shot {direct}")


def _cut(nbytes: int, size: int, channels: int = CHANNELS) -> tuple[int, int]:
    """(blocks, bytes of a piece) for what goes to one rank."""
    blocks = max(1, min(channels, -(-nbytes // _BLOCK_BYTES)))
    piece = -(-nbytes // (blocks * _PACK_BYTES)) * _PACK_BYTES
    return blocks, max(_PACK_BYTES, min(piece, part_bytes(size)))
