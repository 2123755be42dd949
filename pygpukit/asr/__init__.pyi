# Written by tools/name_stubs.py from what the modules say they give.
from pygpukit.asr.audio import pad_or_trim as pad_or_trim
from pygpukit.asr.audio import preprocess_audio as preprocess_audio
from pygpukit.asr.audio import preprocess_audio_batch as preprocess_audio_batch
from pygpukit.asr.audio import samples_of as samples_of
from pygpukit.asr.config import WHISPER_CONFIGS as WHISPER_CONFIGS
from pygpukit.asr.config import WhisperConfig as WhisperConfig
from pygpukit.asr.decoder import WhisperDecoder as WhisperDecoder
from pygpukit.asr.decoder import WhisperDecoderLayer as WhisperDecoderLayer
from pygpukit.asr.decoder import create_decoder as create_decoder
from pygpukit.asr.encoder import WhisperEncoder as WhisperEncoder
from pygpukit.asr.encoder import WhisperEncoderLayer as WhisperEncoderLayer
from pygpukit.asr.encoder import create_encoder as create_encoder
from pygpukit.asr.model import WhisperModel as WhisperModel
from pygpukit.asr.model import load as load
from pygpukit.asr.options import Options as Options
from pygpukit.asr.results import TranscriptionResult as TranscriptionResult
from pygpukit.asr.results import TranscriptionSegment as TranscriptionSegment
from pygpukit.asr.results import Word as Word
from pygpukit.asr.silero import SileroStream as SileroStream
from pygpukit.asr.silero import SileroVAD as SileroVAD
from pygpukit.asr.speech import SpeechOptions as SpeechOptions
from pygpukit.asr.weights import WhisperWeights as WhisperWeights
from pygpukit.compat.asr import WHISPER_CHUNK_LENGTH as WHISPER_CHUNK_LENGTH
from pygpukit.compat.asr import WHISPER_HOP_LENGTH as WHISPER_HOP_LENGTH
from pygpukit.compat.asr import WHISPER_N_FFT as WHISPER_N_FFT
from pygpukit.compat.asr import WHISPER_N_FRAMES as WHISPER_N_FRAMES
from pygpukit.compat.asr import WHISPER_N_MELS as WHISPER_N_MELS
from pygpukit.compat.asr import WHISPER_N_SAMPLES as WHISPER_N_SAMPLES
from pygpukit.compat.asr import WHISPER_SAMPLE_RATE as WHISPER_SAMPLE_RATE
from pygpukit.compat.asr import WhisperTokenizer as WhisperTokenizer
from pygpukit.compat.asr import download_model as download_model
from pygpukit.compat.asr import load_safetensors as load_safetensors
from pygpukit.compat.asr import load_whisper_model as load_whisper_model
from pygpukit.compat.asr import normalize_mel as normalize_mel

__all__: list[str]
_HOME_OF: dict[str, str]
