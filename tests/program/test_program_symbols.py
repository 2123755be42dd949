"""What a program's library says of its kernels and variables, and how parameters are read from their text."""

from __future__ import annotations

import pytest

from pygpukit.program.host_compiler import HostText, library
from pygpukit.program.parameters import parameter, split, template_arguments
from pygpukit.program.symbols import demangled, expression, plain_name, symbols


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z1kPfi", "k"),
        ("_Z1kIfLi4EEvPT_i", "k<float, 4>"),
        ("_ZN2ns6detail3sumINS0_3VecEEEvPKT_PS3_i", "ns::detail::sum<ns::detail::Vec>"),
        ("_ZN12_GLOBAL__N_11kEPf", "k"),
        ("plain", "plain"),
        ("_Z3putB10overload_2Pi", "put_overload_2"),
        ("_Z3putB6kernelPi", "put"),
        ("_Z3putIiSt17integral_constantIaLa3EEEvPT_", "put_overload_3<int>"),
        ("_Z3putIiSt17integral_constantIaLa0EEEvPT_", "put<int>"),
        ("_Z6binaryIL2Op1ELi32EEvPKiS2_Pi", "binary<(Op)1, 32>"),
    ],
)
def test_a_symbol_is_a_name_without_types(symbol: str, name: str) -> None:
    assert plain_name(demangled(symbol)) == name


def test_an_address_as_a_compiler_takes_it() -> None:
    assert expression("k<&(ns::f(float))>") == "k<&ns::f>"


def test_symbols_of_a_library_and_their_files() -> None:
    texts = [
        HostText(
            "static int a = 1; int *pa = &a; int shared[3]; namespace n { void f(int) { } }\n", "a.cpp", cuda=False
        ),
        HostText("static int a = 2; int *pb = &a; int main() { return 0; }\n", "b.cpp", False),
    ]
    known = {(one.kind, one.name, one.file, one.nbytes) for one in symbols(library(texts, []))}
    assert ("variable", "shared", "", 12) in known and ("function", "n::f", "", 0) not in known
    assert {one[2] for one in known if one[1] == "a"} == {"unit0.cpp", "unit1.cpp"}
    assert any(one[:3] == ("function", "n::f", "") for one in known)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("float *a", "float *", "a"),
        ("const unsigned n = 3", "const unsigned ", "n"),
        ("unsigned long long", "unsigned long long", ""),
        ("std::pair<int, int> &p", "std::pair<int, int> &", "p"),
        ("float (*f)(float)", "float (*)(float)", "f"),
        ("int x[3][4]", "int [3][4]", "x"),
        ("T", "T", ""),
        ("ns::T", "ns::T", ""),
        ("Ts... all", "Ts... ", "all"),
        ("float *__restrict__", "float *__restrict__", ""),
    ],
)
def test_a_parameters_type_and_name(text: str, kind: str, name: str) -> None:
    read = parameter(text)
    assert (read.type, read.name) == (kind, name)


def test_lists_and_the_arguments_of_templates() -> None:
    assert [one.strip() for _, one in split("int a, std::pair<int, int> b, int (*f)(int, int)")] == [
        "int a",
        "std::pair<int, int> b",
        "int (*f)(int, int)",
    ]
    assert split("") == []
    assert template_arguments("class T, int N = (3 > 2), typename... Ts") == ["T", "N", "Ts..."]
    assert template_arguments("class T, class = void") == []
