# Written by tools/name_stubs.py from what the modules say they give.
from pygpukit.ops.audio.centroid import spectral_bandwidth as spectral_bandwidth
from pygpukit.ops.audio.centroid import spectral_centroid as spectral_centroid
from pygpukit.ops.audio.contrast import spectral_contrast as spectral_contrast
from pygpukit.ops.audio.decibels import amplitude_to_db as amplitude_to_db
from pygpukit.ops.audio.decibels import db_to_amplitude as db_to_amplitude
from pygpukit.ops.audio.decibels import db_to_power as db_to_power
from pygpukit.ops.audio.decibels import log_mel as log_mel
from pygpukit.ops.audio.decibels import power_to_db as power_to_db
from pygpukit.ops.audio.decibels import to_decibels as to_decibels
from pygpukit.ops.audio.delta import delta as delta
from pygpukit.ops.audio.flatness import spectral_flatness as spectral_flatness
from pygpukit.ops.audio.framing import fix_length as fix_length
from pygpukit.ops.audio.framing import frame as frame
from pygpukit.ops.audio.griffinlim import griffin_lim as griffin_lim
from pygpukit.ops.audio.griffinlim import griffinlim as griffinlim
from pygpukit.ops.audio.hpss import harmonic as harmonic
from pygpukit.ops.audio.hpss import hpss as hpss
from pygpukit.ops.audio.hpss import percussive as percussive
from pygpukit.ops.audio.istft import istft as istft
from pygpukit.ops.audio.magnitudes import magnitude_spectrum as magnitude_spectrum
from pygpukit.ops.audio.magnitudes import magphase as magphase
from pygpukit.ops.audio.magnitudes import power_spectrum as power_spectrum
from pygpukit.ops.audio.mel_filters import create_mel_filterbank as create_mel_filterbank
from pygpukit.ops.audio.mel_filters import mel as mel
from pygpukit.ops.audio.melspectrogram import apply_mel_filterbank as apply_mel_filterbank
from pygpukit.ops.audio.melspectrogram import log_mel_spectrogram as log_mel_spectrogram
from pygpukit.ops.audio.melspectrogram import mel_spectrogram as mel_spectrogram
from pygpukit.ops.audio.melspectrogram import melspectrogram as melspectrogram
from pygpukit.ops.audio.mfcc import mfcc as mfcc
from pygpukit.ops.audio.rolloff import spectral_rolloff as spectral_rolloff
from pygpukit.ops.audio.stft import stft as stft
from pygpukit.ops.audio.tuning import estimate_tuning as estimate_tuning
from pygpukit.ops.audio.tuning import piptrack as piptrack
from pygpukit.ops.audio.tuning import pitch_tuning as pitch_tuning
from pygpukit.ops.audio.vocoder import phase_vocoder as phase_vocoder
from pygpukit.ops.audio.whisper import whisper_log_mel as whisper_log_mel
from pygpukit.ops.audio.windows import get_window as get_window

__all__: list[str]

def homes() -> dict[str, str]: ...
