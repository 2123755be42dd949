"""Collectives of two devices beside NCCL, drawn from a results file: the same bytes each time.

python -m bench.figures.collectives docs/results/h200/two_gpus.json docs/results/h200/collectives.svg
"""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from pygpukit.core.extras import need

from .picture import BLUE, GREY, STYLE, logarithmic

KINDS = {"all-reduce": "bytes", "all-gather": "bytes of a rank", "reduce-scatter": "bytes of a rank"}


def draw(results: dict[str, Any]) -> bytes:
    """An SVG: a panel for each kind of collective, microseconds over bytes, ours and NCCL's."""
    mpl = need("matplotlib", "lab", "drawing figures")
    mpl.use("agg")
    from matplotlib import pyplot

    with mpl.rc_context(STYLE):
        drawn, panels = pyplot.subplots(1, len(KINDS), figsize=(9, 2.9), sharey=True, layout="constrained")
        for axes, (kind, unit) in zip(panels, KINDS.items(), strict=True):
            rows = results[kind]
            sizes = [row[unit] / 1024 for row in rows]
            axes.plot(sizes, [row["us by NCCL"] for row in rows], "o--", color=GREY, label="NCCL")
            axes.plot(sizes, [row["us"] for row in rows], "o-", color=BLUE, label="gp.comm")
            logarithmic(axes, "y")
            axes.set_xscale("log", base=2)
            axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], rotation=45)
            axes.minorticks_off()
            axes.set(title=kind, xlabel="KiB" if unit == "bytes" else "KiB of a rank")
            axes.grid(alpha=0.3)
        panels[0].set_ylabel("microseconds")
        panels[0].legend(frameon=False)
        target = BytesIO()
        drawn.savefig(target, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
        pyplot.close(drawn)
    return b"\n".join(line.rstrip() for line in target.getvalue().splitlines()) + b"\n"


def main(arguments: list[str]) -> int:
    """Draw the results file that is named first into the file that is named second."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    Path(arguments[1]).write_bytes(draw(json.loads(Path(arguments[0]).read_text(encoding="utf-8"))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
