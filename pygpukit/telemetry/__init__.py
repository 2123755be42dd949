"""Telemetry of the process: frames and state for pages and recorders, made while there are subscribers; metrics."""

from pygpukit.telemetry.metrics import MetricsServer, serve_metrics

__all__ = ["MetricsServer", "serve_metrics"]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
