"""The result card: HTML that is well formed, escaped, self-contained and linked both ways; text that never varies."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pygpukit.core.errors import CompileError, GPUError
from pygpukit.jit import JITKernel
from pygpukit.jit.compile.nvrtc import get_nvrtc_version
from pygpukit.jit.inspect import disassembly
from pygpukit.jit.launch.unit import Unit
from pygpukit.jit.toolchain import nvdisasm
from pygpukit.jupyter import card_listing
from pygpukit.jupyter.card import CellResult, Launch, SweepPoint
from pygpukit.jupyter.card_bench import duration, rate, spread
from pygpukit.jupyter.card_listing import MAX_LINES, Listing, listings_html, source_lines
from pygpukit.profiling.bench import BenchResult, Clocks
from pygpukit.profiling.limits import Limits

SOURCE = """
template <class T> struct Pair { T a, b; };
__global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i >= 0) x[i] *= factor;
}
__global__ void pairs(Pair<int>* out) { out[threadIdx.x].a = 1; }
template <class T> __global__ void open(T* x) {}
"""
BENCH = BenchResult(
    samples=(10.15,) * 12,
    batch=5,
    cold_l2=True,
    backend="cuda",
    bytes=8e6,
    flops=1e6,
    clocks=Clocks(1980, 1725, ("power cap",)),
    limits=Limits(4000.0, 50_000.0, "cuda", "a GPU"),
)
SIM_BENCH = replace(BENCH, backend="sim", clocks=None, limits=None, cold_l2=False)
VOID = {"rect", "path", "circle", "br"}


@dataclass
class Check:
    """A verification as the card reads it."""

    name: str = "y"
    passed: bool = True
    rtol: float = 1e-5
    atol: float = 1e-8
    max_abs_error: float = 2.5e-7
    max_rel_error: float = 1e-6
    message: str = ""


class Page(HTMLParser):
    """Reads HTML strictly: every element is closed in order; ids, links and attributes are kept."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []  # (id of the nearest element with one, target)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._around: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = {name: value or "" for name, value in attrs}
        self.attributes += values.items()
        if "id" in values:
            self.ids.append(values["id"])
        if "href" in values:
            self.links.append((next((one for one in reversed(self._around) if one), ""), values["href"]))
        if tag not in VOID:
            self.open.append(tag)
            self._around.append(values.get("id", ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        self._around.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def read(html: str) -> Page:
    """The page, after the checks that hold for every card."""
    page = Page(html)
    assert page.tags.isdisjoint({"script", "iframe", "link", "img", "object", "embed", "form", "base", "meta"})
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert not re.search(r"https?:|//|url\(|@import|javascript:", re.sub(r"<pre>.*?</pre>", "", html, flags=re.S))
    assert all(target.startswith("#") for _, target in page.links)
    assert len(page.ids) == len(set(page.ids))
    assert {target[1:] for _, target in page.links} <= set(page.ids)
    return page


@pytest.fixture(scope="module")
def unit() -> Unit:
    return Unit(SOURCE, name="cell")


def cell(unit: Unit, **options: Any) -> CellResult:
    return CellResult(unit, {name: JITKernel(SOURCE, name, unit=unit) for name in unit.signatures}, **options)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings without a compiler: every line of the bodies of the kernels became code, some of it twice."""
    lines = [(0, ".version 8.8"), (5, "ld.global <x>;"), (5, "mul.f32;"), (4, "mov;"), (5, "st.global;"), (0, "}")]
    monkeypatch.setattr(
        card_listing, "_listing", lambda unit, kind, name, kernel: Listing(kind, name, "sm_90a", tuple(lines))
    )


CARDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "compiled only": {"loaded": False, "compile_ms": 12.3456},
    "bench": {"bench": BENCH, "launch": Launch("scale", (4,), (256, 1, 1))},
    "simulated": {"bench": SIM_BENCH},
    "not converged": {"bench": replace(BENCH, samples=(1.0, 2.0), clocks=None)},
    "bytes only": {"bench": replace(BENCH, flops=None)},
    "nothing given": {"bench": replace(BENCH, bytes=None, flops=None, limits=None)},
    "over the limit": {"bench": replace(BENCH, bytes=8e9)},
    "verified": {"verify": [Check(), Check("z", False, message="z[3] is 1.5, the reference 2 <b>")]},
    "sweep": {
        "sweep": [
            SweepPoint({"block": 64}, BENCH),
            SweepPoint({"block": 128, "tile": "<8>"}, replace(BENCH, samples=(4.0, 4.1))),
            SweepPoint({"block": 4096}, None, "too many threads: 4096 > 1024 & more"),
        ]
    },
}


@pytest.mark.parametrize("options", CARDS.values(), ids=CARDS.keys())
def test_every_card_is_well_formed_and_contained(unit: Unit, options: dict[str, Any]) -> None:
    result = cell(unit, **options)
    page = read(result._repr_html_())
    assert "scale(float* x, float factor, int n)" in page.text
    assert "pairs(Pair<int>* out)" in page.text
    assert result._repr_mimebundle_() == {"text/plain": repr(result), "text/html": result._repr_html_()}


def test_the_figures_of_a_measurement_are_in_the_html(unit: Unit) -> None:
    text = read(cell(unit, bench=BENCH)._repr_html_()).text
    for words in ("10.15 \u00b5s", "median of 12 samples of 5 launches", "cold L2", "788 GB/s", "20 %", "4000 GB/s"):
        assert words in text
    assert "98.5 GFLOP/s" in text
    assert "clocks held down by power cap" in text and "1980 MHz before, 1725 MHz after" in text
    assert "did not converge" not in text


def test_nothing_that_was_not_given_is_shown(unit: Unit) -> None:
    text = read(cell(unit, bench=replace(BENCH, bytes=None, flops=None, limits=None))._repr_html_()).text
    assert "B/s" not in text and "FLOP" not in text and "%" not in text


def test_the_simulated_device_is_named(unit: Unit) -> None:
    page = read(cell(unit, bench=SIM_BENCH)._repr_html_())
    assert "says nothing about a GPU" in page.text and "L2" not in page.text and "MHz" not in page.text


def test_what_did_not_converge_or_verify_says_so(unit: Unit) -> None:
    text = read(cell(unit, **CARDS["not converged"])._repr_html_()).text
    assert "did not converge" in text and "NVML is not there" in text
    text = read(cell(unit, **CARDS["verified"])._repr_html_()).text
    assert "NOT verified z" in text and "z[3] is 1.5, the reference 2 <b>" in text


def test_the_text_is_one_string_whatever_was_measured(unit: Unit) -> None:
    texts = set()
    for at in range(100):
        samples = tuple(10.0 + at + 0.01 * one for one in range(3 + at))
        bench = replace(BENCH, samples=samples, batch=1 + at, clocks=Clocks(at, at, ()))
        result = cell(
            unit,
            compile_ms=float(at),
            bench=bench,
            launch=Launch("scale", (4, 1, 1), (16, 8, 1), 64),
            verify=[Check(max_abs_error=at * 1e-9)],
            sweep=[SweepPoint({"block": 64}, bench), SweepPoint({"block": 128}, None, f"failed {at}")],
        )
        texts.add(result._repr_mimebundle_()["text/plain"])
    assert texts == {
        "scale(float* x, float factor, int n)\n"
        "pairs(Pair<int>* out)\n"
        "open: a template, bind it with --instantiate 'open<...>'\n"
        "launched scale[4, (16, 8), 64]\n"
        "verified y\n"
        "bench: cold L2, bytes 8000000, flops 1000000; print it for the figures\n"
        "sweep: block=64, block=128"
    }


def test_an_empty_cell() -> None:
    unit = Unit("__device__ int one() { return 1; }", name="cell")
    result = CellResult(unit, {})
    assert repr(result) == "no kernel is bound: the cell defines no __global__ function"
    read(result._repr_html_())


def test_compiler_messages_are_shown_escaped() -> None:
    unit = Unit("__global__ void k(int* x) { x[0] = 1; }", name="cell")
    unit.image = replace(unit.image, log='cell(1): warning: "a<b" is never used\n')
    page = read(CellResult(unit, {"k": JITKernel(unit.source, "k", unit=unit)})._repr_html_())
    assert 'warning: "a<b" is never used' in page.text and "compiler messages" in page.text


# ---- listings ----


@pytest.mark.usefixtures("listed")
def test_source_and_listings_link_both_ways(unit: Unit) -> None:
    result = cell(unit, listing=("sass", "ptx"))
    page = read(result._repr_html_())
    there = {(origin, target[1:]) for origin, target in page.links}
    source = [link for link in there if re.search(r"-s\d+$", link[0])]
    code = [link for link in there if re.search(r"-s\d+$", link[1])]
    assert len(source) == 2 * 4  # two lines became code, in two kernels' PTX and SASS
    assert {(b, a) for a, b in source} <= set(code)
    for origin, target in source:
        assert origin.rsplit("-s", 1)[1] == target.rsplit("-", 1)[1]
    assert "   5   3,3   3,3      if (i < n" in page.text and "ld.global <x>;" in page.text
    assert repr(result).endswith("listing: ptx, sass")


@pytest.mark.usefixtures("listed")
def test_two_cells_in_one_notebook_share_no_id(unit: Unit) -> None:
    other = Unit(SOURCE + "// another\n", name="cell")
    first, second = cell(unit, listing=["ptx"]), CellResult(other, cell(unit).kernels, listing=["ptx"])
    ids = [set(read(one._repr_html_()).ids) for one in (first, second)]
    assert ids[0] and ids[0].isdisjoint(ids[1])
    assert first._repr_html_() == cell(unit, listing=["ptx"])._repr_html_()


def random_listing() -> st.SearchStrategy[list[tuple[int, str]]]:
    return st.lists(st.tuples(st.integers(0, 8), st.text(st.characters(codec="ascii"), max_size=12)), max_size=40)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a test of what is written, not of how fast
@given(st.text(st.sampled_from("ab<>&\"'\n{}"), max_size=80), st.lists(random_listing(), max_size=3))
def test_any_listing_is_well_formed_and_no_link_is_dead(source: str, several: list[list[tuple[int, str]]]) -> None:
    found = [Listing("ptx", f"k{at}", "sm_90a", tuple(lines)) for at, lines in enumerate(several)]
    read(listings_html(source_lines(source, "cell"), found, "gk-0"))


def test_the_source_is_the_cells_own_lines_by_their_numbers() -> None:
    source = '#line 1 "head.cuh"\n\nstruct S {};\n#line 1 "cell"\n\n\nint a;\n\nint b;\n\n'
    assert source_lines(source, "cell") == [(3, "int a;"), (4, ""), (5, "int b;")]
    assert source_lines("\n\n", "cell") == []


def test_a_long_listing_is_cut_and_says_so() -> None:
    lines = tuple((1 + at % 2, f"instruction {at}") for at in range(MAX_LINES + 7))
    page = read(listings_html([(1, "a"), (2, "b")], [Listing("sass", "k", "sm_90a", lines)], "gk-0"))
    assert "7 more lines: k.sass" in page.text
    assert f"instruction {MAX_LINES}" not in page.text


def test_what_cannot_be_listed_says_why_once() -> None:
    found = [Listing("ptx", name, "sm_90a", (), "NVRTC is <not> there; install it") for name in "ab"]
    page = read(listings_html([(1, "a")], found, "gk-0"))
    assert page.text.count("NVRTC is <not> there; install it") == 1


def test_an_unknown_listing_is_refused(unit: Unit) -> None:
    with pytest.raises(ValueError, match="no listing 'llvm'"):
        cell(unit, listing=["llvm"])


# ---- figures ----


@pytest.mark.parametrize(
    ("us", "words"),
    [(0.5, "0.5 \u00b5s"), (12.345, "12.35 \u00b5s"), (999.9, "999.9 \u00b5s"), (1204.0, "1.204 ms"), (2.5e6, "2.5 s")],
)
def test_durations(us: float, words: str) -> None:
    assert duration(us) == words


@pytest.mark.parametrize(
    ("giga", "unit", "words"),
    [(4261.4, "B/s", "4261 GB/s"), (61_230.0, "FLOP/s", "61.2 TFLOP/s"), (2.345, "B/s", "2.35 GB/s")],
)
def test_rates(giga: float, unit: str, words: str) -> None:
    assert rate(giga, unit) == words


# ---- the real listings ----


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
def test_a_cell_of_the_simulated_device_shows_its_ptx_for_a_gpu(unit: Unit) -> None:
    result = cell(unit, listing=["ptx"])
    assert [(one.kernel, one.arch, one.problem) for one in result.listings] == [
        ("scale", "sm_90a", ""),
        ("pairs", "sm_90a", ""),
    ]
    page = read(result._repr_html_())
    targets = {origin.rsplit("-s", 1)[1] for origin, _ in page.links if re.search(r"-s\d+$", origin)}
    assert {"4", "5", "7"} <= targets  # the lines of the two bodies
    assert "PTX of scale for sm_90a" in page.text and ".entry" in page.text
    assert "registers and occupancy as for sm_90a" in page.text and "limited by" in page.text


@pytest.mark.skipif(nvdisasm() is None, reason="nvdisasm is not installed (extra inspect)")
@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
def test_a_cell_of_the_simulated_device_shows_its_sass(unit: Unit) -> None:
    page = read(cell(unit, listing=["sass"])._repr_html_())
    assert "SASS of pairs for sm_90a" in page.text and "EXIT" in page.text


def test_without_the_tools_the_card_says_what_to_install(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(kernel: JITKernel, arch: str | None) -> None:
        raise GPUError('it is missing; install it with: python -m pip install -e ".[inspect]"')

    monkeypatch.setattr(disassembly, "sass_lines", missing)
    result = cell(unit, listing=["sass"])
    assert 'install it with: python -m pip install -e ".[inspect]"' in read(result._repr_html_()).text
    assert repr(result).endswith("listing: sass")


def test_code_that_only_the_simulation_takes_says_so(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile error of NVRTC is a sentence in the card, not the end of a cell that ran."""

    def refused(kernel: JITKernel, arch: str | None) -> None:
        raise CompileError("cell:2:1: no such thing", "log", [])

    monkeypatch.setattr(disassembly, "ptx_lines", refused)
    assert "no such thing" in read(cell(unit, listing=["ptx"])._repr_html_()).text


@pytest.mark.parametrize(
    ("median", "mad", "words"),
    [
        (3570.0, 150.0, "3.57 ms &plusmn; 0.15"),
        (12.34, 0.056, "12.34 \u00b5s &plusmn; 0.056"),
        (2.5e6, 1e3, "2.5 s &plusmn; 0.001"),
        (2.5e6, 1.0, "2.5 s &plusmn; &lt; 0.001"),
        (100.0, 0.0, "100 \u00b5s &plusmn; 0"),
        (50.0, 3000.0, "50 \u00b5s &plusmn; 3000"),
    ],
)
def test_a_time_and_its_spread_have_one_unit(median: float, mad: float, words: str) -> None:
    measured: Any = SimpleNamespace(median_us=median, mad_us=mad)
    assert f"{duration(median)} {spread(measured)}" == words
