"""Pictures of saved reports: `python -m bench.figures REPORT --out FOLDER`."""

from .catalogue import FIGURES
from .picture import Figure, MissingDataError, digest, svg

__all__ = ["FIGURES", "Figure", "MissingDataError", "digest", "svg"]
