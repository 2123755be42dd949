"""A report as text for a terminal and as Markdown."""

from __future__ import annotations

from .goals import Goal, check_goals
from .result import BenchmarkReport, BenchmarkResult


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _title(r: BenchmarkResult) -> str:
    params = ", ".join(f"{k}={v}" for k, v in r.params.items())
    return r.name + (f" ({params})" if params else "")


def heading(report: BenchmarkReport) -> list[str]:
    env = report.environment
    driver = f", driver {report.gpu.driver_version}, CUDA {report.gpu.cuda_version}" if report.gpu.cuda_version else ""
    return [
        f"pygpukit {report.version} on {report.gpu.name}{driver} ({env.get('backend', '')}); {env.get('cpu', '')}, "
        f"{env.get('cores', '')} cores; Python {env.get('python', '')}; {report.timestamp}"
        + (f"; {env['git']}" if env.get("git") else "")
    ]


def text(report: BenchmarkReport) -> str:
    lines = heading(report)
    for r in report.results:
        figure = f"{number(r.value):>10} {r.unit:<7}"
        spread = f"+- {number(r.spread)}" if r.spread else ""
        peer = f"{r.peer}: {number(r.peer_value)} {r.unit}, ours is {number(r.ratio)}x" if r.peer else ""
        lines.append(f"{r.category:<9} {_title(r):<58} {figure} {spread:<12} {peer}{_error(r)}".rstrip())
    lines += [f"left out  {key}: {reason}" for key, reason in report.skipped.items()]
    return "\n".join(lines)


def _error(r: BenchmarkResult) -> str:
    """The result's error, where it is not itself the figure."""
    return f" error {r.rel_error:.2g}" if r.rel_error and r.rel_error != r.value else ""


def _bound(goal: Goal) -> str:
    return "at most" if goal.better == "lower" else "at least"


def goals_text(report: BenchmarkReport) -> str:
    words = {True: "pass", False: "FAIL", None: "open"}
    lines = []
    for v in check_goals(report):
        measured = f"{number(v.value)} {v.goal.unit}" if v.value is not None else v.reason
        lines.append(
            f"{words[v.met]}  {v.goal.key:<62} {measured:>14}  "
            f"({_bound(v.goal)} {v.goal.limit:g}, aim {v.goal.aim:g} {v.goal.unit})"
        )
    return "\n".join(lines)


def markdown(report: BenchmarkReport, only_measured: bool = False) -> str:
    """Tables of the rows and of the limits; only_measured: without the limits of rows that are not in the report."""
    lines = [
        *heading(report),
        "",
        "| what | figure | spread | peer | ours / peer |",
        "| --- | ---: | ---: | --- | ---: |",
    ]
    for r in report.results:
        peer = f"{r.peer} {number(r.peer_value)} {r.unit}" if r.peer else ""
        spread = number(r.spread) if r.spread else ""
        what = f"{r.category}: {_title(r)}{_error(r)}"
        lines.append(f"| {what} | {number(r.value)} {r.unit} | {spread} | {peer} | {number(r.ratio)} |")
    verdicts = [v for v in check_goals(report) if v.value is not None or not only_measured]
    if verdicts:
        lines += ["", "| must reach | limit | measured | |", "| --- | ---: | ---: | --- |"]
    words = {True: "pass", False: "**fail**", None: "open"}
    for v in verdicts:
        measured = f"{number(v.value)} {v.goal.unit}" if v.value is not None else v.reason
        lines.append(
            f"| {v.goal.key} | {_bound(v.goal)} {v.goal.limit:g} {v.goal.unit} | {measured} | {words[v.met]} |"
        )
    return "\n".join(lines)


def print_markdown_table(report: BenchmarkReport) -> None:
    print(markdown(report))
