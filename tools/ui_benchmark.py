"""Figures of the dashboards, apart from the tests: `python tools/ui_benchmark.py [--out FILE] [--part sampler|browser]`

sampler: CPU time of the process while it serves onlookers at 10 Hz. browser: extension/ui-tests/bench in Chromium and
JupyterLab (`npm ci` in extension/ first). The report says what machine it is from; nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ROOT / "docs/results/ui/report.json"
SECONDS = 20.0
HZ = 10.0


class Page:
    """Stands for a widget: everything is made and thrown away."""

    def __init__(self, feed: Any) -> None:
        self.visible = True
        self.feed = feed
        self.messages = 0
        self.bytes = 0
        _, self.since, self.since_name = feed.begin()

    def send_frame(self, frame: bytes) -> None:
        for content, buffers in self.feed.follow(frame):
            self.messages += 1
            self.bytes += sum(map(len, buffers)) + len(json.dumps(content))


def sampler(tasks: int) -> dict[str, float]:
    """Per cent of a core while one page is served, less what the idle process takes."""
    from pygpukit.dashboard.feed import Feed
    from pygpukit.jupyter import telemetry
    from pygpukit.scheduler import Scheduler

    scheduler = Scheduler(workers=1)
    for _ in range(tasks):
        scheduler.submit(time.sleep, 0)
    for _ in range(tasks):
        scheduler.step()
    telemetry.set_rate(HZ)
    idle = _cpu_share()
    page = Page(Feed("benchmark"))
    telemetry.add_sink(page)
    busy = _cpu_share()
    telemetry.remove_sink(page)
    return {
        "finished_tasks": tasks,
        "hz": HZ,
        "seconds": SECONDS,
        "idle_percent_of_a_core": round(100 * idle, 3),
        "percent_of_a_core": round(100 * busy, 3),
        "messages": page.messages,
        "bytes_per_s": round(page.bytes / SECONDS),
    }


def _cpu_share() -> float:
    begun, cpu = time.perf_counter(), time.process_time()
    time.sleep(SECONDS)
    return (time.process_time() - cpu) / (time.perf_counter() - begun)


def browser(path: Path) -> None:
    """Run the browser part, which adds its figures to the file."""
    environment = {**os.environ, "PYGPUKIT_UI_REPORT": str(path)}
    environment.setdefault("PYGPUKIT_PYTHON", sys.executable)
    command = ["npx", "playwright", "test", "--config", "ui-tests/bench.config.ts"]
    subprocess.run(command, cwd=ROOT / "extension", env=environment, check=True)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DEFAULT)
    parser.add_argument("--part", choices=("sampler", "browser"))
    options = parser.parse_args(argv)
    path = options.out.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    report = json.loads(path.read_text()) if path.is_file() else {}
    import pygpukit as gp

    report["environment"] = {
        "pygpukit": gp.__version__,
        "backend": gp.backend(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if options.part != "browser":
        report["sampler"] = sampler(0)
        report["sampler_1000_tasks"] = sampler(1000)
    path.write_text(json.dumps(report, indent=2) + "\n")
    if options.part != "sampler":
        browser(path)
    print(path.read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
