# Written by tools/name_stubs.py from what the modules say they give.
from pygpukit.compat.tts.bert import BertLayer as BertLayer
from pygpukit.compat.tts.bert import BertSelfAttention as BertSelfAttention
from pygpukit.compat.tts.bert import PLBERTEncoder as PLBERTEncoder
from pygpukit.compat.tts.bert import build_plbert_from_weights as build_plbert_from_weights
from pygpukit.compat.tts.mel import Decoder as Decoder
from pygpukit.compat.tts.mel import ISTFTNet as ISTFTNet
from pygpukit.compat.tts.mel import ResBlock1d as ResBlock1d
from pygpukit.compat.tts.mel import StyleEncoder as StyleEncoder
from pygpukit.nn.linear.layer import Linear as Linear
from pygpukit.tts.config import KokoroConfig as KokoroConfig
from pygpukit.tts.layers.activation import leaky_relu as leaky_relu
from pygpukit.tts.layers.activation import tanh as tanh
from pygpukit.tts.layers.albert import ALBERTEncoder as ALBERTEncoder
from pygpukit.tts.layers.albert import ALBERTLayer as ALBERTLayer
from pygpukit.tts.layers.albert import build_albert_from_weights as build_albert_from_weights
from pygpukit.tts.layers.convolution import Conv1d as Conv1d
from pygpukit.tts.layers.convolution import ConvTranspose1d as ConvTranspose1d
from pygpukit.tts.layers.convolution import WeightNormConv1d as WeightNormConv1d
from pygpukit.tts.layers.layer_norm import LayerNorm as LayerNorm
from pygpukit.tts.layers.lstm import LSTM as LSTM
from pygpukit.tts.layers.residual import AdaINResBlock as AdaINResBlock
from pygpukit.tts.layers.style import AdaIN as AdaIN
from pygpukit.tts.layers.style import InstanceNorm1d as InstanceNorm1d
from pygpukit.tts.layers.text import KokoroTextEncoder as KokoroTextEncoder
from pygpukit.tts.layers.text import build_text_encoder_from_weights as build_text_encoder_from_weights
from pygpukit.tts.model import KokoroModel as KokoroModel
from pygpukit.tts.model import load as load
from pygpukit.tts.result import SynthesisResult as SynthesisResult
from pygpukit.tts.text import normalize_text as normalize_text
from pygpukit.tts.text import split_sentences as split_sentences
from pygpukit.tts.text import spoken_text as spoken_text
from pygpukit.tts.tokenizer import KokoroTokenizer as KokoroTokenizer
from pygpukit.tts.tokenizer import TokenizerOutput as TokenizerOutput
from pygpukit.tts.vocabulary import DEFAULT_VOCAB as DEFAULT_VOCAB
from pygpukit.tts.voices import list_available_voices as list_available_voices
from pygpukit.tts.voices import load_voice_embedding as load_voice_embedding
from pygpukit.tts.wav import concatenate_audio as concatenate_audio
from pygpukit.tts.wav import from_wav as from_wav
from pygpukit.tts.wav import resample_audio as resample_audio
from pygpukit.tts.wav import to_wav as to_wav
from pygpukit.tts.weights import get_weight_info as get_weight_info
from pygpukit.tts.weights import load_kokoro_weights as load_kokoro_weights
from pygpukit.tts.weights import print_weight_summary as print_weight_summary

__all__: list[str]
_HOME_OF: dict[str, str]
