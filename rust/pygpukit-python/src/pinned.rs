//! Pinned host memory for Python: the process's pool behind NumPy arrays, and the documented PinnedMemoryManager.

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
use crate::errors::deprecated;
use crate::errors::raise_with;
use crate::table;
use crate::text::TaskId;

/// Every pool of the process, so that addresses can be looked up.
static POOLS: Mutex<Vec<Weak<PinnedPool>>> = Mutex::new(Vec::new());
/// The one behind `gp.memory.pinned_empty`.
static DEFAULT: OnceLock<Arc<PinnedPool>> = OnceLock::new();

fn config_error(py: Python<'_>, error: ConfigError) -> PyErr {
    raise_with(py, "InvalidSpecError", (error.text, error.field))
}

fn pinned_error(py: Python<'_>, error: PinnedError) -> PyErr {
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

fn make(py: Python<'_>, config: PinnedConfig) -> PyResult<Arc<PinnedPool>> {
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
fn refuse_forked(py: Python<'_>) -> PyResult<()> {
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

/// Limit and size classes of a PinnedMemoryManager.
#[pyclass(frozen, from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct PinnedPoolConfig(PinnedConfig);

#[pymethods]
impl PinnedPoolConfig {
    #[new]
    #[pyo3(signature = (max_size=1 << 30, enable_pooling=true, alignment=256))]
    fn new(py: Python<'_>, max_size: u64, enable_pooling: bool, alignment: u64) -> PyResult<PinnedPoolConfig> {
        let config = PinnedConfig {
            limit_bytes: max_size,
            pooling: enable_pooling,
            alignment,
        };
        config.check().map_err(|error| config_error(py, error))?;
        Ok(PinnedPoolConfig(config))
    }

    #[getter]
    fn max_size(&self) -> u64 {
        self.0.limit_bytes
    }

    #[getter]
    fn enable_pooling(&self) -> bool {
        self.0.pooling
    }

    #[getter]
    fn alignment(&self) -> u64 {
        self.0.alignment
    }

    /// What a size is rounded up to, in bytes.
    fn get_size_class(&self, size: u64) -> PyResult<u64> {
        let class = self.0.class_of(size);
        class.ok_or_else(|| PyValueError::new_err(format!("size is {size}, which no class holds")))
    }
}

/// A block of a PinnedMemoryManager at one moment; times in seconds of the process's monotonic clock.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct PinnedBlock {
    id: u64,
    host_ptr: u64,
    size: u64,
    in_use: bool,
    task_id: Option<String>,
    allocated_at: f64,
    last_access: f64,
}

impl From<pinned::PinnedBlock> for PinnedBlock {
    fn from(b: pinned::PinnedBlock) -> PinnedBlock {
        PinnedBlock {
            id: b.id,
            host_ptr: b.address,
            size: b.bytes,
            in_use: true,
            task_id: b.task,
            allocated_at: b.allocated_ns as f64 * 1e-9,
            last_access: b.last_use_ns as f64 * 1e-9,
        }
    }
}

/// A pool of pinned host memory by block numbers. It pins and unpins itself: nothing is left to the caller.
///
/// Raises OutOfMemoryError (a MemoryError) past its limit, ValueError for an unknown number.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct PinnedMemoryManager {
    config: PinnedConfig,
    pool: OnceLock<Arc<PinnedPool>>,
}

impl PinnedMemoryManager {
    fn open(&self, py: Python<'_>) -> PyResult<&Arc<PinnedPool>> {
        refuse_forked(py)?;
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let pool = make(py, self.config)?;
        Ok(self.pool.get_or_init(|| pool))
    }

    /// Runs an operation without the GIL.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&PinnedPool) -> Result<T, PinnedError> + Send,
    ) -> PyResult<T> {
        let pool = self.open(py)?;
        py.detach(|| call(pool)).map_err(|error| pinned_error(py, error))
    }
}

impl Drop for PinnedMemoryManager {
    /// As that of a MemoryPool.
    fn drop(&mut self) {
        if table::forked() {
            std::mem::forget(self.pool.take());
        }
    }
}

#[pymethods]
impl PinnedMemoryManager {
    #[new]
    #[pyo3(signature = (config=None))]
    fn new(config: Option<PinnedPoolConfig>) -> PinnedMemoryManager {
        PinnedMemoryManager {
            config: config.map_or_else(PinnedConfig::default, |config| config.0),
            pool: OnceLock::new(),
        }
    }

    #[staticmethod]
    fn with_max_size(py: Python<'_>, max_size: u64) -> PyResult<PinnedMemoryManager> {
        let config = PinnedPoolConfig::new(py, max_size, true, PinnedConfig::default().alignment)?;
        Ok(PinnedMemoryManager::new(Some(config)))
    }

    fn can_allocate(&self, py: Python<'_>, size: u64) -> PyResult<bool> {
        Ok(self.open(py)?.can_allocate(size))
    }

    /// Pins memory: (number, bytes as rounded, whether it had been pinned before). Its address: get(number).host_ptr.
    fn allocate(&self, py: Python<'_>, size: u64) -> PyResult<(u64, u64, bool)> {
        if size == 0 {
            return Err(PyValueError::new_err("size is 0; a block has at least one byte"));
        }
        let (block, reused) = self.run(py, |pool| pool.allocate(size))?;
        Ok((block.id, block.class_bytes, reused))
    }

    /// Deprecated, changes nothing: allocate() pins the memory itself.
    #[allow(unused_variables)] // the documented names
    fn register(&self, py: Python<'_>, id: u64, host_ptr: u64, size: u64) -> PyResult<()> {
        deprecated(
            py,
            "PinnedMemoryManager.register() changes nothing: allocate() pins the memory itself",
        )
    }

    /// Gives a block back: (False, its address); the manager unpins what it does not keep, nothing is left to the caller.
    fn free(&self, py: Python<'_>, id: u64) -> PyResult<(bool, u64)> {
        self.run(py, |pool| {
            let address = pool.get(id).map_or(0, |block| block.address);
            pool.free(id).map(|()| (false, address))
        })
    }

    fn associate_task(&self, py: Python<'_>, id: u64, task_id: TaskId) -> PyResult<()> {
        self.run(py, |pool| pool.associate(id, &task_id))
    }

    fn get(&self, py: Python<'_>, id: u64) -> PyResult<Option<PinnedBlock>> {
        Ok(self.open(py)?.get(id).map(PinnedBlock::from))
    }

    fn touch(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.run(py, |pool| pool.touch(id))
    }

    fn get_blocks_for_task(&self, py: Python<'_>, task_id: TaskId) -> PyResult<Vec<PinnedBlock>> {
        let blocks = self.open(py)?.blocks(Some(&task_id));
        Ok(blocks.into_iter().map(PinnedBlock::from).collect())
    }

    /// Frees a task's blocks; as free(), one pair a block.
    fn free_task_blocks(&self, py: Python<'_>, task_id: TaskId) -> PyResult<Vec<(bool, u64)>> {
        let blocks = self.open(py)?.blocks(Some(&task_id));
        blocks.into_iter().map(|block| self.free(py, block.id)).collect()
    }

    fn stats(&self, py: Python<'_>) -> PyResult<PinnedStats> {
        Ok(self.open(py)?.stats().into())
    }

    /// Unpins what is kept for reuse. Addresses left for the caller to unpin: none.
    fn clear_pool(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let pool = self.open(py)?;
        py.detach(|| pool.clear_kept());
        Ok(Vec::new())
    }

    /// Frees every block and unpins all. Addresses left for the caller to unpin: none.
    fn clear(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        for block in self.open(py)?.blocks(None) {
            self.free(py, block.id)?;
        }
        self.clear_pool(py)
    }

    fn active_count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.open(py)?.stats().blocks)
    }

    fn __repr__(&self) -> String {
        format!("PinnedMemoryManager(max_size={})", self.config.limit_bytes)
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PinnedBuffer>()?;
    module.add_class::<PinnedBlock>()?;
    module.add_class::<PinnedMemoryManager>()?;
    module.add_class::<PinnedPoolConfig>()?;
    module.add_class::<PinnedStats>()?;
    module.add_function(wrap_pyfunction!(count_pageable, module)?)?;
    module.add_function(wrap_pyfunction!(pinned_holds, module)?)?;
    module.add_function(wrap_pyfunction!(pinned_stats, module)?)?;
    module.add_function(wrap_pyfunction!(pinned_trim, module)?)
}
