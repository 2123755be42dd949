"""What the mutation test of the kernel suite changes, on a small source and in the whole suite."""

from __future__ import annotations

from corpus.case import KERNELS
from corpus.mutants import mutants

SOURCE = """// if (i < n) x[i] in a comment
__shared__ int tile[4][5];
__global__ void k(const int *x, int *y, int n) {
  int i = threadIdx.x;
  tile[i][2 * i] = i < n && y ? x[i] : 0;
  __syncthreads();
  int all = __syncthreads_and(x[0] > 1);
  if (i >= n || i < f(a, b)) return;
  if (i == 0) group.sync();
  auto f = [n](int k) { return k; };
  else y[i] = (i << 1) + tile[0][1];
}
"""


def test_every_barrier_check_index_and_thread_number_is_changed_and_nothing_else() -> None:
    found = [(one.line, one.kind, one.mutation) for one in mutants("k.cu", SOURCE)]
    shifted = [(5, "i"), (5, "2 * i"), (5, "i"), (7, "0"), (11, "i"), (11, "0"), (11, "1")]
    expected = [
        (4, "thread index", "threadIdx.x -> (threadIdx.x + 1)"),
        (4, "thread index", "threadIdx.x -> (threadIdx.x - 1)"),
        (5, "bounds check", "i < n -> true"),
        (6, "barrier", "__syncthreads() -> nothing"),
        (7, "barrier", "__syncthreads_and -> (int)"),
        (8, "bounds check", "i >= n -> false"),
        (8, "bounds check", "i < f(a, b) -> false"),
        (9, "barrier", "group.sync() -> nothing"),
    ]
    for line, text in shifted:
        for sign in "+-":
            changed = f"{text} {sign} 1" if text.isalnum() else f"({text}) {sign} 1"
            expected.append((line, "index", f"{text} -> {changed}"))
    assert sorted(found) == sorted(expected)


def test_a_mutant_differs_from_the_source_in_its_place_only() -> None:
    lines = SOURCE.splitlines()
    for one in mutants("k.cu", SOURCE):
        changed = one.source.splitlines()
        assert [at for at, (old, new) in enumerate(zip(lines, changed, strict=True), 1) if old != new] == [one.line]
        before, after = one.mutation.split(" -> ")
        start = one.column - 1
        assert lines[one.line - 1][start:].startswith(before)
        assert changed[one.line - 1][start:].startswith("" if after == "nothing" else after)


def test_every_kernel_of_the_suite_has_mutants_each_once() -> None:
    for path in KERNELS.iterdir():
        keys = [one.key for one in mutants(path.name, path.read_text())]
        assert len(keys) == len(set(keys)) >= 5, path.name


def test_code_that_is_left_out_has_no_mutants() -> None:
    text = "__global__ void k(int *o) {\n#ifdef PYGPUKIT_SIM\n  o[1] = 2;\n#else\n  o[3] = 4;\n#endif\n}\n"
    assert {one.line for one in mutants("k.cu", text)} == {3}
