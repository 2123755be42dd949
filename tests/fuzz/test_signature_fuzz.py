"""The scanner on arbitrary text: it ends, it raises nothing but ValueError, and what one writes is what it reads."""

from __future__ import annotations

from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from pygpukit.jit.compile.diagnostics import parse_log, render
from pygpukit.jit.compile.options import parse_options
from pygpukit.jit.source.parameters import item_bytes
from pygpukit.jit.source.signature import scan, scan_variables

PIECES = [
    "__global__", "void", "k", "(", ")", "{", "}", "<", ">", ",", ";", ":", "::", "=", "*", "&", "[", "]", "#if 1\n",
    "#if", "#else\n", "#endif\n", "#define A B\n", "#define B A\n", "A", "B", "template", "typename", "T", "namespace",
    "extern", '"C"', '"', "'", 'R"(', ')"', "//", "/*", "*/", "\\\n", "\n", "float", "unsigned", "const", "enum",
    "class", "using", "typedef", "__shared__", "__launch_bounds__", "1", "0x", "1'0", "\u00e9", "->", "...", "operator",
    "#include <x>\n", "__device__", "__constant__", "constexpr", "[", "]", "{}", "= {1, 2}", "x", "/",
]  # fmt: skip
TYPES = ["float", "int", "unsigned char", "double", "half", "long long", "size_t", "float4"]
NAMES = st.from_regex(r"[a-z]_[a-z0-9]{0,6}", fullmatch=True)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60), st.sampled_from(["", " "]))
def test_scanning_pieces_of_cuda_ends(pieces: list[str], glue: str) -> None:
    for variable in scan_variables(glue.join(pieces)):
        assert variable.name and variable.line >= 1
        for nbytes in (0, 4, 12, 1 << 20):
            dtype, shape = variable.layout(nbytes)
            assert dtype and prod(shape) * item_bytes(dtype) == nbytes
    try:
        found = scan(glue.join(pieces))
    except ValueError as error:
        assert "defined twice" in str(error)
        return
    for kernel in found:
        assert kernel.name and kernel.line >= 1
        str(kernel)
        if kernel.template:
            kernel.instantiate(f"{kernel.name}<int>")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_scanning_any_text_ends(text: str) -> None:
    try:
        scan(text)
    except ValueError as error:
        assert "defined twice" in str(error)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(NAMES, st.sampled_from(TYPES), st.booleans(), st.booleans()), max_size=8, unique_by=lambda p: p[0]
    ),
    st.sampled_from(["\n", " ", " /* , ) */ ", "\n// ) {\n"]),
)
def test_a_written_signature_is_read_back(parameters: list[tuple[str, str, bool, bool]], glue: str) -> None:
    listed = f",{glue}".join(
        f"{'const ' * const}{kind}{'*' * pointer}{glue}{name}" for name, kind, pointer, const in parameters
    )
    (kernel,) = scan(f'extern "C" __global__ void kernel{glue}({listed}){glue}{{ int a[2]; }}')
    assert kernel.name == "kernel"
    assert [p.name for p in kernel.parameters] == [name for name, *_ in parameters]
    assert [p.kind == "pointer" for p in kernel.parameters] == [pointer for _, _, pointer, _ in parameters]
    assert [p.type for p in kernel.parameters] == [
        f"{'const ' * const}{kind}{'*' * pointer}" for _, kind, pointer, const in parameters
    ]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["cell(2): error: x", "cell:1:2: error: y", "  a", "    ^", "", "\t\u00e9^~", "note"]),
        max_size=12,
    ),
    st.text(max_size=40),
)
def test_any_log_is_parsed_and_rendered_in_bounds(lines: list[str], source: str) -> None:
    found = parse_log("\n".join(lines), source)
    assert all(one.line >= 0 and one.column >= 0 for one in found)
    assert len(render(found, {"cell": source}, max_lines=15)) <= 15


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["-D", "-DA", "-DA=1", "-I", "-Ix", "--std=c++17", "-arch=sm_90", "x", "--fmad=false", "-U"]),
        max_size=6,
    )
)
def test_any_options_parse_or_are_refused_by_a_sentence(options: list[str]) -> None:
    try:
        parsed = parse_options(options)
    except ValueError as error:
        assert "lacks its value" in str(error) or "two architectures" in str(error)
        return
    assert parsed.content() == parse_options(parsed.compiler_flags()).content()
