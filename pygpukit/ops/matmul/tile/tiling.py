"""The tiles that the tile kernels are compiled for, and which is fastest: by times that were measured once.

All of a family give a row the same bits, so that the choice decides speed alone. Families: "half" (half.cu), "int8" and
"tf32" (int8_tf32.cu), "fp8" (fp8.cu, of one tile).
"""

from __future__ import annotations

from dataclasses import dataclass

from pygpukit.core.choices import by_device
from pygpukit.ops.matmul import times

_SKINNY_ROWS = 64  # products of at most so many rows may take the low tiles, which are slow for taller ones

_DEEP = 128  # bytes of a step


@dataclass(frozen=True)
class Tile:
    """The tile of one block of a tile kernel, and its measured times.

    rows, columns: of the result. depth: of one step of the sum. warps: of a block, as the compiler is told. fixed_us:
    of a launch; wave_us: of one tile on every multiprocessor, without its steps; step_us: of one step of a wave;
    us_per_mb: of a MiB that is read or written. general: compiled for a transposed left operand and for results of any
    alignment, too.
    """

    rows: int
    columns: int
    depth: int
    warps: int
    fixed_us: float
    step_us: float
    wave_us: float
    us_per_mb: float
    general: bool = False

    def time_us(self, m: int, n: int, k: int, batches: int, itemsize: int, multiprocessors: int) -> float:
        """The time of a product by the measured times."""
        waves = -(-batches * -(-m // self.rows) * -(-n // self.columns) // multiprocessors)
        mb = batches * (m * k + k * n + m * n) * itemsize / 2**20
        return self.fixed_us + waves * (self.wave_us + -(-k // self.depth) * self.step_us) + mb * self.us_per_mb

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth}"


@by_device
def tiles(family: str) -> tuple[Tile, ...]:
    """The measured tiles of a family, as the table lists them."""
    table = times.table()
    return tuple(Tile(**fields) for fields in table["tiles"][family])


@by_device
def cluster_tiles(family: str) -> tuple[Tile, ...]:
    """Tiles of a cluster of two blocks (cluster.cu) with measured times. general: compiled for a transposed left
    operand, too."""
    rows = times.table()["hopper"].get(family, [])
    return tuple(Tile(**fields) for fields in rows)


def fastest(
    family: str,
    m: int,
    n: int,
    k: int,
    batches: int,
    itemsize: int,
    multiprocessors: int,
    general: bool = False,
    deep: bool = False,
) -> Tile:
    """The tile whose measured times are shortest; of equals the first one listed. general: see Tile. deep: rows begin
    in the middle of 32 bytes of memory, which short steps read twice."""
    fitting = [
        candidate
        for candidate in tiles(family)
        if (m <= _SKINNY_ROWS or candidate.rows >= _SKINNY_ROWS)
        and candidate.general >= general
        and not (deep and candidate.depth * itemsize < _DEEP)
    ]
    return min(fitting, key=lambda candidate: candidate.time_us(m, n, k, batches, itemsize, multiprocessors))
