//! The pools of this process, one a device: their failures as exceptions, and what Python asks of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pygpukit_core::intern::Interner;
use pygpukit_core::pool::{Moved, Owner, Pool, PoolError, PoolResult, Unpinned};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::abi;
use crate::errors::raise_with;
use crate::memory::PoolStats;
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
    let warning = (device, unpinned.bytes, unpinned.error.to_string());
    let module = py.import("pygpukit.memory.pageable");
    if let Err(error) = module.and_then(|module| module.call_method1("warn_of_eviction", warning)) {
        error.write_unraisable(py, None);
    }
}

/// Runs a pool operation without the GIL, and tells what it has to tell.
pub fn run<T: Send>(py: Python<'_>, pool: &Pool, call: impl FnOnce(&Pool) -> PoolResult<T> + Send) -> PyResult<T> {
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

/// (tenant, bytes evicted, bytes restored) so far, over the default pools of all devices; "" for what belongs to none, and None for all
/// tenants together that came when there were enough.
#[pyfunction]
pub fn pool_traffic(py: Python<'_>) -> PyResult<Vec<(Option<String>, u64, u64)>> {
    table::refuse_forked("using the device's memory").map_err(|error| pool_error(py, error.into()))?;
    let (mut tenants, mut others): (BTreeMap<u32, Moved>, Moved) = Default::default();
    let evicted_bytes = py.detach(|| {
        abi::default_pools()
            .iter()
            .map(|pool| pool.traffic())
            .collect::<Vec<_>>()
    });
    for (by_tenant, rest) in evicted_bytes {
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
pub fn pool_segment_export(py: Python<'_>, device: i32, address: u64) -> PyResult<(i32, u64, u64, u64)> {
    let pool = default_pool(py, device)?;
    py.detach(|| pool.segment_export(address))
        .map_err(|error| pool_error(py, error))
}

#[pyfunction]
pub fn pool_end_export(py: Python<'_>, device: i32, number: u64) -> PyResult<bool> {
    let pool = default_pool(py, device)?;
    Ok(py.detach(|| pool.end_export(number)))
}
