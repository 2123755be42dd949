//! Python classes and functions over the memory pool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pygpukit_core::intern::Interner;
use pygpukit_core::pool::speed::{eviction, EvictionSpeed};
use pygpukit_core::pool::{
    Moved, Owner, Pool, PoolConfig, PoolError, PoolResult, PoolStats as CoreStats, Services, Unpinned,
};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::abi;
use crate::errors::raise_with;
use crate::held;
use crate::table;

/// The package's exception for a pool failure.
pub fn pool_error(py: Python<'_>, error: PoolError) -> PyErr {
    let text = error.to_string();
    match error {
        PoolError::OutOfMemory(oom) => {
            let owners: Vec<_> = oom
                .owners
                .iter()
                .map(|usage| {
                    let name = |id| {
                        pygpukit_core::intern::Interner::global()
                            .name(id)
                            .map_or(String::new(), |n| n.to_string())
                    };
                    let owner = usage.owner;
                    (
                        usage.bytes,
                        name(owner.tenant),
                        name(owner.name),
                        name(owner.cell),
                        owner.line,
                    )
                })
                .collect();
            let tenant = oom.account.map_or(String::new(), |account| {
                let name = pygpukit_core::intern::Interner::global().name(account.tenant);
                name.map_or(String::new(), |name| name.to_string())
            });
            raise_with(
                py,
                "OutOfMemoryError",
                (text, oom.requested, oom.limit, oom.free, owners, tenant, oom.used),
            )
        }
        PoolError::Driver(driver) => raise_with(py, "driver_error", (text, driver.code)),
        PoolError::BadBlock(_) | PoolError::BadAddress(_) | PoolError::OutOfRange { .. } => PyValueError::new_err(text),
        PoolError::Busy { .. } => PyRuntimeError::new_err(text),
    }
}

/// Tells that evicted blocks go to pageable memory. Where warnings are errors it is told as one that nobody catches: what evicted has
/// succeeded.
pub fn warn_unpinned(py: Python<'_>, device: i32, unpinned: &Unpinned) {
    let told = (device, unpinned.bytes, unpinned.error.to_string());
    let module = py.import("pygpukit.memory.pageable");
    if let Err(error) = module.and_then(|module| module.call_method1("warn_of_eviction", told)) {
        error.write_unraisable(py, None);
    }
}

/// Runs a pool operation without the GIL, and tells what it has to tell.
fn run<T: Send>(py: Python<'_>, pool: &Pool, call: impl FnOnce(&Pool) -> PoolResult<T> + Send) -> PyResult<T> {
    let done = py.detach(|| call(pool));
    if let Some(unpinned) = pool.take_unpinned() {
        warn_unpinned(py, pool.device(), &unpinned);
    }
    done.map_err(|error| pool_error(py, error))
}

/// Opens the backend by the package's policy when none is open.
pub fn ensure_backend(py: Python<'_>) -> PyResult<()> {
    py.import("pygpukit.core.backend")?.call_method0("ensure").map(|_| ())
}

pub fn default_pool(py: Python<'_>, device: i32) -> PyResult<Arc<Pool>> {
    ensure_backend(py)?;
    abi::default_pool(device).map_err(|error| pool_error(py, error))
}

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

pub fn deprecated(py: Python<'_>, message: &str) -> PyResult<()> {
    let category = py.get_type::<pyo3::exceptions::PyDeprecationWarning>();
    let message = crate::native::c_string(message);
    PyErr::warn(py, &category, &message, 2)
}

// ---- the default pools ----

/// (tenant, bytes evicted, bytes restored) so far, over the default pools of all devices; "" for what belongs to none, and None for all
/// tenants together that came when there were enough.
#[pyfunction]
pub fn pool_traffic(py: Python<'_>) -> PyResult<Vec<(Option<String>, u64, u64)>> {
    table::refuse_forked("using the device's memory").map_err(|error| pool_error(py, error.into()))?;
    let (mut tenants, mut others): (BTreeMap<u32, Moved>, Moved) = Default::default();
    let found = py.detach(|| {
        abi::default_pools()
            .iter()
            .map(|pool| pool.traffic())
            .collect::<Vec<_>>()
    });
    for (by_tenant, rest) in found {
        for (tenant, moved) in by_tenant {
            *tenants.entry(tenant).or_default() += moved;
        }
        others += rest;
    }
    let name = |tenant| {
        Interner::global()
            .name(tenant)
            .map_or(String::new(), |name| name.to_string())
    };
    let rows = tenants
        .into_iter()
        .map(|(tenant, moved)| (Some(name(tenant)), moved.evicted, moved.restored));
    let rest = (others != Moved::default()).then_some((None, others.evicted, others.restored));
    Ok(rows.chain(rest).collect())
}

#[pyfunction]
#[pyo3(signature = (device=0))]
pub fn pool_stats(py: Python<'_>, device: i32) -> PyResult<PoolStats> {
    Ok(default_pool(py, device)?.stats().into())
}

type BlockRow = (u64, u64, u64, u32, u32, u32, u32, bool);

/// Live blocks: (id, address, bytes, tenant, name, cell, line, resident), by address.
#[pyfunction]
#[pyo3(signature = (device=0))]
pub fn pool_blocks(py: Python<'_>, device: i32) -> PyResult<Vec<BlockRow>> {
    let blocks = default_pool(py, device)?.blocks();
    Ok(blocks
        .into_iter()
        .map(|b| {
            let Owner {
                tenant,
                name,
                cell,
                line,
                account: _,
            } = b.owner;
            (b.block, b.address, b.bytes, tenant, name, cell, line, b.resident)
        })
        .collect())
}

/// Segments: (address, bytes, mapped), by address.
#[pyfunction]
#[pyo3(signature = (device=0))]
pub fn pool_segments(py: Python<'_>, device: i32) -> PyResult<Vec<(u64, u64, bool)>> {
    Ok(default_pool(py, device)?
        .segments()
        .into_iter()
        .map(|s| (s.address, s.bytes, s.mapped))
        .collect())
}

#[pyfunction]
pub fn pool_set_limit(py: Python<'_>, device: i32, limit_bytes: u64) -> PyResult<()> {
    run(py, &*default_pool(py, device)?, |pool| pool.set_limit(limit_bytes))
}

#[pyfunction]
#[pyo3(signature = (device=0))]
pub fn pool_trim(py: Python<'_>, device: i32) -> PyResult<u64> {
    let pool = default_pool(py, device)?;
    py.detach(|| pool.trim()).map_err(|error| pool_error(py, error))
}

#[pyfunction]
pub fn pool_evict(py: Python<'_>, device: i32, block: u64) -> PyResult<()> {
    run(py, &*default_pool(py, device)?, |pool| pool.evict(block))
}

#[pyfunction]
pub fn pool_segment_export(py: Python<'_>, device: i32, address: u64) -> PyResult<(i32, u64, u64)> {
    let pool = default_pool(py, device)?;
    py.detach(|| pool.segment_export(address))
        .map_err(|error| pool_error(py, error))
}

/// Mean nanoseconds of one allocation that finds a cached block, and of one free, on the default pool.
///
/// Measured in batches of 64 blocks, so that reading the clock weighs nothing.
#[pyfunction]
pub fn pool_hit_ns(py: Python<'_>, device: i32, nbytes: u64, rounds: u64) -> PyResult<(f64, f64)> {
    const BATCH: usize = 64;
    let pool = default_pool(py, device)?;
    let result = py.detach(|| {
        let mut blocks = Vec::with_capacity(BATCH);
        let (mut alloc_ns, mut free_ns, mut measured) = (0u128, 0u128, 0u128);
        let batches = (rounds as usize).div_ceil(BATCH).max(1);
        for batch in 0..=batches {
            let begin = std::time::Instant::now();
            let mut refused = None;
            for _ in 0..BATCH {
                match pool.alloc(nbytes, 0, Owner::default()) {
                    Ok(allocation) => blocks.push(allocation.block),
                    Err(error) => {
                        refused = Some(error);
                        break;
                    }
                }
            }
            let middle = std::time::Instant::now();
            for block in blocks.drain(..) {
                pool.free(block)?;
            }
            if let Some(error) = refused {
                return Err(error);
            }
            if batch > 0 {
                // the first batch filled the cache
                alloc_ns += (middle - begin).as_nanos();
                free_ns += middle.elapsed().as_nanos();
                measured += BATCH as u128;
            }
        }
        Ok((alloc_ns as f64 / measured as f64, free_ns as f64 / measured as f64))
    });
    result.map_err(|error| pool_error(py, error))
}

/// Nanoseconds of rounds with a block of so many bytes in a pool of its own: (plain copy to the host, evict, restore, plain copy to the
/// device). Without the GIL.
#[pyfunction]
pub fn eviction_ns(py: Python<'_>, device: i32, nbytes: u64, rounds: usize) -> PyResult<Vec<(u64, u64, u64, u64)>> {
    ensure_backend(py)?;
    let measured = py.detach(|| eviction(abi::driver(device)?, nbytes, rounds.max(1)));
    let rows = |measured: Vec<EvictionSpeed>| {
        let rows = measured.into_iter();
        rows.map(|r| (r.copy_to_host, r.evict, r.restore, r.copy_to_device))
            .collect()
    };
    measured.map(rows).map_err(|error| pool_error(py, error))
}
