"""Operations of plugins in the place of a language model's own: its norms of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit.core.errors import InvalidSpecError
from pygpukit.plugins.operation import Operation
from pygpukit.plugins.replace import Choice, resolved

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.nn.norm import Norm


def operations_for(choice: Choice | None, norm_type: str, title: str) -> dict[str, Operation]:
    """The operations of a choice that a model with such norms has a place for. Raises as gp.plugins.replace(), and
    InvalidSpecError for what no model replaces, or not this one."""
    if choice is None:
        return {}
    operations = resolved(choice)
    fitting = {name: one for name, one in operations.items() if name == norm_type}
    if not fitting or (fitting != operations and not isinstance(choice, str)):
        raise InvalidSpecError(
            f"{title}: replace={choice!r} is of {', '.join(operations) or 'nothing'}; this model can replace "
            f"{norm_type}",
            "replace",
        )
    return fitting


def replace_in(model: CausalTransformerModel, operations: dict[str, Operation]) -> None:
    """Put the operations in the place of the model's own, before its first step."""
    model.replaced = operations
    for norm in _norms(model) if operations else ():
        norm.operation = operations[norm.norm_type]


def _norms(model: CausalTransformerModel) -> Iterator[Norm]:
    """The norms of rows; those of each head are part of attention's kernels."""
    yield model.final_norm
    for block in model.blocks:
        yield from block.norms
