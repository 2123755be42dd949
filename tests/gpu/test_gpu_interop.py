"""Zero-copy exchange with PyTorch and CuPy: the same addresses, in stream order, and memory that lives long enough."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native

RNG = np.random.default_rng()
TYPES = ("bool", "int8", "int32", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128")


class Torch:
    """What the tests need of PyTorch."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.Stream = module.cuda.Stream
        self.current = module.cuda.stream

    def from_dlpack(self, x: Any) -> Any:
        return self.module.from_dlpack(x)

    def from_host(self, host: np.ndarray) -> Any:
        return self.module.from_numpy(host.copy()).cuda()

    def pointer(self, x: Any) -> int:
        return x.data_ptr()

    def handle(self, stream: Any) -> int:
        return stream.cuda_stream

    def to_host(self, x: Any) -> np.ndarray:
        return x.cpu().numpy()


class CuPy:
    """What the tests need of CuPy."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def Stream(self) -> Any:
        return self.module.cuda.Stream(non_blocking=True)

    def current(self, stream: Any) -> Any:
        return stream

    def from_dlpack(self, x: Any) -> Any:
        return self.module.from_dlpack(x)

    def from_host(self, host: np.ndarray) -> Any:
        return self.module.asarray(host)

    def pointer(self, x: Any) -> int:
        return x.data.ptr

    def handle(self, stream: Any) -> int:
        return stream.ptr

    def to_host(self, x: Any) -> np.ndarray:
        return self.module.asnumpy(x)


@pytest.fixture(params=["torch", "cupy"])
def peer(request: pytest.FixtureRequest) -> Any:
    if request.param == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        if not torch.cuda.is_available():
            pytest.skip("this PyTorch has no CUDA")
        return Torch(torch)
    return CuPy(pytest.importorskip("cupy", reason="CuPy is not installed"))


def host_values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (RNG.standard_normal(shape) * 10).astype(dtype)


def transfers() -> dict[str, int]:
    counters = _core.counters()
    return {name: counters[name] for name in ("h2d_bytes", "d2h_bytes", "d2d_bytes")}


@pytest.mark.parametrize("dtype", TYPES)
def test_there_and_back_is_the_same_memory(peer: Any, dtype: str) -> None:
    host = host_values((5, 7, 3), dtype)
    x = gp.from_numpy(host)
    before = transfers()
    theirs = peer.from_dlpack(x)
    back = gp.from_dlpack(theirs)
    assert transfers() == before
    assert peer.pointer(theirs) == x.device_ptr == back.device_ptr
    assert (back.shape, back.strides, back.dtype) == (x.shape, x.strides, x.dtype)
    np.testing.assert_array_equal(peer.to_host(theirs), host)
    np.testing.assert_array_equal(back.to_numpy(), host)


def test_their_memory_is_ours_and_writes_are_seen(peer: Any) -> None:
    host = host_values((6, 8), "float32")
    theirs = peer.from_host(host)
    for ours in (gp.from_dlpack(theirs), gp.asarray(theirs)):
        assert ours.device_ptr == peer.pointer(theirs) and ours.block == 0
    ours *= 2
    gp.synchronize()
    np.testing.assert_array_equal(peer.to_host(theirs), host * 2)
    theirs += 1
    np.testing.assert_array_equal(gp.from_dlpack(theirs).to_numpy(), host * 2 + 1)


def test_strided_views_cross_without_a_copy(peer: Any) -> None:
    host = host_values((6, 8), "float32")
    ours = gp.from_numpy(host).T[1:, ::2]
    theirs = peer.from_dlpack(ours)
    assert peer.pointer(theirs) == ours.device_ptr
    np.testing.assert_array_equal(peer.to_host(theirs), host.T[1:, ::2])
    theirs = peer.from_host(host)[1::2, 1:]
    for back in (gp.from_dlpack(theirs), gp.asarray(theirs)):
        assert back.device_ptr == peer.pointer(theirs)
        np.testing.assert_array_equal(back.to_numpy(), host[1::2, 1:])


def test_bfloat16_and_fp8_cross_to_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = gp.from_numpy(host_values((4, 6), "float32")).astype("bfloat16")
    theirs = torch.from_dlpack(x)
    assert theirs.dtype == torch.bfloat16 and theirs.data_ptr() == x.device_ptr
    np.testing.assert_array_equal(theirs.float().cpu().numpy(), x.astype("float32").to_numpy())
    back = gp.from_dlpack(torch.ones(3, dtype=torch.bfloat16, device="cuda"))
    assert back.dtype == gp.bfloat16 and back.astype("float32").to_numpy().tolist() == [1, 1, 1]
    for ours, name in (("float8_e4m3", "float8_e4m3fn"), ("float8_e5m2", "float8_e5m2")):
        bits = gp.from_numpy(RNG.integers(0, 256, 16).astype("uint8"))
        try:
            theirs = torch.from_dlpack(bits.view(ours))
        except (BufferError, RuntimeError):
            pytest.skip("this PyTorch takes no fp8 through DLPack")
        assert theirs.dtype == getattr(torch, name)
        np.testing.assert_array_equal(theirs.view(torch.uint8).cpu().numpy(), bits.to_numpy())


def test_their_stream_waits_for_our_work(peer: Any) -> None:
    """A long computation of ours is handed over unfinished; theirs must see its result, on any stream."""
    a = gp.from_numpy(RNG.standard_normal((1024, 1024)) / 32)
    expected = np.linalg.matrix_power(a.to_numpy(), 9)
    ours, theirs = gp.Stream(), peer.Stream()
    with ours:
        x = a
        for _ in range(8):
            x = x @ a
        with peer.current(theirs):
            seen = peer.to_host(peer.from_dlpack(x) + 0.0)
    np.testing.assert_allclose(seen, expected, rtol=1e-9, atol=1e-12)


def test_our_stream_waits_for_their_work(peer: Any) -> None:
    host = RNG.standard_normal((1024, 1024)) / 32
    expected = np.linalg.matrix_power(host, 9)
    a = peer.from_host(host)
    ours, theirs = gp.Stream(), peer.Stream()
    gp.synchronize()
    peer.to_host(a)  # their default stream is done
    with peer.current(theirs):
        x = a
        for _ in range(8):
            x = x @ a
        with ours:
            seen = [gp.from_dlpack(x) + 0.0, gp.asarray(x) + 0.0]
    ours.synchronize()
    for result in seen:
        np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-9, atol=1e-12)


def test_our_block_stays_while_they_hold_it(peer: Any) -> None:
    host = host_values((1 << 16,), "float32")
    x = gp.from_numpy(host)
    block, alive = x.block, weakref.ref(x)
    theirs = peer.from_dlpack(x)
    with pytest.raises(RuntimeError):
        _core.pool_evict(0, block)
    del x
    gc.collect()
    others = [gp.zeros(1 << 16) for _ in range(16)]
    gp.synchronize()
    np.testing.assert_array_equal(peer.to_host(theirs), host)
    assert alive() is not None
    del theirs, others
    gc.collect()
    assert alive() is None


def test_their_memory_stays_until_our_work_has_passed(peer: Any) -> None:
    """Their allocator reuses memory at once: it must not get it back before a kernel of ours has read it."""
    n = 1 << 20
    busy = gp.from_numpy(RNG.standard_normal((2048, 2048)))
    for _ in range(5):
        host = host_values((n,), "float32")
        stream = gp.Stream()
        theirs = peer.from_host(host)
        with stream:
            ours = gp.from_dlpack(theirs)
            busy @ busy  # in front of the reader
            result = ours + 1
        del ours, theirs
        gc.collect()
        overwritten = [peer.from_host(np.zeros(n, "float32")) for _ in range(4)]
        stream.synchronize()
        np.testing.assert_array_equal(result.to_numpy(), host + np.float32(1))
        del overwritten
    gp.synchronize()


def test_their_streams_are_worked_on(peer: Any) -> None:
    theirs = peer.Stream()
    stream = gp.Stream.from_external(theirs)
    assert stream.handle == peer.handle(theirs)
    assert gp.Stream.from_external(theirs) == stream
    with stream:
        assert gp.current_stream().handle == peer.handle(theirs)
        x = gp.ones(1 << 16) * 3
    stream.synchronize()
    assert x.to_numpy().sum() == 3 << 16
    with peer.current(theirs):
        np.testing.assert_array_equal(peer.to_host(peer.from_dlpack(x)), np.full(1 << 16, 3, "float32"))
    del x
    gp.synchronize()


def test_copies_and_host_tensors(peer: Any) -> None:
    theirs = peer.from_host(host_values((3, 4), "float32"))
    copied = gp.from_dlpack(theirs, copy=True)
    assert copied.device_ptr != peer.pointer(theirs) and copied.block != 0
    np.testing.assert_array_equal(copied.to_numpy(), peer.to_host(theirs))
    x = gp.ones((2, 3))
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), np.ones((2, 3)))
    with pytest.raises(Exception, match=r"[Uu]nsupported device|device"):
        np.from_dlpack(x)


def test_a_host_tensor_of_pytorch_comes_in_when_told() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = torch.arange(12, dtype=torch.int16).reshape(3, 4)
    with pytest.raises(BufferError, match="from_numpy"):
        gp.from_dlpack(theirs)
    np.testing.assert_array_equal(gp.from_dlpack(theirs.T, device=0).to_numpy(), theirs.T.numpy())


def test_many_exchanges_leave_nothing_behind(peer: Any) -> None:
    x = gp.ones(1000)
    gp.synchronize()
    used = _core.pool_stats(0).used
    for _ in range(2000):
        back = gp.from_dlpack(peer.from_dlpack(x))
    del back
    gc.collect()
    native.synchronize()
    assert _core.pool_stats(0).used == used
