"""Reading sound files that are damaged, cut, or nothing but a header: samples or InvalidSpecError, nothing else."""

from __future__ import annotations

import io
import os
import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError

FILES = int(os.environ.get("PYGPUKIT_FUZZ_FILES", "150"))  # of each kind
SLOWEST_S = 20  # of one file, on a busy machine
MOST = 1 << 20  # samples of a file of some kilobytes

STARTS = (
    b"",
    b"RIFF\xff\xff\xff\xffWAVEfmt ",
    b"RIFX\0\0\0\x10WAVE",
    b"RF64\xff\xff\xff\xffWAVEds64",
    b"fLaC\0\0\0\x22",
    b"OggS\0\2" + bytes(20) + b"\x01\x1e\x01vorbis",
    b"FORM\0\0\1\0AIFF",
    b"ID3\4\0\0",
    b"\xff\xfb\x90\0",
    b".snd\0\0\0\x18",
    b"caff\0\1",
)

Made = Callable[[random.Random], bytes]


def _wave(rng: random.Random) -> bytes:
    """Whole numbers or floats, with chunks of other kinds around the samples."""
    channels, bits, code = rng.choice([1, 2, 6]), rng.choice([8, 16, 24, 32]), 1
    if bits == 32 and rng.random() < 0.5:
        code = 3
    align = channels * bits // 8
    form = struct.pack("<HHIIHH", code, channels, 16000, 16000 * align, align, bits)
    data = rng.randbytes(align * rng.randrange(300))
    chunks = [(b"fmt ", form), (b"LIST", rng.randbytes(rng.randrange(0, 40, 2))), (b"data", data)]
    body = b"".join(
        name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2) for name, content in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def _encoded(kind: str, subtype: str) -> Made:
    def made(rng: random.Random) -> bytes:
        import soundfile

        memory = io.BytesIO()
        samples = np.frombuffer(rng.randbytes(2 * 2 * rng.randrange(1, 2000)), "<i2").reshape(-1, 2)
        soundfile.write(memory, samples, 22050, format=kind, subtype=subtype)
        return memory.getvalue()

    return made


def _header(rng: random.Random) -> bytes:
    """The first bytes of a kind of file, and nothing that belongs to it."""
    start = rng.choice(STARTS)
    return start + rng.randbytes(rng.randrange(200))


def _damaged(whole: bytes, rng: random.Random) -> bytes:
    """Cut, with bytes changed (of the header more than of the rest), left out, or there twice."""
    data = bytearray(whole)
    for _ in range(rng.randrange(6)):
        if not data:
            break
        at = rng.randrange(min(len(data), rng.choice([64, len(data)])))
        how = rng.random()
        if how < 0.5:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif how < 0.7:
            data[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, rng.getrandbits(32)]))
        elif how < 0.85:
            del data[at : at + rng.randrange(1, 40)]
        else:
            data[at:at] = data[at : at + rng.randrange(1, 40)]
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.4 else data)


MADE: dict[str, Made] = {
    "wav": _wave,
    "flac": _encoded("FLAC", "PCM_16"),
    "ogg": _encoded("OGG", "VORBIS"),
    "header": _header,
}


@pytest.mark.parametrize("without", [False, True], ids=["soundfile", "wave"])
@pytest.mark.parametrize("kind", MADE)
def test_a_damaged_file_is_read_or_refused(
    kind: str, without: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in ("flac", "ogg") or not without:
        pytest.importorskip("soundfile")
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    wholes = [MADE[kind](rng) for _ in range(8)]
    if without:
        monkeypatch.setitem(sys.modules, "soundfile", None)
    path = tmp_path / f"a.{'wav' if kind == 'header' else kind}"
    read = 0
    for number in range(FILES):
        content = _damaged(rng.choice(wholes) if kind != "header" else _header(rng), rng)
        path.write_bytes(content)
        begin = time.monotonic()
        try:
            sound = gp.ops.audio.read(path)
        except InvalidSpecError as error:
            assert path.name in str(error), f"seed {seed}, file {number}"
        except Exception as error:
            pytest.fail(f"seed {seed}, file {number}: {type(error).__name__}: {error}")
        else:
            read += 1
            assert sound.to_numpy().size <= MOST and sound.sample_rate > 0, f"seed {seed}, file {number}"
        assert time.monotonic() - begin < SLOWEST_S, f"seed {seed}, file {number}"
    assert read or kind == "header" or (without and kind != "wav"), f"seed {seed}: none of {FILES} files was read"
