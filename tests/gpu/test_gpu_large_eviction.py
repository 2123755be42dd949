"""Ten thousand times a block of 64 MiB or more goes to the host and comes back; a kernel checks every word of it."""

from __future__ import annotations

import os
import secrets

from patterned import wrong_after

SEED = int(os.environ.get("PYGPUKIT_EVICTION_SEED") or secrets.randbits(32))
MIB_WORDS = (1 << 20) // 8


def test_ten_thousand_cycles_of_large_blocks() -> None:
    words = [64 * MIB_WORDS] * 6 + [256 * MIB_WORDS + 1] * 2  # the copies alone are about 25 s
    assert wrong_after(words, [99] * 6 + [1] * 2, 10_000, SEED) == 0, f"PYGPUKIT_EVICTION_SEED={SEED}"
