"""Telemetry of the process: frames and state for pages and recorders while there are subscribers; metrics; spans."""

from pygpukit.telemetry.metrics import MetricsServer, serve_metrics
from pygpukit.telemetry.spans import Spans, export_spans

__all__ = ["MetricsServer", "Spans", "export_spans", "serve_metrics"]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
