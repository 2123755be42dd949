"""TokenMasks: which tokens may come next in each row of a step, a bit each, in device memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.ops import host

if TYPE_CHECKING:
    import numpy as np

_BITS = 32  # of a word


class TokenMasks:
    """Masks of up to `rows` rows of `vocab` tokens. Every token may come until put() says otherwise."""

    def __init__(self, rows: int, vocab: int) -> None:
        import numpy as np

        self._own = np.full((rows, -(-vocab // _BITS)), 0xFFFFFFFF, np.uint32)  # as the device has them
        self.words = factory.from_numpy(self._own)

    def put(self, masks: Mapping[int, bytes | None]) -> None:
        """The masks of rows, bit by bit from the lowest of the first byte; None for all tokens, and none behind the end
        of a mask. What the device has already is not sent again, and the rest by one copy."""
        changed = [row for row, mask in masks.items() if self._note(row, mask)]
        if changed:
            rows = slice(min(changed), max(changed) + 1)
            native.copy_from_host(self.words[rows], self._own[rows])

    def allowed(self, row: int, vocab: int) -> np.ndarray[Any, Any]:
        """Where the host computes: whether each token may come."""
        import numpy as np

        packed = host.memory(self.words)[row].view(np.uint8)
        return np.unpackbits(packed, count=vocab, bitorder="little").astype(bool)

    def _note(self, row: int, mask: bytes | None) -> bool:
        """Note the mask of a row; True if it is another than before."""
        import numpy as np

        own = self._own[row].view(np.uint8)
        if mask is None:
            words = np.full(own.size, 0xFF, np.uint8)
        else:
            words = np.zeros(own.size, np.uint8)
            words[: len(mask)] = np.frombuffer(mask, np.uint8)[: own.size]
        if (own == words).all():
            return False
        own[:] = words
        return True
