"""Errors of groups whose ranks cannot go on, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pygpukit.comm.orders import SEND, Call
from pygpukit.core.errors import CollectiveError

if TYPE_CHECKING:
    from pygpukit.comm.orders import Orders
    from pygpukit.comm.windows import Failed

KINDS = 0xFFFF  # peers.cuh: kKind
STOPPED = "the group was stopped; make a new one"


def kind_name(call: Call) -> str:
    """The name that kernels of ranks that meet have in common; a send and its receive have one kind."""
    return call.name if call.peer is None else f"{SEND} or recv"


def ticket(number: int, kind: int) -> int:
    """A call as a rank's kernels show it to the others."""
    return (number & KINDS) << 16 | kind


def failed_wait(
    failures: Sequence[Failed], names: Mapping[int, str], orders: Orders, timeout: float
) -> CollectiveError:
    """The error that kernels wrote to their boards. names: of calls by their kinds."""

    def shown(ticket: int) -> str:
        return f"{names.get(ticket & KINDS, 'a call')} #{ticket >> 16}"

    if not failures:
        return CollectiveError(STOPPED)
    rank, reason, peer, own, seen = min(failures, key=lambda one: one.reason == "late")
    sentence = f"rank {rank} waits in {shown(own)} for rank {peer}, "
    if reason == "late":
        last = orders.last(peer)
        sentence += f"which did not come within {timeout:g} s; its last call: {last or 'none'}"
    else:
        sentence += f"which is in {shown(seen)}"
    return CollectiveError(sentence, rank, peer)


def repeated(failure: BaseException) -> CollectiveError:
    """The error for whoever uses a failed group again: the failure's words, without frames that hold arrays."""
    if isinstance(failure, CollectiveError):
        return CollectiveError(str(failure), failure.rank, failure.peer)
    return CollectiveError(f"the group has failed: {type(failure).__name__}: {failure}; make a new one")


def noted(error: BaseException, rank: int, size: int, device: int) -> None:
    """Write the rank's name below an error that one rank raised."""
    if rank >= 0 and not isinstance(error, CollectiveError) and hasattr(error, "add_note"):
        error.add_note(f"in rank {rank} of {size}, device {device}")
