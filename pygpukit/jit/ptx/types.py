"""PTX's types, and what holds a value of each in C++."""

from __future__ import annotations

from dataclasses import dataclass

_UNSIGNED = {8: "unsigned char", 16: "unsigned short", 32: "unsigned", 64: "unsigned long long", 128: "pk_ptx_u128"}
_SIGNED = {8: "signed char", 16: "short", 32: "int", 64: "long long"}


@dataclass(frozen=True)
class Type:
    """kind: u, s, b (bits), f (a float or double), p (a predicate), or x for other formats, which stay bits."""

    name: str
    bits: int
    kind: str

    @property
    def cpp(self) -> str:
        """The C++ type that instructions compute with."""
        if self.kind == "p":
            return "bool"
        if self.kind == "f":
            return "float" if self.bits == 32 else "double"
        return _SIGNED[self.bits] if self.kind == "s" else _UNSIGNED[self.bits]

    @property
    def holder(self) -> str:
        """The C++ type of a register."""
        return self.cpp if self.kind in "pf" else _UNSIGNED[self.bits]

    @property
    def is_integer(self) -> bool:
        return self.kind in "us"


TYPES = {
    one.name: one
    for one in (
        Type("pred", 1, "p"),
        *(Type(f"{kind}{bits}", bits, kind) for kind in "usb" for bits in (8, 16, 32, 64)),
        Type("b128", 128, "b"),
        Type("f32", 32, "f"),
        Type("f64", 64, "f"),
        *(Type(name, 16, "x") for name in ("f16", "bf16", "e4m3x2", "e5m2x2", "ue8m0x2")),
        *(Type(name, 32, "x") for name in ("f16x2", "bf16x2", "tf32", "u16x2", "s16x2")),
        Type("f32x2", 64, "x"),
        *(Type(name, 8, "x") for name in ("e2m1x2",)),
        *(Type(name, 16, "x") for name in ("e2m3x2", "e3m2x2")),
    )
}
LETTERS = {"h": "b16", "r": "b32", "l": "b64", "q": "b128", "f": "f32", "d": "f64", "b": "pred"}
