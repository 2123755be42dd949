"""Speed of attention of prompts over their length, beside PyTorch's kernels."""

from __future__ import annotations

from typing import Any

from pygpukit.benchmark.attention import CATEGORY
from pygpukit.benchmark.result import BenchmarkReport

from .picture import BLUE, GREY, ORANGE, Figure, MissingDataError, Numbers, at_points, short

OURS, PEERS = "pygpukit", ("torch (cuDNN)", "torch (flash)")


def over_length(report: BenchmarkReport) -> Numbers:
    """TFLOP/s by head dimension and mask, kernel and length; several numbers of heads share no length."""
    plots: dict[str, dict[str, dict[int, float]]] = {}
    for row in report.results:
        kind, *shape = row.name.removesuffix(" beside PyTorch").split()
        if row.category != CATEGORY or kind != "prompt" or row.value is None:
            continue
        heads, shared, length, dim = shape[1:5]
        title = f"D {dim}, {'causal' if shape[-1] == 'causal' else 'all keys'}"
        title += "" if heads == shared else f", {heads} heads on {shared}"
        speed = row.value if row.peer is None else row.peer_value
        kernel = OURS if row.peer is None else row.peer
        if kernel in (OURS, *PEERS) and speed is not None:
            plots.setdefault(title, {}).setdefault(str(kernel), {})[int(length)] = short(speed)
    several = {
        title: {kernel: sorted([length, speed] for length, speed in speeds.items()) for kernel, speeds in plot.items()}
        for title, plot in plots.items()
        if len(plot.get(OURS, {})) > 1
    }
    if not several:
        raise MissingDataError("prompts of several lengths")
    return {"device": report.gpu.name, "plots": several}


def draw_over_length(numbers: Numbers, pyplot: Any) -> Any:
    """A plot a head dimension and mask, with one scale."""
    plots = numbers["plots"]
    size = (2.6 * len(plots), 2.8)
    figure, axes = pyplot.subplots(1, len(plots), figsize=size, layout="constrained", squeeze=False, sharey=True)
    styles = {OURS: ("o-", BLUE), PEERS[0]: ("s--", GREY), PEERS[1]: ("^:", ORANGE)}
    for axis, (title, lines) in zip(axes[0], plots.items(), strict=True):
        for kernel, points in lines.items():
            style, color = styles[kernel]
            axis.plot(*zip(*points, strict=True), style, color=color, markersize=3, label=kernel)
        at_points(axis, [length for length, _ in lines[OURS]])
        axis.set_title(title)
        axis.set_xlabel("positions")
    axes[0][0].set_ylim(bottom=0)
    axes[0][0].set_ylabel("TFLOP/s")
    figure.suptitle(f"Attention of prompts in bfloat16, {numbers['device']}")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


FIGURES = (
    Figure(
        "attention-over-length",
        "Attention of prompts over their length: TFLOP/s here and by PyTorch's kernels in the same run",
        CATEGORY,
        over_length,
        draw_over_length,
    ),
)
