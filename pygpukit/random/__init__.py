"""Random numbers on the device, by Philox4x32-10: the same bits on every device and on the simulation.

The functions draw from one default generator, which starts at seed 0: a program gives the same numbers each time it
runs. seed(n) chooses others; Generator(seed) is a sequence of its own, Generator() one that nobody has seen.
"""

from pygpukit.random.default import (
    choice,
    exponential,
    integers,
    normal,
    permutation,
    rand,
    randint,
    randn,
    random,
    seed,
    shuffle,
    standard_normal,
    uniform,
)
from pygpukit.random.generator import Generator, default_rng

__all__ = [
    "Generator",
    "choice",
    "default_rng",
    "exponential",
    "integers",
    "normal",
    "permutation",
    "rand",
    "randint",
    "randn",
    "random",
    "seed",
    "shuffle",
    "standard_normal",
    "uniform",
]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
