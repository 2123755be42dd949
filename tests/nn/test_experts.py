"""Mixtures of experts: routing and order beside plain NumPy, experts beside float64, bits whoever else is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear import tensor
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.mlp import MLP
from pygpukit.nn.moe import few_rows
from pygpukit.nn.moe.experts import Experts, Gate
from pygpukit.nn.moe.layer import MoELayer, watching
from pygpukit.nn.moe.routing import Router, Routing, choose
from pygpukit.nn.norm import Norm

HIDDEN, INNER = 40, 24
ROUTINGS = [
    Routing(),
    Routing(normalised=True),
    Routing("softmax_of_chosen"),
    Routing("sigmoid", normalised=True, scale=2.5),
    Routing("sigmoid", groups=3, groups_per_row=2),
    Routing(scale=0.5, groups=9, groups_per_row=4),
]


@pytest.fixture(params=["host", "kernels"])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "kernels":
        request.getfixturevalue("kernels_on_sim")
    return str(request.param)


def array(values: np.ndarray, dtype: str = "float32") -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(values, np.float32)).astype(dtype)


def doubles(values: gp.GPUArray) -> np.ndarray:
    return values.astype("float32").to_numpy().astype(np.float64)


def chosen_plainly(logits: np.ndarray, count: int, routing: Routing, correction: np.ndarray) -> tuple[Any, Any]:
    """One row at a time, in float64."""
    experts, weights = [], []
    for row in logits.astype(np.float64):
        if routing.score == "sigmoid":
            score = 1 / (1 + np.exp(-row))
        else:
            score = np.exp(row - row.max()) if routing.score == "softmax" else row
            score = score / score.sum() if routing.score == "softmax" else score
        worth = score + correction
        size = len(row) // routing.groups
        groups = sorted(range(routing.groups), key=lambda g: -sum(sorted(worth[g * size : (g + 1) * size])[-2:]))
        open_ = [e for g in groups[: routing.groups_per_row] for e in range(g * size, (g + 1) * size)]
        best = sorted(open_, key=lambda e: (-worth[e], e))[:count]
        own = np.exp(score[best]) if routing.score == "softmax_of_chosen" else score[best]
        if routing.normalised or routing.score == "softmax_of_chosen":
            own = own / own.sum()
        experts.append(best)
        weights.append(own * routing.scale)
    return np.array(experts), np.array(weights)


@pytest.mark.parametrize("routing", ROUTINGS, ids=str)
def test_a_router_chooses_as_the_formula_says(where: str, routing: Routing) -> None:
    dtype = ("float32", "bfloat16")[ROUTINGS.index(routing) % 2]
    rng = np.random.default_rng(ROUTINGS.index(routing))
    count, chosen, rows = 9, 4, 11
    weight, x = (array(rng.standard_normal((n, HIDDEN)) / 4, dtype) for n in (count, rows))
    bias = array(rng.standard_normal(count), dtype)
    correction = rng.standard_normal(count).astype(np.float32) / 3
    router = Router(weight, chosen, routing, bias, gp.from_numpy(correction))
    logits = doubles(x) @ doubles(weight).T + doubles(bias)
    want = chosen_plainly(logits, chosen, routing, correction.astype(np.float64))
    if where == "host":
        experts, weights = router.on_host(x.astype("float32").to_numpy())
    else:
        experts, weights = (part.to_numpy() for part in router.route(x))
    np.testing.assert_array_equal(experts, want[0])
    np.testing.assert_allclose(weights, want[1], rtol=2e-5)


def test_large_logits_whose_sigmoids_are_all_1_are_told_apart(where: str) -> None:
    weight = np.zeros((6, HIDDEN), np.float32)
    weight[:, 0] = [30, 10, 31, 29, 32, -5]
    x = np.zeros((2, HIDDEN), np.float32)
    x[:, 0] = [1, 0.01]
    router = Router(array(weight), 2, Routing("sigmoid"))
    if where == "host":
        experts, weights = router.on_host(x)
    else:
        experts, weights = (part.to_numpy() for part in router.route(array(x)))
    assert experts.tolist() == [[4, 2], [4, 2]]
    np.testing.assert_allclose(weights[1], 1 / (1 + np.exp([-0.32, -0.31])), rtol=1e-6)


def test_of_equal_experts_the_lower_number_is_chosen_and_a_nan_is_worth_least(kernels_on_sim: None) -> None:
    weight = np.zeros((70, HIDDEN), np.float32)
    weight[5] = np.nan
    weight[33] = weight[66] = 1.0
    x = np.ones((1, HIDDEN), np.float32)
    with np.errstate(all="ignore"):
        for routing in (Routing("sigmoid"), Routing("softmax_of_chosen")):
            experts = Router(array(weight), 70, routing).route(array(x)).experts.to_numpy()[0]
            rest = [e for e in range(70) if e not in (5, 33, 66)]
            assert experts.tolist() == [33, 66, *rest, 5]
            assert choose(x @ weight.T, 70, routing)[0][0].tolist() == experts.tolist()


@pytest.mark.parametrize(("rows", "chosen", "count"), [(1, 1, 1), (3, 2, 5), (300, 3, 7), (129, 8, 300)])
def test_choices_are_arranged_by_expert_and_row(kernels_on_sim: None, rows: int, chosen: int, count: int) -> None:
    rng = np.random.default_rng(rows)
    used = rng.permutation(count)[: max(1, count // 2)]  # half of them get no row
    experts = rng.choice(used, (rows, chosen)).astype(np.int32)
    router = Router(array(np.zeros((count, HIDDEN))), 1)
    counts, sources, places = (part.to_numpy() for part in router.arrange(gp.from_numpy(experts)))
    flat = experts.reshape(-1)
    np.testing.assert_array_equal(counts, np.bincount(flat, minlength=count))
    np.testing.assert_array_equal(sources, np.argsort(flat, kind="stable"))
    np.testing.assert_array_equal(sources[places], np.arange(flat.size))


def weights_of(count: int, dtype: str, rng: np.random.Generator, biased: bool) -> tuple[LinearBF16, LinearBF16]:
    linears = []
    for rows, columns in ((2 * INNER, HIDDEN), (HIDDEN, INNER)):
        weight = array(rng.standard_normal((count * rows, columns)) / np.sqrt(columns), dtype)
        linears.append(LinearBF16(weight, array(rng.standard_normal(count * rows), dtype) if biased else None))
    return linears[0], linears[1]


def made_plainly(rows: np.ndarray, experts: np.ndarray, weights: np.ndarray, of: Experts) -> np.ndarray:
    """One row and expert at a time, in float64."""
    total = np.zeros(rows.shape)
    parts = [doubles(x.weight).reshape(of.count, -1, x.in_features) for x in of.linears]
    biases = [0 if x.bias is None else doubles(x.bias).reshape(of.count, -1) for x in of.linears]
    for r, j in np.ndindex(experts.shape):
        e, gate_of = experts[r, j], of.gate
        before, after = (weights[r, j], 1.0) if of.weighs_rows else (1.0, weights[r, j])
        both = parts[0][e] @ (rows[r] * before) + (biases[0] if of.gate_up.bias is None else biases[0][e])
        gate, up = (both[::2], both[1::2]) if gate_of.interleaved else np.split(both, 2)
        if gate_of.limit:
            gate, up = np.minimum(gate, gate_of.limit), np.clip(up, -gate_of.limit, gate_of.limit) + 1
        between = gate / (1 + np.exp(-gate_of.alpha * gate)) * up
        total[r] += after * (parts[1][e] @ between + (biases[1] if of.down.bias is None else biases[1][e]))
    return total


GATES = [(Gate(), False), (Gate(), True), (Gate(limit=0.7, alpha=1.702, interleaved=True), False)]


@pytest.mark.parametrize(("gate", "weighs_rows"), GATES, ids=str)
@pytest.mark.parametrize(("dtype", "rows"), [("float32", 37), ("bfloat16", 1), ("bfloat16", 71)])
def test_experts_are_near_float64(where: str, gate: Gate, weighs_rows: bool, dtype: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    count, chosen = 6, 3
    gate_up, down = weights_of(count, dtype, rng, biased=gate.interleaved)
    experts = Experts(count, gate_up, down, gate, weighs_rows)
    scale = array(1 + rng.standard_normal(HIDDEN) / 8, dtype)
    norm = Norm(scale, eps=1e-5)
    config = TransformerConfig(hidden_size=HIDDEN, num_heads=1, num_experts=count, residual_scale=0.75)
    router = Router(array(rng.standard_normal((count, HIDDEN)), dtype), chosen, Routing(normalised=True))
    layer = MoELayer(config, router, experts)
    before = rng.standard_normal((rows, HIDDEN)).astype(np.float32)
    x = gp.from_numpy(before)
    with watching() as found:
        layer.forward(x, 0, norm, gp.zeros((rows, INNER), dtype))
    ((seen, (numbers, weights)),) = found
    assert seen is layer
    normed = before.astype(np.float64)
    normed = normed / np.sqrt((normed**2).mean(axis=1, keepdims=True) + 1e-5) * doubles(scale)
    want = before + 0.75 * made_plainly(normed, numbers.to_numpy(), doubles(weights), experts)
    unit = {"float32": 2e-6, "bfloat16": 2.0**-7}[dtype]
    np.testing.assert_allclose(x.to_numpy(), want, atol=4 * unit, rtol=2 * unit)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_rows_bits_do_not_depend_on_who_else_is_routed_where(where: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    count, rows = 5, 70
    experts = Experts(count, *weights_of(count, dtype, rng, biased=True))
    config = TransformerConfig(hidden_size=HIDDEN, num_heads=1, num_experts=count)
    layer = MoELayer(config, array(rng.standard_normal((count, HIDDEN)), dtype), experts, shared(config, dtype, rng))
    norm, x = Norm(array(np.ones(HIDDEN), dtype)), rng.standard_normal((rows, HIDDEN)).astype(np.float32)

    def made(some: Any, start: int | None = 0) -> np.ndarray:
        own = gp.from_numpy(x[some])
        layer.forward(own, start, norm, gp.zeros((len(x[some]), INNER), dtype))
        return own.to_numpy()

    whole = made(slice(None))
    for some in (slice(0, 1), slice(69, 70), slice(3, 20), rng.permutation(rows)):
        np.testing.assert_array_equal(made(some), whole[some])
    step = made(slice(3, 20), None)  # by the kernels of steps, of which 16 bits have their own
    np.testing.assert_allclose(step, whole[3:20], atol={"float32": 0, "bfloat16": 2.0**-6}[dtype])
    layer.shared = None
    step = made(slice(3, 20), None)
    for some in (slice(7, 12), slice(3, 4)):
        np.testing.assert_array_equal(made(some, None), step[some.start - 3 : some.stop - 3])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_few_rows_of_experts_are_near_float64(kernels_on_sim: None, dtype: str) -> None:
    """Tiles that more than one block shares, experts without rows and with more than a tile, odd columns; the same bits
    by every form."""
    rng = np.random.default_rng(9)
    counts, columns, n = [0, 3, 12, 0, 1, 33], 200, 41
    rows = sum(counts)
    x, weight = (array(rng.standard_normal((size, columns)) / 8, dtype) for size in (rows, 6 * n))
    own = np.repeat(np.arange(6), counts)
    want = np.einsum("rk,rnk->rn", doubles(x), doubles(weight).reshape(6, n, columns)[own])
    made = []
    for form in tensor.FORMS:
        out = array(np.full((rows, n), np.nan), dtype)
        few_rows.product(x, weight, gp.from_numpy(np.array(counts, np.int32)), out, form)
        made.append(out.astype("float32").to_numpy())
        np.testing.assert_array_equal(made[-1], made[0])
    np.testing.assert_allclose(made[0], want, atol=1e-4, rtol={"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype])


def shared(config: TransformerConfig, dtype: str, rng: np.random.Generator) -> MLP:
    gate, up, down = (array(rng.standard_normal(s) / 6, dtype) for s in ((16, HIDDEN), (16, HIDDEN), (HIDDEN, 16)))
    return MLP(config, gate_proj=gate, up_proj=up, down_proj=down)


def test_a_layer_of_the_documented_arguments_with_a_shared_expert(where: str) -> None:
    rng = np.random.default_rng(6)
    config = TransformerConfig(hidden_size=HIDDEN, num_heads=1, num_experts=3, num_experts_per_tok=2)
    each = [
        tuple(
            rng.standard_normal(s).astype(np.float32) / 6 for s in ((INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER))
        )
        for _ in range(3)
    ]
    gate, x = (rng.standard_normal((n, HIDDEN)).astype(np.float32) for n in (3, 8))
    mlp = shared(config, "float32", rng)
    layer = MoELayer(config, array(gate), [tuple(array(part) for part in expert) for expert in each], mlp)
    assert (layer.num_experts, layer.num_experts_per_tok, layer.hidden_size) == (3, 2, HIDDEN)
    assert (layer.intermediate_size, layer.gate.shape) == (INNER, (3, HIDDEN))
    got = layer(array(x.reshape(2, 4, HIDDEN)))
    experts, weights = choose(x @ gate.T, 2, Routing())
    want = made_plainly(x.astype(np.float64), experts, weights.astype(np.float64), layer.experts)
    both = x @ doubles(mlp.linears[0].weight).T
    first, second = np.split(both, 2, axis=1)
    want += first / (1 + np.exp(-first)) * second @ doubles(mlp.linears[1].weight).T
    assert got.shape == (2, 4, HIDDEN)
    np.testing.assert_allclose(got.to_numpy().reshape(8, HIDDEN), want, atol=1e-5)


def test_a_norm_behind_the_experts(where: str) -> None:
    rng = np.random.default_rng(7)
    config = TransformerConfig(hidden_size=HIDDEN, num_heads=1, num_experts=2, residual_scale=0.5)
    experts = Experts(2, *weights_of(2, "float32", rng, biased=False))
    layer = MoELayer(config, array(rng.standard_normal((2, HIDDEN))), experts)
    x = rng.standard_normal((3, HIDDEN)).astype(np.float32)
    made = layer(array(x)).to_numpy().astype(np.float64)
    own = array(x)
    layer.forward(own, 0, None, gp.zeros((3, INNER)), Norm(array(np.ones(HIDDEN)), eps=1e-6))
    want = x + 0.5 * made / np.sqrt((made**2).mean(axis=1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(own.to_numpy(), want, atol=1e-5)


def test_what_cannot_be_is_refused() -> None:
    weight = array(np.zeros((6, HIDDEN)))
    for chosen, routing in ((0, Routing()), (7, Routing()), (2, Routing(groups=4)), (3, Routing(groups=3))):
        with pytest.raises(InvalidSpecError):
            Router(weight, chosen, routing)
    with pytest.raises(InvalidSpecError, match="1 to 1024"):
        Router(array(np.zeros((1025, 8))), 1)
    rng = np.random.default_rng(0)
    with pytest.raises(ShapeError, match="of 3 experts"):
        Experts(3, *weights_of(2, "float32", rng, biased=False))
    config = TransformerConfig(hidden_size=HIDDEN, num_heads=1, num_experts=6)
    with pytest.raises(InvalidSpecError, match="router has 6 experts"):
        MoELayer(config, weight, Experts(2, *weights_of(2, "float32", rng, biased=False)))
