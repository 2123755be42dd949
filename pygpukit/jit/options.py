"""Compiler options sorted into what they mean: macros, architecture, files they read, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_DEFINE = ("-D", "--define-macro")
_ARCH = ("--gpu-architecture", "-arch")
_READS = ("-I", "--include-path", "--pre-include", "-include", "--use-bundled-headers", "--use-pch", "--pch-dir")
_WITH_VALUE = (*_DEFINE, *_ARCH, *_READS, "-U", "--undefine-macro")


@dataclass(frozen=True)
class Options:
    """flags: options as they were given, two-word ones as one. reads_files: one of them names files or folders."""

    flags: tuple[str, ...]
    defines: Mapping[str, str]
    arch: str | None
    reads_files: bool

    def compiler_flags(self) -> list[str]:
        """The flags with the macros put back."""
        return [*self.flags, *(f"-D{name}={value}" for name, value in self.defines.items())]

    def content(self) -> bytes:
        """What these options add to a cache key. Order counts only where one option is given twice."""
        names = [flag.split("=", 1)[0] for flag in self.flags]
        flags = sorted(self.flags) if len(set(names)) == len(names) else list(self.flags)
        return "\0".join([*flags, "", *(f"{name}={value}" for name, value in sorted(self.defines.items()))]).encode()


def parse_options(
    options: Sequence[str] = (), defines: Mapping[str, object] | None = None, arch: str | None = None
) -> Options:
    """Options as for nvcc, and macros as a mapping (True and None stand for 1).

    Raises TypeError for a plain string, ValueError for an option that lacks its value and for two architectures.
    """
    if isinstance(options, str):
        raise TypeError(f"options is a list of strings; write [{options!r}]")
    macros = {name: _macro_value(value) for name, value in (defines or {}).items()}
    flags: list[str] = []
    reads_files = False
    words = list(options)
    while words:
        word = words.pop(0)
        name, value = _split(word, words)
        if name in _DEFINE:
            macro, _, text = value.partition("=")
            macros[macro] = text if "=" in value else "1"
        elif name in _ARCH:
            if arch not in (None, value):
                raise ValueError(f"two architectures are given: {arch} and {value}")
            arch = value
        else:
            reads_files |= name in _READS
            flags.append(word if name == word.split("=", 1)[0] and not value else _joined(name, value))
    return Options(tuple(flags), macros, arch, reads_files)


def _macro_value(value: object) -> str:
    if value is None or value is True:
        return "1"
    return "0" if value is False else str(value)


def _split(word: str, following: list[str]) -> tuple[str, str]:
    """(option, value); takes the value from the next word where the option stands alone."""
    for name in _WITH_VALUE:
        short = len(name) == 2
        if word == name:
            if not following:
                raise ValueError(f"option {name} lacks its value")
            return name, following.pop(0)
        if word.startswith(name + "="):
            return name, word[len(name) + 1 :]
        if short and word.startswith(name):
            return name, word[len(name) :]
    return word.split("=", 1)[0], ""


def _joined(name: str, value: str) -> str:
    return f"{name}{value}" if len(name) == 2 else f"{name}={value}"
