"""Grammar: the form that an answer has by construction: JSON, JSON of a schema, a regular expression, Lark's rules."""

from __future__ import annotations

import json
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import need

if TYPE_CHECKING:
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

MAX_CHARACTERS = 1 << 17  # of a grammar
_KEPT = 8  # grammars of a model that are compiled already
_STATES, _SYMBOLS = 20_000, 50_000  # of a compiled grammar: some 40 MB at most
# A line break and an indent: a model that may write any number of them may write nothing else.
_JSON = {"whitespace_pattern": r"\n? {0,16}"}


@dataclass(frozen=True)
class Grammar:
    """The form of an answer, for `grammar=` of stream(), generate() and chat(). json(), regex() and lark() make one.

    Of every token only those are chosen that the form allows, whatever the other settings are; an answer that is cut at
    max_new_tokens is the beginning of one. Needs the extra `grammar` (llguidance).

    Parameters
    ----------
    source : str
        Rules as llguidance reads them.

    Examples
    --------
    >>> import pygpukit as gp
    >>> form = gp.llm.Grammar.json({"type": "object", "properties": {"age": {"type": "integer"}}})
    """

    source: str

    @classmethod
    def json(cls, schema: Mapping[str, Any] | bool | None = None) -> Grammar:
        """JSON of a schema; an object of any kind where there is none."""
        text = json.dumps({"type": "object"} if schema is None else schema)
        return cls(_library().LLMatcher.grammar_from_json_schema(text, overrides=_JSON))

    @classmethod
    def regex(cls, pattern: str) -> Grammar:
        """A text that a regular expression matches as a whole."""
        return cls(_library().LLMatcher.grammar_from_regex(pattern))

    @classmethod
    def lark(cls, rules: str) -> Grammar:
        """A text of these rules, of which `start` is the first; `%json {...}` in them is a schema."""
        return cls(_library().LLMatcher.grammar_from_lark(rules))


class Constraint:
    """A grammar as an answer goes through it. after: the token from which on it holds; None for the beginning."""

    def __init__(self, matcher: Any, after: int | None) -> None:
        self._matcher, self._after = matcher, after

    def mask(self, ahead: Sequence[int] = ()) -> bytes | None:
        """The tokens that may come next, or after those ahead, a bit each; None for all, or where those cannot come."""
        if ahead:
            later = Constraint(self._matcher.deep_copy(), self._after)
            return None if any(later.accept(token) for token in ahead) else later.mask()
        return None if self._after is not None else self._matcher.compute_bitmask()

    def accept(self, token: int) -> str:
        """A token has come that ends nothing. "", or why the grammar cannot go on."""
        if self._after is not None:
            if token == self._after:
                self._after = None
            return ""
        if self._matcher.is_stopped() or self._matcher.consume_token(token):
            return ""
        return str(self._matcher.get_error()).partition("\n")[0]


class _Vocabulary:
    """The tokens of a model as llguidance has them, and the grammars that were compiled for it last."""

    def __init__(self, tokenizer: Tokenizer, count: int, ends: Iterable[int]) -> None:
        self._own = tokenizer
        self.tokens = [tokenizer.token_bytes(number) for number in range(min(count, tokenizer.vocab_size))]
        self.special_token_ids = sorted(number for number in tokenizer.special_ids if number < len(self.tokens))
        self.bos_token_id = tokenizer.bos_token_id
        end_ids = sorted(ends)
        self.eos_token_id = end_ids[0] if end_ids else len(self.tokens) - 1
        library = _library()
        wrapper = library.TokenizerWrapper(self)
        self._tokenizer = library.LLTokenizer(wrapper, n_vocab=count, eos_token=end_ids or [self.eos_token_id])
        self._compiled: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: bytes | str) -> list[int]:
        """Token ids of a text, as llguidance asks for them."""
        return self._own.encode(text.decode() if isinstance(text, bytes) else text, add_special_tokens=False)

    def matcher(self, source: str) -> Any:
        """A matcher at its beginning. Raises InvalidSpecError for rules that cannot be."""
        with self._lock:
            first = self._compiled.get(source)
            if first is None:
                library = _library()
                bounds = {"max_lexer_states": _STATES, "max_grammar_size": _SYMBOLS, "verbose_errors": False}
                first = library.LLMatcher(self._tokenizer, source, log_level=0, limits=library.LLParserLimits(**bounds))
                if first.is_error():
                    why = " ".join(str(first.get_error()).split())[:300]
                    raise InvalidSpecError(f"the grammar cannot be used: {why}", "grammar")
                self._compiled[source] = first
            self._compiled.move_to_end(source)
            while len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
            return first.deep_copy()


_vocabularies: weakref.WeakKeyDictionary[Tokenizer, dict[tuple[int, frozenset[int]], _Vocabulary]] = (
    weakref.WeakKeyDictionary()
)
_making = threading.Lock()


def constraint(
    grammar: Grammar, tokenizer: Tokenizer, count: int, ends: frozenset[int], after: int | None = None
) -> Constraint:
    """A grammar at its beginning, for a model of `count` tokens of which `ends` end an answer.

    Raises InvalidSpecError for a grammar that cannot be, ModuleNotFoundError without the extra `grammar`.
    """
    if not isinstance(grammar, Grammar):
        raise InvalidSpecError(f"grammar={grammar!r:.80}; give a gp.llm.Grammar", "grammar")
    if len(grammar.source) > MAX_CHARACTERS:
        raise InvalidSpecError(f"the grammar has {len(grammar.source)} characters, {MAX_CHARACTERS} at most", "grammar")
    with _making:
        own = _vocabularies.setdefault(tokenizer, {})
        key = count, ends
        if key not in own:
            own[key] = _Vocabulary(tokenizer, count, ends)
    return Constraint(own[key].matcher(grammar.source), after)


def _library() -> Any:
    return need("llguidance", "grammar", "an answer of a given form")
