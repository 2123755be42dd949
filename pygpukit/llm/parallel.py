"""Models over several devices: which devices, and each device's part read by a loader of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from pygpukit.comm import Group
from pygpukit.core.backend import is_sim
from pygpukit.core.device import DeviceLike, current_device, device_count, index_of
from pygpukit.core.errors import DeviceMismatchError, InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.loader import Loader
from pygpukit.llm.models import prefix_of
from pygpukit.llm.sharding import ShardCheckpoint
from pygpukit.nn.parallel.network import ParallelTransformer
from pygpukit.nn.parallel.part import Part
from pygpukit.nn.parallel.seat import Seat
from pygpukit.nn.parallel.shard import WAYS, Shard, Way, check_division

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pygpukit.llm.models.architecture import Architecture
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.nn.config import TransformerConfig

Devices = SupportsIndex | Sequence[DeviceLike]


class Places(NamedTuple):
    """Numbers of devices, and how a model is divided among them; none for the current device."""

    devices: tuple[int, ...] = ()
    way: Way = "tensor"

    @property
    def several(self) -> bool:
        """True if there is something to divide."""
        return len(self.devices) > 1

    def at_home(self) -> AbstractContextManager[None]:
        """`with places.at_home():` work goes to the first of them."""
        return current_device(self.devices[0]) if self.devices else nullcontext()


def places_of(devices: Devices | None, parallel: str) -> Places:
    """The places of load()'s arguments. Raises InvalidSpecError and DeviceMismatchError, as load() does."""
    if parallel not in WAYS:
        raise InvalidSpecError(f"parallel={parallel!r}; give one of {', '.join(map(repr, WAYS))}", "parallel")
    if devices is None:
        return Places(way=parallel)
    if isinstance(devices, Sequence) and not isinstance(devices, str):
        numbers = tuple(index_of(device, "devices") for device in devices)
        if not numbers or len(set(numbers)) < len(numbers):
            raise InvalidSpecError(f"devices={list(devices)}; name one or more, each once", "devices")
        return Places(numbers, parallel)
    expected = "a number of devices, 1 or more, or a list of theirs"
    count = whole(devices, "devices", expected)  # type: ignore[arg-type]
    if count < 1:
        raise InvalidSpecError(f"devices={devices!r}; give {expected}", "devices")
    if count > device_count():
        simulated = "; simulate more by PYGPUKIT_SIM_DEVICES" if is_sim() else ""
        raise DeviceMismatchError(f"devices={count}, but this process has {device_count()}{simulated}")
    return Places(tuple(range(count)), parallel)


def check_several(title: str, **options: object) -> None:
    """Raises InvalidSpecError for an option of load() that several devices do not take."""
    for name, value in options.items():
        if value is not None:
            raise InvalidSpecError(
                f"{title}: {name}={value!r} needs a model on one device; load it without devices=", name
            )


def read_parts(
    checkpoint: Checkpoint,
    architecture: Architecture,
    config: TransformerConfig,
    places: Places,
    positions: int | None,
    read: Callable[..., Loader],
) -> tuple[ParallelTransformer, list[Loader]]:
    """The network over several devices, each of which reads its own part, and the loaders.

    positions: that a sequence can have. read: a loader of a checkpoint and a configuration, given by name what else a
    part needs.

    Raises InvalidSpecError where the model does not divide, before any weight is read.
    """
    size = len(places.devices)
    check_division(config, size, places.way, checkpoint.name)
    prefix = prefix_of(architecture, checkpoint.names())
    shards = [Shard(index, size, places.way) for index in range(size)]
    if places.way == "tensor":
        _check_head_norms(checkpoint, architecture, config, prefix)
    checkpoints = [ShardCheckpoint(checkpoint, architecture, config, shard, prefix) for shard in shards]
    group = Group(places.devices)
    parts: list[Part] = []
    loaders: list[Loader] = []
    for rank, shard, own in zip(group.ranks, shards, checkpoints, strict=True):
        with rank:
            seat = Seat(rank)
            divided = seat if places.way == "tensor" else None
            loader = read(own, config=shard.config(config), seat=divided, is_first=rank.index == 0)
            with loader:
                pieces = loader.pieces(shard.layers(config))
            parts.append(Part(seat, shard, config, shard.config(config), *pieces, positions))
            loaders.append(loader)
    return ParallelTransformer(config, group, parts), loaders


def loaded_by(loaders: Sequence[Loader]) -> tuple[dict[str, tuple[int, int]], int]:
    """Of all loaders together: what was expanded, by kind, and bytes of weights with another order of columns."""
    expanded: dict[str, tuple[int, int]] = {}
    for loader in loaders:
        for kind, (before, after) in loader.expanded.items():
            so_far = expanded.get(kind, (0, 0))
            expanded[kind] = so_far[0] + before, so_far[1] + after
    return expanded, sum(loader.reordered for loader in loaders)


def _check_head_norms(
    checkpoint: Checkpoint, architecture: Architecture, config: TransformerConfig, prefix: str
) -> None:
    """Raises InvalidSpecError for a norm of all heads together, whose rows no device has whole."""
    template = architecture.weights.get("q_norm")
    name = prefix + (template or "").format(0)
    if name in checkpoint.names() and checkpoint.shape(name) != (config.head_dim,):
        raise InvalidSpecError(
            f"{checkpoint.name}: {name!r} is a norm of all heads together, which are divided among devices; give "
            'parallel="pipeline", or one device',
            "parallel",
        )
