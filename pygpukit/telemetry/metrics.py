"""serve_metrics(): every scheduler's figures, and the process's, over HTTP for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.extras import need

_WHY = "serving metrics"
# Families of Scheduler.prometheus() that are the process's, equal in each scheduler's text.
_OF_PROCESS = ("evicted_bytes", "restored_bytes", "pageable_buffers", "pageable_bytes")


class MetricsServer:
    """A server of metrics, until close(). port: where it listens; url: where Prometheus reads."""

    def __init__(self, server: Any, thread: Any) -> None:
        self._server, self._thread = server, thread
        host, self.port = server.server_address[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop listening. Again does no harm."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"MetricsServer({self.url!r}{'' if self._server is not None else ', closed'})"


def serve_metrics(port: int = 9400, address: str = "127.0.0.1") -> MetricsServer:
    """Serve Scheduler.prometheus() of every scheduler of the process, and its memory and launches, to Prometheus.

    Parameters
    ----------
    port : int
        Where to listen; 0 takes a free one, see the result's port.
    address : str
        Of the interface. By default only this machine can read; there is no password.

    Returns
    -------
    MetricsServer
        With `url` and `close()`; it is a context manager, too. Families are those of Scheduler.prometheus() with a
        label `scheduler`, and memory and launches of the process (docs/scheduling.md).

    Raises
    ------
    ModuleNotFoundError
        prometheus_client is not there; it names the command that installs it.
    OSError
        The address is in use, or none of this machine's.

    Examples
    --------
    >>> with gp.telemetry.serve_metrics(port=0) as server:
    ...     print(server.url.startswith("http://127.0.0.1:"))
    True
    """
    library = need("prometheus_client", "serve", _WHY)
    registry = library.CollectorRegistry()
    registry.register(_Collector())
    return MetricsServer(*library.start_http_server(port, address, registry))


class _Collector:
    """Makes the families of one moment, when it is asked."""

    def describe(self) -> list[Any]:
        """Nothing, so that registering it asks for no figures."""
        return []

    def collect(self) -> Iterable[Any]:
        from pygpukit.scheduler.live import all_schedulers

        parse = need("prometheus_client.parser", "serve", _WHY).text_string_to_metric_families
        families = {family.name: family for family in _process()}
        for scheduler in all_schedulers():
            for family in parse(scheduler.prometheus()):
                of_process = family.name.removeprefix("pygpukit_") in _OF_PROCESS
                if of_process and family.name in families:
                    continue
                known = families.setdefault(family.name, type(family)(family.name, family.documentation, family.type))
                known.samples += [
                    sample if of_process else sample._replace(labels={**sample.labels, "scheduler": scheduler.label})
                    for sample in family.samples
                ]
        return families.values()


def _process() -> list[Any]:
    """Memory and launches of the process; nothing before a device is open."""
    if native.backend_name() is None:
        return []
    core = need("prometheus_client.core", "serve", _WHY)
    families = []
    stats = [(str(device), _core.pool_stats(device)) for device in range(native.device_count())]
    for field in ("used", "reserved", "evicted"):
        text = f"Bytes of the pool of a device that are {field}."
        family = core.GaugeMetricFamily(f"pygpukit_memory_{field}_bytes", text, labels=["device"])
        for device, pool in stats:
            family.add_metric([device], getattr(pool, field))
        families.append(family)
    counters = _core.counters()
    for field, text in (("launches", "Kernels launched."), ("host_launches", "Operations of the simulated device.")):
        families.append(core.CounterMetricFamily(f"pygpukit_{field}", text, counters[field]))
    return families
