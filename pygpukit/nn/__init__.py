"""Layers that language models, speech recognition and speech synthesis are made of."""
