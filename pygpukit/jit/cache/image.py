"""A compiled unit: what the driver loads, and what is known about it; its one form on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

_MAGIC = b"pygpukit image 1\n"


@dataclass(frozen=True, repr=False)
class Image:
    """The result of compile_source().

    kind: "nvrtc" (image is a CUBIN, ptx its PTX) or "sim" (image is the simulator's object, ptx is empty).
    symbols: kernel name expression to the name in the image. origin: "compiled", "uncached" (compiled and not stored),
    "memory" or "disk". changed: parts of the key in which the unit of the same name compiled before differs.
    """

    kind: str
    arch: str
    image: bytes
    ptx: str
    log: str
    symbols: dict[str, str]
    key: bytes = b""
    origin: str = "compiled"
    parts: dict[str, str] = field(default_factory=dict)  # what the key was made of, for explain()
    changed: tuple[str, ...] = ()
    reason: str = ""  # why it had to be compiled, or is not cached, in a few words; "" unknown

    def symbol(self, expression: str) -> str:
        """The kernel's name in the image."""
        return self.symbols.get(expression, expression)

    def __repr__(self) -> str:
        return (
            f"Image({self.kind}, {self.arch}, {self.origin}, {len(self.image)} bytes, "
            f"key {self.key.hex()[:16] or None}, kernels: {', '.join(self.symbols) or 'those of its source'})"
        )

    def to_bytes(self) -> bytes:
        """One block: a line that names the format, a JSON head with the lengths, image, PTX."""
        ptx = self.ptx.encode()
        head = {
            "kind": self.kind,
            "arch": self.arch,
            "log": self.log,
            "symbols": self.symbols,
            "image": len(self.image),
            "ptx": len(ptx),
        }
        return b"".join((_MAGIC, json.dumps(head).encode(), b"\n", self.image, ptx))


def from_bytes(payload: bytes, key: bytes, origin: str, parts: dict[str, str]) -> Image:
    """The image in a cache entry. Raises ValueError for anything that to_bytes() did not write."""
    if not payload.startswith(_MAGIC):
        raise ValueError("not a kernel image of this version")
    end = payload.index(b"\n", len(_MAGIC))
    head = json.loads(payload[len(_MAGIC) : end])
    image_end = end + 1 + head["image"]
    if len(payload) != image_end + head["ptx"]:
        raise ValueError("the kernel image has another length than its head says")
    return Image(
        kind=head["kind"],
        arch=head["arch"],
        image=payload[end + 1 : image_end],
        ptx=payload[image_end:].decode(),
        log=head["log"],
        symbols=head["symbols"],
        key=key,
        origin=origin,
        parts=parts,
    )
