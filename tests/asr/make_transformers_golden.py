#!/usr/bin/env python3
"""What transformers makes of the small random model: tests/asr/transformers.npz. Needs torch and transformers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from asr.tiny_weights import CONFIG, TOKENS, mel, weights  # noqa: E402


def main() -> int:
    """The encoder's states and the decoder's logits, computed in float64."""
    config = WhisperConfig(**CONFIG, attn_implementation="eager")
    model = WhisperForConditionalGeneration(config).eval()
    given = {name: torch.from_numpy(array) for name, array in weights().items()}
    missing, unexpected = model.load_state_dict(given, strict=False)
    assert not unexpected and set(missing) <= {"proj_out.weight"}, (missing, unexpected)
    model.tie_weights()
    model = model.double()
    with torch.no_grad():
        states = model.model.encoder(torch.from_numpy(mel())[None].double()).last_hidden_state
        out = model(encoder_outputs=(states,), decoder_input_ids=torch.tensor([TOKENS]))
    logits = out.logits[0].numpy()
    np.savez_compressed(HERE / "transformers.npz", states=states[0].numpy().astype("f4"), logits=logits.astype("f4"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
