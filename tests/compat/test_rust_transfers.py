"""The documented Rust classes of transfers and pinned memory: each does what it says on real memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import pytest

import _pygpukit_rust as rust
from _pygpukit_rust import transfer as beneath

MIB = 1 << 20
PATIENCE_S = 60.0


def write(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))


def test_bytes_go_there_across_and_back():
    pool, pinned, engine = rust.MemoryPool(64 * MIB), rust.PinnedMemoryManager(), rust.AsyncTransferEngine()
    size = 9 * MIB
    data = bytes(range(256)) * (size // 256)
    a, b = (pool.get_block(pool.allocate(size)) for _ in range(2))
    source, target = (pinned.get(pinned.allocate(size)[0]) for _ in range(2))
    write(source.host_ptr, data)
    first = engine.enqueue_h2d(source.host_ptr, a.device_ptr, size)
    done = engine.wait(first, PATIENCE_S)
    assert (done.state, done.transfer_type) == (beneath.TransferState.Completed, beneath.TransferType.H2D)
    assert done.state.is_terminal() and done.stream_id == beneath.StreamType.MemcpyH2D.to_id()
    assert done.duration() > 0 and done.wait_time() >= 0 and done.bandwidth_gbps() > 0
    assert pool.read(a.id, size) == data
    assert engine.wait(engine.enqueue_d2d(a.device_ptr, b.device_ptr, size), PATIENCE_S).stream_id == 3
    last = engine.enqueue_with_priority("D2H", b.device_ptr, target.host_ptr, size, 7)
    assert engine.wait(last, PATIENCE_S).priority == 7
    assert ctypes.string_at(target.host_ptr, size) == data
    stats = engine.stats()
    assert (stats.total_queued, stats.completed_count, stats.total_bytes) == (3, 3, 3 * size)
    assert (stats.h2d_bytes, stats.d2h_bytes, stats.pending_count, stats.in_progress_count) == (size, size, 0, 0)
    assert stats.avg_h2d_bandwidth > 0 and not engine.has_pending_work()
    assert engine.get_ready_transfers(5) == [] and engine.get_in_progress_for_stream(1) == []
    engine.gc()
    assert engine.get_operation(first) is None
    with pytest.raises(ValueError, match="gc"):
        engine.wait(first)


def test_addresses_are_checked():
    pool, pinned, engine = rust.MemoryPool(4 * MIB), rust.PinnedMemoryManager(), rust.AsyncTransferEngine()
    block, host = pool.get_block(pool.allocate(1000)), pinned.get(pinned.allocate(1000)[0])
    pageable = ctypes.create_string_buffer(1000)
    for field, call in [
        ("host_ptr", lambda: engine.enqueue_h2d(ctypes.addressof(pageable), block.device_ptr, 1000)),
        ("host_ptr", lambda: engine.enqueue_h2d(host.host_ptr + 1, block.device_ptr, 1000)),
        ("device_ptr", lambda: engine.enqueue_h2d(host.host_ptr, host.host_ptr, 1000)),
        ("device_ptr", lambda: engine.enqueue_d2h(0, host.host_ptr, 1000)),
        ("dst_ptr", lambda: engine.enqueue_d2d(block.device_ptr, block.device_ptr + 5000, 1000)),
        ("size", lambda: engine.enqueue_h2d(host.host_ptr, block.device_ptr, 0)),
        ("transfer_type", lambda: engine.enqueue_with_priority("H2H", 1, 1, 1, 0)),
        ("max_concurrent", lambda: rust.AsyncTransferEngine(0)),
    ]:
        with pytest.raises(ValueError) as refused:
            call()
        assert refused.value.field == field, str(refused.value)
    pool.free(block.id)
    with pytest.raises(ValueError, match="device_ptr"):
        engine.enqueue_h2d(host.host_ptr, block.device_ptr, 1000)
    pinned.free(host.id)
    with pytest.raises(ValueError, match="host_ptr"):
        engine.enqueue_h2d(host.host_ptr, block.device_ptr, 1000)
    assert engine.stats().total_queued == 0


def test_memory_freed_under_a_transfer_stays_until_its_end():
    pool, pinned, engine = rust.MemoryPool(256 * MIB), rust.PinnedMemoryManager(), rust.AsyncTransferEngine()
    size = 48 * MIB
    block, host = pool.get_block(pool.allocate(size)), pinned.get(pinned.allocate(size)[0])
    op = engine.enqueue_h2d(host.host_ptr, block.device_ptr, size)
    assert pinned.free(host.id) == (False, host.host_ptr)
    pool.free(block.id)
    with pytest.raises(ValueError):
        pool.free(block.id)
    assert engine.wait(op, PATIENCE_S).state == beneath.TransferState.Completed
    engine.clear()
    _, _, reused = pinned.allocate(size)
    assert reused, "what is kept goes back to its pool with the end"
    assert pool.stats().used == 0


def test_what_the_caller_used_to_do_by_hand_is_deprecated():
    pool, pinned, engine = rust.MemoryPool(4 * MIB), rust.PinnedMemoryManager(), rust.AsyncTransferEngine()
    block, host = pool.get_block(pool.allocate(1000)), pinned.get(pinned.allocate(1000)[0])
    op = engine.enqueue_h2d(host.host_ptr, block.device_ptr, 1000)
    engine.wait(op, PATIENCE_S)
    for call, value in [
        (lambda: engine.start_transfer(op), False),
        (lambda: engine.complete_transfer(op), True),
        (lambda: engine.fail_transfer(op, "no"), False),
        (lambda: pinned.register(host.id, 1, 2), None),
    ]:
        with pytest.warns(DeprecationWarning, match="changes nothing"):
            assert call() is value
    assert engine.get_operation(op).state == beneath.TransferState.Completed
    assert not engine.cancel_transfer(op) and not engine.cancel_transfer(999)


def test_pinned_manager():
    manager = rust.PinnedMemoryManager.with_max_size(MIB)
    number, size_class, reused = manager.allocate(100_000)
    assert (size_class, reused) == (rust.PinnedPoolConfig().get_size_class(100_000), False)
    assert 100_000 <= size_class <= 112_500
    manager.associate_task(number, "a task")
    manager.touch(number)
    block = manager.get(number)
    assert (block.id, block.size, block.in_use, block.task_id) == (number, 100_000, True, "a task")
    assert block.last_access >= block.allocated_at and block.host_ptr % 256 == 0
    assert [b.id for b in manager.get_blocks_for_task("a task")] == [number]
    assert manager.can_allocate(MIB // 2) and not manager.can_allocate(MIB)
    with pytest.raises(MemoryError, match="do not fit"):
        manager.allocate(MIB)
    assert manager.free_task_blocks("a task") == [(False, block.host_ptr)]
    assert manager.allocate(100_000)[2] and manager.active_count() == 1
    stats = manager.stats()
    assert (stats.pool_hits, stats.pool_misses, stats.hit_rate()) == (1, 1, 0.5)
    assert (stats.current_used, stats.peak_used, stats.total_allocations) == (size_class, size_class, 2)
    assert manager.clear() == [] and manager.clear_pool() == []
    assert (manager.stats().total_allocated, manager.active_count(), manager.get(number)) == (0, 0, None)
    for call in (manager.free, manager.touch, lambda n: manager.associate_task(n, "x")):
        with pytest.raises(ValueError, match="no pinned block"):
            call(number)
    with pytest.raises(ValueError, match="at least one byte"):
        manager.allocate(0)


def test_kept_memory_makes_room_and_pooling_can_be_left():
    manager = rust.PinnedMemoryManager(rust.PinnedPoolConfig(MIB, alignment=4096))
    for size in (300_000, 500_000):
        manager.free(manager.allocate(size)[0])
    assert manager.stats().pooled_blocks == 2
    manager.allocate(900_000)  # fits only without what is kept
    assert manager.stats().pooled_blocks == 0
    plain = rust.PinnedMemoryManager(rust.PinnedPoolConfig(enable_pooling=False))
    plain.free(plain.allocate(5)[0])
    assert not plain.allocate(5)[2] and plain.stats().pool_size == 0
    for wrong in ({"max_size": 0}, {"alignment": 3}, {"alignment": 8192}):
        with pytest.raises(ValueError) as refused:
            rust.PinnedPoolConfig(**wrong)
        assert refused.value.field == next(iter(wrong))


def test_values():
    kinds = beneath.StreamType
    assert [kinds.Compute.to_id(), kinds.MemcpyH2D.to_id(), kinds.MemcpyD2H.to_id()] == [0, 1, 2]
    assert kinds.Custom(7).to_id() == 7 and kinds.Custom(1) == kinds.MemcpyH2D
    assert not beneath.TransferState.InProgress.is_terminal() and beneath.TransferState.Cancelled.is_terminal()


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ}, capture_output=True, text=True, timeout=110, check=False
    )


SLOW = """
import os, threading, signal, numpy as np
import pygpukit as gp
from pygpukit.memory import TransferEngine
engine = TransferEngine()
array, host = gp.zeros(16_000_000), np.ones(16_000_000, np.float32)
gp.synchronize()
transfer = engine.to_device(array, host)
"""


def test_an_interpreter_ends_with_transfers_under_way(monkeypatch):
    monkeypatch.setenv("PYGPUKIT_SIM", "copy_gbps=1,memory=1GiB")
    done = run(SLOW + "print('left')")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "left", "")


def test_a_wait_is_interruptible_and_a_child_is_told(monkeypatch):
    monkeypatch.setenv("PYGPUKIT_SIM", "copy_gbps=0.03,memory=1GiB")
    done = run(
        SLOW
        + """
try:
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    transfer.wait()
except KeyboardInterrupt:
    print("interrupted", transfer.done)
child = os.fork()
if child == 0:
    try:
        engine.stats()
    except RuntimeError as error:
        os._exit(0 if "forked" in str(error) else 1)
    os._exit(2)
print("child", os.waitpid(child, 0)[1])
transfer.cancel()
engine.wait()
print(transfer.state)
"""
    )
    assert done.stdout.split("\n")[:3] == ["interrupted False", "child 0", "Cancelled"], done.stdout + done.stderr
    assert done.returncode == 0


def test_a_failed_transfer_is_told_by_its_arrays_next_use_unless_it_was_asked(monkeypatch):
    monkeypatch.setenv("PYGPUKIT_SIM", "memory=1GiB")
    done = run(
        """
import numpy as np, threading
import pygpukit as gp
from pygpukit._core import native, TransferCore
from pygpukit.core.errors import DriverError
core = TransferCore(0, 4096, 8192)
array = gp.zeros(1000)
gp.synchronize()
for asked in (False, True):
    number = core.submit("D2H", np.zeros(10, np.int8).ctypes.data, 4096, 10, 0, [], [], [])
    native.note_transfer(array, core.number, number)
    assert core.wait(number).state == "Failed"
    if asked:
        core.forget(number)
    try:
        print((array + 1).to_numpy()[0])
    except DriverError as error:
        print("a transfer of this array failed" in str(error))
    print((array + 1).to_numpy()[0])
"""
    )
    assert done.stdout.split() == ["True", "1.0", "1.0", "1.0"], done.stdout + done.stderr


def test_waits_from_several_threads_end():
    pool, pinned, engine = rust.MemoryPool(64 * MIB), rust.PinnedMemoryManager(), rust.AsyncTransferEngine(1)
    block, host = pool.get_block(pool.allocate(MIB)), pinned.get(pinned.allocate(MIB)[0])
    ops = [engine.enqueue_h2d(host.host_ptr, block.device_ptr, MIB) for _ in range(8)]
    states = []
    threads = [threading.Thread(target=lambda op=op: states.append(engine.wait(op, PATIENCE_S).state)) for op in ops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == [beneath.TransferState.Completed] * 8
