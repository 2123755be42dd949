"""Tables of cosines and sines for rope_inplace(): made in float64 on the host, rounded once to float32, copied once.

The angle of position p and pair j is p / base^(2j / D), D the head dimension; each scaling changes these frequencies to
stretch the context that a model was trained with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.ops.nn.rope import LAYOUTS

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Tables = tuple[GPUArray, GPUArray]

__all__ = ["rope_init_linear", "rope_init_llama3", "rope_init_ntk_aware", "rope_init_yarn"]


def rope_init_linear(
    max_seq_len: int, head_dim: int, base: float = 10000.0, scale: float = 1.0, *, layout: str = "neox"
) -> Tables:
    """(cos, sin), each (max_seq_len, head_dim) float32, with positions divided by scale (Chen et al. 2023).

    scale 1 is the plain rotary embedding. layout: that of rope_inplace(). Raises ShapeError, InvalidSpecError.
    """
    frequencies = _frequencies(max_seq_len, head_dim, base, scale)
    return _tables(frequencies / scale, max_seq_len, layout)


def rope_init_ntk_aware(
    max_seq_len: int, head_dim: int, base: float = 10000.0, scale: float = 1.0, *, layout: str = "neox"
) -> Tables:
    """rope_init_linear() without its division, with base * scale^(D / (D - 2)) instead.

    So the lowest frequency is divided by scale and the highest is kept. Raises ShapeError (also for a head_dim of 2),
    InvalidSpecError.
    """
    _frequencies(max_seq_len, head_dim, base, scale)
    if head_dim <= 2:
        raise ShapeError(f"rope_init_ntk_aware: head_dim is {head_dim}, must be above 2")
    stretched = base * scale ** (head_dim / (head_dim - 2))
    return _tables(_frequencies(max_seq_len, head_dim, stretched, scale), max_seq_len, layout)


def rope_init_yarn(
    max_seq_len: int,
    head_dim: int,
    base: float = 10000.0,
    scale: float = 1.0,
    original_max_len: int = 4096,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    mscale: float = 0.1,
    *,
    layout: str = "neox",
    truncate: bool = True,
) -> Tables:
    """rope_init_linear() with YaRN's frequencies (Peng et al. 2023).

    Pairs that turn more than beta_fast times within original_max_len positions keep their frequency, those that turn
    less than beta_slow times are divided by scale, with a ramp over the pairs between. Both tables are multiplied by
    mscale * ln(scale) + 1, the attention temperature, when scale is above 1. truncate: the ramp begins and ends at
    whole pairs. Raises ShapeError, InvalidSpecError.
    """
    import numpy as np

    frequencies = _frequencies(max_seq_len, head_dim, base, scale)
    _positive("original_max_len", original_max_len)
    if not beta_fast > beta_slow > 0:
        raise InvalidSpecError(
            f"rope_init_yarn: beta_fast is {beta_fast} and beta_slow {beta_slow}; "
            "beta_fast must be above beta_slow, and beta_slow above 0",
            "beta_fast",
        )

    def pair_that_turns(times: float) -> float:
        return head_dim * math.log(original_max_len / (times * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair_that_turns(beta_fast), pair_that_turns(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    ramp = np.clip((np.arange(head_dim // 2) - low) / max(high - low, 0.001), 0, 1)
    mixed = frequencies * (1 - ramp) + frequencies / scale * ramp
    return _tables(mixed, max_seq_len, layout, mscale * math.log(scale) + 1 if scale > 1 else 1.0)


def rope_init_llama3(
    max_seq_len: int,
    head_dim: int,
    base: float = 500000.0,
    scale: float = 8.0,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    original_max_len: int = 8192,
    *,
    layout: str = "neox",
) -> Tables:
    """rope_init_linear() with the frequencies of Llama 3.1.

    Wavelengths below original_max_len / high_freq_factor are kept, those above original_max_len / low_freq_factor are
    multiplied by scale, with a ramp in the inverse wavelength between. Raises ShapeError, InvalidSpecError.
    """
    import numpy as np

    frequencies = _frequencies(max_seq_len, head_dim, base, scale)
    _positive("original_max_len", original_max_len)
    if not high_freq_factor > low_freq_factor > 0:
        raise InvalidSpecError(
            f"rope_init_llama3: high_freq_factor is {high_freq_factor} and low_freq_factor {low_freq_factor}; "
            "the first must be above the second, and that above 0",
            "high_freq_factor",
        )
    turns = original_max_len * frequencies / (2 * math.pi)
    kept = np.clip((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
    return _tables(frequencies * kept + frequencies / scale * (1 - kept), max_seq_len, layout)


def rope_init_divided(
    max_seq_len: int, head_dim: int, base: float, divisors: Sequence[float], factor: float = 1.0
) -> Tables:
    """rope_init_linear() with a divisor for the frequency of each pair; both tables are multiplied by factor. Raises
    ShapeError, InvalidSpecError."""
    import numpy as np

    frequencies = _frequencies(max_seq_len, head_dim, base, 1.0)
    if len(divisors) != len(frequencies):
        raise ShapeError(f"rope tables: {len(divisors)} divisors for {len(frequencies)} frequencies")
    return _tables(frequencies / np.asarray(divisors, np.float64), max_seq_len, "neox", factor)


def _positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise InvalidSpecError(f"{name} is {value}, must be above 0", name)


def _frequencies(max_seq_len: int, head_dim: int, base: float, scale: float) -> Any:
    """base^(-2j / D) for each pair j, in float64, after the checks that all scalings share."""
    import numpy as np

    if head_dim <= 0 or head_dim % 2 or max_seq_len < 0:
        raise ShapeError(
            f"rope tables: max_seq_len is {max_seq_len} and head_dim {head_dim}; "
            "head_dim must be even and above 0, max_seq_len not negative"
        )
    _positive("scale", scale)
    if not (base > 1 and math.isfinite(base)):
        raise InvalidSpecError(f"base is {base}, must be above 1", "base")
    return base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)


def _tables(frequencies: Any, positions: int, layout: str, factor: float = 1.0) -> Tables:
    import numpy as np

    from pygpukit.array.factory import from_numpy

    if layout not in LAYOUTS:
        raise InvalidSpecError(f"layout {layout!r} is unknown; use 'neox' or 'gptj'", "layout")
    angles = np.outer(np.arange(positions, dtype=np.float64), frequencies)
    angles = np.tile(angles, 2) if layout == "neox" else np.repeat(angles, 2, axis=1)
    cos, sin = ((factor * part).astype(np.float32) for part in (np.cos(angles), np.sin(angles)))
    return from_numpy(cos), from_numpy(sin)
