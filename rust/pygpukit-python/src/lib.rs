//! The extension module `pygpukit._core`: thin Python bindings of the core, with the C++ layer as its submodule `native`.

mod abi;
mod asked_devices;
mod cache;
mod compat;
mod contexts;
mod default_pools;
mod entered;
mod errors;
mod gate;
mod health;
mod held;
mod live;
mod memory;
mod native;
mod partition;
mod partition_values;
mod pinned;
mod pool_speed;
mod scheduler;
mod scheduler_figures;
mod scheduling_speed;
mod slicing;
mod sms;
mod table;
mod task_account;
mod task_conditions;
mod task_events;
mod task_record;
mod task_start;
mod telemetry;
mod text;
mod transfer;
mod units;

use pyo3::prelude::*;
use pyo3::wrap_pyfunction;

// What the C++ bindings keep is guarded by the GIL alone. PyO3 says otherwise by default, and the mark of the submodule, which no import
// makes, is not looked at: a free-threaded interpreter would go on without the GIL.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("RECORD_BYTES", pygpukit_core::ring::RECORD_BYTES)?;
    module.add_class::<memory::MemoryPool>()?;
    module.add_class::<memory::MemoryBlock>()?;
    module.add_class::<memory::PoolStats>()?;
    module.add_class::<cache::KernelCache>()?;
    module.add_class::<scheduler::SchedulerCore>()?;
    module.add_class::<task_record::TaskRecord>()?;
    module.add_class::<task_start::TaskStart>()?;
    module.add_class::<contexts::ModelContexts>()?;
    module.add_class::<contexts::ModelContext>()?;
    module.add_class::<sms::Space>()?;
    module.add_function(wrap_pyfunction!(task_events::task_edges, module)?)?;
    module.add_function(wrap_pyfunction!(health::device_failed, module)?)?;
    module.add_function(wrap_pyfunction!(scheduling_speed::scheduling_ns, module)?)?;
    module.add_function(wrap_pyfunction!(scheduling_speed::submissions_ns, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_stats, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_traffic, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_segments, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_set_limit, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_trim, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_evict, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_segment_export, module)?)?;
    module.add_function(wrap_pyfunction!(default_pools::pool_end_export, module)?)?;
    module.add_function(wrap_pyfunction!(pool_speed::pool_hit_ns, module)?)?;
    module.add_function(wrap_pyfunction!(pool_speed::eviction_ns, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::ring_head, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::ring_read, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::ring_push, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::now_ns, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::intern, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::name, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::counters, module)?)?;
    module.add_function(wrap_pyfunction!(telemetry::telemetry_frame, module)?)?;
    slicing::add(module)?;
    partition::add(module)?;
    pinned::add(module)?;
    transfer::add(module)?;
    compat::add(module)?;
    native::add_native(module)
}
