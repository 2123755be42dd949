"""VoicePipeline: a conversation by voice, from blocks of sound to the sound of an answer."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from pygpukit.asr.silero import SileroVAD
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import require
from pygpukit.pipeline.answer import Answer, Voice
from pygpukit.pipeline.speech import check_part, tokenizer_of
from pygpukit.pipeline.stages import Clock, Contexts, Stages, StageTime
from pygpukit.pipeline.taking import Turn, figures, messages
from pygpukit.pipeline.turns import ConversationTurn, PipelineState, PipelineStats, VoicePipelineCallback
from pygpukit.pipeline.vad import VADConfig, VADEvent, VoiceActivityDetector
from pygpukit.tts import phonemes
from pygpukit.tts.wav import as_samples

Samples = np.ndarray[Any, Any]


class VoicePipeline:
    """Hears, answers and speaks. create_voice_pipeline() makes one from files.

    whisper_model, llm_model, tts_model: what has transcribe(), chat() and stream(). llm_tokenizer: only the model's own
    is taken. voice, speed: of the answer. vad: what hears that somebody speaks: "energy", or "silero", fetched on first
    use, or a SileroVAD; vad_config is of the kind it takes. contexts: an ExecutionContext for each of "transcribe",
    "generate" and "speak" that is to have a stream and a share of its own; load each model in the session of its
    context. settings: those of llm_model.chat(), greedy by default.

    One thread feeds process_audio(); answers may be iterated over on others. The same sound gives the same answer.
    """

    def __init__(
        self,
        whisper_model: Any,
        llm_model: Any,
        tts_model: Any,
        llm_tokenizer: Any = None,
        vad_config: VADConfig | None = None,
        system_prompt: str | None = None,
        voice: str | None = None,
        callback: VoicePipelineCallback | None = None,
        *,
        speed: float = 1.0,
        vad: str | SileroVAD = "energy",
        contexts: Contexts | None = None,
        clock: Clock = time.monotonic,
        **settings: Any,
    ) -> None:
        for name, part, does in (
            ("whisper_model", whisper_model, "transcribe"),
            ("llm_model", llm_model, "chat"),
            ("tts_model", tts_model, "stream"),
        ):
            check_part(name, part, does)
        self.whisper, self.llm, self.tts = whisper_model, llm_model, tts_model
        self.tokenizer = tokenizer_of(llm_model, llm_tokenizer)
        self.system_prompt, self.voice, self.speed = system_prompt, voice, speed
        self.callback = callback or VoicePipelineCallback()
        self.settings = settings
        self._vad = VoiceActivityDetector(vad_config, _detector(vad))
        self._stages = Stages(contexts, clock)
        self._lock = threading.RLock()  # over what follows
        self._state = PipelineState.IDLE
        self._turn: Turn | None = None
        self._turns: list[Turn] = []
        self._begun = self._interruptions = 0
        self._rows: list[StageTime] = []

    @property
    def state(self) -> PipelineState:
        """Its state now."""
        return self._state

    @property
    def sample_rate(self) -> int:
        """Of the sound that it hears, in Hz."""
        return self._vad.config.sample_rate

    @property
    def stats(self) -> PipelineStats:
        """Figures of the turns so far."""
        with self._lock:
            return figures(self._turns, self.sample_rate, self._interruptions)

    @property
    def conversation_history(self) -> list[ConversationTurn]:
        """The turns that have ended, oldest first. One that failed, and sound without words, leave none."""
        with self._lock:
            return [turn.record for turn in self._turns]

    def timeline(self) -> list[StageTime]:
        """The time of each stage, in order: rows for a picture."""
        with self._lock:
            return [*self._rows]

    def start_listening(self) -> None:
        """Take sound from now on."""
        with self._lock:
            if self._state is not PipelineState.IDLE:
                return
            self._state = PipelineState.LISTENING
        self.callback.on_listening_start()

    def stop_listening(self) -> None:
        """Take no more sound; an utterance that was begun is forgotten, and an answer that is coming is stopped."""
        self.interrupt()
        with self._lock:
            self._vad.reset()
            self._state = PipelineState.IDLE

    def interrupt(self) -> None:
        """Stop the answer that is coming within one step; nothing happens when none is. From any thread."""
        self._interrupt(self._turn)

    def reset(self) -> None:
        """Stop the answer, and forget the conversation, figures and timeline."""
        self.interrupt()
        with self._lock:
            self._vad.reset()
            self._turns, self._rows = [], []
            self._begun = self._interruptions = 0

    def process_audio(self, audio: Any) -> Iterator[Samples]:
        """Take a block of sound; iterate over the answer, if it ends an utterance: float32 (n,), a sentence each.

        audio: as VoiceActivityDetector's, at the rate of its configuration. The block is heard at once: where speech
        begins in it while an answer is coming, that is stopped. The answer is computed as it is asked for. Several
        utterances in one block are answered one after the other. Raises InvalidSpecError, and at once, for sound that
        is none and before start_listening(); the iteration raises what a stage raises.
        """
        self._check_listening()
        return self._answers(deque(self._vad.process_audio(audio)))

    def hear(self, audio: Any) -> Iterator[Samples]:
        """Take an utterance as a whole, as a button that is held gives it; iterate over the answer.

        Voice activity is not asked. audio: one channel of floats, (n,), at sample_rate. Stops an answer that is coming.
        Raises as process_audio().
        """
        self._check_listening()
        samples = as_samples(audio)
        seconds = samples.size / self.sample_rate
        return self._answers(deque([VADEvent("speech_end", seconds, samples, seconds)]))

    def flush(self) -> Iterator[Samples]:
        """The sound ends here, as that of a file does: process_audio() of enough silence."""
        return self._answers(deque(self._vad.flush()))

    def _check_listening(self) -> None:
        with self._lock:
            if self._state is PipelineState.IDLE:
                raise InvalidSpecError("the pipeline does not listen; start_listening() comes first", "audio")

    def _interrupt(self, turn: Turn | None) -> None:
        with self._lock:
            if turn is None or self._turn is not turn:
                return
            turn.cancel()
            turn.record.was_interrupted = True
            self._interruptions += 1
            self._finish(turn)
        turn.stop()  # without the lock: it waits for a step
        self.callback.on_interruption()

    def _answers(self, events: deque[VADEvent]) -> Iterator[Samples]:
        return self._sounds(self._next(events), events)

    def _next(self, events: deque[VADEvent]) -> Turn | None:
        """The turn that the events begin; those after its beginning wait for its end."""
        while events:
            event = events.popleft()
            self.interrupt()
            if event.audio is not None:
                with self._lock:
                    self._turn = Turn.of(event, self._begun, self._stages.clock())
                    self._begun += 1
                    return self._turn
            self.callback.on_speech_detected()
        return None

    def _sounds(self, turn: Turn | None, events: deque[VADEvent]) -> Iterator[Samples]:
        while turn is not None:
            yield from self._answer(turn)
            turn = None if turn.stopped else self._next(events)

    def _answer(self, turn: Turn) -> Iterator[Samples]:
        try:
            self._transcribe(turn)
            if not turn.record.user_text or turn.stopped:
                return
            self._enter(turn, PipelineState.GENERATING)
            with self._lock:
                said = messages(
                    self.system_prompt, [previous.record for previous in self._turns], turn.record.user_text
                )
                voice = Voice(self.tts, self.voice, self.speed)
                answer = Answer(
                    self.llm, voice, said, self.settings, self._stages, callback=self.callback, record=self._row(turn)
                )
            for chunk in turn.chunks(answer):
                self._enter(turn, PipelineState.SPEAKING)
                self.callback.on_audio_chunk(chunk.audio, chunk.sample_rate)
                yield chunk.audio
            self._finish(turn, complete=True)
        except GeneratorExit:
            self._interrupt(turn)
            raise
        except Exception as error:
            turn.failed = True
            self._finish(turn)
            self.callback.on_error(error)
            raise
        finally:
            self._finish(turn)

    def _transcribe(self, turn: Turn) -> None:
        self._enter(turn, PipelineState.TRANSCRIBING)
        self.callback.on_transcription_start()
        start = self._stages.clock()
        with self._stages.session("transcribe"):
            heard = self.whisper.transcribe(turn.record.user_audio, self.sample_rate)
        end = self._stages.clock()
        turn.record.user_text = heard.text.strip()
        turn.transcription_s = end - start
        self._row(turn)("transcribe", start, end, turn.record.user_text)
        if not turn.stopped:
            self.callback.on_transcription_complete(turn.record.user_text)

    def _enter(self, turn: Turn, state: PipelineState) -> None:
        with self._lock:
            if self._turn is turn:
                self._state = state

    def _row(self, turn: Turn) -> Any:
        def record(stage: str, start: float, end: float, text: str) -> None:
            zero = turn.record.start_time
            with self._lock:
                self._rows.append(StageTime(turn.number, stage, start - zero, end - zero, text))

        return record

    def _finish(self, turn: Turn, complete: bool = False) -> None:
        """The end of a turn, whichever way it came; only the first counts."""
        with self._lock:
            if self._turn is not turn:
                return
            self._turn, self._state = None, PipelineState.LISTENING
            turn.end(self._stages.clock(), complete)
            if turn.record.user_text and not turn.failed:
                self._turns.append(turn)


def _detector(vad: str | SileroVAD) -> SileroVAD | None:
    if isinstance(vad, SileroVAD):
        return vad
    if vad not in ("energy", "silero"):
        raise InvalidSpecError(f"vad is {vad!r}, must be 'energy', 'silero' or a SileroVAD", "vad")
    return SileroVAD(progress=False) if vad == "silero" else None


def create_voice_pipeline(
    whisper_path: str | os.PathLike[str],
    llm_path: str | os.PathLike[str],
    tts_path: str | os.PathLike[str],
    system_prompt: str | None = None,
    voice: str | None = None,
    *,
    contexts: Contexts | None = None,
    **settings: Any,
) -> VoicePipeline:
    """A pipeline of models by their names ("whisper-tiny.en", "smollm2-135m-instruct", "kokoro-82m") or files.

    contexts: each model is loaded in its stage's. settings: further arguments of VoicePipeline. Raises as the models'
    load() functions do, and for what is not installed before the first model is fetched.
    """
    from pygpukit import asr, llm, tts

    require("models", "a conversation by voice", "tokenizers", "jinja2")  # and all before the first is fetched
    phonemes.library()

    def session(stage: str) -> Any:
        return (contexts or {}).get(stage, nullcontext())

    with session("transcribe"):
        whisper = asr.load(whisper_path, progress=False)
    with session("generate"):
        chat = llm.load(llm_path, progress=False)
    with session("speak"):
        speaker = tts.load(tts_path, progress=False)
    return VoicePipeline(
        whisper, chat, speaker, system_prompt=system_prompt, voice=voice, contexts=contexts, **settings
    )
