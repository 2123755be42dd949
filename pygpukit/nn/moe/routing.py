"""Routing: which experts a row goes to, with what weights, and the order in which experts take their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import float32, int32
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.batch import product
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# Choices stand on the bits of sums.
SOURCE = kernels.KernelSpec(__file__, "routing.cu", options=kernels.SAME_BITS)
_CALL = SOURCE.structure("RouteCall")
_THREADS, _WARPS = 256, 8  # linear.cuh
MAX_EXPERTS = 1024  # routing.cu: kMaxExperts

Score = Literal["softmax", "softmax_of_chosen", "sigmoid"]
_SCORES = ("softmax", "softmax_of_chosen", "sigmoid")  # routing.cu: Score


@dataclass(frozen=True)
class Routing:
    """The rule by which a router's logits become weights of experts.

    score: softmax of all logits (Qwen3-MoE), or of those that are chosen (gpt-oss), or each one's sigmoid. normalised:
    the weights of the chosen are divided by their sum; scale: then multiplied by this. groups: experts are so many
    groups of neighbours, of which the groups_per_row best, by the sum of their two best scores, are chosen from.
    weighs_rows: the weights multiply what experts get, not what they make of it (Llama 4).
    """

    score: Score = "softmax"
    normalised: bool = False
    scale: float = 1.0
    groups: int = 1
    groups_per_row: int = 1
    weighs_rows: bool = False


class Routed(NamedTuple):
    """experts: int32, weights: float32, (R, chosen) each, best first."""

    experts: GPUArray
    weights: GPUArray


class Arranged(NamedTuple):
    """The choices of R rows by experts: counts (experts,); sources and places (R * chosen,): the choice that stands at
    a place, and the place of a choice."""

    counts: GPUArray
    sources: GPUArray
    places: GPUArray


class Router:
    """weight: (experts, hidden); bias: (experts,) or None, added to logits. correction: float32 (experts,) or None,
    added to scores for the choice alone. chosen: experts of a row."""

    def __init__(
        self,
        weight: GPUArray,
        chosen: int,
        routing: Routing | None = None,
        bias: GPUArray | None = None,
        correction: GPUArray | None = None,
    ) -> None:
        self.weight, self.bias, self.correction, self.chosen = weight, bias, correction, chosen
        self.routing = routing = routing or Routing()
        self.experts = weight.shape[0]
        if not 1 <= self.experts <= MAX_EXPERTS:
            raise InvalidSpecError(f"{self.experts} experts; there can be 1 to {MAX_EXPERTS}", "num_experts")
        groups, of = routing.groups, routing.groups_per_row
        if groups < 1 or self.experts % groups or not 1 <= of <= groups:
            raise InvalidSpecError(
                f"{of} of {groups} groups of {self.experts} experts; groups must have equally many, and at least one "
                "be chosen",
                "groups",
            )
        if not 1 <= chosen <= self.experts // groups * of:
            raise InvalidSpecError(
                f"{chosen} experts a row of {self.experts}; there can be 1 to {self.experts // groups * of}",
                "num_experts_per_tok",
            )

    @property
    def arrays(self) -> list[GPUArray]:
        """Weight, bias and correction."""
        return [array for array in (self.weight, self.bias, self.correction) if array is not None]

    def route(self, rows: GPUArray, out: Routed | None = None, logits: GPUArray | None = None) -> Routed:
        """The experts of rows (R, hidden) of the weight's type, on a device. A row's do not depend on other rows.
        logits: room for them, float32 (R, experts)."""
        routing, count = self.routing, rows.shape[0]
        shape = count, self.chosen
        routed = out or Routed(native.empty(shape, int32), native.empty(shape, float32))
        if logits is None:
            logits = native.empty((count, self.experts), float32)
        call = _CALL.pack(
            k=rows.shape[1],
            experts=self.experts,
            chosen=self.chosen,
            groups=routing.groups,
            groups_chosen=routing.groups_per_row,
            score=_SCORES.index(routing.score),
            normalised=routing.normalised,
            has_bias=self.bias is not None,
            has_correction=self.correction is not None,
            scale=routing.scale,
        )
        bias = self.weight if self.bias is None else self.bias
        correction = routed.weights if self.correction is None else self.correction
        spec = SOURCE.of(_logits(rows.dtype.name), overlapping=True)
        across = -(-self.experts // _WARPS)
        kernels.launch(spec, (across, count, 1), (_THREADS, 1, 1), rows, self.weight, bias, logits, call)
        spec = SOURCE.of("pk::choose_experts", overlapping=True)
        kernels.launch(spec, (count, 1, 1), (32, 1, 1), logits, correction, *routed, call)
        return routed

    def arrange(self, experts: GPUArray, out: Arranged | None = None) -> Arranged:
        """The choices (R, chosen) by experts, each expert's in the order of rows."""
        choices = (experts.size,)
        arranged = out or Arranged(*(native.empty(shape, int32) for shape in ((self.experts,), choices, choices)))
        count = experts.size.to_bytes(4, "little")
        spec = SOURCE.of("pk::arrange", overlapping=True)
        kernels.launch(spec, (self.experts, 1, 1), (_THREADS, 1, 1), experts, *arranged, count)
        return arranged

    def on_host(self, rows: Any) -> tuple[Any, Any]:
        """route() of float32 rows with NumPy, inside a host launch."""
        import numpy as np

        logits = product(np.ascontiguousarray(rows, np.float32), self.weight)
        if self.bias is not None:
            logits += host.values(self.bias)
        correction = None if self.correction is None else host.values(self.correction)
        with np.errstate(all="ignore"):
            return choose(logits, self.chosen, self.routing, correction)


def choose(logits: Any, chosen: int, routing: Routing, correction: Any = None) -> tuple[Any, Any]:
    """Experts, int32, and their weights, float32, (R, chosen) each, of logits (R, experts)."""
    import numpy as np

    scores = logits
    if routing.score == "softmax":
        scores = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores = scores / scores.sum(axis=1, keepdims=True)
    elif routing.score == "sigmoid":
        scores = 1 / (1 + np.exp(-logits))
    # Sigmoids of large logits are all 1; where they alone decide, the logits do.
    by_logit = routing.score == "sigmoid" and correction is None and routing.groups == 1
    worth = logits if by_logit else scores if correction is None else scores + correction
    worth = np.where(np.isnan(worth), -np.inf, worth)
    if routing.groups > 1:
        of_groups = np.sort(worth.reshape(len(worth), routing.groups, -1), axis=2)[:, :, -2:].sum(axis=2)
        best = _best(of_groups, routing.groups_per_row)
        open_groups = np.zeros(of_groups.shape, bool)
        np.put_along_axis(open_groups, best, True, axis=1)
        taken = ~np.repeat(open_groups, worth.shape[1] // routing.groups, axis=1)
    else:
        taken = np.zeros(worth.shape, bool)
    # Behind all that are open stand those that are not.
    order = np.lexsort((np.broadcast_to(np.arange(worth.shape[1]), worth.shape), -worth, taken), axis=1)
    experts = np.ascontiguousarray(order[:, :chosen])
    weights = np.take_along_axis(scores, experts, axis=1)
    if routing.score == "softmax_of_chosen":
        weights = np.exp(weights - weights[:, :1])
    if routing.normalised or routing.score == "softmax_of_chosen":
        weights = weights / weights.sum(axis=1, keepdims=True)
    return experts.astype(np.int32), (weights * np.float32(routing.scale)).astype(np.float32)


def _best(values: Any, count: int) -> Any:
    import numpy as np

    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def _logits(dtype: str) -> str:
    return f"pk::router_logits<{CTYPES[dtype]}>"


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that a router can ask for."""
    yield "pk::arrange", "pk::choose_experts", *map(_logits, ("float32", "float16", "bfloat16"))
