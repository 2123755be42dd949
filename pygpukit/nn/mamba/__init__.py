"""Mamba-2: layers that keep a state of each sequence in the place of keys and values."""
