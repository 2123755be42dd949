"""Figures of the dashboards, apart from the tests: `python tools/ui_benchmark.py [--part NAME ...] [--row ROW]`

Parts: `sampler`, CPU time of the process that serves onlookers at 10 Hz; the others are extension/ui-tests/bench in
Chromium (`npm ci` in extension/ first): `chat`, tokens of a model that gives 200 a second; `kernel`, what a busy
kernel's page gets and how its controls act; `page`, frames and heap of pages alone; `opening`, a notebook of 500 cells
with the lab extension and without.

--row runs `kernel` in an environment of tools/jupyter_matrix.py. Each has a report in docs/results/ui/, and README.md
there has a row for each limit of every report. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupyter_matrix

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/ui"
SECONDS = 20.0
HZ = 10.0
IN_BROWSER = {"chat": "bench/chat.ts", "kernel": "bench/lab.ts", "page": "bench/page.ts", "opening": "bench/open.ts"}
PARTS = ("sampler", *IN_BROWSER)
VERSIONS = ("ipykernel", "jupyterlab", "anywidget", "ipywidgets")

Figures = dict[str, Any]


@dataclass(frozen=True)
class Limit:
    """The limit of one figure of a part."""

    what: str
    part: str
    section: str
    key: str
    value: float
    unit: str
    is_minimum: bool = False  # otherwise the limit is the most that it may be
    digits: int = 1

    def read(self, part: Figures) -> float | None:
        """The figure, rounded to what the measurement tells; None where it was not measured."""
        value = part.get(self.section, {}).get(self.key)
        return None if value is None else round(float(value), self.digits)

    def holds(self, figure: float) -> bool:
        return operator.ge(figure, self.value) if self.is_minimum else operator.le(figure, self.value)


CONTROLS = ("pause", "resume", "share", "priority", "cancel", "quota")
LIMITS = (
    Limit("updates in the page beside launches", "kernel", "busy_cell", "updates_per_s", 10, "/s", is_minimum=True),
    Limit(
        "updates in the page in one native call",
        "kernel",
        "busy_cell_in_one_native_call",
        "updates_per_s",
        10,
        "/s",
        is_minimum=True,
    ),
    *(Limit(f"control {name} in a busy cell", "kernel", f"control_{name}", "max_ms", 200, "ms") for name in CONTROLS),
    Limit("messages while hidden", "kernel", "hidden", "messages", 0, "", digits=0),
    Limit("two views of one moment apart", "kernel", "two_views", "max_ms", 200, "ms"),
    Limit("sampler, of a core", "sampler", "sampler", "percent_of_a_core", 1, "%", digits=2),
    Limit("sampler with 1000 tasks, of a core", "sampler", "sampler_1000_tasks", "percent_of_a_core", 1, "%", digits=2),
    Limit("frame of 10 000 tasks by task, p95", "page", "pan_zoom_by_task", "frame_p95_ms", 16, "ms"),
    Limit("frame of 10 000 tasks by tenant, p95", "page", "pan_zoom_by_tenant", "frame_p95_ms", 16, "ms"),
    Limit('"queued" where nobody answers', "page", "control_queued", "max_ms", 200, "ms"),
    Limit("heap of the memory view in an hour", "page", "soak_memory", "growth_mb", 5, "MB", digits=2),
    Limit("heap of the scheduler view in an hour", "page", "soak_scheduler", "growth_mb", 5, "MB", digits=2),
    Limit("first token of an answer in the page", "chat", "first_token", "max_ms", 100, "ms"),
    Limit("token at 200/s, the first 500 of 4000, p95", "chat", "first_tokens_of_many", "p95_ms", 100, "ms"),
    Limit("token at 200/s, the last 500 of 4000, p95", "chat", "last_tokens_of_many", "p95_ms", 100, "ms"),
    Limit("added to opening 500 cells", "opening", "open_500_cells", "added_high_ms", 50, "ms"),
)


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


def sampler(tasks: int) -> Figures:
    """Per cent of a core while one page is served, less what the idle process takes."""
    from pygpukit.scheduler import Scheduler
    from pygpukit.telemetry import sampler
    from pygpukit.telemetry.feed import Feed

    scheduler = Scheduler(workers=1)
    for _ in range(tasks):
        scheduler.submit(time.sleep, 0)
    for _ in range(tasks):
        scheduler.step()
    sampler.set_rate(HZ)
    idle = _cpu_share()
    page = Page(Feed("benchmark"))
    sampler.add_sink(page)
    busy = _cpu_share()
    sampler.remove_sink(page)
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


def browser(spec: str, python: str) -> Figures:
    """The browser's part of a file that was measured with this Python."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        environment = {**os.environ, "PYGPUKIT_UI_REPORT": str(path), "PYGPUKIT_PYTHON": python}
        command = ["npx", "playwright", "test", "--config", "ui-tests/bench.config.ts", spec]
        subprocess.run(command, cwd=ROOT / "extension", env=environment, check=True)
        return dict(json.loads(path.read_text()))


def measure(part: str, python: str) -> Figures:
    """One part's figures, with the machine and the versions that they are of."""
    environment = environment_of(python)
    if part == "sampler":
        figures = {"sampler": sampler(0), "sampler_1000_tasks": sampler(1000)}
    else:
        figures = browser(IN_BROWSER[part], python)
    return {"environment": environment, **figures}


def environment_of(python: str) -> Figures:
    """The machine, how busy it is, and the versions that a Python has."""
    code = f"""
import json, platform
from importlib.metadata import PackageNotFoundError, version
import pygpukit as gp
def of(name):
    try: return version(name)
    except PackageNotFoundError: return ""
found = dict(pygpukit=gp.__version__, backend=gp.backend(), python=platform.python_version())
print(json.dumps(found | {{name: of(name) for name in {VERSIONS!r} if of(name)}}))
"""
    versions = json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 2),
        **versions,
        "chromium": _chromium(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _chromium() -> str:
    command = [os.environ.get("PYGPUKIT_CHROMIUM", "/usr/bin/chromium"), "--version"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return next(word for word in words if word[0].isdigit())


def table(reports: list[Path]) -> Iterator[str]:
    """A row for each limit of each report, and what no report has."""
    yield "| limit | | figure | holds | versions | machine |"
    yield "| --- | --- | --- | --- | --- | --- |"
    missing = {limit.what for limit in LIMITS}
    for path in reports:
        parts = json.loads(path.read_text())
        for limit in LIMITS:
            part = parts.get(limit.part, {})
            figure = limit.read(part)
            if figure is None:
                continue
            missing.discard(limit.what)
            yield f"| {' | '.join(_cells(limit, figure, part))} |"
    for what in sorted(missing):
        yield f"| {what} | | not measured | | | |"


def _cells(limit: Limit, figure: float, part: Figures) -> tuple[str, ...]:
    environment = part["environment"]
    versions = [
        f"{name} {environment[name]}" for name in ("ipykernel", "jupyterlab", "chromium") if name in environment
    ]
    until = ', until it reads "queued"' if part[limit.section].get("until") == "queued" else ""
    return (
        f"{limit.what}{until}",
        f"{'at least' if limit.is_minimum else 'at most'} {limit.value:g} {limit.unit}".strip(),
        f"{figure:.{limit.digits}f} {limit.unit}".strip(),
        "yes" if limit.holds(figure) else "**no**",
        ", ".join(versions),
        f"{environment['machine']}, load {environment.get('load_before', 'not recorded')}",
    )


def write_readme() -> str:
    lines = ["# Limits of the dashboards", "", "Made by `python tools/ui_benchmark.py` of the reports beside it.", ""]
    text = "\n".join([*lines, *table(sorted(RESULTS.glob("report*.json")))]) + "\n"
    (RESULTS / "README.md").write_text(text)
    return text


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be given more than once")
    parser.add_argument("--row", choices=list(jupyter_matrix.ROWS), help="measure `kernel` in this environment")
    options = parser.parse_args(argv)
    path, python, parts = RESULTS / "report.json", sys.executable, options.part or PARTS
    if options.row:
        if options.part not in (None, ["kernel"]):
            parser.error("--row is of the part `kernel`: the others measure nothing of ipykernel")
        jupyter_matrix.install(options.row)
        path, python, parts = (
            RESULTS / f"report-{options.row}.json",
            str(jupyter_matrix.python_of(options.row)),
            ["kernel"],
        )
    RESULTS.mkdir(parents=True, exist_ok=True)
    for part in parts:
        figures = measure(part, python)
        report = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**report, part: figures}, indent=2) + "\n")
    print(write_readme())


if __name__ == "__main__":
    main(sys.argv[1:])
