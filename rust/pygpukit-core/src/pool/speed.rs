//! What evicting and restoring a block cost on a device, beside plain copies of as many bytes between the same kinds of memory.

use std::sync::Arc;
use std::time::Instant;

use super::{Owner, Pool, PoolConfig, PoolError, PoolResult, Services};
use crate::driver::Driver;

/// Nanoseconds of one round each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionSpeed {
    pub copy_to_host: u64,
    pub evict: u64,
    pub restore: u64,
    pub copy_to_device: u64,
}

/// Times a block of `bytes` over `rounds`, in a pool of its own, after a first round that pins host memory and does not count.
pub fn eviction(driver: Arc<dyn Driver>, bytes: u64, rounds: usize) -> PoolResult<Vec<EvictionSpeed>> {
    let config = PoolConfig {
        host_cache_bytes: bytes.saturating_mul(2),
        ..PoolConfig::default()
    };
    let pool = Pool::new(driver.clone(), config, Services::default())?;
    let block = pool.alloc(bytes, 0, Owner::default())?;
    let host = driver.host_alloc(block.bytes)?;
    let measured = (0..=rounds).map(|_| round(&*driver, &pool, block.block, block.address, block.bytes, host));
    let measured: PoolResult<Vec<EvictionSpeed>> = measured.collect();
    driver.device_wait()?; // nothing uses the buffer any more, however the rounds ended
    driver.host_free(host)?;
    measured.map(|mut measured| measured.split_off(1))
}

fn round(
    driver: &dyn Driver,
    pool: &Pool,
    block: u64,
    address: u64,
    bytes: u64,
    host: u64,
) -> PoolResult<EvictionSpeed> {
    let copy_to_host = timed(|| {
        Ok(driver
            .copy_to_host(host, address, bytes, 0)
            .and_then(|()| driver.stream_wait(0))?)
    })?;
    let evict = timed(|| pool.evict(block))?;
    let restore = timed(|| pool.restore(block))?;
    let now = pool.block(block)?.address;
    if now != address {
        return Err(PoolError::BadAddress(now));
    }
    let copy_to_device = timed(|| {
        Ok(driver
            .copy_to_device(address, host, bytes, 0)
            .and_then(|()| driver.stream_wait(0))?)
    })?;
    Ok(EvictionSpeed {
        copy_to_host,
        evict,
        restore,
        copy_to_device,
    })
}

fn timed(call: impl FnOnce() -> PoolResult<()>) -> PoolResult<u64> {
    let start = Instant::now();
    call().map(|()| start.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim_driver::{SimConfig, SimDriver, SimUsage};

    #[test]
    fn every_round_is_measured_and_nothing_stays_behind() {
        let sim = Arc::new(SimDriver::new(SimConfig {
            memory_bytes: 128 << 20,
            ..SimConfig::default()
        }));
        for bytes in [1 << 20, 40 << 20] {
            let measured = eviction(sim.clone(), bytes, 3).expect("there is room");
            assert_eq!(measured.len(), 3);
            assert!(measured.iter().all(|round| round.evict > 0 && round.copy_to_device > 0));
        }
        assert_eq!(sim.usage(), SimUsage::default());
        assert_eq!(sim.violations(), Vec::<String>::new());
        assert!(matches!(eviction(sim, 1 << 40, 1), Err(PoolError::OutOfMemory(_))));
    }
}
