"""serve_metrics(): Prometheus reads what schedulers and process say, and the Grafana board asks for what is served."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import MetricsServer, serve_metrics

pytestmark = pytest.mark.usefixtures("backend_name")
BOARD = Path(__file__).parents[2] / "docs" / "grafana.json"

Samples = dict[str, list[tuple[dict[str, str], float]]]


def read(server: MetricsServer) -> Samples:
    with urlopen(server.url, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return samples


def value(samples: Samples, name: str, **labels: str) -> float:
    (only,) = (number for known, number in samples[name] if labels.items() <= known.items())
    return only


def test_each_schedulers_figures_are_served_under_its_label() -> None:
    with serve_metrics(port=0) as server, Scheduler(total_memory="1MB") as first, Scheduler() as second:
        for _ in range(3):
            first.submit(lambda: None, name="served").result(60)
        second.submit(lambda: None, name='a "name"\\').result(60)
        samples = read(server)
        submitted = "pygpukit_tasks_submitted_total"
        assert value(samples, submitted, scheduler=first.label) == 3
        assert value(samples, submitted, scheduler=second.label) == 1
        assert value(samples, "pygpukit_available_memory_bytes", scheduler=first.label) == 1 << 20
        names = {labels["tenant"] for labels, _ in samples["pygpukit_tenant_tasks_submitted_total"]}
        assert {"served", 'a "name"\\'} <= names
        first.submit(lambda: None).result(60)
        assert value(read(server), submitted, scheduler=first.label) == 4


def test_what_is_the_processs_is_there_once() -> None:
    x = gp.add(gp.ones(1 << 16), 1.0)
    native.synchronize()
    _core.pool_evict(0, x.block)
    kept = [Scheduler(start=False), Scheduler(start=False)]
    with serve_metrics(port=0) as server:
        samples = read(server)
    assert len(kept) == 2
    moved = samples["pygpukit_evicted_bytes_total"]
    assert sum(count for _, count in moved) >= 4 << 16 and not any("scheduler" in labels for labels, _ in moved)
    assert len(moved) == len({labels["tenant"] for labels, _ in moved})
    assert value(samples, "pygpukit_memory_evicted_bytes", device="0") >= 4 << 16
    assert value(samples, "pygpukit_memory_reserved_bytes", device="0") > 0
    assert value(samples, "pygpukit_launches_total") + value(samples, "pygpukit_host_launches_total") > 0


def test_a_server_is_closed_once_and_for_all() -> None:
    server = serve_metrics(port=0)
    with pytest.raises(OSError):
        serve_metrics(port=server.port)
    server.close()
    server.close()
    assert repr(server) == f"MetricsServer({server.url!r}, closed)"
    with serve_metrics(port=server.port) as again:
        assert again.port == server.port


def test_the_board_asks_for_families_that_are_served() -> None:
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    asked = {
        name for panel in board["panels"] for target in panel["targets"]
        for name in re.findall(r"pygpukit_\w+", target["expr"])
    }  # fmt: skip
    x = gp.ones(1 << 10)
    native.synchronize()
    _core.pool_evict(0, x.block)
    with serve_metrics(port=0) as server, Scheduler() as scheduler:
        scheduler.create_partition("part", memory="1MB")
        scheduler.submit(lambda: gp.ones(4).to_numpy(), name="tenant").result(60)
        served = set(read(server))
    assert len(asked) > 10 and asked <= served
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in board["panels"]]
    assert len(places) == len(set(places))
