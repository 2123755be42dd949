"""Turn: one turn of a conversation while it is taken, and what all of them give: messages and figures."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pygpukit.pipeline.answer import Answer, TTSChunk
from pygpukit.pipeline.turns import ConversationTurn, PipelineStats
from pygpukit.pipeline.vad import VADEvent
from pygpukit.tts.wav import concatenate_audio


@dataclass(eq=False)
class Turn:
    """record: what users see of it. Latencies in seconds, None where the stage was not reached."""

    number: int
    record: ConversationTurn
    transcription_s: float | None = None
    first_token_s: float | None = None
    first_audio_s: float | None = None  # of its synthesis
    heard_s: float | None = None  # from the end of the question to the first sound
    failed: bool = False
    answer: Answer | None = None
    spoken: list[TTSChunk] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, event: VADEvent, number: int, now: float) -> Turn:
        """Of the end of an utterance."""
        return cls(number, ConversationTurn(user_audio=event.audio, start_time=now))

    @property
    def stopped(self) -> bool:
        """True if it is no longer wanted."""
        return self._stopped.is_set()

    def cancel(self) -> None:
        """It is no longer wanted; stop() waits until that has come true."""
        self._stopped.set()

    def stop(self) -> None:
        """End it within one step."""
        self.cancel()
        if self.answer is not None:
            self.answer.stop()

    def chunks(self, answer: Answer) -> Iterator[TTSChunk]:
        """The answer's, kept as they are handed out."""
        self.answer = answer
        if self.stopped:  # it came between
            answer.stop()
        for chunk in answer:
            if not self.spoken:
                self.first_token_s, self.first_audio_s = answer.first_token_s, chunk.end_time - chunk.start_time
                self.heard_s = chunk.end_time - self.record.start_time
            self.spoken.append(chunk)
            yield chunk

    def end(self, now: float, complete: bool) -> None:
        """No more comes. complete: all of the answer was handed out; else what was spoken is what counts."""
        record = self.record
        record.end_time = now
        if complete and self.answer is not None:
            record.assistant_text = self.answer.text.strip()
        else:
            record.assistant_text = " ".join(chunk.text for chunk in self.spoken)
        record.assistant_audio = concatenate_audio([chunk.audio for chunk in self.spoken]) if self.spoken else None


def messages(system: str | None, history: Sequence[ConversationTurn], question: str) -> list[dict[str, str]]:
    """The messages for the chat model; a turn of which no answer was heard is left out."""
    said = [("system", system)] if system else []
    for turn in history:
        if turn.assistant_text:
            said += [("user", turn.user_text), ("assistant", turn.assistant_text)]
    return [{"role": role, "content": text} for role, text in [*said, ("user", question)]]


def figures(turns: Sequence[Turn], rate: int, interruptions: int) -> PipelineStats:
    """The figures of all turns. rate: of the users' sound."""
    heard = sum(turn.record.user_audio.size for turn in turns if turn.record.user_audio is not None) / rate

    def mean_ms(name: str) -> float:
        values = [value for turn in turns if (value := getattr(turn, name)) is not None]
        return 1000 * float(np.mean(values)) if values else 0.0

    stats = PipelineStats(
        total_turns=len(turns),
        total_user_speech_duration=heard,
        avg_transcription_latency_ms=mean_ms("transcription_s"),
        avg_llm_first_token_latency_ms=mean_ms("first_token_s"),
        avg_tts_first_audio_latency_ms=mean_ms("first_audio_s"),
        interruptions=interruptions,
    )
    for turn in turns:
        stats.total_tokens += 0 if turn.answer is None else turn.answer.tokens
        stats.first_audio_latency_ms = None if turn.heard_s is None else 1000 * turn.heard_s
        for chunk in turn.spoken:
            stats.add(chunk)
    stats.total_assistant_speech_duration = stats.total_audio_duration_ms / 1000
    return stats
