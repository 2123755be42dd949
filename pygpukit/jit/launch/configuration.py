"""Launch configurations: reads grids, blocks, clusters, shared memory and streams, and refuses what cannot be launched.

Every refusal is a KernelArgumentError whose `parameter` names the setting; nothing has been launched by then.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from pygpukit._core import native
from pygpukit.core.errors import KernelArgumentError
from pygpukit.core.stream import Stream

Extent = tuple[int, int, int]
Configuration = tuple[Extent, Extent, int, native.Stream | None]

COOPERATIVE, CLUSTER = 1, 2  # PK_LAUNCH_* of native/include/pygpukit/driver.h
SHARED_ALWAYS_FITS = 16 << 10  # beside 48 KB of static memory, the most there can be, on every supported device
MAX_BLOCKS = (1 << 31) - 1  # of a grid along x
_MAX_CLUSTER_BLOCKS = 16
_FORMS = "[grid, block], [grid, block, stream], [grid, block, shared_bytes] or [grid, block, shared_bytes, stream]"


def parse(kernel: str, config: Any) -> Configuration:
    """The configuration that stands in the brackets of kernel[...]."""
    parts = config if isinstance(config, tuple) else (config,)
    if len(parts) < 2:
        brackets = f"{config!r:.40}".strip("()").rstrip(",")
        raise KernelArgumentError(f"{kernel}[{brackets}]: the block is missing; write {kernel}{_FORMS}", "block")
    if len(parts) > 4:
        raise KernelArgumentError(f"{kernel}: write {kernel}{_FORMS}, not {len(parts)} entries")
    rest = list(parts[2:])
    shared_bytes = 0
    if rest and (len(rest) == 2 or is_index(rest[0])):
        shared_bytes = shared(kernel, rest.pop(0))
    launch_stream = stream(kernel, rest[0] if rest else None)
    return extent(kernel, parts[0], "grid"), extent(kernel, parts[1], "block"), shared_bytes, launch_stream


def parse_tile(kernel: str, config: Any) -> Configuration:
    """The configuration in the brackets of a tile kernel: its grid, and a stream; a block of one is let pass."""
    parts = config if isinstance(config, tuple) and any(not is_index(part) for part in config) else (config,)
    grid, *rest = parts
    if rest and not isinstance(rest[0], (Stream, native.Stream)):
        block = extent(kernel, rest.pop(0), "block")
        if block != (1, 1, 1):
            raise KernelArgumentError(
                f"{kernel}: block is {block}; a tile kernel has no threads of its own: write {kernel}[grid]", "block"
            )
    if rest and is_index(rest[0]) and operator.index(rest[0]) == 0:
        rest.pop(0)  # no dynamic shared memory
    if len(rest) > 1 or (rest and is_index(rest[0])):
        raise KernelArgumentError(f"{kernel}: write {kernel}[grid] or {kernel}[grid, stream], not {config!r}")
    return extent(kernel, grid, "grid"), (1, 1, 1), 0, stream(kernel, rest[0] if rest else None)


def extent(kernel: str, value: Any, what: str) -> Extent:
    """One to three numbers of at least 1, as three."""
    entries = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(entries) <= 3 or not all(is_index(entry) for entry in entries):
        raise KernelArgumentError(f"{kernel}: {what} is {value!r}; give an int or a tuple of one to three ints", what)
    numbers = [operator.index(entry) for entry in entries]
    if min(numbers) < 1:
        raise KernelArgumentError(f"{kernel}: {what} is {value!r}; every extent must be at least 1", what)
    if max(numbers) > MAX_BLOCKS:
        raise KernelArgumentError(f"{kernel}: {what} is {value!r}; an extent is at most {MAX_BLOCKS}", what)
    x, y, z = numbers + [1] * (3 - len(numbers))
    return x, y, z


def shared(kernel: str, value: Any) -> int:
    if not is_index(value) or operator.index(value) < 0:
        raise KernelArgumentError(f"{kernel}: shared_bytes is {value!r}; give a number of bytes", "shared_bytes")
    return operator.index(value)


def stream(kernel: str, value: Any) -> native.Stream | None:
    if isinstance(value, Stream):
        value = value.native
    if value is not None and not isinstance(value, native.Stream):
        raise KernelArgumentError(f"{kernel}: the stream is a {type(value).__name__}; give a pygpukit Stream", "stream")
    return value


def check_shared(kernel: str, function: native.Function, shared_bytes: int) -> None:
    """Dynamic beside static shared memory must fit into what the device gives one block."""
    limit = _device()["max_shared_per_block_optin_bytes"]
    static = function.info["static_shared_bytes"]
    if static + shared_bytes > limit:
        raise KernelArgumentError(
            f"{kernel}: shared_bytes is {shared_bytes}; a block of this device has at most {limit} bytes of shared "
            f"memory, {static} of them taken by __shared__ arrays",
            "shared_bytes",
        )


def cluster(kernel: str, value: Any, grid: Extent) -> Extent:
    """A cluster's extents, for a device that has clusters."""
    shape = extent(kernel, value, "cluster")
    device = _device()
    if device["compute_major"] < 9:
        sm = f"SM {device['compute_major']}.{device['compute_minor']}"
        raise KernelArgumentError(
            f"{kernel}: cluster is {value!r}; {device['name']} is {sm}, clusters need SM 9.0", "cluster"
        )
    if prod(shape) > _MAX_CLUSTER_BLOCKS:
        raise KernelArgumentError(
            f"{kernel}: cluster is {value!r}; a cluster has at most {_MAX_CLUSTER_BLOCKS} blocks", "cluster"
        )
    if any(blocks % size for blocks, size in zip(grid, shape, strict=True)):
        raise KernelArgumentError(
            f"{kernel}: cluster is {value!r}; each extent must divide the grid's, which is {grid}", "cluster"
        )
    return shape


def check_resident(kernel: str, function: native.Function, grid: Extent, block: Extent, shared_bytes: int) -> None:
    """The blocks of a cooperative launch must all run at once."""
    threads = prod(block)
    resident = function.occupancy(threads, shared_bytes) * _device()["multiprocessor_count"]
    if prod(grid) > resident:
        raise KernelArgumentError(
            f"{kernel}: grid is {grid}, {prod(grid)} blocks; of a cooperative launch all blocks run at once, and the "
            f"device holds {resident} of {threads} threads with {shared_bytes} bytes of dynamic shared memory",
            "grid",
        )


def is_index(value: Any) -> bool:
    return hasattr(value, "__index__")


def _device() -> dict[str, Any]:
    from pygpukit.core.device import device_facts

    return device_facts(native.current_device())
