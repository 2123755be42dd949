"""Structures that Python packs: laid out as a C++ compiler lays them out, and packed field by field."""

from __future__ import annotations

import importlib
import pkgutil
import re
import struct
from pathlib import Path

import pytest

from pygpukit import ops
from pygpukit.jit.compile import headers
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.kernels import sources
from pygpukit.kernels.structure import Structure, in_header
from pygpukit.ops.indexing import padding

TEXT = """
constexpr int kMost = 3;  // struct Wrong { int x; };
template <int Rows> struct Inner { short first; double value[Rows][2]; };
struct alignas(16) Outer {
  unsigned char tag, name[5];
  Inner<kMost> inner;  /* of
  two lines */
  int few[kMost], one;
  bool flag;
};
"""


def structure(name: str, text: str = TEXT, **arguments: int) -> Structure:
    return Structure(name, lambda: [text], arguments)


def known() -> dict[str, Structure]:
    """Every structure that an operation packs, and those of templates for some arguments, by source and name."""
    found = {f"numeric.cuh Layout {n}": in_header("numeric.cuh", "Layout", Operands=n) for n in (1, 2, 4)}
    found |= {f"padding.cu Remap {size}": padding._remap(size) for size in (1, 2, 4, 8, 16)}
    for module in pkgutil.walk_packages(ops.__path__, "pygpukit.ops."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Structure):
                found[f"{module.name} {value.name}"] = value
    return found


def test_the_compiler_lays_them_out_the_same() -> None:
    """Every declaration in a namespace of its own, with what Python takes for its size and its fields' offsets."""
    parts, types = [], {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "long long", 16: "double2"}
    for number, (name, one) in enumerate(known().items()):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", "\n".join(one._texts()), flags=re.DOTALL)
        constants = re.findall(r"^constexpr int \w+ = \d+;", text, re.MULTILINE)
        wanted, declared = [one.name], []
        while wanted:
            plain = wanted.pop()
            found = re.search(rf"(?:template <[^>]*>\s*)?struct (?:alignas\(\d+\) )?{plain} {{.*?}};", text, re.DOTALL)
            assert found, f"{name}: {plain}"
            declared.insert(0, found[0])
            names = set(re.findall(r"\bstruct (?:alignas\(\d+\) )?(\w+) {", text)) - {plain}
            wanted += sorted(other for other in names if re.search(rf"\b{other}\b", found[0]))
        arguments = [types[value] if key == "T" else str(value) for key, value in one._arguments.items()]
        spelled = f"{one.name}<{', '.join(arguments)}>" if arguments else one.name
        checks = [f"static_assert(sizeof(Checked) == {one.layout.size});"]
        checks += [f"static_assert(__builtin_offsetof(Checked, {f.name}) == {f.offset});" for f in one.layout.fields]
        parts.append(
            "\n".join(
                [
                    f"namespace n{number} {{",
                    *dict.fromkeys(constants),
                    *dict.fromkeys(declared),
                    f"using Checked = {spelled};",
                ]
            )
            + "\n".join(["", *checks, "}"])
        )
    assert len(parts) > 25
    source = "\n".join(parts) + "\n__global__ void none() {}\n"
    assert compile_source(source, name="structures", check=False).image


def test_fields_are_packed_by_name() -> None:
    inner = structure("Inner", Rows=3).pack(first=-2, value=([1.0], [2.0, 3.0], []))
    assert struct.unpack("<h6x6d", inner) == (-2, 1.0, 0.0, 2.0, 3.0, 0.0, 0.0)
    packed = structure("Outer").pack(one=9, tag=7, name=b"abc", inner=inner, few=[1, 2], flag=True)
    assert struct.unpack("<B5s2x56s3ii?15x", packed) == (7, b"abc\0\0", inner, 1, 2, 0, 9, True)


def test_what_does_not_fit_is_refused() -> None:
    inner = structure("Inner", Rows=3)
    outer = {"tag": 1, "name": b"", "inner": inner.pack(first=0, value=((),) * 3), "few": (), "one": 0, "flag": False}
    structure("Outer").pack(**outer)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'one'"):
        structure("Outer").pack(**{name: value for name, value in outer.items() if name != "one"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'two'"):
        structure("Outer").pack(**outer, two=2)
    with pytest.raises(IndexError):
        structure("Outer").pack(**{**outer, "few": [1, 2, 3, 4]})
    with pytest.raises(struct.error):
        structure("Outer").pack(**{**outer, "one": 1 << 40})
    with pytest.raises(ValueError, match="8 bytes are given for a structure of 56"):
        structure("Outer").pack(**{**outer, "inner": bytes(8)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct Other {};", "no structure Outer is declared"),
        ("struct Outer { int f() const; };", r"'int f\(\) const' is not understood"),
        ("struct Outer { int *at; };", "not understood"),
        ("struct Outer { int a[kUnknown]; };", "'kUnknown' is no number and no constant"),
        ("struct Outer { Inner<2> a; };", "no template Inner is declared"),
        ("struct Outer { Nowhere a; };", "no structure Nowhere is declared"),
    ],
)
def test_what_is_not_understood_is_said(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        structure("Outer", text).pack(a=1)


def test_nothing_is_read_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    monkeypatch.setattr(sources, "texts", lambda key: read.append(key) or {key: TEXT})
    monkeypatch.setattr(headers, "reached", lambda names: read.append(names) or {"h": TEXT})
    from pygpukit.ops.indexing import places

    made = places.SOURCE.structure("Outer"), in_header("h", "Inner", Rows=1)
    assert read == []
    assert [one.layout.size for one in made] == [96, 24] and len(read) == 2


def number(text: str, expression: str) -> int:
    """What an expression of constants of a text comes to."""

    def constant(name: re.Match[str]) -> str:
        declared = re.search(rf"\b{name[0]} = ([^;,}}]+)", text)
        assert declared, f"there is no {name[0]} = ...;"
        return f"({number(text, declared[1])})"

    plain = re.sub(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]+\b", r"\1", expression)
    return int(eval(re.sub(r"\bk[A-Z]\w*", constant, plain)))


def test_constants_that_python_repeats_are_those_of_the_kernels() -> None:
    """Lines like `_TILE = 64  # gemm.cu: kTile`."""
    package = Path(ops.__path__[0]).parent
    texts: dict[str, str] = {}
    for path in package.rglob("*.cu*"):
        texts[path.name] = texts.get(path.name, "") + path.read_text()
    line = re.compile(r"^\w+ = (\w+)  # ([a-z_]+\.cuh?): (k\w[\w *]*)$", re.MULTILINE)
    repeated = [found for path in package.rglob("*.py") for found in line.findall(path.read_text())]
    assert len(repeated) > 15
    for value, file, expression in repeated:
        assert number(texts[file], expression) == int(value, 0), f"{file}: {expression}"


def test_numbers_of_an_enumeration_are_those_of_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    from pygpukit.jit.compile import headers
    from pygpukit.kernels import activation, structure

    assert activation.number(None) == 0
    texts = {
        "a.cuh": "// enum Kind { kNo };\nenum Kind { kNone, kGeluTanh,\n kRelu /* last */ };\nenum Other { kA = 3 };"
    }
    monkeypatch.setattr(headers, "reached", lambda _: texts)
    read = structure.enumeration.__wrapped__
    assert read("a.cuh", "Kind") == {"none": 0, "gelu_tanh": 1, "relu": 2}
    for name in ("Other", "Missing"):  # numbers that are said, and no such enumeration
        with pytest.raises(ValueError, match=f"a.cuh declares no enumeration {name}"):
            read("a.cuh", name)


def test_products_have_activations_that_the_header_has() -> None:
    from pygpukit.kernels import activation
    from pygpukit.ops.matmul.linear import ACTIVATIONS

    assert len({activation.number(name) for name in ACTIVATIONS}) == len(ACTIVATIONS)
    assert set(ACTIVATIONS) <= {None, activation.GATED, *activation.names()}
    with pytest.raises(KeyError):
        activation.number("sine")
