"""Toolchain: one set of parts of one version, and why it lacks what it lacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pygpukit.jit.toolchain.versions import Version

TILE_SINCE = (13, 3)
BUNDLED_HEADERS_SINCE = (13, 3)


@dataclass(frozen=True)
class Toolchain:
    """NVRTC and what belongs to it. Parts of another version are not in it.

    place: how it was found. root: of the toolkit. version: of NVRTC. nvrtc, builtins: its two halves. headers: folders
    with CUDA's device headers, none where NVRTC brings its own. tileiras: the assembler of tile kernels, whose helpers
    were found. nvdisasm: the disassembler. lacks: by part, why it is not in the set.
    """

    place: str
    root: Path
    version: Version
    nvrtc: Path
    builtins: Path | None
    headers: tuple[Path, ...] = ()
    tileiras: Path | None = None
    nvdisasm: Path | None = None
    lacks: dict[str, str] = field(default_factory=dict)

    @property
    def works(self) -> bool:
        """NVRTC can be opened, as far as its files tell."""
        return "nvrtc" not in self.lacks

    @property
    def makes_tile_kernels(self) -> bool:
        return self.works and self.tileiras is not None

    def __str__(self) -> str:
        has = [name for name in ("tileiras", "nvdisasm") if getattr(self, name) is not None]
        return " + ".join(("NVRTC {}.{}".format(*self.version), *has)) + f" ({self.place})"
