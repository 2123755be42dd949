"""StaticBatch: sequences of an engine that begin together and step together, from their prompts to their last token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pygpukit.llm.engine.sampling import Choice

if TYPE_CHECKING:
    from pygpukit.llm.engine.engine import Engine
    from pygpukit.llm.engine.sequence import Sequence


class StaticBatch:
    """Sequences that begin together step together; one that has ended leaves the batch.

    stop: asked between the chunks of a prompt; true ends the prefill.
    """

    def __init__(self, engine: Engine, sequences: list[Sequence], stop: Callable[[], bool] = lambda: False) -> None:
        self._engine, self._stop = engine, stop
        self.running = list(sequences)
        self._waiting = bool(self.running)  # for prefill: all of them at once

    def step(self, ahead: bool = False) -> list[Choice] | None:
        """The next token of each running sequence; None where stop() ended the prefill. Holds the engine's lock.

        ahead: whether the step after this one may be begun already.
        """
        engine, running = self._engine, self.running
        with engine.lock:
            step = engine.step(running)
            if not self._waiting:
                return step.run(running, ahead=ahead)
            step.load(running)
            for row, sequence in enumerate(running):
                if not engine.prefill(sequence, step, row, self._stop):
                    return None
            self._waiting = False
            return step.sample(running)

    def leave(self, sequence: Sequence) -> None:
        """Take a sequence that has ended out of the batch."""
        self.running.remove(sequence)
