//! The documented PinnedMemoryManager: a pool of pinned host memory by block numbers.

use std::sync::{Arc, OnceLock};

use pygpukit_core::pinned::{self, PinnedConfig, PinnedError, PinnedPool};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::deprecated;
use crate::pinned::{config_error, make, pinned_error, refuse_forked, PinnedStats};
use crate::table;
use crate::text::TaskId;

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
    module.add_class::<PinnedBlock>()?;
    module.add_class::<PinnedMemoryManager>()?;
    module.add_class::<PinnedPoolConfig>()
}
