"""Which tensors a model of an architecture has: what is in a file beside them would not be used, and is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models.architecture import Architecture
from pygpukit.nn.config import TransformerConfig

# Roles of the biases of which a field of config.json says whether they are there.
BIASES = {
    "attention_bias": ("qkv_bias", "q_bias", "k_bias", "v_bias", "o_bias"),
    "mlp_bias": ("gate_up_bias", "gate_bias", "up_bias", "down_bias"),
    "use_bias": ("in_proj_bias", "out_proj_bias"),
    "use_conv_bias": ("conv_bias",),
}
_LAYER = re.compile(r"(?:^|(?<=\.))(\d+)(?=\.)")
_EXPERT = re.compile(r"(?<=\.experts\.)(\d+)(?=\.)")


def prefix_of(architecture: Architecture, names: Iterable[str]) -> str:
    """The prefix of a file's tensor names before those of the architecture."""
    embedding = architecture.weights["embed_tokens"]
    prefixes = [name.removesuffix(embedding) for name in names if name.endswith(embedding)]
    return min(prefixes, key=len, default="")


def check_tensors(
    architecture: Architecture,
    config: TransformerConfig,
    names: Iterable[str],
    has_biases: Mapping[str, bool | None],
    title: str,
) -> None:
    """Raises InvalidSpecError naming a tensor that the model would not use, or a bias that it should have.

    has_biases: by the fields of BIASES, whether the model has them; None where the configuration does not say.
    """
    tensors = list(names)
    biases = {
        name: {architecture.weights[role] for role in roles if role in architecture.weights}
        for name, roles in BIASES.items()
    }
    used = set(architecture.weights.values())
    used -= {template for name, templates in biases.items() if has_biases.get(name) is False for template in templates}
    prefix = prefix_of(architecture, tensors)
    seen: set[str] = set()
    unused = []
    for name in tensors:
        template = _template(name.removeprefix(prefix), _LAYER, config.num_layers) if name.startswith(prefix) else None
        if template is not None and config.num_experts is not None:
            template = _template(template, _EXPERT, config.num_experts)
        if template in used:
            seen.add(str(template))
        elif template not in architecture.unused:
            unused.append(name)
    if unused:
        more = f" (and {len(unused) - 1} more)" if len(unused) > 1 else ""
        raise InvalidSpecError(
            f"{title}: a {architecture.name} model with this configuration has no use for the tensor {unused[0]!r}"
            f"{more}, so the file is of another model, or its config.json is",
            unused[0],
        )
    for name, templates in biases.items():
        if has_biases.get(name) and not templates & seen:
            raise InvalidSpecError(f"{title}: {name} is true, but the model has no such tensor", name)


def _template(name: str, numbered: re.Pattern[str], count: int) -> str | None:
    """The name with "{}" in the place of the number that its layer, or its expert, has; None where there are only
    `count`."""
    number = numbered.search(name)
    if number is None:
        return name
    if len(number[1]) > 9 or str(int(number[1])) != number[1] or int(number[1]) >= count:
        return None
    return f"{name[: number.start()]}{{}}{name[number.end() :]}"
