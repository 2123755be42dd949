# Written by tools/name_stubs.py from what the modules say they give.
from pygpukit.compat.pipeline import AudioBuffer as AudioBuffer
from pygpukit.pipeline.answer import TTSChunk as TTSChunk
from pygpukit.pipeline.sentences import SentenceBuffer as SentenceBuffer
from pygpukit.pipeline.speech import LLMToTTSPipeline as LLMToTTSPipeline
from pygpukit.pipeline.speech import StreamingTTSCallback as StreamingTTSCallback
from pygpukit.pipeline.speech import speak as speak
from pygpukit.pipeline.spoken import SpeechStats as SpeechStats
from pygpukit.pipeline.stages import StageTime as StageTime
from pygpukit.pipeline.turns import ConversationTurn as ConversationTurn
from pygpukit.pipeline.turns import PipelineState as PipelineState
from pygpukit.pipeline.turns import PipelineStats as PipelineStats
from pygpukit.pipeline.turns import VoicePipelineCallback as VoicePipelineCallback
from pygpukit.pipeline.vad import VADConfig as VADConfig
from pygpukit.pipeline.vad import VADEvent as VADEvent
from pygpukit.pipeline.vad import VADState as VADState
from pygpukit.pipeline.vad import VoiceActivityDetector as VoiceActivityDetector
from pygpukit.pipeline.voice import VoicePipeline as VoicePipeline
from pygpukit.pipeline.voice import create_voice_pipeline as create_voice_pipeline

__all__: list[str]
_HOME_OF: dict[str, str]
