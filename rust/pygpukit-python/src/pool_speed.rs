//! What calls on a memory pool cost, for the benchmark suites.

use std::time::Instant;

use pygpukit_core::pool::speed::{eviction, EvictionSpeed};
use pygpukit_core::pool::{Owner, Pool, PoolResult};
use pyo3::prelude::*;

use crate::abi;
use crate::default_pools::{default_pool, ensure_backend, pool_error};

/// Mean nanoseconds of one allocation that finds a cached block, and of one free, on the default pool.
#[pyfunction]
pub fn pool_hit_ns(py: Python<'_>, device: i32, nbytes: u64, rounds: u64) -> PyResult<(f64, f64)> {
    let pool = default_pool(py, device)?;
    let pool = &*pool;
    let result = py.detach(|| hits(pool, nbytes, rounds));
    result.map_err(|error| pool_error(py, error))
}

/// In batches, so that reading the clock weighs nothing.
fn hits(pool: &Pool, nbytes: u64, rounds: u64) -> PoolResult<(f64, f64)> {
    const BATCH: usize = 64;
    let mut blocks = Vec::with_capacity(BATCH);
    let (mut alloc_ns, mut free_ns, mut measured) = (0u128, 0u128, 0u128);
    let batches = (rounds as usize).div_ceil(BATCH).max(1);
    for batch in 0..=batches {
        let begin = Instant::now();
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
        let middle = Instant::now();
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
