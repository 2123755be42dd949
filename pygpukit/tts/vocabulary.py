"""Kokoro's symbols: phonemes, stress marks and punctuation, each with its token."""

from __future__ import annotations

PAD = "$"  # token 0, at the begin and the end of every utterance

# First token of a run: its symbols, whose tokens follow each other. The numbers between stand for nothing.
_RUNS = {
    1: ";:,.!?",
    9: '\u2014\u2026"()\u201c\u201d \u0303\u02a3\u02a5\u02a6\u02a8\u1d5d\uab67AI',
    31: "O",
    33: "Q",
    35: "ST",
    39: "W",
    41: "Y\u1d4aabcdef",
    50: "hijklmnopqrstuvwxyz\u0251\u0250\u0252\u00e6",
    75: "\u03b2\u0254\u0255\u00e7",
    80: "\u0256\u00f0\u02a4\u0259",
    85: "\u025a\u025b\u025c",
    90: "\u025f",
    92: "\u0261",
    99: "\u0265",
    101: "\u0268\u026a\u029d",
    110: "\u026f\u0270\u014b\u0273\u0272\u0274\u00f8",
    118: "\u0278\u03b8\u0153",
    123: "\u0279",
    125: "\u027e\u027b",
    128: "\u0281\u027d\u0282\u0283\u0288\u02a7",
    135: "\u028a\u028b",
    138: "\u028c\u0263\u0264",
    142: "\u03c7\u028e",
    147: "\u0292\u0294",
    156: "\u02c8\u02cc\u02d0",
    162: "\u02b0",
    164: "\u02b2",
    169: "\u2193",
    171: "\u2192\u2197\u2198",
    177: "\u1d7b",
}

DEFAULT_VOCAB: dict[str, int] = {PAD: 0} | {
    symbol: first + place for first, symbols in _RUNS.items() for place, symbol in enumerate(symbols)
}
