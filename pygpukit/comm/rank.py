"""Rank: one device of a group, and the collectives that it takes part in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pygpukit._core import native
from pygpukit.comm import collectives, pairs
from pygpukit.comm.orders import RECV, SEND, Call
from pygpukit.core import stream as streams
from pygpukit.core.device import current_device
from pygpukit.core.dtypes import float32
from pygpukit.core.errors import DeviceMismatchError, DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops.operands import check_array, may_share_memory

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType


class Together(Protocol):
    """The ranks of a group, as one of them asks for them."""

    size: int

    def check(self) -> None:
        """Raises CollectiveError when the group has failed."""

    def add(self, rank: int, call: Call) -> int:
        """One more call of a rank, in its order; its number. Raises CollectiveError where ranks wait for ever."""

    def ticket(self, call: Call, number: int) -> int:
        """A call as a rank's kernels show it to the others."""


class Rank:
    """One device of a group. `with rank:` sends new arrays and work of this thread to its device.

    Collectives are asynchronous on the current stream, or where another device is current on the default stream of the
    rank's. Every rank must come to each collective, in the same order. Their results have the same bits on every rank
    and in every run. All raise CollectiveError where the ranks cannot go on together, DeviceMismatchError for arrays of
    another device, ShapeError and DTypeError for others that do not fit.
    """

    __slots__ = ("_captured_calls", "_entered", "_group", "_peers", "_stream", "device", "index", "size")

    def __init__(self, group: Together, index: int, device: int, peers: bytes) -> None:
        self._group = group
        self._peers = peers
        self._entered: list[Any] = []
        self._captured_calls = 0
        self._stream: native.Stream | None = None  # of the last collective, kept as long
        self.index = index
        self.size = group.size
        self.device = device

    def __enter__(self) -> Rank:
        block = current_device(self.device)
        block.__enter__()
        self._entered.append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)

    def all_reduce(
        self, x: GPUArray, op: str = "sum", out: GPUArray | None = None, onto: GPUArray | None = None
    ) -> GPUArray:
        """The elements of all ranks added up, or the largest or smallest of them, on every rank.

        Parameters
        ----------
        x : GPUArray
            The rank's own elements; of one shape and type on all ranks. 16-bit floats are added up in float32.
        op : {"sum", "max", "min"}, default "sum"
            Ranks are taken in their order; bool adds up as NumPy's logical or.
        out : GPUArray, optional
            Contiguous, of x's shape and type; may be x itself.
        onto : GPUArray, optional
            In the place of out: contiguous, float32, of x's shape, to which the sum is added; x is then float32 or
            bfloat16, and so is the sum before it is added.

        Returns
        -------
        GPUArray
            out or onto, or a new array like x.

        Examples
        --------
        >>> group = gp.comm.Group([0])
        >>> group.run(lambda rank: rank.all_reduce(gp.ones(3)).tolist())
        [[1.0, 1.0, 1.0]]
        """
        x = self._input(x, "all_reduce")
        collectives.check_reduction(x.dtype, op, "all_reduce")
        if onto is not None:
            return self._add(x, op, out, onto)
        with self:
            out = self._output(out, x.shape, x.dtype, "all_reduce")
            x = self._dense(x, out)
            call = self._call("all_reduce", f"{op} of {_elements(x)}")
            collectives.reduce(x, out, self._peers, call, self.size, op=op)
        return out

    def reduce_scatter(self, x: GPUArray, op: str = "sum", out: GPUArray | None = None) -> GPUArray:
        """x[k] of all ranks added up on rank k, or the largest or smallest of them.

        Parameters
        ----------
        x : GPUArray, (size, ...)
            The rank's own elements for each rank; of one shape and type on all ranks.
        op : {"sum", "max", "min"}, default "sum"
            As all_reduce().
        out : GPUArray, optional
            Contiguous, of the result's shape and type.

        Returns
        -------
        GPUArray
            out, or a new array of the shape of x[0].

        Examples
        --------
        >>> gp.comm.Group([0]).run(lambda rank: rank.reduce_scatter(gp.ones((1, 3))).tolist())
        [[1.0, 1.0, 1.0]]
        """
        x = self._parts(x, "reduce_scatter")
        collectives.check_reduction(x.dtype, op, "reduce_scatter")
        with self:
            out = self._output(out, x.shape[1:], x.dtype, "reduce_scatter")
            x = self._dense(x, out)
            call = self._call("reduce_scatter", f"{op} of {_elements(x)}")
            collectives.reduce(x, out, self._peers, call, self.size, op=op, scatter=True)
        return out

    def all_gather(self, x: GPUArray, out: GPUArray | None = None) -> GPUArray:
        """The arrays of all ranks one after the other, on every rank.

        Parameters
        ----------
        x : GPUArray
            The rank's own array, of every type of elements; of one shape and type on all ranks.
        out : GPUArray, optional
            Contiguous, of the result's shape and type.

        Returns
        -------
        GPUArray, (size, *x.shape)
            out, or a new array.

        Examples
        --------
        >>> gp.comm.Group([0]).run(lambda rank: rank.all_gather(gp.arange(3)).tolist())
        [[[0, 1, 2]]]
        """
        x = self._input(x, "all_gather")
        with self:
            out = self._output(out, (self.size, *x.shape), x.dtype, "all_gather")
            x = self._dense(x, out)
            call = self._call("all_gather", _elements(x))
            collectives.exchange(x, out, self._peers, call, self.size, name="all_gather", count=x.size, step=x.size)
        return out

    def broadcast(self, x: GPUArray, root: int = 0, out: GPUArray | None = None) -> GPUArray:
        """x of one rank, on every rank.

        Parameters
        ----------
        x : GPUArray
            Of every type of elements; of the ranks other than root only its shape and type count.
        root : int, default 0
            The rank whose x it is.
        out : GPUArray, optional
            Contiguous, of the result's shape and type.

        Returns
        -------
        GPUArray
            out, or a new array like x.

        Raises
        ------
        InvalidSpecError
            There is no such rank.

        Examples
        --------
        >>> gp.comm.Group([0]).run(lambda rank: rank.broadcast(gp.arange(3)).tolist())
        [[0, 1, 2]]
        """
        x = self._input(x, "broadcast")
        self._check_rank(root, "broadcast: root")
        with self:
            out = self._output(out, x.shape, x.dtype, "broadcast")
            x = self._dense(x, out) if root == self.index else out
            call = self._call("broadcast", f"{_elements(x)} from rank {root}")
            collectives.exchange(x, out, self._peers, call, self.size, name="broadcast", count=x.size, root=root)
        return out

    def all_to_all(self, x: GPUArray, out: GPUArray | None = None) -> GPUArray:
        """x[k] goes to rank k, and what rank k has for this one comes into place k.

        Parameters
        ----------
        x : GPUArray, (size, ...)
            Of every type of elements; of one shape and type on all ranks.
        out : GPUArray, optional
            Contiguous, of the result's shape and type.

        Returns
        -------
        GPUArray
            out, or a new array like x.

        Examples
        --------
        >>> gp.comm.Group([0]).run(lambda rank: rank.all_to_all(gp.ones((1, 2))).tolist())
        [[[1.0, 1.0]]]
        """
        x = self._parts(x, "all_to_all")
        with self:
            out = self._output(out, x.shape, x.dtype, "all_to_all")
            x = self._dense(x, out)
            call = self._call("all_to_all", _elements(x))
            part = x.size // self.size
            collectives.exchange(
                x, out, self._peers, call, self.size, name="all_to_all", count=part, send_step=part, step=part
            )
        return out

    def send(self, x: GPUArray, to: int) -> None:
        """x to another rank, which must call recv(). Work that is queued after it begins once all of x was received.

        Parameters
        ----------
        x : GPUArray
            Of every type of elements.
        to : int
            The other rank.

        Raises
        ------
        InvalidSpecError
            There is no such rank, or it is this one.
        """
        x = self._input(x, "send")
        self._check_rank(to, "send: to", other=True)
        with self:
            x = x.contiguous()
            call = self._call(SEND, _elements(x), to)
            pairs.send(x, self._peers, call, self.size, to)

    def recv(self, like: GPUArray, from_: int, out: GPUArray | None = None) -> GPUArray:
        """The array that another rank sends.

        Parameters
        ----------
        like : GPUArray
            Only its shape and type count: those of the array that is sent.
        from_ : int
            The other rank.
        out : GPUArray, optional
            Contiguous, of the result's shape and type.

        Returns
        -------
        GPUArray
            out, or a new array.

        Raises
        ------
        InvalidSpecError
            There is no such rank, or it is this one.
        """
        like = self._input(like, "recv")
        self._check_rank(from_, "recv: from_", other=True)
        with self:
            out = self._output(out, like.shape, like.dtype, "recv")
            call = self._call(RECV, _elements(out), from_)
            pairs.receive(out, self._peers, call, self.size, from_)
        return out

    def barrier(self) -> None:
        """Work that is queued after it begins once all ranks have come to it. The calling thread does not wait."""
        with self:
            nothing = native.empty(0, "uint8")
            call = self._call("barrier", "")
            collectives.exchange(nothing, nothing, self._peers, call, self.size, name="barrier", count=0)

    def synchronize(self) -> None:
        """Wait for all work of the rank's device. Raises CollectiveError where a collective has failed."""
        with self:
            streams.synchronize()
            self._group.check()

    def __repr__(self) -> str:
        return f"Rank({self.index} of {self.size}, device {self.device})"

    def _call(self, name: str, details: str, peer: int | None = None) -> int:
        """One more call, in its order; its ticket."""
        call = Call(name, details, peer)
        if native.is_capturing():
            self._captured_calls += 1
            return self._group.ticket(call, self._captured_calls)
        stream = native.current_stream()
        if self._stream is not None and self._stream.handle != stream.handle:  # a channel is one launch's at a time
            native.order_streams(self._stream.handle, stream.handle)
        self._stream = stream
        return self._group.ticket(call, self._group.add(self.index, call))

    def _add(self, x: GPUArray, op: str, out: GPUArray | None, onto: GPUArray) -> GPUArray:
        if out is not None or op != "sum" or x.dtype.name not in collectives.ADDED:
            raise InvalidSpecError(
                f"rank {self.index}: all_reduce: onto= takes a sum of {' or '.join(collectives.ADDED)}, and no out=; "
                f"op={op!r}, x is {x.dtype}",
                "onto",
            )
        with self:
            onto = self._output(onto, x.shape, float32, "all_reduce", "onto")
            x = x.clone() if may_share_memory(x, onto) else x.contiguous()
            call = self._call("all_reduce", f"{_elements(x)} added")
            collectives.add(x, onto, self._peers, call, self.size)
        return onto

    def _input(self, x: Any, what: str) -> GPUArray:
        x = check_array(x, f"rank {self.index}: {what}")
        if x.device != self.device:
            raise DeviceMismatchError(
                f"rank {self.index}: {what}: x is on device {x.device}, the rank's device is {self.device}; copy it by "
                f".to({self.device})"
            )
        return x

    def _parts(self, x: Any, what: str) -> GPUArray:
        x = self._input(x, what)
        if not x.ndim or x.shape[0] != self.size:
            raise ShapeError(
                f"rank {self.index}: {what}: x has shape {x.shape}; its first axis must have one entry a rank, "
                f"{self.size}"
            )
        return x

    def _output(self, out: Any, shape: tuple[int, ...], dtype: DataType, what: str, argument: str = "out") -> GPUArray:
        if out is None:
            return native.empty(shape, dtype)
        out = self._input(out, f"{what}: {argument}")
        if out.shape != shape or not out.is_contiguous():
            raise ShapeError(
                f"rank {self.index}: {what}: {argument} has shape {out.shape}; give a contiguous array of shape {shape}"
            )
        if out.dtype != dtype:
            raise DTypeError(f"rank {self.index}: {what}: {argument} has type {out.dtype}; the result has {dtype}")
        return out

    def _dense(self, x: GPUArray, out: GPUArray) -> GPUArray:
        """x, contiguous, and a copy where a part of it would be overwritten before it is read."""
        same = x.size == out.size and x.device_ptr == out.device_ptr
        return x.clone() if may_share_memory(x, out) and not same else x.contiguous()

    def _check_rank(self, rank: int, what: str, other: bool = False) -> None:
        if not 0 <= rank < self.size or (other and rank == self.index):
            one = "no other rank" if other else "no rank"
            raise InvalidSpecError(
                f"rank {self.index}: {what}={rank} is {one}; this group has {self.size}, from 0 on",
                what.rpartition(" ")[2],
            )


def _elements(x: GPUArray) -> str:
    return f"{x.size} {x.dtype}"
