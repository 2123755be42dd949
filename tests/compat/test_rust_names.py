"""The documented Rust classes are there with their members, at every place that they are imported from."""

from __future__ import annotations

import importlib
import re

import pytest

import _pygpukit_rust as rust
from pygpukit import scheduler

# Module, class, members; * of a class that only its module has. What instances set is tested where it is used.
DOCUMENTED = """
llm.Dtype: Float32 Float16 BFloat16 Float64 Float8E4M3 Float8E5M2 Int32 Int64 Int16 Int8 UInt8 Bool element_size
llm.LazyModelLoader*: tensor_names total_size loaded_size pool_stats num_tensors num_files load_file get loaded_tensors
    num_loaded unload_model unload_layer unload_tensors clear get_layer_tensors layer_size is_layer_loaded layer_state
    tensor_data_ptr
llm.PoolStats*: utilization total_blocks
llm.SafeTensorsFile: tensor_names file_size num_tensors tensor_info tensor_bytes tensor_data_ptr tensor_as_f32
llm.TensorInfo: numel
llm.TensorState*: OnDisk Loading OnGpu Evicted
llm.Tokenizer: vocab_size bos_token_id eos_token_id pad_token_id from_json encode decode id_to_token token_to_id
memory.MemoryBlock: id size device_ptr on_gpu on_host last_access is_available is_evicted
memory.MemoryPool: quota used cached available allocate free touch evict restore stats clear get_block set_device_ptr
    set_host_data get_host_data clear_host_data get_block_size is_block_on_gpu
memory.PoolStats: quota used cached available allocation_count reuse_count eviction_count cudamalloc_count
    active_blocks free_blocks
scheduler.AdmissionConfig: max_memory max_bandwidth max_pending_tasks enable_best_effort
scheduler.AdmissionController: try_admit release stats
scheduler.AdmissionDecision: decision_type reserved_memory reserved_bandwidth queue_position estimated_wait_ms
    rejection_reason Admitted Queued is_admitted is_rejected is_queued reject_reason
scheduler.AdmissionStats: admitted_count rejected_count queued_count pending_count reserved_memory used_memory
    reserved_bandwidth used_bandwidth available_memory available_bandwidth
scheduler.AsyncExecStats:
scheduler.AsyncKernelRequest: kernel_handle grid block shared_mem linear with_grid with_block with_shared_mem
    with_args
scheduler.ContextState: Idle Running Paused
scheduler.ContextStats: llm_id state stream_id max_vram used_vram available_vram buffer_count
scheduler.ControllerStats: initialized device_id total_vram_budget device_total_memory used_vram available_vram
    context_count stream_pool_size
scheduler.FutureState: Pending Running Completed Failed Cancelled
scheduler.KernelFuture: id stream_id context_id state is_ready wait try_get exec_time
scheduler.KernelResult: success error exec_time output
scheduler.MultiLLMController: initialize is_initialized create_context get_context destroy_context list_contexts
    context_count get_stream_id track_allocation track_deallocation used_vram available_vram start_session end_session
    is_session_active stats reset dispatch_async get_pending_futures mark_future_launched mark_future_completed
    mark_future_failed cancel_future get_future async_stats start_context_session end_context_session
    is_context_session_active
scheduler.Partition: id name limits usage tasks enabled memory_utilization
scheduler.PartitionConfig: total_memory allow_overcommit overcommit_ratio
scheduler.PartitionLimits: memory_quota compute_share bandwidth_share max_streams with_memory with_compute memory
    compute bandwidth
scheduler.PartitionManager: with_memory create_partition delete_partition get assign_task get_task_partition
    unassign_task set_default default_partition partition_ids stats clear
scheduler.PartitionStats: partition_count active_partitions total_memory_allocated total_compute_allocated
    total_bandwidth_allocated available_memory available_compute available_bandwidth
scheduler.PartitionUsage: memory_used active_streams pending_kernels pending_transfers total_kernels total_transfers
    compute_time_ms
scheduler.QosClass: Guaranteed Burstable BestEffort priority can_preempt memory_overcommit_ratio bandwidth_ratio
scheduler.QosEvaluation: decision_type qos_class reserved_memory reject_reason is_admitted is_throttled is_queued
    is_rejected
scheduler.QosPolicy: qos_class guaranteed burstable best_effort memory_to_reserve bandwidth_to_reserve
scheduler.QosPolicyEvaluator: evaluate reserve release stats reset
scheduler.QosStats: total_memory total_bandwidth guaranteed_memory guaranteed_bandwidth burstable_memory
    best_effort_queue available_memory available_bandwidth
scheduler.QosTaskMeta: id name qos_class memory_request memory_limit burst_ratio bandwidth_request guaranteed
    burstable best_effort effective_priority
scheduler.RejectReason: InsufficientMemory InsufficientBandwidth QueueFull UnsatisfiableDependencies Custom
scheduler.RejectReasonDetails: reason_type requested_memory available_memory message
scheduler.ResourceRequirements: memory_request memory_limit bandwidth_request bandwidth_limit guaranteed burstable
    best_effort
scheduler.Scheduler: total_memory sched_tick_ms window_ms submit admit evaluate_admission admission_stats
    get_runnable_tasks should_run start_task complete_task fail_task cancel_task get_task get_task_state stats
    task_stats clear
scheduler.SchedulerStats: total_submitted pending_count running_count completed_count failed_count cancelled_count
    reserved_memory available_memory avg_wait_time avg_exec_time
scheduler.TaskMeta: id name state policy priority memory_estimate submitted_at started_at completed_at error
    dependencies is_terminal elapsed duration
scheduler.TaskPolicy*: Fifo Sjf Priority
scheduler.TaskState*: Pending Running Completed Failed Cancelled
scheduler.TaskStats: id name state wait_time exec_time memory_used
transfer.AsyncTransferEngine: enqueue_h2d enqueue_d2h enqueue_d2d enqueue_with_priority get_ready_transfers
    start_transfer complete_transfer fail_transfer cancel_transfer get_operation stats get_in_progress_for_stream
    has_pending_work gc clear
transfer.PinnedBlock: id host_ptr size in_use task_id allocated_at last_access
transfer.PinnedMemoryManager: with_max_size can_allocate allocate register free associate_task get touch
    get_blocks_for_task free_task_blocks stats clear_pool clear active_count
transfer.PinnedPoolConfig: max_size enable_pooling alignment get_size_class
transfer.PinnedStats: total_allocated current_used peak_used total_allocations total_frees pool_hits pool_misses
    pool_size pooled_blocks hit_rate
transfer.StreamType*: Compute MemcpyH2D MemcpyD2H Custom to_id
transfer.TransferOp: id transfer_type src_ptr dst_ptr size state stream_id queued_at started_at completed_at priority
    error task_id wait_time duration bandwidth_gbps
transfer.TransferState*: Queued InProgress Completed Failed Cancelled is_terminal
transfer.TransferStats: total_queued completed_count failed_count total_bytes h2d_bytes d2h_bytes avg_h2d_bandwidth
    avg_d2h_bandwidth pending_count in_progress_count
transfer.TransferType*: H2D D2H D2D
dispatch.ArchFingerprint*: sm_version global_memory shared_memory_per_sm max_registers_per_block l2_cache_size
    driver_version hash is_compatible
dispatch.CacheConfig: max_entries max_ptx_size enable_eviction ttl_seconds
dispatch.CacheStats: hits misses entries ptx_size evictions ttl_evictions loaded_count hit_rate
dispatch.CachedKernel: key name ptx module_handle function_handle created_at last_access access_count is_loaded
dispatch.CompileOptions: compute_capability flags defines flag define include
dispatch.DispatchStats: total_queued completed_count failed_count pending_count in_flight_count avg_exec_time
    launches_per_stream
dispatch.KernelCache: compute_key hash_source get get_by_name insert set_handles remove contains kernel_names
    clear_expired stats __len__ is_empty clear
dispatch.KernelDispatcher: queue queue_for_task get_ready mark_launched mark_completed mark_failed cancel get_request
    get_in_flight get_requests_for_task has_pending_work stats gc clear
dispatch.KernelLaunchRequest*: state completed_at error duration
dispatch.KernelPacingEngine: allocate_stream release_stream should_launch record_launch record_throttle record_wait
    stream_stats stats reset
dispatch.KernelSlice: id offset count grid executed exec_time_ms
dispatch.KernelState*: Queued Launched Completed Failed Cancelled is_terminal
dispatch.LaunchConfig: grid block shared_mem stream_id linear grid_2d
dispatch.PacingConfig: total_bandwidth window_ms min_interval_ms adaptive
dispatch.PacingDecision: decision_type can_launch is_throttled wait_ms
dispatch.PacingStats: stream_count used_bandwidth available_bandwidth total_launches total_throttled total_waited
dispatch.PersistentCache*: initialize compute_key hash_source hash_options get insert remove clear cleanup contains
    __len__ is_empty stats
dispatch.PersistentCacheConfig*:
dispatch.PersistentCacheStats*: entries total_size hits misses evictions load_errors save_errors hit_rate
dispatch.PersistentEntry*: name ptx source_hash options_hash created_at last_access access_count ptx_size
dispatch.SliceConfig: max_items_per_slice max_duration_ms min_slices max_slices adaptive
dispatch.SliceInfo: kernel_handle block shared_mem slice_id offset count grid task_id priority
dispatch.SliceScheduler: submit submit_for_task get_next_slice complete_slice pending_slices pending_kernels stats
    clear config
dispatch.SliceStats: total_slices completed_slices pending_slices total_kernels completed_kernels pending_kernels
dispatch.StreamPacingStats*: stream_id bandwidth launches_in_window total_launches throttled_count
device.DeviceCapabilities: device_id name sm_version compute_capability compute_major compute_minor tensorcore
    tensorcore_fp16 tensorcore_bf16 total_memory l2_cache_size shared_mem_per_block max_threads_per_block sm_count
    warp_size async_copy ampere ada hopper supports_kernel best_matmul_kernel is_ampere_or_newer
device.KernelType: FP32_FMA TF32_MMA FP16_MMA BF16_MMA L2_NAIVE TILED_SMEM uses_tensor_cores min_sm_version name
    __eq__
"""
ROWS = [row.split() for row in re.sub(r"\n +", " ", DOCUMENTED).strip().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row[0].rstrip(":") for row in ROWS])
def test_a_class_has_what_is_documented(row: list[str]) -> None:
    place, *members = row
    module, name = place.rstrip(":*").split(".")
    found = getattr(getattr(rust, module), name)
    if not place.endswith("*:"):
        assert getattr(rust, name) is found and name in rust.__all__
    fields = getattr(found, "__dataclass_fields__", {})
    assert [member for member in members if member not in fields and not hasattr(found, member)] == []


@pytest.mark.parametrize("name", ["_pygpukit_rust._pygpukit_rust", "pygpukit._pygpukit_rust"])
def test_every_way_to_import_it_gives_the_same_module(name: str) -> None:
    assert importlib.import_module(name) is rust


@pytest.mark.parametrize("name", ["Scheduler", "SchedulerStats", "TaskMeta", "TaskPolicy", "TaskState", "TaskStats"])
def test_the_scheduler_package_has_them_under_its_documented_names(name: str) -> None:
    assert getattr(scheduler, f"Rust{name}") is getattr(rust.scheduler, name)
    assert f"Rust{name}" in scheduler.__all__ and scheduler.HAS_RUST_BACKEND and scheduler.HAS_MULTI_LLM
