"""Architecture: what one kind of model calls its tensors, how its configuration is read, and its layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pygpukit.llm.models.rope import rope_of
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.config import Activation

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields, FieldTable
    from pygpukit.nn.block import Layer

Rope = tuple[float, "dict[str, Any] | None"]


def _no_more(fields: Fields) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Architecture:
    """One file of this package each. name: "model_type" in config.json.

    weights: the tensors by their role, "{}" standing for the number of the layer; biases may be missing in a file.
    block: one layer of a model, from its weights. fields: what becomes of the fields of config.json; config: those of
    TransformerConfig that this architecture alone has, from them; rope: base and scaling of the rotation.
    activation_field, activations: the field that names the activation, and what it may say; the first is the default.
    recognised_by: roles whose tensors, in a file without config.json, tell this architecture from others; () for none.
    unused: tensors that files may have and that are computed here. transposed: weights are (in, out) in files.
    norm_offset: what is added to the weights of norms. paired_heads: rows of q and k are ordered for rope on
    neighbouring pairs. interleaved_gates: rows of the gates and ups of experts that are stacked lie in turn. gguf: its
    names in GGUF files.
    """

    name: str
    weights: Mapping[str, str]
    block: Callable[[LayerWeights], Layer]
    fields: FieldTable
    activation_field: str
    activations: Mapping[str, Activation]
    recognised_by: tuple[str, ...] = ()
    config: Callable[[Fields], dict[str, Any]] = _no_more
    rope: Callable[[Fields, float], Rope] = rope_of
    norm_type: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    norm_eps: float = 1e-5
    norm_offset: float = 0.0
    rope_theta: float = 10000.0
    use_rope: bool = True
    unused: tuple[str, ...] = ()
    transposed: bool = False
    paired_heads: bool = False
    interleaved_gates: bool = False
    gguf: Mapping[str, GGUFNames] = field(default_factory=dict)

    @property
    def activation(self) -> Activation:
        """The default."""
        return next(iter(self.activations.values()))
