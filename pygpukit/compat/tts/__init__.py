"""Parts of synthesis that Kokoro-82M has not, in pygpukit.tts: a BERT, a mel decoder and its vocoder."""
