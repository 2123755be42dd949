"""Requests to a model: generate, stream, chat, batches; prompts as text, tokens or messages."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.drafts.speculation import Speculation, drafting, speculation
from pygpukit.llm.engine.engine import Engine
from pygpukit.llm.engine.request import Policy, Terms
from pygpukit.llm.engine.sampling import Sampling
from pygpukit.llm.generation import Answer, Completion, Generation, Limits
from pygpukit.llm.grammar import Grammar, constraint
from pygpukit.models.tokenizer.chat_text import chat_ids
from pygpukit.models.tokenizer.tokenizer import THINKING

if TYPE_CHECKING:
    from pygpukit.llm.engine.sequence import Constraint
    from pygpukit.llm.model import CausalTransformerModel
    from pygpukit.models.tokenizer.template import Message
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.linear.adapters import Adapter

_TOGETHER = 256  # answers of one call that are under way at a time
Prompt: TypeAlias = "str | Sequence[int] | Sequence[Message]"


class Generating:
    """The part of CausalTransformerModel that answers. Settings are those of Sampling, given by name."""

    name: str
    engine: Engine
    tokenizer: Tokenizer | None
    tokenizer_problem: str = ""  # why there is none
    generation: dict[str, Any]
    adapters: dict[str, Adapter]

    @overload
    def generate(
        self, input_ids: str | Sequence[Message], max_new_tokens: int = ..., **settings: Any
    ) -> Completion: ...

    @overload
    def generate(self, input_ids: Sequence[int], max_new_tokens: int = ..., **settings: Any) -> list[int]: ...

    def generate(self, input_ids: Any, max_new_tokens: int | None = None, *rest: Any, **settings: Any) -> Any:
        """An answer to a prompt, all at once.

        Text, or messages ({"role": ..., "content": ...}; see chat()): a Completion, greedy unless settings say
        otherwise, of up to 256 tokens. Token ids, as documented: all ids, the prompt's and the new ones; then
        max_new_tokens is 20, temperature 1, top_k 50 and top_p 0.9 unless given, in this order or by name, and after
        them eos_token_id, use_cache and gpu_sampling (both True in any case: there is one way).
        """
        if _is_ids(input_ids):
            documented = _documented(rest, settings)
            ids, _ = self._ids(input_ids)
            stream = self.stream(ids, 20 if max_new_tokens is None else max_new_tokens, **documented)
            return [*ids, *stream.complete().token_ids]
        if rest:
            raise InvalidSpecError("settings of a text prompt are given by name: generate(text, top_k=50)", "input_ids")
        return self.stream(input_ids, max_new_tokens, **settings).complete()

    def generate_stream(
        self, input_ids: Sequence[int], max_new_tokens: int = 20, *rest: Any, **settings: Any
    ) -> Iterator[int]:
        """The new ids as they come; arguments as generate()'s of token ids."""
        for token in self.stream(input_ids, max_new_tokens, **_documented(rest, settings)):
            yield token.token_id

    def stream(
        self,
        prompt: Prompt,
        max_new_tokens: int | None = None,
        *,
        stop: str | Iterable[str] = (),
        eos_token_id: int | Iterable[int] | None = None,
        ignore_eos: bool = False,
        variables: Mapping[str, Any] | None = None,
        control_tokens: bool = False,
        client: str = "",
        policy: Policy = "burstable",
        deadline: float | None = None,
        grammar: Grammar | None = None,
        shown: Iterable[str] = (),
        speculate: str | Speculation | CausalTransformerModel | None = None,
        adapter: str | None = None,
        **settings: Any,
    ) -> Generation:
        """An answer token by token: iterate over Token, or `async for`; stop() ends it.

        prompt: text as it is, token ids, or messages. max_new_tokens: 256 by default, and never more than the context
        has room for. stop: strings that end the answer and are not part of it. eos_token_id: tokens that end it, the
        model's own by default; ignore_eos: none. Of messages, variables: those of the chat template, such as
        {"enable_thinking": False}; control_tokens: whether those in their text count, which is text otherwise.
        client: who asks: where there are several, they share the model's steps evenly, whatever each asks for.
        policy: "guaranteed" has its room in the KV cache for the whole answer from its beginning on; "burstable" goes
        before "best_effort", and both give theirs where a higher one needs it. deadline: seconds from now; what the
        answer has by then is all of it, and its finish_reason "deadline".
        grammar: the form of the answer, after the thinking if the prompt begins that. shown: control tokens that are
        text of the answer, which others are not. speculate: "ngram", "layers", "jacobi", "lookahead", another model,
        or a Speculation: where drafts come from, of which a step computes several; no token changes. adapter: the name
        that load_adapter() gave one.
        settings: temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty, logit_bias,
        seed, request, top (see Sampling); greedy by default.
        Raises InvalidSpecError naming the setting, or saying by how much the prompt does not fit; TypeError for what is
        no prompt.
        """
        form: dict[str, Any] = {"variables": variables, "control_tokens": control_tokens}
        sampling, limits = self._settings(
            max_new_tokens, stop=stop, eos_token_id=eos_token_id, ignore_eos=ignore_eos, **form, **settings
        )
        ids, thinking = self._ids(prompt, **form)
        own = self._adapter(adapter)
        limits = replace(limits, thinking=thinking, shown=tuple(shown), grammar=grammar, adapter=own)
        terms, drafts = Terms(client, policy, deadline), drafting(speculation(speculate), self.engine)
        return Generation(self.engine, self.tokenizer, ids, sampling, limits, terms, self._constraint(limits), drafts)

    def check(self, prompt: Prompt, variables: Mapping[str, Any] | None = None, control_tokens: bool = False) -> None:
        """Raises what stream() would of this prompt; begins and computes nothing."""
        self.engine.check(self._ids(prompt, variables, control_tokens)[0])

    def chat(self, messages: str | Sequence[Message], max_new_tokens: int | None = None, **settings: Any) -> Generation:
        """stream() of a conversation, by the model's chat template; a text is one message of the user.

        messages: {"role": "system" | "user" | "assistant", "content": text}, or ChatMessage. settings: stream()'s, such
        as variables={"enable_thinking": False}. What the model keeps of an
        earlier call that began alike is not computed again.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return self.stream(messages, max_new_tokens, **settings)

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        max_new_tokens: int | None = None,
        *,
        stop: str | Iterable[str] = (),
        eos_token_id: int | Iterable[int] | None = None,
        ignore_eos: bool = False,
        variables: Mapping[str, Any] | None = None,
        control_tokens: bool = False,
        policy: Policy = "burstable",
        deadline: float | None = None,
        grammar: Grammar | None = None,
        speculate: str | Speculation | CausalTransformerModel | None = None,
        adapter: str | Sequence[str | None] | None = None,
        **settings: Any,
    ) -> list[Completion]:
        """Answers to several prompts, a step for all at a time; each is what generate() alone gives, bit for bit.

        Any number: those that the KV cache has no room for wait their turn. Prompt i is request i of the seed: alone it
        is generate(..., request=i). policy, deadline: as stream()'s, of each from when it is opened; so is speculate.
        adapter: of all, or one for each prompt.
        Raises as stream() does.
        """
        if isinstance(prompts, str | Mapping) or not isinstance(prompts, Iterable):
            raise TypeError(f"prompts={prompts!r}; give a list of prompts")
        form: dict[str, Any] = {"variables": variables, "control_tokens": control_tokens}
        sampling, limits = self._settings(
            max_new_tokens, stop=stop, eos_token_id=eos_token_id, ignore_eos=ignore_eos, **form, **settings
        )
        first, setting = sampling.seeded(), speculation(speculate)
        encoded = [self._ids(prompt, **form) for prompt in prompts]
        each = [adapter] * len(encoded) if adapter is None or isinstance(adapter, str) else list(adapter)
        if len(each) != len(encoded):
            raise InvalidSpecError(f"adapter has {len(each)} names for {len(encoded)} prompts", "adapter")
        adapters = [self._adapter(name) for name in each]
        answers: list[Answer] = []
        loop = self.engine.loop

        def opened(number: int) -> Answer:
            ids, thinking = encoded[number]
            own = replace(limits, thinking=thinking, grammar=grammar)
            sequence = self.engine.open(
                ids,
                replace(first, request=number),
                limits.max_new_tokens,
                limits.end_tokens,
                Terms("", policy, deadline),
                self._constraint(own),
                drafting(setting, self.engine),
                adapters[number],
            )
            stack.callback(loop.close, sequence)
            return Answer(self.engine, sequence, self.tokenizer, own)

        for ids, _ in encoded:
            self.engine.check(ids)
        with ExitStack() as stack:
            going: list[Answer] = []
            while going or len(answers) < len(encoded):
                while len(answers) < len(encoded) and len(going) < _TOGETHER:
                    answers.append(opened(len(answers)))
                    going.append(answers[-1])
                loop.run_until(lambda: any(answer.sequence.has_news for answer in going))
                for answer in [answer for answer in going if answer.sequence.has_news]:
                    choice = loop.next(answer.sequence)
                    if choice is not None:
                        answer.take(choice)
                    if choice is None or answer.finish_reason is not None:
                        going.remove(answer)
                        loop.close(answer.sequence)
            return [answer.completion() for answer in answers]

    def _adapter(self, name: str | None) -> Adapter | None:
        """The adapter of that name. Raises InvalidSpecError for one that is not loaded."""
        if name is None:
            return None
        if name not in self.adapters:
            there = ", ".join(map(repr, self.adapters)) or "none"
            raise InvalidSpecError(f"there is no adapter {name!r} of {self.name}; there is {there}", "adapter")
        return self.adapters[name]

    def bytes_of(self, token: int) -> bytes:
        """The bytes of one token; b"" without a tokenizer."""
        return b"" if self.tokenizer is None else self.tokenizer.token_bytes(token)

    def token_ids(self, prompt: Prompt, **form: Any) -> list[int]:
        """The ids of a prompt, with stream()'s `variables` and `control_tokens`. Raises as stream() does."""
        return self._ids(prompt, **form)[0]

    def prompt_tokens(self, messages: Prompt, **form: Any) -> int:
        """Number of tokens of a prompt: messages by the model's chat template, with stream()'s `variables` and
        `control_tokens`. Raises as stream() does."""
        return len(self._ids(messages, **form)[0])

    def text_of(self, token: int) -> str:
        """The text of one token by itself; "" without a tokenizer."""
        return "" if self.tokenizer is None else self.tokenizer.decode([token])

    def _settings(
        self,
        max_new_tokens: int | None = None,
        *,
        stop: str | Iterable[str] = (),
        eos_token_id: int | Iterable[int] | None = None,
        ignore_eos: bool = False,
        variables: Mapping[str, Any] | None = None,
        control_tokens: bool = False,
        **settings: Any,
    ) -> tuple[Sampling, Limits]:
        """The checked settings of stream(). Raises InvalidSpecError naming one that cannot be."""
        if variables is not None and (not isinstance(variables, Mapping) or not all(map(_is_name, variables))):
            raise InvalidSpecError(
                f"variables={reprlib.repr(variables)}; give an object of names and values", "variables"
            )
        if control_tokens not in (True, False):
            raise InvalidSpecError(f"control_tokens={control_tokens!r}; give True or False", "control_tokens")
        unknown = sorted(set(settings) - set(Sampling.__dataclass_fields__))
        if unknown:
            known = ", ".join(Sampling.__dataclass_fields__)
            raise InvalidSpecError(f"there is no setting {unknown[0]!r}; there are {known}", unknown[0])
        expected = "a whole number of 1 or more"
        max_count = 256 if max_new_tokens is None else whole(max_new_tokens, "max_new_tokens", expected)
        if max_count < 1:
            raise InvalidSpecError(f"max_new_tokens={max_count}; give {expected}", "max_new_tokens")
        if ignore_eos not in (True, False):
            raise InvalidSpecError(f"ignore_eos={ignore_eos!r}; give True or False", "ignore_eos")
        ends = self._end_tokens() if eos_token_id is None else self._checked_ends(eos_token_id)
        texts = tuple(_several(stop))
        if not all(isinstance(text, str) and text for text in texts):
            raise InvalidSpecError(f"stop={stop!r}; give a text, or a list of texts, none of them empty", "stop")
        if texts and self.tokenizer is None:
            raise InvalidSpecError(f"{self._no_tokenizer()}, so it knows no stop strings", "stop")
        sampling, count = Sampling(**settings), self.engine.network.config.vocab_size
        for token in sampling.logit_bias:
            if token >= count:
                raise InvalidSpecError(f"logit_bias: there is no token {token}, the model has {count}", "logit_bias")
        return sampling, Limits(max_count, frozenset() if ignore_eos else ends, texts)

    def _constraint(self, limits: Limits) -> Constraint | None:
        """The form of one answer, at its beginning."""
        if limits.grammar is None:
            return None
        if self.tokenizer is None:
            raise InvalidSpecError(f"{self._no_tokenizer()}, so it knows no grammar", "grammar")
        after = self.tokenizer.token_to_id(THINKING[1]) if limits.thinking else None
        return constraint(
            limits.grammar, self.tokenizer, self.engine.network.config.vocab_size, limits.end_tokens, after
        )

    def _checked_ends(self, eos_token_id: int | Iterable[int]) -> frozenset[int]:
        count = self.engine.network.config.vocab_size
        expected = f"token ids of 0 to {count - 1}; ignore_eos=True is for none"
        ends = frozenset(whole(token, "eos_token_id", expected) for token in _several(eos_token_id))
        for token in ends:
            if not 0 <= token < count:
                raise InvalidSpecError(f"eos_token_id={token}; give {expected}", "eos_token_id")
        return ends

    def _end_tokens(self) -> frozenset[int]:
        """The configuration's, and the tokenizer's."""
        ends = frozenset(_several(self.generation.get("eos_token_id", ())))
        return ends if self.tokenizer is None else ends | self.tokenizer.end_ids

    def _ids(
        self, prompt: Prompt, variables: Mapping[str, Any] | None = None, control_tokens: bool = False
    ) -> tuple[list[int], bool | None]:
        """Token ids of a prompt, and whether it ends within a thinking block; None where there can be none."""
        if _is_ids(prompt):
            try:
                return [operator.index(token) for token in cast("Sequence[int]", prompt)], None
            except TypeError as error:
                raise TypeError(f"prompt: a token id must be a whole number: {error}") from None
        if not isinstance(prompt, str):
            prompt = _messages(prompt)
        if self.tokenizer is None:
            raise InvalidSpecError(f"{self._no_tokenizer()}, so it takes token ids only", "prompt")
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt), None
        ids, text = chat_ids(self.tokenizer, prompt, True, control_tokens, variables or {})
        return ids, text.rstrip().endswith(THINKING[0]) if self.tokenizer.thinks else None

    def _no_tokenizer(self) -> str:
        why = f" ({self.tokenizer_problem})" if self.tokenizer_problem else ""
        return f"{self.name} has no tokenizer{why}"


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name not in ("messages", "add_generation_prompt")


def _is_ids(prompt: object) -> bool:
    if isinstance(prompt, str | Mapping | native.ArrayBase):
        return False
    if not hasattr(prompt, "__len__") or not hasattr(prompt, "__getitem__"):
        return False
    return len(prompt) == 0 or hasattr(prompt[0], "__index__")


def _messages(prompt: Any) -> list[Message]:
    from pygpukit.models.tokenizer.template import ChatMessage

    if isinstance(prompt, native.ArrayBase):
        raise TypeError("prompt is a GPUArray, and nothing is copied to the host implicitly; use prompt.to_numpy()")
    if isinstance(prompt, Iterable) and not isinstance(prompt, Mapping):
        messages = list(prompt)
        if all(isinstance(message, Mapping | ChatMessage) for message in messages):
            return messages
    raise TypeError(f"prompt={reprlib.repr(prompt)}; give text, a list of token ids, or a list of messages")


def _several(value: Any) -> Iterable[Any]:
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _documented(rest: tuple[Any, ...], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of the documented generate(), whose defaults sample."""
    names = ("temperature", "top_k", "top_p", "eos_token_id", "use_cache", "gpu_sampling")
    if len(rest) > len(names):
        raise TypeError(f"generate() takes up to {len(names) + 2} arguments by place, {len(rest) + 2} were given")
    arguments = {**dict(zip(names, rest, strict=False)), **settings}
    for name in ("use_cache", "gpu_sampling"):
        arguments.pop(name, None)
    return {"temperature": 1.0, "top_k": 50, "top_p": 0.9, **arguments}
