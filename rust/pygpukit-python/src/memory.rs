//! Python classes over the memory pool.

use std::sync::{Arc, Mutex, PoisonError};

use pygpukit_core::pool::{Owner, Pool, PoolConfig, PoolError, PoolStats as CoreStats, Services};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::abi;
use crate::default_pools::{ensure_backend, pool_error, run};
use crate::errors::deprecated;
use crate::held;
use crate::table;

/// Counters and sizes in bytes of a pool at one moment.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct PoolStats {
    quota: u64,
    used: u64,
    cached: u64,
    available: u64,
    allocation_count: u64,
    reuse_count: u64,
    eviction_count: u64,
    cudamalloc_count: u64,
    active_blocks: u64,
    free_blocks: u64,
    reserved: u64,
    spare: u64,
    evicted: u64,
    pageable: u64,
    peak_used: u64,
    pageable_eviction_count: u64,
    restore_count: u64,
    segment_count: u64,
}

impl From<CoreStats> for PoolStats {
    fn from(s: CoreStats) -> PoolStats {
        PoolStats {
            quota: s.quota,
            used: s.used,
            cached: s.cached,
            available: s.available,
            allocation_count: s.allocation_count,
            reuse_count: s.reuse_count,
            eviction_count: s.eviction_count,
            cudamalloc_count: s.cudamalloc_count,
            active_blocks: s.active_blocks,
            free_blocks: s.free_blocks,
            reserved: s.reserved,
            spare: s.spare,
            evicted: s.evicted,
            pageable: s.pageable,
            pageable_eviction_count: s.pageable_eviction_count,
            peak_used: s.peak_used,
            restore_count: s.restore_count,
            segment_count: s.segment_count,
        }
    }
}

#[pymethods]
impl PoolStats {
    fn __repr__(&self) -> String {
        format!(
            "PoolStats(quota={}, used={}, cached={}, reserved={}, active_blocks={})",
            self.quota, self.used, self.cached, self.reserved, self.active_blocks
        )
    }
}

/// A snapshot of one block.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct MemoryBlock {
    id: u64,
    size: u64,
    device_ptr: Option<u64>,
    on_gpu: bool,
    on_host: bool,
    last_access: f64,
}

#[pymethods]
impl MemoryBlock {
    fn is_available(&self) -> bool {
        self.on_gpu
    }

    fn is_evicted(&self) -> bool {
        self.on_host
    }

    fn __repr__(&self) -> String {
        format!(
            "MemoryBlock(id={}, size={}, on_gpu={})",
            self.id, self.size, self.on_gpu
        )
    }
}

/// A pool over the open backend with a hard limit in bytes.
///
/// Blocks are named by int ids. Raises MemoryError when the quota leaves no room, ValueError for an unknown id, DriverError in a process
/// that was forked after the backend was opened, wherever the pool was made.
#[pyclass(frozen, module = "pygpukit._core", weakref)]
pub struct MemoryPool {
    pool: Mutex<Option<Arc<Pool>>>,
    quota: u64,
    eviction: bool,
}

impl MemoryPool {
    /// The pool itself; opened on the first call that needs a device.
    fn open(&self, py: Python<'_>) -> PyResult<Arc<Pool>> {
        table::refuse_forked("using a memory pool").map_err(|error| pool_error(py, error.into()))?;
        if let Some(pool) = self.pool.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            return Ok(pool.clone());
        }
        ensure_backend(py)?;
        let config = PoolConfig {
            limit_bytes: self.quota,
            eviction: self.eviction,
            ..PoolConfig::default()
        };
        let driver = abi::driver(0).map_err(|error| pool_error(py, error))?;
        let pool = Arc::new(Pool::new(driver, config, Services::default()).map_err(|error| pool_error(py, error))?);
        let mut mine = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(mine
            .get_or_insert_with(|| {
                held::register(&pool);
                pool
            })
            .clone())
    }

    /// Runs a pool operation without the GIL.
    fn run<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&Pool) -> Result<T, PoolError> + Send) -> PyResult<T> {
        run(py, &*self.open(py)?, call)
    }

    fn core_stats(&self, py: Python<'_>) -> PyResult<CoreStats> {
        Ok(self.open(py)?.stats())
    }
}

impl Drop for MemoryPool {
    /// In a forked process the pool is the parent's, and a thread that is not there may hold its lock.
    fn drop(&mut self) {
        if table::forked() {
            let pool = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(pool.take());
        }
    }
}

#[pymethods]
impl MemoryPool {
    #[new]
    #[pyo3(signature = (quota, enable_eviction=false))]
    fn new(quota: u64, enable_eviction: bool) -> PyResult<MemoryPool> {
        if quota == 0 {
            return Err(PyValueError::new_err("quota is 0; give the pool's limit in bytes"));
        }
        Ok(MemoryPool {
            pool: Mutex::new(None),
            quota,
            eviction: enable_eviction,
        })
    }

    #[getter]
    fn quota(&self) -> u64 {
        self.quota
    }

    #[getter]
    fn used(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.core_stats(py)?.used)
    }

    #[getter]
    fn cached(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.core_stats(py)?.cached)
    }

    #[getter]
    fn available(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.core_stats(py)?.available)
    }

    /// A new block of at least `size` bytes; returns its id. MemoryError when the quota leaves no room.
    fn allocate(&self, py: Python<'_>, size: u64) -> PyResult<u64> {
        if size == 0 {
            return Err(PyMemoryError::new_err("size is 0; a block has at least one byte"));
        }
        self.run(py, |pool| {
            pool.alloc(size, 0, Owner::default()).map(|allocation| allocation.block)
        })
    }

    fn free(&self, py: Python<'_>, block_id: u64) -> PyResult<()> {
        self.run(py, |pool| held::free(pool, block_id))
    }

    fn touch(&self, py: Python<'_>, block_id: u64) -> PyResult<()> {
        self.run(py, |pool| pool.touch(block_id))
    }

    fn evict(&self, py: Python<'_>, block_id: u64) -> PyResult<()> {
        self.run(py, |pool| pool.evict(block_id))
    }

    fn restore(&self, py: Python<'_>, block_id: u64) -> PyResult<()> {
        self.run(py, |pool| pool.restore(block_id))
    }

    /// Copies bytes into a block, on the device or evicted. ValueError when they do not fit.
    #[pyo3(signature = (block_id, data, offset=0))]
    fn write(&self, py: Python<'_>, block_id: u64, data: &[u8], offset: u64) -> PyResult<()> {
        self.run(py, |pool| pool.write_block(block_id, offset, data))
    }

    /// Bytes of a block from `offset`; to its end when `size` is None.
    #[pyo3(signature = (block_id, size=None, offset=0))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        block_id: u64,
        size: Option<u64>,
        offset: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = self.run(py, |pool| {
            let block = pool.block(block_id)?;
            let rest = block.bytes.saturating_sub(offset);
            let bytes = size.unwrap_or(rest);
            if bytes > rest {
                return Err(PoolError::OutOfRange {
                    block: block_id,
                    offset,
                    bytes,
                    block_bytes: block.bytes,
                });
            }
            let mut data = vec![0u8; bytes as usize];
            pool.read_block(block_id, offset, &mut data)?;
            Ok(data)
        })?;
        Ok(PyBytes::new(py, &data))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<PoolStats> {
        self.core_stats(py).map(PoolStats::from)
    }

    /// Frees every block and gives all memory back to the device.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, Pool::clear)
    }

    /// Gives cached memory back to the device; returns bytes.
    fn trim(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, Pool::trim)
    }

    fn get_block(&self, py: Python<'_>, block_id: u64) -> PyResult<Option<MemoryBlock>> {
        let block = match self.open(py)?.block(block_id) {
            Ok(block) => block,
            Err(PoolError::BadBlock(_)) => return Ok(None),
            Err(error) => return Err(pool_error(py, error)),
        };
        let last_access = block.last_use as f64 * 1e-9;
        let device_ptr = block.resident.then_some(block.address);
        Ok(Some(MemoryBlock {
            id: block.block,
            size: block.bytes,
            device_ptr,
            on_gpu: block.resident,
            on_host: !block.resident,
            last_access,
        }))
    }

    fn get_block_size(&self, py: Python<'_>, block_id: u64) -> PyResult<Option<u64>> {
        Ok(self.get_block(py, block_id)?.map(|block| block.size))
    }

    fn is_block_on_gpu(&self, py: Python<'_>, block_id: u64) -> PyResult<bool> {
        self.run(py, |pool| pool.block(block_id)).map(|block| block.resident)
    }

    /// The bytes of an evicted block; None while it is on the device.
    fn get_host_data<'py>(&self, py: Python<'py>, block_id: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if self.is_block_on_gpu(py, block_id)? {
            return Ok(None);
        }
        self.read(py, block_id, None, 0).map(Some)
    }

    /// Replaces the first bytes of a block, wherever it is.
    fn set_host_data(&self, py: Python<'_>, block_id: u64, data: &[u8]) -> PyResult<()> {
        self.write(py, block_id, data, 0)
    }

    /// Deprecated, changes nothing: the pool drops a host copy itself when the block is restored or freed.
    #[allow(unused_variables)] // the documented names
    fn clear_host_data(&self, py: Python<'_>, block_id: u64) -> PyResult<()> {
        deprecated(
            py,
            "MemoryPool.clear_host_data() changes nothing: the pool keeps the one copy of a block's data",
        )
    }

    /// Deprecated, changes nothing: the pool knows the address of its own memory.
    #[allow(unused_variables)] // the documented names
    fn set_device_ptr(&self, py: Python<'_>, block_id: u64, device_ptr: u64) -> PyResult<()> {
        deprecated(
            py,
            "MemoryPool.set_device_ptr() changes nothing: the pool owns its blocks' addresses",
        )
    }

    fn __repr__(&self) -> String {
        format!(
            "MemoryPool(quota={}, enable_eviction={})",
            self.quota,
            if self.eviction { "True" } else { "False" }
        )
    }
}
