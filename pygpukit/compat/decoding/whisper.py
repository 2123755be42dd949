"""A method of WhisperDecoder that writes down what was heard, token by token."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.ops.nn.sampling import sample_token_gpu

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.asr.decoder import WhisperDecoder


def generate(
    self: WhisperDecoder,
    encoder_hidden_states: GPUArray,
    max_length: int = 448,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> list[int]:
    """Token ids from the configuration's start token on, up to its end token, both included.

    Parameters
    ----------
    encoder_hidden_states : GPUArray
        (1, T, d_model) or (T, d_model), of a WhisperEncoder.
    max_length : int
        Of the ids, at most; the decoder's own positions, max_target_positions, end them, too.
    temperature : float
        0 for the most probable token each time; else drawn by the seed of gp.set_sampling_seed().
    top_k : int, optional
        Draw among so many only.

    Returns
    -------
    list of int
        WhisperModel.transcribe() is what makes text of sound: it also chooses the language, and knows times.

    Raises
    ------
    InvalidSpecError
        For lengths and numbers that cannot be.
    ShapeError
        For states of another shape.
    """
    for name, value in (("max_length", max_length), ("top_k", 1 if top_k is None else top_k)):
        if whole(value, name, "a whole number of 1 or more") < 1:
            raise InvalidSpecError(f"{name}={value!r}; give a whole number of 1 or more", name)
    cache = self.cache(1, 1)
    self.hear(self.states_of(encoder_hidden_states), cache, 0)
    tokens = [self.config.decoder_start_token_id]
    longest = min(operator.index(max_length), self.config.max_target_positions)
    while len(tokens) < longest and tokens[-1] != self.config.eos_token_id:
        logits = self.step([tokens[-1]], [len(tokens) - 1], [0], [0], cache)
        tokens.append(sample_token_gpu(logits[0], temperature, top_k or 0))
    return tokens
