"""Voice: who speaks is heard, understood, answered and spoken to. Every name is fetched on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module: the public names that live there. tools/name_stubs.py writes __init__.pyi, for type checkers, from it.
_HOMES = {
    "pygpukit.compat.pipeline": "AudioBuffer",
    "pygpukit.pipeline.answer": "TTSChunk",
    "pygpukit.pipeline.sentences": "SentenceBuffer",
    "pygpukit.pipeline.speech": "LLMToTTSPipeline StreamingTTSCallback speak",
    "pygpukit.pipeline.spoken": "SpeechStats",
    "pygpukit.pipeline.stages": "StageTime",
    "pygpukit.pipeline.turns": "ConversationTurn PipelineState PipelineStats VoicePipelineCallback",
    "pygpukit.pipeline.vad": "VADConfig VADEvent VADState VoiceActivityDetector",
    "pygpukit.pipeline.voice": "VoicePipeline create_voice_pipeline",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pygpukit.pipeline' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
