"""The rotation of a model by its config.json: base and scaling; what is not implemented is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.models.fields import Fields

# Kind of scaling: the numbers it needs, and those it may have.
_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "default": ((), ()),
    "linear": (("factor",), ()),
    "dynamic": (("factor",), ()),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor"), ()),
    "divided": (("divisors",), ()),
    "longrope": (("short_factor", "long_factor"), ("factor", "attention_factor")),
    "yarn": (("factor",), ("attention_factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow")),
}
_OLDER = {"su": "longrope"}
_LISTS = ("divisors", "short_factor", "long_factor")
# What any kind may hold beside them: read elsewhere, or of no effect in the reference.
_BESIDE = {"rope_type", "type", "rope_theta", "original_max_position_embeddings", "finetuned"}
_NEUTRAL = {"partial_rotary_factor": (1,), "truncate": (True,), "mrope_section": (), "mrope_interleaved": (False,)}


def rope_parameters(fields: Fields) -> Fields:
    """Hugging Face's rope parameters: "rope_parameters" of newer files, "rope_scaling" of older ones; of a file that
    has both, what both say together. Raises InvalidSpecError where one contradicts the other."""
    newer, older = (_by_newer_names(fields.object(name) or {}) for name in ("rope_parameters", "rope_scaling"))
    for name, value in older.items():
        if value is not None and newer.get(name) not in (None, value):
            raise InvalidSpecError(
                f"config.json: rope_scaling says {name} is {value!r:.40}, rope_parameters {newer[name]!r:.40}; leave "
                "one of them out",
                "rope_scaling",
            )
    where = fields.name_of("rope_parameters", "rope_scaling")
    return Fields(newer | {name: value for name, value in older.items() if value is not None}, f"config.json: {where}")


def _by_newer_names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    if parameters.get("rope_type") is not None or "type" not in parameters:
        return dict(parameters)
    return {"rope_type" if name == "type" else name: value for name, value in parameters.items() if name != "rope_type"}


def rope_of(
    fields: Fields, default_theta: float, read: frozenset[str] = frozenset()
) -> tuple[float, dict[str, Any] | None]:
    """(base, scaling): the fields of rope_parameters(), None for plain rotation. read: those that an architecture reads
    itself. Raises InvalidSpecError naming a field."""
    parameters = rope_parameters(fields)
    theta = parameters.number("rope_theta", minimum=1.0) or fields.number("rope_theta", minimum=1.0) or default_theta
    kind = parameters.text("rope_type", "type") or "default"
    kind = _OLDER.get(kind, kind)
    if kind not in _KINDS:
        raise InvalidSpecError(
            f"rope scaling of the type {kind!r} is not there yet; known are {', '.join(_KINDS)}", "rope_type"
        )
    needed, possible = _KINDS[kind]
    scaling: dict[str, Any] = {"rope_type": kind}
    for name in (*needed, *possible):
        value = parameters.numbers(name) if name in _LISTS else parameters.number(name)
        if value is not None:
            scaling[name] = value
        elif name in needed:
            raise parameters.missing(f"rope scaling of the type {kind!r}", name)
    if kind == "yarn" and parameters.flag("truncate") is False:
        scaling["truncate"] = False
    max_positions = fields.integer("max_position_embeddings", "n_positions")
    original = fields.integer("original_max_position_embeddings") or parameters.integer(
        "original_max_position_embeddings"
    )
    scaling["original_max_position_embeddings"] = original or max_positions
    _refuse_others(parameters, {*scaling, *_BESIDE, *possible, *read}, kind)
    # Dynamic scaling begins where a sequence is longer than the model's context, which none is here.
    return theta, None if kind in ("default", "dynamic") else scaling


def _refuse_others(parameters: Fields, known: set[str], kind: str) -> None:
    for name in parameters:
        value = parameters.get(name)
        if value is None or name in known or value in _NEUTRAL.get(name, ()):
            continue
        raise parameters.error(f"which is not there yet for rope scaling of the type {kind!r}", name)
