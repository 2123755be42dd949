"""The documented Rust classes of scheduling: each does what it says on the real table, ledger and partitions."""

from __future__ import annotations

import pytest

import _pygpukit_rust as rust
from _pygpukit_rust import scheduler as beneath

GB = 1024**3


def test_task_table_by_hand():
    scheduler = rust.Scheduler(total_memory=100)
    assert (scheduler.total_memory, scheduler.sched_tick_ms, scheduler.window_ms) == (100, 10.0, 100.0)
    assert scheduler.submit(rust.TaskMeta("a", "first", 60)) == "a"
    assert scheduler.admit(rust.TaskMeta("b", "second", 60)).is_queued()
    scheduler.submit(rust.TaskMeta("c", "third", dependencies=["a"]))
    foretold = scheduler.evaluate_admission(rust.TaskMeta("d", "fourth", 101))
    assert foretold.is_rejected() and foretold.reject_reason() == rust.RejectReason.InsufficientMemory
    assert foretold.rejection_reason.message() == "ExceedsDevice, asked 101, available 100"
    assert scheduler.get_runnable_tasks(5) == ["a"] and scheduler.should_run("a") and not scheduler.should_run("b")
    assert not scheduler.start_task("b") and scheduler.start_task("a") and not scheduler.start_task("a")
    assert scheduler.get_task_state("a") == beneath.TaskState.Running
    assert scheduler.complete_task("a") and not scheduler.complete_task("a")
    assert scheduler.get_runnable_tasks(max_tasks=9) == ["b", "c"]
    assert scheduler.start_task("b") and scheduler.fail_task("b", "broken")
    assert scheduler.start_task("c") and scheduler.cancel_task("c") and not scheduler.cancel_task("nobody")
    failed = scheduler.get_task("b")
    assert (failed.state, failed.error, failed.is_terminal()) == (beneath.TaskState.Failed, "broken", True)
    assert failed.duration() >= 0 and failed.elapsed() >= failed.duration()
    assert scheduler.get_task("c").dependencies == ["a"] and scheduler.get_task("nobody") is None
    stats = scheduler.stats()
    assert (stats.total_submitted, stats.completed_count, stats.failed_count, stats.cancelled_count) == (3, 1, 1, 1)
    assert (stats.reserved_memory, stats.available_memory, stats.pending_count) == (0, 100, 0)
    assert scheduler.task_stats("a").memory_used == 60 and scheduler.admission_stats().pending_count == 0
    with pytest.raises(ValueError, match="depends_on: cycle"):
        scheduler.submit(rust.TaskMeta("e", "cyclic", dependencies=["e"]))
    scheduler.clear()
    assert scheduler.stats().total_submitted == 0


def test_nothing_is_kept_of_a_malformed_task():
    scheduler = rust.Scheduler(total_memory=100)
    for take in (scheduler.submit, scheduler.admit):
        with pytest.raises(ValueError, match="depends_on: no task 'nobody'"):
            take(rust.TaskMeta("a", "orphan", dependencies=["nobody"]))
        with pytest.raises(ValueError, match=r"^id: empty"):
            take(rust.TaskMeta("", "nameless"))
    assert scheduler.get_task("a") is None and scheduler.stats().total_submitted == 0
    task = rust.TaskMeta("a", "sound")
    assert scheduler.submit(task) == scheduler.submit(task) == "a"
    scheduler.submit(rust.TaskMeta("b", "next", dependencies=[task]))
    assert scheduler.get_task("b").dependencies == ["a"]
    assert scheduler.get_task(task).name == "sound" and scheduler.start_task(task) and scheduler.complete_task(task)


def test_means_of_nothing_are_zero():
    stats = rust.Scheduler().stats()
    assert [str(mean) for mean in (stats.avg_wait_time, stats.avg_exec_time)] == ["0.0", "0.0"]


def test_what_is_short_is_named_with_its_numbers():
    controller = rust.AdmissionController(rust.AdmissionConfig(1000, 0.5, enable_best_effort=False))
    assert controller.try_admit("a", 10, 0.4).is_admitted()
    share = controller.try_admit("b", 10, 0.4)
    assert (share.reject_reason(), share.rejection_reason.reason_type) == (
        rust.RejectReason.InsufficientBandwidth,
        "InsufficientBandwidth",
    )
    assert (share.rejection_reason.requested_memory, share.rejection_reason.available_memory) == (None, None)
    assert share.rejection_reason.message().startswith("WaitingForShare, asked 40 %, available 10 %")
    memory = controller.try_admit("b", 995, 0.1)
    assert memory.reject_reason() == rust.RejectReason.InsufficientMemory
    assert (memory.rejection_reason.requested_memory, memory.rejection_reason.available_memory) == (995, 990)


def test_priority_orders_the_table():
    scheduler = rust.Scheduler()
    for name, priority in (("low", 0), ("high", 5), ("later", 0)):
        scheduler.submit(rust.TaskMeta(name, name, priority=priority))
    assert scheduler.get_runnable_tasks(3) == ["high", "low", "later"]


@pytest.mark.parametrize("queues", [True, False])
def test_admission_controller(queues):
    controller = rust.AdmissionController(rust.AdmissionConfig(100, 0.5, 1, queues))
    first = controller.try_admit("a", 60, 0.3)
    assert (first.decision_type, first.reserved_memory, first.reserved_bandwidth) == ("Admitted", 60, 0.3)
    second = controller.try_admit("b", 10, 0.3)
    assert second.is_queued() is queues and second.is_rejected() is not queues
    if queues:
        assert second.queue_position == 1
        assert controller.try_admit("c", 1, 0.5).reject_reason() == rust.RejectReason.QueueFull
    assert controller.try_admit("big", 101, 0).reject_reason() == rust.RejectReason.InsufficientMemory
    with pytest.raises(ValueError, match="in use"):
        controller.try_admit("a", 1, 0)
    controller.release("a")
    stats = controller.stats()
    assert (stats.reserved_memory, stats.reserved_bandwidth) == ((10, 0.3) if queues else (0, 0.0))
    assert (stats.pending_count, stats.available_memory) == (0, 100 - stats.reserved_memory)
    with pytest.raises(ValueError, match="not admitted"):
        controller.release("a")
    assert controller.try_admit("a", 60, 0.1).is_admitted(), "a released id is free again"


def test_qos_evaluator():
    evaluator = rust.QosPolicyEvaluator(total_memory=100, total_bandwidth=1.0)
    task = rust.QosTaskMeta.guaranteed("t", "task", 60)
    assert (task.qos_class, task.memory_limit, task.effective_priority()) == (rust.QosClass.Guaranteed, 60, 100)
    result = evaluator.evaluate(task)
    assert result.is_admitted() and result.reserved_memory == 60
    evaluator.reserve(result)
    assert evaluator.evaluate(task).is_queued()
    assert evaluator.evaluate(rust.QosTaskMeta.guaranteed("t", "task", 101)).is_rejected()
    assert evaluator.evaluate(rust.QosTaskMeta.burstable("b", "b", 30, 2.0)).is_throttled()
    assert evaluator.evaluate(rust.QosTaskMeta.burstable("b", "b", 30, 1.0)).is_admitted()
    assert evaluator.evaluate(rust.QosTaskMeta.best_effort("e", "e")).is_admitted()
    stats = evaluator.stats()
    assert (stats.guaranteed_memory, stats.guaranteed_bandwidth, stats.available_memory) == (60, 1.0, 40)
    with pytest.raises(ValueError, match="evaluate again"):
        evaluator.reserve(result)
    with pytest.raises(ValueError, match="given back"):
        evaluator.release(rust.QosClass.Guaranteed, 61, 0.0)
    evaluator.release(rust.QosClass.Guaranteed, 60, 1.0)
    assert evaluator.evaluate(task).is_admitted()
    for wrong in (
        lambda: rust.QosTaskMeta.guaranteed("t", "t", 0),
        lambda: rust.QosTaskMeta.burstable("t", "t", 1, 0.5),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_qos_constants():
    assert [rust.QosClass.Guaranteed.priority(), rust.QosClass.BestEffort.priority()] == [100, 0]
    assert rust.QosClass.Guaranteed.can_preempt(rust.QosClass.Burstable)
    assert not rust.QosClass.Burstable.can_preempt(rust.QosClass.Burstable)
    assert rust.QosClass.Burstable.memory_overcommit_ratio() == 1.5 and rust.QosClass.Burstable.bandwidth_ratio() == 0.8
    assert rust.QosPolicy.guaranteed(5).memory_to_reserve() == 5
    assert rust.QosPolicy.best_effort().bandwidth_to_reserve() == 0.0
    assert rust.ResourceRequirements(4).memory_limit == 4
    with pytest.raises(ValueError, match="memory_limit"):
        rust.ResourceRequirements(4, 3)


def test_partition_manager():
    manager = rust.PartitionManager(rust.PartitionConfig(total_memory=8 * GB))
    limits = rust.PartitionLimits().memory(4 * GB).compute(0.5).bandwidth(0.5)
    manager.create_partition("inference", "Inference", limits)
    part = manager.get("inference")
    assert (part.name, part.limits.memory_quota, part.limits.compute_share, part.enabled) == (
        "Inference",
        4 * GB,
        0.5,
        True,
    )
    with pytest.raises(ValueError, match="compute"):
        manager.create_partition("other", "Other", rust.PartitionLimits())
    manager.assign_task("t", "inference")
    assert manager.get_task_partition("t").tasks == ["t"] and manager.get_task_partition("u") is None
    manager.set_default("inference")
    assert manager.get_task_partition("u").id == manager.default_partition().id == "inference"
    manager.unassign_task("t")
    with pytest.raises(ValueError, match="nowhere"):
        manager.assign_task("t", "nowhere")
    stats = manager.stats()
    assert (stats.partition_count, stats.available_memory, stats.available_compute) == (1, 4 * GB, 0.5)
    assert manager.delete_partition("inference").id == "inference"
    with pytest.raises(ValueError, match="no partition"):
        manager.delete_partition("inference")
    assert rust.PartitionManager.with_memory(1).partition_ids() == []


def test_overcommitted_quotas_are_bounds_only():
    manager = rust.PartitionManager(rust.PartitionConfig(100, True, 1.5))
    for name in ("a", "b", "c"):
        manager.create_partition(name, name, rust.PartitionLimits(50, 0.5, 0.5))
    with pytest.raises(ValueError, match="not promised yet"):
        manager.create_partition("d", "d", rust.PartitionLimits(1, 0.0, 0.0))
    manager.clear()
    assert manager.stats().partition_count == 0


def test_shares_of_memory_bandwidth_are_planned_with():
    manager = rust.PartitionManager(rust.PartitionConfig(total_memory=8 * GB))
    limits = rust.PartitionLimits(compute_share=0.0)
    manager.create_partition("a", "A", limits.bandwidth(0.75))
    with pytest.raises(ValueError, match="bandwidth: 50 % asked, 25 % of 100 % not promised yet") as caught:
        manager.create_partition("b", "B", limits.bandwidth(0.5))
    assert caught.value.field == "bandwidth"
    assert (manager.stats().total_bandwidth_allocated, manager.stats().available_bandwidth) == (0.75, 0.25)
