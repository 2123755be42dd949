"""Speculation: the setting `speculate=` of a request, and the drafts of one sequence by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.drafts.jacobi import Jacobi, Lookahead
from pygpukit.llm.drafts.network import DraftModel, OwnLayers
from pygpukit.llm.drafts.ngram import NGrams
from pygpukit.llm.engine.drafting import Drafting, Source
from pygpukit.llm.engine.engine import Engine
from pygpukit.llm.engine.gain import Gain

if TYPE_CHECKING:
    from pygpukit.llm.model import CausalTransformerModel

Method: TypeAlias = Literal["ngram", "layers", "model", "jacobi", "lookahead"]
METHODS: tuple[str, ...] = get_args(Method)
MAX_TOKENS = 16


@dataclass(frozen=True)
class Speculation:
    """Where drafts of an answer come from, for `speculate=` of generate(), stream(), chat() and generate_batch().

    The model computes several drafts in one step and keeps those that it would have chosen itself: tokens, logprobs and
    their bits are those of an answer without. Drafts that cost more than they give are left out for a while.

    Parameters
    ----------
    method : str
        "ngram": what came last after the tokens that prompt and answer end with. "layers": what the first layers
        choose. "model": what another model chooses. "jacobi": what the model chose in the last step behind a wrong
        draft. "lookahead": what it chose in any step behind the same tokens.
    tokens : int
        Drafts of a step, 1 to 16.
    layers : int, optional
        Of "layers": how many, half of them by default.
    model : CausalTransformerModel, optional
        Of "model": a smaller one with the same tokens.
    always : bool
        Whether drafts are tried even while they do not pay.

    Raises
    ------
    InvalidSpecError
        For another method, another number of tokens, layers or a model that the method has not, or none where it must.

    Examples
    --------
    >>> import pygpukit as gp
    >>> gp.llm.Speculation("ngram", tokens=6).tokens
    6
    """

    method: Method = "ngram"
    tokens: int = 4
    layers: int | None = None
    model: CausalTransformerModel | None = None
    always: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidSpecError(f"method={self.method!r}; give one of {', '.join(METHODS)}", "method")
        expected = f"a whole number of 1 to {MAX_TOKENS}"
        if not 1 <= whole(self.tokens, "tokens", expected) <= MAX_TOKENS:
            raise InvalidSpecError(f"tokens={self.tokens!r}; give {expected}", "tokens")
        if self.always not in (True, False):
            raise InvalidSpecError(f"always={self.always!r}; give True or False", "always")
        if self.layers is not None and self.method != "layers":
            raise InvalidSpecError(f'layers={self.layers!r} is of method="layers", this is {self.method!r}', "layers")
        if self.layers is not None and whole(self.layers, "layers", "a whole number of 1 or more") < 1:
            raise InvalidSpecError(f"layers={self.layers!r}; give a whole number of 1 or more", "layers")
        if (self.method == "model") != _is_model(self.model) or (self.model is not None and not _is_model(self.model)):
            raise InvalidSpecError(
                f'model={self.model!r:.80} with method={self.method!r}; give a loaded model with method="model", and '
                "none with another one",
                "model",
            )


def speculation(value: object) -> Speculation | None:
    """The setting that `speculate=` is. Raises InvalidSpecError for what it cannot be."""
    if value is None or isinstance(value, Speculation):
        return value
    if _is_model(value):
        return Speculation("model", model=value)  # type: ignore[arg-type]
    if isinstance(value, str) and value in METHODS:
        return Speculation(value)  # type: ignore[arg-type]
    names = ", ".join(repr(name) for name in METHODS if name != "model")
    raise InvalidSpecError(
        f"speculate={value!r:.80}; give one of {names}, a loaded model, or a gp.llm.Speculation", "speculate"
    )


def drafting(setting: Speculation | None, engine: Engine) -> Drafting | None:
    """The drafts of one sequence of an engine. Raises InvalidSpecError where its model does not fit the setting, or
    keeps states, which cannot go back behind drafts that are wrong."""
    if setting is None:
        return None
    engine.network.check_keys(f"{engine.name}: speculate=", "speculate")
    return Drafting(_source(setting, engine), Gain(setting.tokens, setting.always))


def _source(setting: Speculation, engine: Engine) -> Source:
    """Of a sequence, or the engine's for all of them where a network computes drafts."""
    if setting.method == "ngram":
        return NGrams()
    if setting.method == "jacobi":
        return Jacobi()
    if setting.method == "lookahead":
        return Lookahead()
    if setting.model is not None:
        return _of_model(setting.model, engine)
    count = engine.network.config.num_layers
    layers = max(count // 2, 1) if setting.layers is None else setting.layers
    if layers >= count:
        raise InvalidSpecError(f"layers={layers}, and {engine.name} has {count}; give fewer", "layers")
    key, loop = ("layers", layers), engine.loop
    if key not in engine.sources:
        engine.sources.setdefault(key, OwnLayers(loop.network, loop.cache, layers))
    return engine.sources[key]


def _of_model(model: CausalTransformerModel, engine: Engine) -> Source:
    own, other = engine.network, model.engine.network
    if other is own:
        raise InvalidSpecError(f"model={model.name!r} would draft for itself; give a smaller one", "model")
    if other.config.vocab_size != own.config.vocab_size:
        raise InvalidSpecError(
            f"model={model.name!r} has {other.config.vocab_size} tokens, {engine.name} {own.config.vocab_size}; give "
            "one with the same tokens",
            "model",
        )
    other.check_keys(f"model={model.name!r}, which is to give drafts,", "model")
    key = "model", other
    if key not in engine.sources:
        blocks = engine.loop.scheduler.blocks.count
        with other.at_home():
            engine.sources.setdefault(key, DraftModel(other, blocks, f"{engine.name}/drafts"))
    return engine.sources[key]


def _is_model(value: object) -> bool:
    return isinstance(getattr(value, "engine", None), Engine)
