"""What an array shows in a notebook: facts, thumbnail, text; little is copied, nothing raises, others' work goes on."""

from __future__ import annotations

import base64
import re
import struct
import threading
import zlib
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.array import rich
from pygpukit.core.dtypes import DTYPES

PATIENCE_S = 60

pytestmark = pytest.mark.usefixtures("backend_name")


def shown(x: Any) -> tuple[str, str]:
    bundle = x._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    return bundle["text/plain"], bundle["text/html"]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (5000,), (0, 4), (50, 60), (1, 4000), (3, 4, 500), (3,) * 8])
def test_little_is_copied_and_the_facts_are_there(shape: tuple[int, ...]) -> None:
    x = gp.ones(shape, "float64")
    x.name = "mine<&>"
    before = _core.counters()
    plain, html = shown(x)
    after = _core.counters()
    assert after["d2h_bytes"] - before["d2h_bytes"] <= (10_000 + 1000) * 8
    assert after["h2d_bytes"] == before["h2d_bytes"]
    assert plain == repr(x)
    for fact in ("float64", str(shape), f"{gp.backend()}:0", "mine&lt;&amp;&gt;"):
        assert fact in html
    assert "mine<" not in html
    assert not re.search(r"0x[0-9a-f]{6,}", plain + html) and hex(x.device_ptr)[2:] not in html
    assert shown(x) == (plain, html), "the same again"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_has_one(dtype: Any) -> None:
    _, html = shown(gp.zeros((3, 4), dtype))
    assert str(dtype) in html and "not readable" not in html


def test_views_and_other_layouts() -> None:
    x = gp.from_numpy(np.arange(1200.0).reshape(30, 40))
    assert "part of 9.38 KiB" in shown(x[::2, ::-3])[1]
    assert "1000 of 1200" not in shown(x)[1] and "0 to " in shown(x.T)[1]
    assert "[0, 0]" in shown(gp.ones((2, 3, 4, 5)))[1]


def pixels(html: str) -> np.ndarray[Any, Any]:
    """The palette indices of the PNG in the page, read by the format's own rules."""
    match = re.search(r"data:image/png;base64,([^\"]+)", html)
    assert match
    data = base64.b64decode(match[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + length
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colour, len(chunks[b"PLTE"]) % 3) == (8, 3, 0)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any() and rows.max() < len(chunks[b"PLTE"]) // 3
    return rows[:, 1:]


def test_the_heat_map_is_of_the_values() -> None:
    host = np.random.default_rng().standard_normal((9, 13)).astype(np.float32)
    host[2, 3], host[4, 5] = np.nan, -np.inf
    found = pixels(shown(gp.from_numpy(host))[1])
    finite = np.isfinite(host)
    assert found.shape == host.shape and (found[~finite] == rich._LEVELS).all()
    unit = (host[finite] - host[finite].min()) / np.ptp(host[finite])
    np.testing.assert_allclose(found[finite], unit * (rich._LEVELS - 1), atol=0.51)


def test_a_large_matrix_is_sampled() -> None:
    host = np.arange(200 * 300).reshape(200, 300)
    found = pixels(shown(gp.from_numpy(host))[1])
    assert found.size <= 1000 and (np.diff(found.astype(int), axis=0) >= 0).all()


@pytest.mark.parametrize("values", [[1.0, np.nan, 3.0, np.inf, 5.0, 6.0], [np.nan, np.nan], [2.0, 2.0], [-3e38, 3e38]])
def test_a_line_has_gaps_where_numbers_are_not_finite(values: list[float]) -> None:
    _, html = shown(gp.from_numpy(np.array(values)))
    numbers = [float(n) for points in re.findall(r'points="([^"]*)"', html) for n in re.split(r"[ ,]", points)]
    assert np.isfinite(numbers).all() and "nan" not in html.partition("<pre")[0]
    assert html.count("<polyline") == len(
        [run for run in np.split(values, np.where(~np.isfinite(values))[0]) if np.isfinite(run).any()]
    )


def test_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise gp.DriverError("launch failed", 719, "CUDA_ERROR_LAUNCH_FAILED")

    for more, name in enumerate(("copy_to_host", "empty", "view", "backend_name")):
        x = gp.ones((130, 140 + more))  # a shape that no call was prepared for
        with monkeypatch.context() as patch:
            patch.setattr(_core.native, name, fail)
            plain, html = shown(x)
            assert "readable: DriverError" in plain + html


def test_an_interrupt_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gp.ones(3)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_core.native, "copy_to_host", interrupt)
    with pytest.raises(KeyboardInterrupt):
        repr(x)


def test_evicted_arrays_show_their_values() -> None:
    x = gp.full(1 << 20, 7.0)
    gp.synchronize()
    _core.pool_evict(x.device, x.block)
    assert not x.on_gpu
    plain, _ = shown(x)
    assert "[7., 7., 7., ..., 7., 7., 7.]" in plain


def test_the_work_of_other_streams_is_not_waited_for() -> None:
    x = gp.arange(5000, dtype="float32")
    hold = gp.jit('extern "C" __global__ void hold(volatile int* stop) { while (*stop == 0) {} }')
    stop, stream = gp.zeros(1, "int32"), gp.Stream()

    def let_go() -> None:
        with gp.Stream():
            native.copy_from_host(stop, np.ones(1, np.int32))

    repr(x)  # its kernels are loaded now
    gp.synchronize()
    with stream:
        hold[1, 1](stop)
    late = threading.Timer(PATIENCE_S, let_go)  # for a repr() that waits
    late.start()
    try:
        assert "4.999e+03" in repr(x)
        still_busy = not stream.query()
    finally:
        late.cancel()
        let_go()
        stream.synchronize()
    assert still_busy, "repr() waited for another stream"


def test_showing_adds_nothing_to_a_capture() -> None:
    x = gp.arange(5000, dtype="float32")
    y = gp.ones(4)
    stream = gp.Stream()
    gp.synchronize()
    with stream.capture() as graph:
        texts = [repr(x), repr(y), *shown(x[::2])]
        with gp.default_stream():
            assert "4.999e+03" in repr(x), "another stream reads as ever"
    assert graph.launches == 0
    assert all("no values while the stream is captured" in text for text in texts)
    assert "4.999e+03" in repr(x)
