"""Parts of a conversation: states, turns, figures and callbacks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np

from pygpukit.pipeline.spoken import SpeechStats


class PipelineState(Enum):
    """The state of the pipeline. IDLE: it takes no sound, until start_listening()."""

    IDLE = auto()
    LISTENING = auto()
    TRANSCRIBING = auto()
    GENERATING = auto()
    SPEAKING = auto()


@dataclass
class ConversationTurn:
    """Something said, and its answer. Audio is float32 (n,): the user's at the rate of the VAD, the assistant's at the
    synthesis'. Of an interrupted turn the answer is what was handed out as sound. Times: of the monotonic clock, in
    seconds, from the end of the user's speech to the end of the answer's computation."""

    user_audio: np.ndarray[Any, Any] | None = None
    user_text: str = ""
    assistant_text: str = ""
    assistant_audio: np.ndarray[Any, Any] | None = None
    start_time: float = 0.0
    end_time: float = 0.0
    was_interrupted: bool = False


@dataclass
class PipelineStats(SpeechStats):
    """Figures of all turns that are in the history; interruptions: of all. Durations in seconds. Latencies are means,
    0 where there are none: of a transcription, from the question to the answer's first token, of the synthesis of its
    first sentence. What was spoken in these turns is as SpeechStats says; first_audio_latency_ms: from the end of what
    the user said last to the first sound of its answer."""

    total_turns: int = 0
    total_user_speech_duration: float = 0.0
    total_assistant_speech_duration: float = 0.0
    avg_transcription_latency_ms: float = 0.0
    avg_llm_first_token_latency_ms: float = 0.0
    avg_tts_first_audio_latency_ms: float = 0.0
    interruptions: int = 0


class VoicePipelineCallback:
    """Callbacks of a conversation, on the thread on which it happens; a subclass overrides some."""

    def on_listening_start(self) -> None:
        """start_listening() was called."""

    def on_speech_detected(self) -> None:
        """Somebody began to speak: what is still being played should stop."""

    def on_transcription_start(self) -> None:
        """An utterance has ended, and is being recognised."""

    def on_transcription_complete(self, text: str) -> None:
        """The text that was said; "" where nothing was understood, and there is no answer then."""

    def on_generation_start(self) -> None:
        """The chat model is asked."""

    def on_generation_token(self, token: str) -> None:
        """More text of the answer."""

    def on_generation_complete(self, text: str) -> None:
        """The whole text of the answer; sentences of it may have been spoken before."""

    def on_tts_start(self) -> None:
        """The first sentence is being spoken."""

    def on_audio_chunk(self, audio: np.ndarray[Any, Any], sample_rate: int) -> None:
        """A sentence, float32 (n,)."""

    def on_tts_complete(self) -> None:
        """The last sentence was handed out."""

    def on_interruption(self) -> None:
        """The answer was stopped before its end."""

    def on_error(self, error: Exception) -> None:
        """A stage failed; whoever iterates gets the error, too."""
