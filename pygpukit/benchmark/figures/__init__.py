"""Pictures of saved reports: `python -m pygpukit.benchmark.figures REPORT --out FOLDER`."""

from .catalogue import FIGURES
from .picture import Figure, MissingDataError, digest, svg

__all__ = ["FIGURES", "Figure", "MissingDataError", "digest", "svg"]
