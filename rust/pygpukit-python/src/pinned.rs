//! Pinned host memory for Python: the process's pool behind NumPy arrays.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::counters::{Counter, Counters};
use pygpukit_core::pinned::{self, ConfigError, Hold, PinnedConfig, PinnedError, PinnedPool};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::abi;
use crate::default_pools::{ensure_backend, pool_error};
use crate::errors::raise_with;
use crate::table;

/// Every pool of the process, so that addresses can be looked up.
static POOLS: Mutex<Vec<Weak<PinnedPool>>> = Mutex::new(Vec::new());
/// The one behind `gp.memory.pinned_empty`.
static DEFAULT: OnceLock<Arc<PinnedPool>> = OnceLock::new();

pub fn config_error(py: Python<'_>, error: ConfigError) -> PyErr {
    raise_with(py, "InvalidSpecError", (error.text, error.field))
}

pub fn pinned_error(py: Python<'_>, error: PinnedError) -> PyErr {
    let text = error.to_string();
    match error {
        PinnedError::OutOfMemory { requested, used, limit } => {
            let free = limit.saturating_sub(used);
            raise_with(py, "OutOfMemoryError", (text, requested, limit, free))
        }
        PinnedError::Refused { requested, .. } => raise_with(py, "OutOfMemoryError", (text, requested)),
        PinnedError::BadBlock(_) => PyValueError::new_err(text),
        PinnedError::Driver(driver) => raise_with(py, "driver_error", (text, driver.code)),
    }
}

pub fn make(py: Python<'_>, config: PinnedConfig) -> PyResult<Arc<PinnedPool>> {
    ensure_backend(py)?;
    let driver = abi::driver(0).map_err(|error| pool_error(py, error))?;
    let pool = PinnedPool::new(driver, Arc::new(MonotonicClock), config).map_err(|error| config_error(py, error))?;
    let pool = Arc::new(pool);
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|other| other.strong_count() > 0);
    pools.push(Arc::downgrade(&pool));
    Ok(pool)
}

/// Errors: in a forked process, where pinned memory is the parent's.
pub fn refuse_forked(py: Python<'_>) -> PyResult<()> {
    table::refuse_forked("using pinned memory").map_err(|error| pool_error(py, error.into()))
}

fn default_pool(py: Python<'_>) -> PyResult<&'static Arc<PinnedPool>> {
    refuse_forked(py)?;
    if let Some(pool) = DEFAULT.get() {
        return Ok(pool);
    }
    let config = PinnedConfig {
        limit_bytes: u64::MAX,
        ..PinnedConfig::default()
    };
    let pool = make(py, config)?;
    Ok(DEFAULT.get_or_init(|| pool))
}

/// Keeps a range of pinned memory of this process where it is. None when no pool has it.
pub fn hold(address: u64, bytes: u64) -> Option<Hold> {
    if table::forked() {
        return None; // what it inherited is pinned for the parent
    }
    let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut pools = pools.iter().filter_map(Weak::upgrade);
    pools.find_map(|pool| pool.hold(address, bytes))
}

/// Whether pinned memory of this process holds the whole range.
#[pyfunction]
pub fn pinned_holds(address: u64, nbytes: u64) -> bool {
    hold(address, nbytes).is_some()
}

/// Pinned memory of the process's pool, writable through the buffer protocol; it goes back to the pool with the object.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct PinnedBuffer {
    pool: Arc<PinnedPool>,
    block: pinned::PinnedBlock,
}

#[pymethods]
impl PinnedBuffer {
    #[new]
    fn new(py: Python<'_>, nbytes: u64) -> PyResult<PinnedBuffer> {
        let pool = default_pool(py)?.clone();
        let allocated = py.detach(|| pool.allocate(nbytes));
        let (block, _) = allocated.map_err(|error| pinned_error(py, error))?;
        Ok(PinnedBuffer { pool, block })
    }

    #[getter]
    fn address(&self) -> u64 {
        self.block.address
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.block.bytes
    }

    /// # Safety
    /// As the buffer protocol says: `view` is valid, and the memory lives as long as this object, which the view holds.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let block = &slf.get().block;
        // SAFETY: the contract above.
        let status = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                block.address as *mut std::ffi::c_void,
                block.bytes as ffi::Py_ssize_t,
                0,
                flags,
            )
        };
        if status == 0 {
            return Ok(());
        }
        Err(PyErr::take(slf.py()).unwrap_or_else(|| PyBufferError::new_err("the buffer was refused")))
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if !table::forked() {
            let _ = self.pool.free(self.block.id);
        }
    }
}

/// Figures of a pinned pool at one moment; bytes unless named otherwise.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct PinnedStats {
    total_allocated: u64,
    current_used: u64,
    peak_used: u64,
    total_allocations: u64,
    total_frees: u64,
    pool_hits: u64,
    pool_misses: u64,
    pool_size: u64,
    pooled_blocks: u64,
}

impl From<pinned::PinnedStats> for PinnedStats {
    fn from(s: pinned::PinnedStats) -> PinnedStats {
        PinnedStats {
            total_allocated: s.used + s.kept,
            current_used: s.used,
            peak_used: s.peak_used,
            total_allocations: s.allocations,
            total_frees: s.frees,
            pool_hits: s.hits,
            pool_misses: s.misses,
            pool_size: s.kept,
            pooled_blocks: s.kept_blocks,
        }
    }
}

#[pymethods]
impl PinnedStats {
    /// Part of the allocations that found memory that was pinned before; 0.0 before the first.
    fn hit_rate(&self) -> f64 {
        let all = self.pool_hits + self.pool_misses;
        if all == 0 {
            return 0.0;
        }
        self.pool_hits as f64 / all as f64
    }

    fn __repr__(&self) -> String {
        format!(
            "PinnedStats(current_used={}, pool_size={}, hit_rate={:.2})",
            self.current_used,
            self.pool_size,
            self.hit_rate()
        )
    }
}

/// Figures of the process's pool.
#[pyfunction]
pub fn pinned_stats(py: Python<'_>) -> PyResult<PinnedStats> {
    Ok(default_pool(py)?.stats().into())
}

/// Host memory of so many bytes that was to be pinned is pageable.
#[pyfunction]
pub fn count_pageable(nbytes: u64) {
    Counters::global().add(Counter::PageableBuffers, 1);
    Counters::global().add(Counter::PageableBytes, nbytes);
}

/// Unpins what the process's pool keeps for reuse; how many blocks.
#[pyfunction]
pub fn pinned_trim(py: Python<'_>) -> PyResult<usize> {
    let pool = default_pool(py)?;
    Ok(py.detach(|| pool.clear_kept()))
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PinnedBuffer>()?;
    module.add_class::<PinnedStats>()?;
    module.add_function(wrap_pyfunction!(count_pageable, module)?)?;
    module.add_function(wrap_pyfunction!(pinned_holds, module)?)?;
    module.add_function(wrap_pyfunction!(pinned_stats, module)?)?;
    module.add_function(wrap_pyfunction!(pinned_trim, module)?)
}
