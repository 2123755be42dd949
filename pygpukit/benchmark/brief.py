"""The short form of a saved report: what its readers use, four digits, peers in the row that they stand beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

DIGITS = 4
LEFT_OUT = frozenset(
    {"timestamp", "samples", "series", "iterations", "median_us", "min_us", "max_us", "std_us", "ratio"}
)
DEFAULTS: dict[str, Any] = {"correct": True, "rel_error": 0.0, "unit": "us", "better": "lower", "params": {}}


def fold(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The short form of rows as dicts. A peer's row becomes an entry of `peers` in its row, if that is before it."""
    folded: dict[str, dict[str, Any]] = {}
    kept: list[dict[str, Any]] = []
    for row in rows:
        place = repr([row[name] for name in ("category", "name", "params", "value", "unit", "better")])
        if row["peer"] and place in folded:
            folded[place].setdefault("peers", {})[row["peer"]] = _rounded(row["peer_value"])
            continue
        short = {name: _rounded(value) for name, value in row.items() if _is_reported(name, value)}
        if not row["peer"]:
            folded[place] = short
        kept.append(short)
    yield from kept


def unfold(rows: Iterable[dict[str, Any]], timestamp: str) -> Iterator[dict[str, Any]]:
    """Rows as they were before `fold`, as far as they were kept, measured at `timestamp`; other rows as they are."""
    beside: list[dict[str, Any]] = []
    for row in rows:
        own = {"timestamp": timestamp, **row}
        peers = own.pop("peers", {})
        yield own
        same = {name: value for name, value in own.items() if name not in ("bandwidth_gbps", "tflops", "spread")}
        beside += [{**same, "peer": peer, "peer_value": value} for peer, value in peers.items()]
    yield from beside


def _is_reported(name: str, value: Any) -> bool:
    return name not in LEFT_OUT and value is not None and DEFAULTS.get(name, object()) != value


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
