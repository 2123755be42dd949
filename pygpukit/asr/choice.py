"""Chooser: the next token of greedy searches, on the device: a number comes back from a row of logits, not the row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.asr.rules import Rules
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "choice.cu")
_CHOOSING = SOURCE.structure("Choosing")
_THREADS = 256  # choice.cu: kThreads


class Chooser:
    """The most probable token that rules allow, and the log of its probability, of rows of logits."""

    def __init__(self, rules: Rules, vocab: int) -> None:
        import numpy as np

        self._rules, self._vocab = rules, vocab
        mask = np.zeros(vocab, np.uint8)  # as choice.cu reads it
        mask[list(rules.not_first)] = 2
        mask[list(rules.banned)] = 1
        self._mask = factory.from_numpy(mask)

    def __call__(self, logits: GPUArray, rows: Sequence[int], said: Sequence[Sequence[int]]) -> list[tuple[int, float]]:
        """(token, log) for each of some rows of float32 (R, vocabulary) after what was said in each; (-1, -inf) where
        no token is possible. Waits."""
        tokens, logs = self.arrays(logits, rows, said)
        return list(zip(tokens.to_numpy().tolist(), logs.to_numpy().tolist(), strict=True))

    def arrays(self, logits: GPUArray, rows: Sequence[int], said: Sequence[Sequence[int]]) -> tuple[GPUArray, GPUArray]:
        """Tokens, int32, and logs, float32. Asynchronous; a row has the same bits whatever is chosen with it."""
        import numpy as np

        tokens, logs = factory.empty(len(rows), "int32"), factory.empty(len(rows), "float32")
        if host.computes():

            def choose() -> None:
                values = host.memory(logits)
                for place, (row, sequence) in enumerate(zip(rows, said, strict=True)):
                    token, log = self._rules.most_probable(values[row], sequence)
                    host.memory(tokens)[place], host.memory(logs)[place] = token, log

            native.host_launch("choose", choose, [logits, tokens, logs])
            return tokens, logs
        limits = [
            (row, *self._rules.limits(sequence, self._vocab), not sequence)
            for row, sequence in zip(rows, said, strict=True)
        ]
        where = factory.from_numpy(np.array(limits, np.int32))
        grid, block = (len(rows), 1, 1), (_THREADS, 1, 1)
        packed = _CHOOSING.pack(vocab=self._vocab)
        kernels.launch(SOURCE.of("pk::choose"), grid, block, logits, self._mask, where, tokens, logs, packed)
        return tokens, logs


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """The one kernel."""
    yield ("pk::choose",)
