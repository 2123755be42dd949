"""SpeechStats: figures of what was spoken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.pipeline.answer import TTSChunk


@dataclass(kw_only=True)
class SpeechStats:
    """Figures since reset_stats(). first_audio_latency_ms: from asking to the first sound of the newest answer.
    token_to_audio_latencies_ms: of each sentence, from its last token to its sound."""

    total_tokens: int = 0
    total_sentences: int = 0
    total_audio_duration_ms: float = 0.0
    total_synthesis_time_ms: float = 0.0
    first_audio_latency_ms: float | None = None
    token_to_audio_latencies_ms: list[float] = field(default_factory=list)

    @property
    def avg_synthesis_time_per_sentence_ms(self) -> float:
        """0 where nothing was spoken."""
        return self.total_synthesis_time_ms / self.total_sentences if self.total_sentences else 0.0

    @property
    def realtime_factor(self) -> float:
        """Time of synthesis over duration of the sound: below 1 it is faster than it sounds; 0 without sound."""
        return self.total_synthesis_time_ms / self.total_audio_duration_ms if self.total_audio_duration_ms else 0.0

    def add(self, chunk: TTSChunk) -> None:
        """Count a sentence."""
        self.total_sentences += 1
        self.total_audio_duration_ms += chunk.duration_ms
        self.total_synthesis_time_ms += chunk.latency_ms
        self.token_to_audio_latencies_ms.append(chunk.latency_ms)
