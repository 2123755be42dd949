"""The card's links in a real browser: following one shows its end and marks all lines that belong together."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pygpukit.jit import JITKernel
from pygpukit.jit.launch.unit import Unit
from pygpukit.jupyter import card_listing
from pygpukit.jupyter.card import CellResult
from pygpukit.jupyter.card_bench import SweepPoint
from pygpukit.jupyter.card_listing import Listing
from pygpukit.profiling.bench import BenchResult, Limits

BENCH = BenchResult(
    samples=(1234.5, 1250.25, 1290.125) * 4,
    batch=5,
    cold_l2=True,
    backend="cuda",
    bytes=8e6,
    flops=1e6,
    clocks=None,
    limits=Limits(4000.0, 50_000.0, "cuda", "a GPU"),
)
SOURCE = "__global__ void k(int* x) {\n" + "  x[0] += 1;\n" * 60 + "}\n"

# Follows every link of the card inside the page and writes down what it did.
SCRIPT = """
const marked = (line) => getComputedStyle(line).backgroundColor !== 'rgba(0, 0, 0, 0)';
const report = [];
for (const link of document.querySelectorAll('.gk-card a')) {
  link.click();
  const end = document.querySelector(link.getAttribute('href'));
  const pane = end.closest('pre').getBoundingClientRect(), place = end.getBoundingClientRect();
  const lines = [...document.querySelectorAll('.gk-line')].filter(marked);
  report.push({
    line: link.closest('.gk-line').className.match(/gk-l\\d+/)[0],
    marked: [...new Set(lines.map((one) => one.className.match(/gk-l\\d+/)?.[0] ?? 'none'))],
    count: lines.length,
    end: marked(end),
    target: end.matches(':target'),
    seen: place.top >= pane.top && place.bottom <= pane.bottom,
  });
}
document.body.dataset.report = JSON.stringify(report);
"""


@pytest.mark.browser
def test_a_link_shows_and_marks_what_belongs_together(
    chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [(1 + at % 50, f"add {at};") for at in range(150)]  # three runs of each line
    monkeypatch.setattr(card_listing, "inspected", lambda *_: {})
    monkeypatch.setattr(
        card_listing, "_listing", lambda unit, kind, name, kernel: Listing(kind, name, "sm_90a", tuple(lines))
    )
    unit = Unit(SOURCE, name="cell")
    html = CellResult(unit, {"k": JITKernel(SOURCE, "k", unit=unit)}, listing=["ptx"])._repr_html_()
    page = tmp_path / "card.html"
    opened = html.replace("<details>", "<details open>")
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{opened}<script>{SCRIPT}</script>", encoding="utf-8")
    report = reported(chromium, page)
    assert len(report) == 50 + 150
    for one in report:
        assert one["target"] and one["end"] and one["seen"], one
        assert one["marked"] == [one["line"]] and one["count"] == 1 + 3, one


WIDE = """
const over = [];
const cut = (cell) => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    for (const { 0: word, index } of text.data.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) found.push(word);
    }
  }
  return found;
};
for (const box of document.querySelectorAll('.box')) {
  const card = box.firstElementChild, edge = card.getBoundingClientRect().right;
  const parts = [...card.querySelectorAll('td, th, svg, summary, .gk-pane')].map((one) => one.getBoundingClientRect());
  const past = Math.max(...parts.map(({ right }) => right)) - edge;
  const whole = [...card.querySelectorAll('th, td')].filter((cell) => !cell.querySelector('.gk-name'));
  const broken = whole.flatMap(cut);
  over.push([box.style.width, parts.length, past, edge - box.getBoundingClientRect().right, broken]);
}
document.body.dataset.report = JSON.stringify(over);
"""


@pytest.mark.browser
def test_a_card_stays_in_its_border_at_any_width(chromium: str, tmp_path: Path) -> None:
    names = [f"a_kernel_with_quite_a_long_name_{number}" for number in range(3)]
    source = "".join(f"__global__ void {name}(float* x, const float* y, int n) {{ x[0] = y[n]; }}\n" for name in names)
    unit = Unit(source, name="cell")
    settings = [{"block": 1 << at, "grid": (64, 16), "UNROLL": at % 4} for at in range(6, 10)]
    sweep = [SweepPoint(one, BENCH) for one in settings]
    kernels = {name: JITKernel(source, name, unit=unit) for name in names}
    verified = SimpleNamespace(
        name="total", passed=True, rtol=1e-5, atol=0.05, max_abs_error=2.77e-4, max_rel_error=3.4e-7, message=""
    )
    html = CellResult(unit, kernels, verify=[verified], bench=BENCH, sweep=sweep)._repr_html_()
    boxes = "".join(f"<div class='box' style='width:{width}px'>{html}</div>" for width in (320, 460, 640, 920))
    page = tmp_path / "card.html"
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{boxes}<script>{WIDE}</script>", encoding="utf-8")
    for width, parts, past_border, past_box, broken in reported(chromium, page):
        assert parts > 3 and past_border <= 0 and past_box <= 0, f"{past_border} px over the border at {width}"
        assert broken == [], f"words are cut at {width}"


def reported(chromium: str, page: Path) -> list[Any]:
    """What a page's script reports."""
    profile = page.parent / "profile"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    found = re.search(r'data-report="([^"]*)"', done.stdout)
    assert found, done.stderr[-400:]
    report: list[Any] = json.loads(unescape(found[1]))
    return report
