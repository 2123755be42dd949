"""The kernel cache as jit() uses it: what makes a key, where an image comes from, why a compile was needed."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from pygpukit import _core
from pygpukit.jit import compile_source, explain, jit
from pygpukit.jit.cache import store as cache
from pygpukit.jit.cache.image import Image, from_bytes

SOURCE = "__global__ void k(int* x) { x[0] = %d; }"

CHILD = """
import json, sys, time
import pygpukit as gp
from pygpukit.jit import compile_source
gp.empty(1)
start = time.perf_counter()
image = compile_source(sys.argv[1], name_expressions=["k"])
print(json.dumps({"origin": image.origin, "bytes": len(image.image), "ms": (time.perf_counter() - start) * 1e3}))
"""


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_cache", None)
    monkeypatch.setattr(cache, "_earlier", type(cache._earlier)())


def build(number: int, **options: object) -> Image:
    return compile_source(SOURCE % number, name_expressions=["k"], **options)  # type: ignore[arg-type]


def child(folder: Path, source: str) -> dict[str, object]:
    environment = {**os.environ, "PYGPUKIT_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, source], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def compile_records(since: int) -> list[tuple[int, int, int]]:
    data, _, _ = _core.ring_read(since)
    kinds = [data[at : at + 64] for at in range(0, len(data), 64)]
    return [struct.unpack_from("<QQQ", one, 32) for one in kinds if struct.unpack_from("<H", one, 16) == (48,)]


def test_the_second_compile_is_a_memory_hit_with_the_same_image() -> None:
    since = _core.ring_head()
    first, second = build(1), build(1)
    assert (first.origin, second.origin) == ("compiled", "memory")
    assert (first.image, first.symbols, first.arch, first.key) == (
        second.image,
        second.symbols,
        second.arch,
        second.key,
    )
    records = compile_records(since)
    assert [source for _, source, _ in records] == [0, 1]
    assert all(duration > 0 and size == len(first.image) for duration, _, size in records)


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({"defines": {"X": "1"}}, "options"),
        ({"options": ["--fmad=false"]}, "options"),
        ({"name": "other"}, "name"),
    ],
)
def test_whatever_changes_the_result_changes_the_key(change: dict[str, object], label: str) -> None:
    plain = build(1)
    changed = build(1, **change)
    assert changed.origin == "compiled"
    assert changed.key != plain.key
    assert {part for part in plain.parts if plain.parts[part] != changed.parts[part]} == {label}


def test_the_key_holds_no_path(tmp_path: Path) -> None:
    image = build(1)
    assert str(tmp_path) not in json.dumps(image.parts)
    assert str(Path.cwd()) not in json.dumps(image.parts)


def test_another_process_finds_it_on_disk(tmp_path: Path) -> None:
    source = SOURCE % 7
    first = child(tmp_path, source)
    second = child(tmp_path, source)
    assert (first["origin"], second["origin"]) == ("compiled", "disk")
    assert first["bytes"] == second["bytes"]


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "foreign"])
def test_a_damaged_entry_is_compiled_again_and_replaced(tmp_path: Path, damage: str) -> None:
    source = SOURCE % 9
    child(tmp_path, source)
    files = [path for path in (tmp_path / "kernels").rglob("*") if path.is_file() and path.stat().st_size > 500]
    assert len(files) == 1
    content = bytearray(files[0].read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0x01
    files[0].write_bytes({"flip": content, "truncate": content[:-7], "empty": b"", "foreign": b"x" * 1000}[damage])
    assert child(tmp_path, source)["origin"] == "compiled"
    assert child(tmp_path, source)["origin"] == "disk"


def test_processes_that_compile_the_same_at_once_are_all_right(tmp_path: Path) -> None:
    environment = {**os.environ, "PYGPUKIT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CHILD, SOURCE % 11]
    racers = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [json.loads(racer.communicate(timeout=100)[0]) for racer in racers]
    assert len({answer["bytes"] for answer in answers}) == 1
    assert child(tmp_path, SOURCE % 11)["origin"] == "disk"


def test_an_entry_of_another_format_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(1)
    store = cache.kernel_cache()
    for payload in (b"something else", first.to_bytes()[:-1], b"pygpukit image 1\n{}\n"):
        store.put(first.key, payload)
        assert build(1).origin == "compiled"
        assert build(1).origin == "memory"


def test_an_image_is_what_its_bytes_say() -> None:
    image = Image(
        "nvrtc", "sm_90a", b"\x7fELF\0\n", "ptx \u00e9\n", "log", {"a<int>": "_Z1a"}, b"k" * 32, "compiled", {"a": "b"}
    )
    assert from_bytes(image.to_bytes(), image.key, "compiled", {"a": "b"}) == image


def test_a_folder_that_cannot_be_used_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(blocked))
    monkeypatch.setattr(cache, "_cache", None)
    with pytest.warns(RuntimeWarning, match="cached in memory only.*PYGPUKIT_CACHE_DIR"):
        assert build(3).origin == "compiled"
    assert build(3).origin == "memory"


def test_explain_says_why() -> None:
    assert explain(build(1)).startswith("compiled: the cache had no entry")
    assert "found in this process" in explain(build(1))
    changed = explain(build(2, defines={"X": 1}))
    assert "differs in: source, options" in changed
    assert explain(jit(SOURCE % 2, "k")).startswith("compiled")
