"""Where a finding is marked in its line: at the index that it is about."""

from __future__ import annotations

from random import Random

import pytest

from pygpukit.core.errors import Finding
from pygpukit.jit.inspect.mentions import meant, mentions


def finding(message: str, array: str = "part", index: int | None = None, x: int = 0) -> Finding:
    return Finding("race", message, "k", (2, 0, 0), (x, 1, 0), 1, array, index)


SUM = "if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];"


@pytest.mark.parametrize(
    ("line", "one", "columns"),
    [
        (SUM, finding("reads part[72] of shared memory", index=72, x=8), [45]),
        (SUM, finding("reads part[8] of shared memory", index=8, x=8), [24]),
        (SUM, finding("writes part[8]", index=8, x=8), [24]),
        (SUM, finding("reads", index=None), [24, 45]),
        ("out[i] = out[i + 1];", finding("writes out[5], which thread 4 reads", "out", 5), [0]),
        ("out[i] = out[i + 1];", finding("reads out[5]", "out", 5), [9]),
        ("t[threadIdx.y][0] = t[threadIdx.x][1];", finding("reads t[1]", "t", 1, 1), [20]),
        ("a[blockIdx.x * 3 + threadIdx.y] + a[0x7]", finding("reads", "a", 7), [0]),
        ("a[n / 0] + a[3 % 0] + a[1 - 1u]", finding("reads", "a", 0), [22]),
        ("a[0] + a[1]", finding("reads", "a", 9), [0, 7]),  # no index fits: any may be meant
        ("a[b[i]] + ab[1] // a[9]", finding("reads", "a", 9), [0]),
        ("++a[i]; x = a[i]", finding("writes", "a", 3), [2]),
        ("atomicAdd(&a[i], a[j])", finding("writes", "a", 3), [11]),
        ("x == a[i] == 3", finding("reads", "a", 3), [5]),
        ("no mention", finding("reads", "a", 3), []),
        ("a[0]", finding("", "", None), []),
    ],
)
def test_the_index_and_the_use_tell_which_mention_is_meant(line: str, one: Finding, columns: list[int]) -> None:
    assert [mention.start for mention in meant(line, one)] == columns


def test_any_line_has_some_answer() -> None:
    random = Random(3)
    pieces = [
        "a",
        "[",
        "]",
        "threadIdx.x",
        " ",
        "+",
        "/",
        "0",
        "(",
        ")",
        "=",
        "<<=",
        "9" * 400,
        "-",
        "a[1]",
        "%",
        "&",
        "//",
    ]
    for _ in range(3000):
        line = "".join(random.choices(pieces, k=random.randrange(12)))
        found = meant(line, finding(random.choice(["reads", "writes", ""]), "a", random.randrange(3)))
        assert set(found) <= set(mentions(line, "a")) and bool(found) == bool(mentions(line, "a"))
