"""On the simulator: groups of rows by the kernels for SM 9.0 have the bits of their products, whatever the counts."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from device_facts import Facts

import pygpukit as gp
from pygpukit.ops.matmul import grouped
from pygpukit.ops.matmul.choose import MatmulPlan
from pygpukit.ops.matmul.cuda_cores import grouped as cuda_grouped
from pygpukit.ops.matmul.cutlass import product as cutlass
from pygpukit.ops.matmul.mma import aligned
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.matmul.sm90 import grouped as sm90_grouped
from pygpukit.ops.matmul.tile import grouped as tile_grouped
from pygpukit.ops.matmul.tile import half

HALVES = ("bfloat16", "float16")


@pytest.fixture(autouse=True)
def _few_blocks(kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    monkeypatch.delenv("PYGPUKIT_CHECK")  # the sweep has these kernels checked
    facts(sm_count=6)


def normal(dtype: str, *shape: int) -> gp.GPUArray:
    """Fresh normal numbers."""
    return gp.from_numpy(np.random.default_rng().standard_normal(shape).astype(np.float32)).astype(dtype)


def grouped_product(x: gp.GPUArray, w: gp.GPUArray, counts: list[int]) -> gp.GPUArray:
    """By the kernel, into an array of NaN."""
    out = gp.full((x.shape[0], w.shape[2]), float("nan"), x.dtype)
    sm90_grouped.product(x, w, gp.from_numpy(np.array(counts, np.int32)), out)
    return out


def check(x: gp.GPUArray, w: gp.GPUArray, counts: list[int]) -> None:
    """The bits are those of a product for each group; rows of no group are 0."""
    found, first, rows = grouped_product(x, w, counts), 0, x.shape[0]
    for group, count in enumerate(counts):
        end = min(first + max(count, 0), rows)
        if end > first:
            alone = gp.full((end - first, w.shape[2]), float("nan"), x.dtype)
            cluster.product(x[first:end], w[group], alone)
            assert found[first:end].to_numpy().tobytes() == alone.to_numpy().tobytes(), (counts, group)
        first = end
    assert not found[first:].to_numpy().view(np.uint16).any(), counts


@pytest.mark.parametrize("sms", [1, 6, 22])
@pytest.mark.parametrize("dtype", HALVES)
def test_groups_have_the_bits_of_their_products(dtype: str, sms: int, facts: Facts) -> None:
    facts(sm_count=sms)  # pairs go from tile to tile
    rng = np.random.default_rng()
    for seen in range(4):
        rows, groups = int(rng.integers(1, 700)), int(rng.choice([1, 3, 40]))
        n, k = int(rng.integers(1, 40)) * 8, int(rng.integers(1, 12)) * 8
        counts = rng.integers(-rows // groups, 3 * rows // groups + 1, groups)
        counts[rng.random(groups) < 0.2] = 0
        w = normal(dtype, groups, k, n) if seen % 2 else normal(dtype, groups, n, k).swapaxes(1, 2)
        check(normal(dtype, rows, k), w, counts.tolist())


@pytest.mark.parametrize(
    "counts", [[0, 0], [64, 65], [128, 0], [129, 192], [193, 0], [256, 1], [257, 0], [385, 7], [2**31 - 1, 5]]
)
def test_edges_of_tiles(counts: list[int]) -> None:
    check(normal("bfloat16", 400, 16), normal("bfloat16", 2, 264, 16).swapaxes(1, 2), counts)


def test_nothing_of_other_groups_is_in_a_row() -> None:
    x, w = normal("float16", 20, 24), normal("float16", 3, 16, 24).swapaxes(1, 2)
    x[7:12] = float("nan")
    w[1] = float("nan")
    found = grouped_product(x, w, [7, 5, 4])
    assert not np.isnan(found[:7].to_numpy()).any() and not np.isnan(found[12:].to_numpy()).any()
    assert np.isnan(found[7:12].to_numpy()).all()


def test_operands_of_any_layout() -> None:
    dense = normal("bfloat16", 50, 33)  # rows of no whole 16 bytes are copied
    for x in (dense, dense[:, :32], dense[::2, 1:], normal("bfloat16", 33, 50).T):
        k = x.shape[1]
        for w in (normal("bfloat16", 3, k, 21), normal("bfloat16", 3, 21, k).swapaxes(1, 2)):
            check(x, w, [20, 1, 9])
        check(x, gp.broadcast_to(normal("bfloat16", k, 24), (3, k, 24)), [4, 4, 4])


@pytest.mark.parametrize("counts", [[2**31, 0], [2**32 + 1, 5], [-(2**32) + 3, 2**62], [1, 2**40 - 1], [-1, 3]])
def test_counts_of_int64_do_not_wrap(counts: list[int]) -> None:
    given = gp.from_numpy(np.array(counts))
    x, w = normal("float32", 8, 3), normal("float32", 2, 3, 4)
    fitting = gp.from_numpy(np.clip(counts, 0, 8).astype(np.int32))
    wanted = gp.grouped_matmul(x, w, fitting).to_numpy().tobytes()
    assert gp.grouped_matmul(x, w, given).to_numpy().tobytes() == wanted
    np.testing.assert_array_equal(given.to_numpy(), counts)


def test_which_kernel_is_taken(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    x, w = normal("bfloat16", 8, 16), normal("bfloat16", 2, 16, 8)
    assert grouped._product_of(x, w) is cuda_grouped.product, "without tensor cores"
    monkeypatch.setattr(tile_grouped, "has_bits_of_tiles", lambda *_: True)
    monkeypatch.setattr(sm90_grouped, "is_sim", lambda: False)
    monkeypatch.setattr(sm90_grouped.tensor_maps, "refusal", lambda: "")
    for architecture, product in (
        (80, tile_grouped.product),
        (90, sm90_grouped.product),
        (100, tile_grouped.product),
    ):
        facts(capability=architecture)
        assert grouped._product_of(x, w) is product
    monkeypatch.setattr(sm90_grouped.tensor_maps, "refusal", lambda: "no such maps")
    facts(capability=90)
    assert grouped._product_of(x, w) is tile_grouped.product


@pytest.mark.parametrize(("kernel", "tensor"), [(half, True), (cluster, True), (cutlass, True), (aligned, False)])
def test_every_kernel_with_the_bits_of_tiles_leaves_groups_to_tensor_cores(
    monkeypatch: pytest.MonkeyPatch, kernel: ModuleType, tensor: bool
) -> None:
    """CUTLASS, where its headers were fetched, made groups run on CUDA cores."""
    monkeypatch.setattr(tile_grouped, "choose", lambda p: MatmulPlan(kernel.BACKEND, "", None, kernel, p))
    assert tile_grouped.has_bits_of_tiles(normal("bfloat16", 8, 16), normal("bfloat16", 2, 16, 8)) is tensor


def test_all_that_is_asked_for_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    monkeypatch.setattr(sm90_grouped, "launch", lambda spec, *_: asked.add(spec.expression))
    for dtype, n, rows in ((dtype, n, rows) for dtype in HALVES for n in (64, 200, 1024) for rows in (3, 300, 3000)):
        for w in (gp.empty((2, 8, n), dtype), gp.empty((2, n, 8), dtype).swapaxes(1, 2)):
            sm90_grouped.product(gp.empty((rows, 8), dtype), w, gp.empty(2, "int32"), gp.empty((rows, n), dtype))
    listed = {name for group in sm90_grouped._listing() for name in group}
    assert asked and asked <= listed
