"""The documented caches of PTX, with a clock that tests turn: what their tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

import _pygpukit_rust as rust
from _pygpukit_rust import caching
from _pygpukit_rust.dispatch import ArchFingerprint, PersistentCache, PersistentCacheConfig

OPTIONS = rust.CompileOptions("sm_90")
H200 = ArchFingerprint(90, 150 << 30, 228 << 10, 65536, 50 << 20, 12080)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(caching, "now", clock)
    return clock


def memory(**bounds):
    return rust.KernelCache(rust.CacheConfig(**bounds))


def stored(folder, arch=H200, **bounds):
    return PersistentCache(PersistentCacheConfig(str(folder), **bounds), arch)


def files(folder):
    return [file for file in Path(folder, "ptx").glob("??/*") if len(file.name) == 64]
