"""ParallelTransformer: the parts of a transformer on several devices, which compute as one network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from pygpukit._core import native
from pygpukit.comm import Group
from pygpukit.core.device import current_device
from pygpukit.core.errors import CollectiveError, GPUError, InvalidSpecError
from pygpukit.core.graph import Graph
from pygpukit.core.stream import Stream, current_stream, default_stream
from pygpukit.nn.parallel.cache import PartedCache
from pygpukit.nn.transformer import Buffers, Transformer
from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.comm import Rank
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.block import TransformerBlock
    from pygpukit.nn.config import TransformerConfig
    from pygpukit.nn.parallel.part import Part
    from pygpukit.nn.transformer import Cache, Captured

_Result = TypeVar("_Result")


class PartedBuffers(Buffers):
    """The buffers of all parts; its own fields are those of the first."""

    def __init__(self, parts: Sequence[Buffers], devices: Sequence[int]) -> None:
        first = parts[0]
        super().__init__(first.x, first.attention, first.between)
        self.parts, self._devices = parts, devices

    def first(self, count: int) -> PartedBuffers:
        """Views of the first rows."""
        return PartedBuffers([part.first(count) for part in self.parts], self._devices)

    def forget(self) -> None:
        """A step was broken off."""
        for device, part in zip(self._devices, self.parts, strict=True):
            with current_device(device):
                part.forget()


class PartedGraph:
    """A graph of each device, launched together."""

    def __init__(self, network: ParallelTransformer, graphs: Sequence[Graph]) -> None:
        self._network, self._graphs = network, graphs

    def launch(self) -> None:
        """Run them, asynchronously."""
        self._network.launch(self._graphs)


class _Capture(threading.local):
    """The streams that a thread captures at the moment, of each device."""

    streams: list[Stream] | None = None

    def end(self) -> None:
        self.streams = None


class ParallelTransformer(Transformer):
    """All parts, asked for and answering on the first device: batches begin there, and logits end there.

    config: the whole model's. The blocks, norms and tables that it shows are those of the first part.
    """

    def __init__(self, config: TransformerConfig, group: Group, parts: Sequence[Part]) -> None:
        vars(self).update(vars(parts[0]))
        self.config, self.group, self._parts = config, group, list(parts)
        self.devices = list(group.devices)
        self._capture = _Capture()
        self._launching = threading.RLock()  # all devices come to what two threads ask for in one order

    @property
    def parts(self) -> Sequence[Part]:
        """The part of each device."""
        return self._parts

    @property
    def at_once(self) -> int:
        """Devices that compute a layer together."""
        return self.group.size if self.parts[0].shard.way == "tensor" else 1

    @property
    def kept_config(self) -> TransformerConfig:
        """The configuration of the device that keeps most of keys and values."""
        return max((part.kept_config for part in self.parts), key=lambda config: config.num_layers)

    def attention_blocks(self, what: str, argument: str) -> list[TransformerBlock]:
        """Raises InvalidSpecError: no device has the whole of a layer."""
        self._refuse(what, argument)

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """Work goes to the first device, on its default stream as on all others: graphs and passes of several threads
        come to every device in one order."""
        with current_device(self.device):
            own, home = current_stream(), default_stream()
            home.wait_event(own.record_event())
            with home:
                yield
            own.wait_event(home.record_event())

    def buffers(self, count: int) -> PartedBuffers:
        """New buffers for steps of up to count rows."""
        return PartedBuffers(self._at_home(lambda part: part.buffers(count)), self.devices)

    def new_caches(self, make: Callable[[Transformer, str], Cache], name: str) -> PartedCache:
        """A cache of each part."""
        parts = self._at_home(lambda part: make(part, f"{name}/device {part.device}"))
        return PartedCache(self.devices, cast("list[Any]", parts))

    def forward(self, batch: Batch, cache: Cache, buffers: Buffers, layers: int | None = None) -> None:
        """As Transformer's. The batch is on the first device."""
        assert isinstance(cache, PartedCache) and isinstance(buffers, PartedBuffers) and batch.memory is not None
        if batch.adapters:
            self._refuse("an adapter", "adapter")
        memory = batch.memory

        def compute(rank: Rank) -> Iterator[None]:
            place = rank.index
            own = native.empty(memory.shape, memory.dtype) if place else memory
            rank.broadcast(own, out=own)
            yield from self.parts[place].stages(batch.within(own), cache.parts[place], buffers.parts[place], layers)

        self.each(compute)

    def head(
        self, x: GPUArray, logits: GPUArray, bests: GPUArray | None = None, *, passed: Buffers | None = None
    ) -> None:
        """As Transformer's. Each part computes the logits of its tokens, from x of the pass or the first device's."""
        assert passed is None or isinstance(passed, PartedBuffers)
        rows, starts = x.shape[0], [part.tokens for part in self.parts]
        widest = max(own.stop - own.start for own in starts)

        def compute(rank: Rank) -> Iterator[None]:
            part = self.parts[rank.index]
            if passed is None:
                own = native.empty(x.shape, x.dtype) if rank.index else x
                rank.broadcast(own, out=own)
            else:
                own = passed.parts[rank.index].x
            width = part.config.vocab_size
            some = native.empty((rows * widest,), "float32")
            part.head(own, some[: rows * width].reshape(rows, width))
            gathered = native.empty((len(self.parts), rows * widest), "float32")
            rank.all_gather(some, out=gathered)
            if rank.index == 0:
                for place, tokens in enumerate(starts):
                    width = tokens.stop - tokens.start
                    copying.copy_to(gathered[place, : rows * width].reshape(rows, width), logits[:, tokens])
            yield

        self.each(compute)

    def new_bests(self) -> None:
        """None: no device sees all logits of its product."""

    def capture(self, compute: Callable[[], None]) -> Captured:
        """A graph of each device."""
        graphs: list[Graph] = []
        with ExitStack() as stack:
            streams = self._capture.streams = []
            stack.callback(self._capture.end)
            for device in reversed(self.devices):  # the first one is current in the end
                stack.enter_context(current_device(device))
                stream = Stream()
                graphs.insert(0, stack.enter_context(stream.capture()))
                streams.insert(0, stream)
            compute()
        return PartedGraph(self, graphs)

    def check(self) -> None:
        """Raises CollectiveError where devices have not come together."""
        self.group.check()

    def recover(self) -> None:
        """A pass was broken off: where the group of ranks has failed it is made anew."""
        try:
            self.group.check()
        except CollectiveError:
            with suppress(GPUError):  # of what was broken off
                self.group.close()
            self.group = Group(self.devices)
            for part, rank in zip(self.parts, self.group.ranks, strict=True):
                part.seat.rank = rank
            self.recoveries += 1

    def each(self, work: Callable[[Rank], Iterator[None]]) -> None:
        """The work of all ranks, asynchronously; a capture has streams of its own."""
        if (streams := self._capture.streams) is not None:
            for rank, stream in zip(self.group.ranks, streams, strict=True):
                with rank, stream:
                    for _ in work(rank):
                        pass
            return
        with self._launching:
            try:
                self.group.walk(work)
            except BaseException:
                self.recover()
                raise

    def launch(self, graphs: Sequence[Graph]) -> None:
        """A graph of each device, asynchronously."""
        with self._launching:
            self.group.launch(graphs)

    def _at_home(self, work: Callable[[Part], _Result]) -> list[_Result]:
        results = []
        for part in self.parts:
            with part.at_home():
                results.append(work(part))
        return results

    def _refuse(self, what: str, argument: str) -> NoReturn:
        raise InvalidSpecError(f"{what} needs a model on one device; load it without devices=", argument)
