"""Which tensors a model of an architecture has: what is in a file beside them would not be used, and is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models.spec import ModelSpec
from pygpukit.nn.config import TransformerConfig

_LAYER = re.compile(r"(?:^|(?<=\.))(\d+)(?=\.)")


def prefix_of(spec: ModelSpec, names: Iterable[str]) -> str:
    """What the names of a file have before those of the architecture."""
    prefixes = [name.removesuffix(spec.embed_tokens) for name in names if name.endswith(spec.embed_tokens)]
    return min(prefixes, key=len, default="")


def check_tensors(
    spec: ModelSpec, config: TransformerConfig, names: Iterable[str], has_biases: tuple[bool | None, bool], title: str
) -> None:
    """Raises InvalidSpecError naming a tensor that the model would not use, or a bias that it should have.

    has_biases: of attention and of the feed-forward layers, by the configuration; None where it does not say.
    """
    found = list(names)
    attention, feed_forward = (
        {name for name in templates if name is not None}
        for templates in (
            (spec.q_bias, spec.k_bias, spec.v_bias, spec.o_bias),
            (spec.gate_bias, spec.up_bias, spec.down_bias),
        )
    )
    used = _templates(spec) - attention - feed_forward
    if has_biases[0] is not False:
        used |= attention
    if has_biases[1]:
        used |= feed_forward
    prefix = prefix_of(spec, found)
    seen: set[str] = set()
    unused = []
    for name in found:
        template = _template(name.removeprefix(prefix), config.num_layers) if name.startswith(prefix) else None
        if template in used:
            seen.add(str(template))
        elif template not in spec.ignored:
            unused.append(name)
    if unused:
        more = f" (and {len(unused) - 1} more)" if len(unused) > 1 else ""
        raise InvalidSpecError(
            f"{title}: a {spec.name} model with this configuration has no use for the tensor {unused[0]!r}{more}, so "
            "the file is of another model, or its config.json is",
            unused[0],
        )
    for has, templates, name in zip(has_biases, (attention, feed_forward), ("attention_bias", "mlp_bias"), strict=True):
        if has and not templates & seen:
            raise InvalidSpecError(f"{title}: {name} is true, but the model has no such tensor", name)


def _templates(spec: ModelSpec) -> set[str]:
    named = (getattr(spec, name) for name in spec.__dataclass_fields__ if name not in _NO_TENSORS)
    return {value for value in named if isinstance(value, str)}


def _template(name: str, layers: int) -> str | None:
    """The name with "{}" in the place of its layer's number; None for a layer that the model does not have."""
    number = _LAYER.search(name)
    if number is None:
        return name
    if len(number[1]) > 9 or str(int(number[1])) != number[1] or int(number[1]) >= layers:
        return None
    return f"{name[: number.start()]}{{}}{name[number.end() :]}"


_NO_TENSORS = {"name", "hf_model_type", "norm_type", "activation"}
