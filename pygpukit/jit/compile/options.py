"""Compiler options sorted into what they mean: macros, architecture, files they read, and the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pygpukit.core.text import storable

_DEFINE = ("-D", "--define-macro")
_UNDEFINE = ("-U", "--undefine-macro")
_ARCH = ("--gpu-architecture", "-arch")
_INCLUDE = ("-I", "--include-path")
_PRE_INCLUDE = ("--pre-include", "-include")
_OPAQUE = ("--use-bundled-headers", "--use-pch", "--create-pch", "--pch-dir", "--pch")  # nothing tells what they read
_WITH_VALUE = (*_DEFINE, *_ARCH, *_INCLUDE, *_PRE_INCLUDE, *_OPAQUE[:-1], "-U", "--undefine-macro")


@dataclass(frozen=True)
class Options:
    """flags: options as they were given, two-word ones as one. folders, pre_includes: the paths that are among them.
    opaque: one of them reads files that nothing tells."""

    flags: tuple[str, ...]
    defines: Mapping[str, str]
    arch: str | None
    folders: tuple[str, ...] = ()
    pre_includes: tuple[str, ...] = ()
    opaque: bool = False

    @property
    def reads_files(self) -> bool:
        """An option names files or folders."""
        return bool(self.folders or self.pre_includes or self.opaque)

    def compiler_flags(self) -> list[str]:
        """The flags with the macros put back."""
        return [*self.flags, *(f"-D{name}={value}" for name, value in self.defines.items())]

    def content(self) -> bytes:
        """Words that these options add to a cache key: no absolute path. Order counts only where one is given twice."""
        plain = [_without_path(flag) for flag in self.flags]
        names = [flag.split("=", 1)[0] for flag in plain]
        flags = sorted(plain) if len(set(names)) == len(names) else plain
        return "\0".join([*flags, "", *(f"{name}={value}" for name, value in sorted(self.defines.items()))]).encode(
            errors="surrogatepass"
        )


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
    folders: list[str] = []
    pre_includes: list[str] = []
    opaque = False
    words = list(options)
    while words:
        word = words.pop(0)
        name, value = _split(word, words)
        if name in _DEFINE:
            macro, _, text = value.partition("=")
            macros[macro] = storable(text) if "=" in value else "1"
        elif name in _UNDEFINE:
            macros.pop(value, None)  # and what the compiler itself defines
            flags.append(f"-U{value}")
        elif name in _ARCH:
            if arch not in (None, value):
                raise ValueError(f"two architectures are given: {arch} and {value}")
            arch = value
        else:
            folders += [value] if name in _INCLUDE else []
            pre_includes += [value] if name in _PRE_INCLUDE else []
            opaque |= name in _OPAQUE
            flags.append(word if name == word.split("=", 1)[0] and not value else _joined(name, value))
    return Options(tuple(flags), macros, arch, tuple(folders), tuple(pre_includes), opaque)


def include_options(folders: Sequence[str | os.PathLike[str]]) -> list[str]:
    """-I options for include folders. Raises TypeError for a plain string, ValueError for what is no folder."""
    if isinstance(folders, (str, os.PathLike)):
        raise TypeError(f"include is a list of folders; write [{str(folders)!r}]")
    for folder in folders:
        if not Path(folder).is_dir():
            raise ValueError(f"include: there is no folder {str(folder)!r}")
    return [f"-I{os.fspath(folder)}" for folder in folders]


def _macro_value(value: object) -> str:
    if value is None or value is True:
        return "1"
    return "0" if value is False else storable(str(value))


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


def _without_path(flag: str) -> str:
    """A folder counts by what is found there, an absolute file by its name and contents."""
    name, _, value = flag.partition("=")
    if name in _PRE_INCLUDE and Path(value).is_absolute():
        return f"{name}=/{Path(value).name}"
    return next((name for name in _INCLUDE if flag.startswith(name)), flag)


def _joined(name: str, value: str) -> str:
    return f"{name}{value}" if len(name) == 2 else f"{name}={value}"
