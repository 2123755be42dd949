"""The look of an array in a notebook: its facts, a thumbnail of sampled elements, and the text of repr()."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array.format import array_repr, on_host
from pygpukit.array.png import indexed_png, palette
from pygpukit.core.dtypes import STORAGE_ONLY
from pygpukit.core.graph import capturing
from pygpukit.core.text import escape, human_bytes

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

_LINE_POINTS = 240
_LINE_HEIGHT = 36
_MAP_ROWS, _MAP_COLUMNS = 25, 40  # 1000 elements
_MAP_PIXELS = 160  # of the longer side
_LEVELS = 64
_FLAT = 1e-6
_MISSING = (128, 128, 128)  # NaN and infinities
_STYLE = "font: 13px system-ui, sans-serif"


def mimebundle(array: GPUArray) -> dict[str, str]:
    """text/plain and text/html of an array. Copies what it prints and draws; never raises.

    Neither has an address, a time or an identity, so that a run again gives the same.
    """
    text = array_repr(array)
    return {"text/plain": text, "text/html": _html(array, text)}


def _html(array: GPUArray, text: str) -> str:
    try:
        facts = " &middot; ".join(escape(fact) for fact in _facts(array))
        picture = _thumbnail(array)
    except Exception as error:  # as the text, where it names the error, too
        facts, picture = escape(f"not readable: {type(error).__name__}"), ""
    return (
        f'<div class="gk-array" style="{_STYLE}"><div>{facts}</div>{picture}'
        f'<pre style="margin: 4px 0">{escape(text)}</pre></div>'
    )


def _facts(array: GPUArray) -> list[str]:
    facts = [str(array.dtype), str(array.shape), f"{native.backend_name()}:{array.device}", human_bytes(array.nbytes)]
    if array.storage_nbytes > array.nbytes:
        facts.append(f"part of {human_bytes(array.storage_nbytes)}")
    if not array.resident:
        facts.append("kept on the host")
    if array.name:
        facts.append(array.name)
    return facts


def _thumbnail(array: GPUArray) -> str:
    """A line for one axis, a heat map for the last two of several axes; "" where there is nothing to draw."""
    if array.size < 2 or array.dtype in STORAGE_ONLY or capturing():
        return ""
    if array.ndim == 1:
        sampled = array[:: -(-array.size // _LINE_POINTS)]
    else:
        plane = array[(0,) * (array.ndim - 2)]
        rows, columns = (
            -(-extent // max_extent) for extent, max_extent in zip(plane.shape, (_MAP_ROWS, _MAP_COLUMNS), strict=True)
        )
        sampled = plane[::rows, ::columns]
    values = _real(on_host(sampled))
    picture = _line(values) if array.ndim == 1 else "" if _is_constant(values) else _map(values)
    place = f" of [{', '.join('0' * (array.ndim - 2))}]" if array.ndim > 2 else ""
    count = f"{values.size} of {array.size} elements{place}" if values.size < array.size else "all elements"
    return f'{picture}<div style="opacity: 0.7">{_range(values)} ({count})</div>'


def _real(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers to draw: complex ones by their magnitude."""
    import numpy as np

    return (np.abs(values) if np.iscomplexobj(values) else values).astype(np.float64)


def _is_constant(values: np.ndarray[Any, Any]) -> bool:
    """All of one number, but for rounding: there is nothing to tell apart by colours."""
    import numpy as np

    low, high = values.min(), values.max()
    return bool(np.isfinite(values).all() and _is_flat(float(low), float(high)))


def _is_flat(low: float, high: float) -> bool:
    # Halves: the difference of the largest floats is not finite.
    return high / 2 - low / 2 <= _FLAT * max(abs(low), abs(high))


def _range(values: np.ndarray[Any, Any]) -> str:
    import numpy as np

    finite = values[np.isfinite(values)]
    if not finite.size:
        return "no finite numbers"
    low, high = f"{finite.min():.4g}", f"{finite.max():.4g}"
    if _is_constant(values):
        return f"{low} everywhere" if (values == values.flat[0]).all() else f"about {low} everywhere"
    return f"{low} to {high}"


def _unit(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """0 for the smallest finite value to 1 for the largest; NaN for what is not finite."""
    import numpy as np

    finite = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(finite).all():
        return finite
    low, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    if _is_flat(low, high):  # rounding errors are no picture
        return np.where(np.isnan(finite), np.nan, 0.5)
    return (finite / 2 - low / 2) / (high / 2 - low / 2)


def _line(values: np.ndarray[Any, Any]) -> str:
    """A polyline for every run of finite values."""
    import numpy as np

    step = _LINE_POINTS / max(values.size - 1, 1)
    runs: list[list[str]] = [[]]
    for at, level in enumerate(_unit(values)):
        if np.isnan(level):
            runs.append([])
        else:
            runs[-1].append(f"{at * step:.1f},{1 + (1 - level) * (_LINE_HEIGHT - 2):.1f}")
    # A single point is a line to itself: the round ends make it a dot.
    lines = "".join(f'<polyline points="{" ".join(run if run[1:] else run * 2)}"/>' for run in runs if run)
    return (
        f'<svg width="{_LINE_POINTS}" height="{_LINE_HEIGHT}" role="img" aria-label="the values as a line" '
        f'fill="none" stroke="currentColor" stroke-linecap="round">{lines}</svg>'
    )


def _map(values: np.ndarray[Any, Any]) -> str:
    """An indexed PNG, one pixel a value, enlarged by the browser."""
    import numpy as np

    levels = _unit(values)
    missing = np.isnan(levels)
    pixels = np.where(missing, _LEVELS, np.nan_to_num(levels) * (_LEVELS - 1) + 0.5).astype(np.uint8)
    image = base64.b64encode(indexed_png(pixels, palette(_LEVELS) + bytes(_MISSING))).decode()
    height, width = pixels.shape
    scale = _MAP_PIXELS / max(height, width)
    size = f"width: {max(width * scale, 4):.0f}px; height: {max(height * scale, 4):.0f}px"
    return (
        f'<img alt="the values as colours" style="{size}; image-rendering: pixelated; display: block" '
        f'src="data:image/png;base64,{image}">'
    )
