"""Compiler logs: place, severity and text of every message; how errors are shown."""

from __future__ import annotations

import pytest

from pygpukit.core.errors import Diagnostic
from pygpukit.jit.compile.diagnostics import compile_error, parse_log, render

SOURCE = """
__global__ void k(float* x, int n) {
  int i = threadIdx.x;
\t\tx[i] = foo + bar(2);
  const char* s = "\u00e4\u00f6\u00fc"; x[1] = baz;
}
"""

# As NVRTC writes it: two blanks before the source line, carets counted in bytes.
NVRTC_LOG = """cell(4): error: identifier "foo" is undefined
  \t\tx[i] = foo + bar(2);
  \t\t       ^

cell(4): error: identifier "bar" is undefined
  \t\tx[i] = foo + bar(2);
  \t\t             ^

cell(5): error: identifier "baz" is undefined
    const char* s = "\u00e4\u00f6\u00fc"; x[1] = baz;
                                     ^

cell(5): warning #177-D: variable "s" was declared but never referenced
    const char* s = "\u00e4\u00f6\u00fc"; x[1] = baz;
                ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

3 errors detected in the compilation of "cell".
"""


def column_of(line: int, word: str) -> int:
    return SOURCE.splitlines()[line - 1].index(word) + 1


def test_nvrtc_places_come_from_the_carets() -> None:
    assert parse_log(NVRTC_LOG, SOURCE) == [
        Diagnostic(4, column_of(4, "foo"), "error", 'identifier "foo" is undefined', "cell"),
        Diagnostic(4, column_of(4, "bar"), "error", 'identifier "bar" is undefined', "cell"),
        Diagnostic(5, column_of(5, "baz"), "error", 'identifier "baz" is undefined', "cell"),
        Diagnostic(
            5, column_of(5, "s ="), "warning", 'variable "s" was declared but never referenced [#177-D]', "cell"
        ),
    ]


def test_without_a_caret_the_quoted_word_gives_the_column() -> None:
    log = 'cell(4): error: identifier "bar" is undefined\ncell(4): error: something "absent" is wrong\n'
    assert [one.column for one in parse_log(log, SOURCE)] == [column_of(4, "bar"), 0]


def test_lines_around_the_shown_source_belong_to_the_message() -> None:
    log = """cell(3): error: no instance of overloaded function "f" matches the argument list
            argument types are: (const char [2])
    f("a");
    ^
cell(1): note #3326-D: function "f(int)" does not match because argument #1 does not match parameter
  __device__ void f(int a);
                  ^

cell(5): error: expression must have class type but it has type "float"
   return a.x; }
          ^
          detected during instantiation of "T g(T) [with T=float]" at line 6
"""
    first, note, second = parse_log(log)
    assert first.message.endswith("matches the argument list (argument types are: (const char [2]))")
    assert (note.severity, note.line, note.column) == ("note", 1, 17)
    assert second.message.endswith('(detected during instantiation of "T g(T) [with T=float]" at line 6)')
    assert second.column == 9


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'cell(1): catastrophic error: cannot open source file "my.h"',
            Diagnostic(1, 0, "error", 'cannot open source file "my.h"', "cell"),
        ),
        ("nvrtc: error: unrecognized option --foo found", Diagnostic(0, 0, "error", "unrecognized option --foo found")),
        (
            "ptxas application ptx input, line 27; error   : Unknown modifier '.op'",
            Diagnostic(0, 0, "error", "Unknown modifier '.op'", "ptx"),
        ),
        (
            "cell:4:12: error: 'foo' was not declared in this scope",
            Diagnostic(4, 12, "error", "'foo' was not declared in this scope", "cell"),
        ),
        (
            "cell:1:10: fatal error: my.h: No such file or directory",
            Diagnostic(1, 10, "error", "my.h: No such file or directory", "cell"),
        ),
        ("cell:3:7: warning: unused variable 'i'", Diagnostic(3, 7, "warning", "unused variable 'i'", "cell")),
        ("cell:3:7: note: declared here", Diagnostic(3, 7, "note", "declared here", "cell")),
    ],
)
def test_single_lines(line: str, expected: Diagnostic) -> None:
    assert parse_log(line) == [expected]


@pytest.mark.parametrize(
    "line", ["", "cell: In function 'void k(float*)':", "In file included from cell:1:", "1 error detected"]
)
def test_other_lines_are_no_diagnostics(line: str) -> None:
    assert parse_log(line) == []


def test_the_error_names_the_first_place_and_how_many_more() -> None:
    error = compile_error("cell", NVRTC_LOG, SOURCE)
    assert error.args[0] == 'cell:4:10: identifier "foo" is undefined (and 2 more errors)'
    assert len(error.diagnostics) == 4
    assert error.log == NVRTC_LOG


def test_a_log_without_a_diagnostic_is_quoted() -> None:
    assert compile_error("cell", "ld: out of luck\n\n", "").args[0] == "cell: ld: out of luck"
    assert "no message" in compile_error("cell", "", "").args[0]


def test_the_caret_stands_under_the_token() -> None:
    lines = render(parse_log(NVRTC_LOG, SOURCE), {"cell": SOURCE})
    assert lines[0] == 'cell:4:10: error: identifier "foo" is undefined'
    assert lines[1][lines[2].index("^") :].startswith("foo")
    assert lines[2].strip() == "^~~"
    assert len(lines) == 9  # the warning is left out where there are errors


def test_long_lists_are_cut_to_the_limit_and_say_so() -> None:
    many = [Diagnostic(3, 3, "error", f"message {i}", "cell") for i in range(40)]
    lines = render(many, {"cell": SOURCE}, max_lines=15)
    assert len(lines) <= 15
    assert lines[-1] == "... and 36 more errors: see .diagnostics"


def test_messages_of_other_files_show_no_line_of_this_source() -> None:
    assert render([Diagnostic(3, 3, "error", "bad", "util.cuh")], {"cell": SOURCE}) == ["util.cuh:3:3: error: bad"]


def test_columns_of_the_host_compiler_are_turned_from_bytes_into_characters() -> None:
    byte_column = len(SOURCE.splitlines()[4][: column_of(5, "baz") - 1].encode()) + 1
    log = f"cell:5:{byte_column}: error: 'baz' was not declared in this scope\nother.h:5:40: error: elsewhere"
    assert byte_column == column_of(5, "baz") + 3
    assert [one.column for one in parse_log(log, SOURCE)] == [column_of(5, "baz"), 40]
