"""VoicePipeline with scripted models: order, barge-in, errors, sound without words, figures."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from pipeline.scripted import QUESTION, RATE, Clock, Kokoro, Log, Whisper, chat, pipeline, silence, speech
from stub_model import StubModel

import pygpukit as gp
from pygpukit.pipeline import PipelineState, VoicePipeline


def test_a_question_is_heard_answered_and_spoken() -> None:
    log, whisper, llm, tts = Log(), Whisper("how many"), chat(), Kokoro()
    voice = pipeline(whisper, llm, tts, callback=log, system_prompt="Be short.", max_new_tokens=9)
    chunks = []
    for block in np.split(QUESTION, range(317, QUESTION.size, 317)):
        chunks += list(voice.process_audio(block))
    assert [chunk.size for chunk in chunks] == [200, 100]
    assert tts.said == ["One two.", "Three?"]
    assert llm.asked == [[{"role": "system", "content": "Be short."}, {"role": "user", "content": "how many"}]]
    assert log.told == [
        "listening_start", "speech_detected", "transcription_start", "transcription_complete", "generation_start",
        "generation_token", "generation_token", "generation_token", "tts_start", "audio_chunk", "generation_complete",
        "audio_chunk", "tts_complete",
    ]  # fmt: skip
    (turn,) = voice.conversation_history
    assert (turn.user_text, turn.assistant_text, turn.was_interrupted) == ("how many", "One two. Three?", False)
    assert turn.assistant_audio is not None and np.array_equal(turn.assistant_audio, np.concatenate(chunks))
    assert turn.user_audio is not None and np.array_equal(turn.user_audio, whisper.heard[0])
    assert voice.state is PipelineState.LISTENING and llm.generations[0].closed


def test_states_and_the_timeline_follow_the_stages() -> None:
    states: list[Any] = []
    voice = pipeline(tts=Kokoro(lambda _text: states.append(voice.state)))
    answer = voice.process_audio(QUESTION)
    assert voice.state is PipelineState.LISTENING
    for _ in answer:
        states.append(voice.state)
    assert [state.name for state in states] == ["GENERATING", "SPEAKING", "SPEAKING", "SPEAKING"]
    rows = voice.timeline()
    assert [(row.turn, row.stage, row.text) for row in rows] == [
        (0, "transcribe", "hello"), (0, "generate", "One two."), (0, "speak", "One two."),
        (0, "generate", "Three?"), (0, "speak", "Three?"),
    ]  # fmt: skip
    times = [time for row in rows for time in (row.start, row.end)]
    assert times == sorted(times) and times[0] > 0  # one stage after the other, from the end of speech on
    stats = voice.stats
    assert stats.total_turns == 1 and stats.total_assistant_speech_duration == 300 / 24000
    assert stats.avg_transcription_latency_ms == 1000 * (rows[0].end - rows[0].start)
    assert stats.avg_tts_first_audio_latency_ms == 1000 * (rows[2].end - rows[2].start)
    assert stats.avg_llm_first_token_latency_ms == 1000
    assert (stats.total_tokens, stats.total_sentences, stats.total_audio_duration_ms) == (3, 2, 300 / 24)
    assert stats.first_audio_latency_ms == 1000 * rows[2].end
    assert stats.token_to_audio_latencies_ms == [1000 * (row.end - row.start) for row in rows if row.stage == "speak"]
    assert stats.avg_synthesis_time_per_sentence_ms == stats.total_synthesis_time_ms / 2


def test_the_next_question_knows_the_conversation() -> None:
    llm = chat("Yes.")
    voice = pipeline(Whisper("a", "b"), llm)
    whole = np.concatenate([QUESTION, QUESTION])
    assert len(list(voice.process_audio(whole))) == 2  # both utterances of one block are answered
    assert [message["content"] for message in llm.asked[1]] == ["a", "Yes.", "b"]
    voice.reset()
    assert voice.conversation_history == [] == voice.timeline() and voice.stats.total_turns == 0


def test_the_end_of_a_file_ends_the_utterance() -> None:
    voice = pipeline()
    assert list(voice.process_audio(QUESTION[: -round(0.4 * RATE)])) == []
    assert len(list(voice.flush())) == 2
    assert list(voice.flush()) == []


def test_speech_between_two_sentences_stops_the_answer() -> None:
    log, llm, tts = Log(), chat("One two. Three four. Five."), Kokoro()
    voice = pipeline(Whisper("first", "second"), llm, tts, callback=log)
    heard = []
    for chunk in voice.process_audio(QUESTION):
        heard.append(chunk)
        assert list(voice.process_audio(speech(0.3))) == []  # somebody speaks while the first sentence is played
        assert voice.state is PipelineState.LISTENING and llm.generations[0].closed
    assert len(heard) == 1 and tts.said == ["One two."] and llm.generations[0].count == 3
    assert log.told[-2:] == ["interruption", "speech_detected"]
    (turn,) = voice.conversation_history
    assert turn.was_interrupted and turn.assistant_text == "One two."
    assert voice.stats.interruptions == 1
    assert len(list(voice.process_audio(silence(0.6)))) == 3
    said = [message["content"] for message in llm.asked[1]]
    assert said == ["first", "One two.", "second"]  # what was not heard was not said


def test_speech_while_a_sentence_is_computed_drops_its_sound() -> None:
    def talk(_text: str) -> None:
        assert list(voice.process_audio(speech(0.3))) == []

    tts = Kokoro(talk)
    llm = chat()
    voice = pipeline(llm=llm, tts=tts)
    assert list(voice.process_audio(QUESTION)) == []
    assert tts.said == ["One two."] and llm.generations[0].closed
    assert voice.conversation_history[0].assistant_text == "" and voice.conversation_history[0].was_interrupted


def test_speech_during_generation_on_another_thread_stops_it() -> None:
    llm = StubModel(lambda _messages: [f"word{n} " for n in range(1000)], gated=True)
    voice = pipeline(llm=llm)
    found: list[Any] = []
    thread = threading.Thread(target=lambda answer: found.extend(answer), args=(voice.process_audio(QUESTION),))
    thread.start()
    llm.release(3)
    while not (llm.generations and llm.generations[0].count == 3):
        assert thread.is_alive()
    assert list(voice.process_audio(speech(0.3))) == []
    assert llm.generations[0].closed  # the model is free at once
    thread.join(60)
    assert not thread.is_alive() and found == [] and voice.state is PipelineState.LISTENING
    assert llm.generations[0].count <= 4


def test_interrupt_stops_and_leaving_interrupts() -> None:
    log = Log()
    voice = pipeline(Whisper("a", "b"), chat("One two. Three four. Five."), callback=log)
    voice.interrupt()  # nothing is coming
    assert "interruption" not in log.told
    answer = voice.process_audio(QUESTION)
    next(answer)
    voice.interrupt()
    assert list(answer) == [] and voice.stats.interruptions == 1
    left = voice.process_audio(QUESTION)
    next(left)
    del left
    assert voice.stats.interruptions == 2 and [turn.was_interrupted for turn in voice.conversation_history] == [1, 1]


def test_an_old_answer_that_is_let_go_does_not_stop_a_new_one() -> None:
    voice = pipeline(Whisper("a", "b"))
    old = voice.process_audio(QUESTION)
    next(old)
    new = voice.process_audio(QUESTION)
    next(new)
    del old
    assert len(list(new)) == 1 and voice.stats.interruptions == 1


def test_sound_without_words_is_not_answered() -> None:
    log, llm = Log(), chat()
    voice = pipeline(Whisper(""), llm, callback=log)
    assert list(voice.process_audio(QUESTION)) == []
    assert llm.asked == [] and voice.conversation_history == [] and voice.state is PipelineState.LISTENING
    assert log.told[-1] == "transcription_complete"
    for nothing in (silence(2), np.zeros(0, np.float32)):
        assert list(voice.process_audio(nothing)) == []
    assert list(voice.flush()) == []


def test_an_answer_that_nobody_can_speak_is_silent() -> None:
    voice = pipeline(llm=chat("... \U0001f600"))
    assert list(voice.process_audio(QUESTION)) == []
    assert voice.conversation_history[0].assistant_text == "... \U0001f600"


@pytest.mark.parametrize("stage", ["transcribe", "generate", "speak"])
def test_errors_are_told_and_the_pipeline_goes_on(stage: str) -> None:
    def failing(_given: Any) -> Any:
        raise RuntimeError(stage) if broken else ValueError

    broken, errors = True, []
    log = Log()
    whisper = Whisper(RuntimeError(stage), "b") if stage == "transcribe" else Whisper("a", "b")
    llm = chat()
    if stage == "generate":
        llm._answer, answer = (lambda messages: failing(messages) if broken else answer(messages)), llm._answer
    tts = Kokoro(lambda text: failing(text) if broken and stage == "speak" else None)
    voice = pipeline(whisper, llm, tts, callback=log)
    try:
        list(voice.process_audio(QUESTION))
    except RuntimeError as error:
        errors.append(str(error))
    assert errors == [stage] and log.told[-1] == "error"
    assert voice.state is PipelineState.LISTENING and voice.conversation_history == []
    assert all(generation.closed for generation in llm.generations)
    broken = False
    assert len(list(voice.process_audio(QUESTION))) == 2 and voice.stats.total_turns == 1


def test_it_takes_sound_only_while_it_listens() -> None:
    voice = VoicePipeline(Whisper("a"), chat(), Kokoro(), clock=Clock())
    with pytest.raises(gp.InvalidSpecError, match=r"start_listening\(\) comes first"):
        voice.process_audio(QUESTION)
    voice.start_listening()
    with pytest.raises(gp.InvalidSpecError, match="one channel of floats"):
        voice.process_audio(np.zeros((2, 2), np.float32))
    list(voice.process_audio(speech(0.3)))
    voice.stop_listening()
    assert voice.state is PipelineState.IDLE
    voice.start_listening()
    assert list(voice.process_audio(silence(1))) == []  # what was begun is forgotten


def test_stages_have_the_contexts_that_were_given() -> None:
    from pygpukit.scheduler import create_context
    from pygpukit.scheduler.execution import current_context

    seen: dict[str, Any] = {}

    class Watching(Whisper):
        def transcribe(self, audio: Any, sample_rate: int) -> Any:
            seen["transcribe"] = current_context()
            return super().transcribe(audio, sample_rate)

    def answer(_messages: Any) -> list[str]:
        seen["generate"] = current_context()
        return ["Yes."]

    contexts = {stage: create_context(f"test-{stage}", share=0.2) for stage in ("transcribe", "generate", "speak")}
    try:
        tts = Kokoro(lambda _text: seen.update(speak=current_context()))
        voice = pipeline(Watching("a"), StubModel(answer), tts, contexts=contexts)
        for _ in voice.process_audio(QUESTION):
            assert current_context() is None  # the one who listens is in none of them
        assert seen == contexts
    finally:
        for context in contexts.values():
            context.destroy()
    with pytest.raises(gp.InvalidSpecError, match="no stage 'listen'; there are transcribe, generate, speak"):
        pipeline(contexts={"listen": None})
    with pytest.raises(gp.InvalidSpecError, match="not the model's own"):
        pipeline(llm_tokenizer=object())


def test_a_model_in_the_place_of_another_is_refused_by_name() -> None:
    whisper, llm, kokoro = Whisper("a"), chat(), Kokoro()
    for parts, words in (
        ((llm, llm, kokoro), r"whisper_model is a \w+, which has no transcribe\(\)"),
        ((whisper, kokoro, kokoro), r"llm_model is a Kokoro, which has no chat\(\)"),
        ((whisper, llm, None), r"tts_model is a NoneType, which has no stream\(\)"),
    ):
        with pytest.raises(gp.InvalidSpecError, match=words):
            VoicePipeline(*parts)
    with pytest.raises(gp.InvalidSpecError, match="llm_model is a Kokoro"):
        gp.pipeline.LLMToTTSPipeline(kokoro, kokoro)
