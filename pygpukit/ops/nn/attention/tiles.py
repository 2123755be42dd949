"""The tiles that attention's tile kernels are compiled for, which is taken, and in which order blocks begin.

How many keys a tile has decides bits, so that it follows from the head dimension alone. The rest decides speed, by what
was measured on the device (pygpukit/ops/plans), and else by a rule: the first tile, long heads beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from pygpukit._core import native
from pygpukit.ops import plans

FAMILY = "attention"
_MIB = 1 << 20


@dataclass(frozen=True)
class Tile:
    """The tile that one block of a tile kernel makes, and its measured times.

    queries, keys: of a tile. warps: of a block; resident: blocks at a time of a multiprocessor; both as the compiler is
    told. fixed_us: of a launch; block_us: of a block without its keys; step_us: of one tile of keys.
    """

    queries: int
    keys: int
    warps: int
    resident: int = 1
    fixed_us: float = 0.0
    block_us: float = 0.0
    step_us: float = 0.0

    @property
    def kernel(self) -> tuple[int, int, int, int]:
        """The numbers that the kernel is compiled for."""
        return self.queries, self.keys, self.warps, self.resident

    def work(self, heads: int, queries: int, keys: int, causal: bool) -> tuple[int, int, int]:
        """(blocks, tiles of keys of all of them, of the longest)."""
        blocks, longest = -(-queries // self.queries), -(-keys // self.keys)
        steps = blocks * longest
        if causal:  # the last query sees all keys
            ends = range(keys, keys - queries, -self.queries)
            steps = sum(max(-(-end // self.keys), 0) for end in ends)
        return heads * blocks, heads * steps, longest

    def time_us(self, heads: int, queries: int, keys: int, causal: bool, multiprocessors: int) -> float:
        """The time of a launch, as the measured times tell: its blocks shared evenly, or the longest of them."""
        blocks, steps, longest = self.work(heads, queries, keys, causal)
        even = (blocks * self.block_us + steps * self.step_us) / (multiprocessors * self.resident)
        return self.fixed_us + max(even, self.block_us + longest * self.step_us)

    def __str__(self) -> str:
        return f"{self.queries}x{self.keys}"


# Of head dimensions up to this one. Tables may name any of them; without one it is the first.
TILES = {
    64: (Tile(128, 256, 8), Tile(64, 256, 4, 2)),
    128: (Tile(128, 256, 8),),
    256: (Tile(128, 128, 8),),
}
_OF_CACHE = 1 / 3  # that keys and values of heads may take whose blocks begin together: they stay there


@plans.follows
def measured(width: int) -> tuple[Tile, ...]:
    """The tiles that the device's table has times of, else the first. Raises ValueError as plans.tiles()."""
    listed = plans.table(FAMILY).get("tiles", {}).get(str(width), ())
    what = f"attention of up to {width} dimensions"
    return plans.tiles(Tile, listed, TILES[width], what) or TILES[width][:1]


@plans.follows
def fastest(width: int, heads: int, queries: int, keys: int, causal: bool, multiprocessors: int) -> Tile:
    """The tile whose measured times are shortest; of equals the first. heads: of all batch elements."""
    return min(measured(width), key=lambda one: one.time_us(heads, queries, keys, causal, multiprocessors))


@plans.follows
def together(heads: int, group: int, head_bytes: int) -> int:
    """The number of all heads' blocks that begin together, those that see the most keys first, so that none is left at
    the end. group: heads that share keys; head_bytes: of a head's keys and values."""
    room = together_mib() * _MIB
    return min(group * max(int(room // max(head_bytes, 1)), 1), heads) if room else 1


@plans.follows
def together_mib() -> float:
    """MiB of keys and values of heads whose blocks begin together: what the device's cache keeps. 0: one head."""
    cache = int(native.device_info(native.current_device())["l2_bytes"])
    rule = round(cache / _MIB * _OF_CACHE, 1)
    return plans.number(plans.table(FAMILY).get("together_mib", rule), "together_mib")
