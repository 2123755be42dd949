"""forward_zero_alloc of mixtures of experts: each array of the caller beside NumPy, nothing allocated, in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.mlp import MLP
from pygpukit.nn.moe.experts import Experts, Gate
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.moe.routing import Router, Routing

HIDDEN, INNER, EXPERTS, CHOSEN = 40, 24, 7, 3
CONFIG = TransformerConfig(
    hidden_size=HIDDEN, num_heads=1, num_experts=EXPERTS, num_experts_per_tok=CHOSEN, moe_intermediate_size=INNER
)
INTEGERS = ["expert_indices", "expert_counts", "permute_indices", "reverse_perm", "expert_offsets", "row_expert_ids"]


@pytest.fixture(params=["host", pytest.param("kernels", marks=[pytest.mark.slow, pytest.mark.turns(20)])])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "kernels":
        request.getfixturevalue("kernels_on_sim")
    return str(request.param)


def array(values: np.ndarray, dtype: str) -> gp.GPUArray:
    return gp.from_numpy(np.ascontiguousarray(values, np.float32)).astype(dtype)


def floats(values: gp.GPUArray) -> np.ndarray:
    return values.astype("float32").to_numpy()


def mixture(dtype: str, rng: np.random.Generator, routing: Routing | None = None) -> MoELayer:
    def weight(*shape: int) -> gp.GPUArray:
        return array(rng.standard_normal(shape) / np.sqrt(shape[-1]), dtype)

    experts = [(weight(INNER, HIDDEN), weight(INNER, HIDDEN), weight(HIDDEN, INNER)) for _ in range(EXPERTS)]
    return MoELayer(CONFIG, Router(weight(EXPERTS, HIDDEN), CHOSEN, routing or Routing(normalised=True)), experts)


def buffers(rows: int, dtype: str) -> dict[str, gp.GPUArray]:
    """Poisoned arrays, by the parameters' names."""
    choices = rows * CHOSEN
    shapes: dict[str, tuple[int, ...]] = {
        "router_logits": (rows, EXPERTS), "router_weights": (rows, CHOSEN), "expert_indices": (choices,),
        "expert_counts": (EXPERTS,), "expert_offsets": (EXPERTS + 1,), "permute_indices": (choices,),
        "reverse_perm": (choices,), "row_expert_ids": (choices,), "gathered": (choices, HIDDEN),
        "gate_out": (choices, INNER), "up_out": (choices, INNER), "intermediate": (choices, INNER),
        "expert_outputs": (choices, HIDDEN), "output": (rows, HIDDEN),
    }  # fmt: skip
    return {
        name: gp.full(shape, -7, "int32") if name in INTEGERS else gp.full(shape, float("nan"), dtype)
        for name, shape in shapes.items()
    }


def expected(layer: MoELayer, x: gp.GPUArray) -> dict[str, np.ndarray]:
    """All arrays, a row and an expert at a time, in float64."""
    rows, gate = floats(x).astype(np.float64), floats(layer.gate).astype(np.float64)
    gate_up, down = (
        floats(linear.weight).astype(np.float64).reshape(EXPERTS, -1, linear.in_features)  # type: ignore[arg-type]
        for linear in layer.experts.linears
    )
    logits = rows @ gate.T
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :CHOSEN]
    weights = np.exp(np.take_along_axis(logits, chosen, 1))
    weights /= weights.sum(1, keepdims=True)
    flat = chosen.reshape(-1)
    order = np.argsort(flat, kind="stable")
    counts = np.bincount(flat, minlength=EXPERTS)
    own = rows[order // CHOSEN]
    both = np.einsum("ch,cnh->cn", own, gate_up[flat[order]])
    between = both[:, :INNER] / (1 + np.exp(-both[:, :INNER])) * both[:, INNER:]
    outputs = np.einsum("cn,chn->ch", between, down[flat[order]])
    places = np.argsort(order)
    sums = (outputs[places].reshape(-1, CHOSEN, HIDDEN) * weights[:, :, None]).sum(1)
    return {
        "router_logits": logits, "router_weights": weights, "expert_indices": flat, "expert_counts": counts,
        "expert_offsets": np.concatenate([[0], np.cumsum(counts)]), "permute_indices": order, "reverse_perm": places,
        "row_expert_ids": flat[order], "gathered": own, "gate_out": both[:, :INNER], "up_out": both[:, INNER:],
        "intermediate": between, "expert_outputs": outputs, "output": sums,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "dtype", "bound"), [(1, "float32", 1e-5), (11, "float16", 6e-3), (5, "bfloat16", 5e-2)]
)
def test_every_array_has_what_its_name_says(where: str, rows: int, dtype: str, bound: float) -> None:
    rng = np.random.default_rng(rows)  # of no near ties between experts
    layer = mixture(dtype, rng)
    given = buffers(rows, dtype)
    for _ in range(2):
        x = array(rng.standard_normal((rows, HIDDEN)), dtype)
        assert layer.forward_zero_alloc(x, **given) is given["output"]
        for name, values in expected(layer, x).items():
            if name in INTEGERS:
                np.testing.assert_array_equal(given[name].to_numpy(), values, err_msg=name)
            else:
                np.testing.assert_allclose(floats(given[name]), values, atol=bound, rtol=bound, err_msg=name)
        np.testing.assert_array_equal(floats(given["output"]), floats(layer(x)))


@pytest.mark.parametrize("routing", [Routing(), Routing("sigmoid", scale=2.0), Routing("softmax_of_chosen")])
@pytest.mark.parametrize("weighs_rows", [False, True])
def test_the_result_has_the_bits_of_a_call(routing: Routing, weighs_rows: bool) -> None:
    rng = np.random.default_rng()
    layer = mixture("float32", rng, routing)
    layer.experts.weighs_rows = weighs_rows
    for rows in (1, 8, 3):
        given, x = buffers(rows, "float32"), array(rng.standard_normal((rows, HIDDEN)), "float32")
        found = layer.forward_zero_alloc(x, **given)
        np.testing.assert_array_equal(found.to_numpy(), layer(x).to_numpy())
    assert layer.forward_zero_alloc(x[:0], **buffers(0, "float32")).shape == (0, HIDDEN)


def test_a_routers_bias_is_in_its_logits() -> None:
    rng = np.random.default_rng()
    plain, bias = mixture("float32", rng), rng.standard_normal(EXPERTS)
    layer = MoELayer(CONFIG, Router(plain.gate, CHOSEN, bias=array(bias, "float32")), plain.experts)
    given, x = buffers(5, "float32"), array(rng.standard_normal((5, HIDDEN)), "float32")
    np.testing.assert_array_equal(layer.forward_zero_alloc(x, **given).to_numpy(), layer(x).to_numpy())
    logits = floats(x).astype(np.float64) @ floats(layer.gate).T + bias
    np.testing.assert_allclose(given["router_logits"].to_numpy(), logits, atol=1e-5)


def test_the_second_call_allocates_nothing(where: str) -> None:
    layer, given = mixture("float16", np.random.default_rng(1)), buffers(4, "float16")
    x = gp.ones((4, HIDDEN), "float16")
    for _ in range(2):
        layer.forward_zero_alloc(x, **given)
    gp.synchronize()
    before = gp.memory.stats()["allocation_count"]
    layer.forward_zero_alloc(x, **given)
    assert gp.memory.stats()["allocation_count"] == before


def test_a_graph_of_it_reads_the_rows_that_are_there() -> None:
    rng = np.random.default_rng()
    layer, given, x = mixture("float32", rng), buffers(2, "float32"), gp.zeros((2, HIDDEN))
    layer.forward_zero_alloc(x, **given)
    with gp.Stream().capture() as graph:
        layer.forward_zero_alloc(x, **given)
    for _ in range(3):
        rows = array(rng.standard_normal((2, HIDDEN)), "float32")
        gp.ops.copy_to(rows, x)
        graph.launch()
        np.testing.assert_array_equal(given["output"].to_numpy(), layer(rows).to_numpy())


def test_the_arrays_of_decode_buffers_fit() -> None:
    layer = mixture("float16", np.random.default_rng())
    b = gp.llm.DecodeBuffers.allocate(CONFIG, "float16", moe_config=CONFIG)
    given: dict[str, Any] = {name: getattr(b, f"moe_{name}") for name in buffers(1, "float16")}
    x = array(np.random.default_rng().standard_normal((1, HIDDEN)), "float16")
    np.testing.assert_array_equal(floats(layer.forward_zero_alloc(x, **given)), floats(layer(x)))


def test_what_does_not_fit_is_refused_by_name() -> None:
    rng = np.random.default_rng()
    layer, x = mixture("float32", rng), gp.zeros((2, HIDDEN))
    for name, wrong, error in (
        ("gathered", gp.zeros((5, HIDDEN)), ShapeError),
        ("expert_counts", gp.zeros((EXPERTS,)), DTypeError),
        ("output", gp.zeros((2, HIDDEN), "float16"), DTypeError),
        ("up_out", gp.zeros((2 * CHOSEN, 2 * INNER))[:, ::2], ShapeError),
    ):
        with pytest.raises(error, match=f"forward_zero_alloc: {name} "):
            layer.forward_zero_alloc(x, **{**buffers(2, "float32"), name: wrong})
    with pytest.raises(ShapeError, match=r"x has shape \(2, 39\)"):
        layer.forward_zero_alloc(gp.zeros((2, HIDDEN - 1)), **buffers(2, "float32"))
    with pytest.raises(DTypeError, match="x is float16"):
        layer.forward_zero_alloc(x.astype("float16"), **buffers(2, "float32"))
    up = gp.zeros((2 * INNER, HIDDEN))
    shared = MLP(CONFIG, gate_proj=up, down_proj=gp.zeros((HIDDEN, INNER)))
    parts = layer.experts.gate_up.weight, layer.experts.down.weight
    biased = [LinearBF16(weight, gp.zeros(weight.shape[:1])) for weight in parts]
    for other, what in (
        (MoELayer(CONFIG, layer.router, layer.experts, shared), "an expert that all rows share"),
        (MoELayer(CONFIG, layer.router, Experts(EXPERTS, biased[0], biased[1])), "biases"),
        (MoELayer(CONFIG, layer.router, Experts(EXPERTS, *layer.experts.linears, Gate(limit=7.0))), "another gate"),
    ):
        with pytest.raises(InvalidSpecError, match=f"the mixture has {what}"):
            other.forward_zero_alloc(x, **buffers(2, "float32"))
