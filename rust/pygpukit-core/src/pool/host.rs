//! Host buffers for evicted blocks. They are pinned; where the system pins no more, the memory is pageable, which is copied more slowly.
//! Pinning costs far more than copying, so some pinned ones are kept.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::driver::{Driver, DriverError, DriverResult, OUT_OF_MEMORY};

const PAGE: usize = 4096;

/// What a pool keeps pinned for its next eviction unless it is told otherwise: a sixteenth of the machine's memory.
pub(super) fn cache_bytes() -> u64 {
    const MIN_RESERVE: u64 = 256 << 20;
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default(); // "MemTotal:  32843508 kB", where there is one
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
        let total = kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10;
        MIN_RESERVE.max(total / 16)
    })
}

/// Where the bytes of an evicted block are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostCopy {
    pub address: u64,
    pub pageable: bool,
}

fn layout(bytes: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(bytes).ok()?, PAGE).ok()
}

/// None when the host has no memory left.
fn pageable(bytes: u64) -> Option<HostCopy> {
    let layout = layout(bytes).filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    let address = unsafe { std::alloc::alloc(layout) } as u64;
    (address != 0).then_some(HostCopy {
        address,
        pageable: true,
    })
}

fn release(driver: &dyn Driver, host: HostCopy, bytes: u64) {
    if !host.pageable {
        let _ = driver.host_free(host.address); // a refusal comes from a broken device, which shows elsewhere
    } else if let Some(layout) = layout(bytes) {
        // SAFETY: it came from `pageable` with the same size, and no copy uses it any more.
        unsafe { std::alloc::dealloc(host.address as *mut u8, layout) };
    }
}

pub(super) struct HostCache {
    by_bytes: BTreeMap<u64, Vec<u64>>,
    cached: u64,
    capacity: u64,
}

impl HostCache {
    pub fn new(capacity: u64) -> HostCache {
        HostCache {
            by_bytes: BTreeMap::new(),
            cached: 0,
            capacity,
        }
    }

    /// A buffer of exactly `bytes`, and why it is not a pinned one if it is not. `OUT_OF_MEMORY` when the host has no memory left.
    pub fn take(&mut self, driver: &dyn Driver, bytes: u64) -> DriverResult<(HostCopy, Option<DriverError>)> {
        let pinned = |address| HostCopy {
            address,
            pageable: false,
        };
        if let Some(host) = self.by_bytes.get_mut(&bytes).and_then(Vec::pop) {
            self.cached -= bytes;
            return Ok((pinned(host), None));
        }
        let mut host = driver.host_alloc(bytes);
        if host.is_err() && self.cached > 0 {
            self.clear(driver);
            host = driver.host_alloc(bytes);
        }
        match host {
            Ok(host) => Ok((pinned(host), None)),
            Err(error) if error.refuses_to_pin() => match pageable(bytes) {
                Some(host) => Ok((host, Some(error))),
                None => Err(DriverError {
                    code: OUT_OF_MEMORY,
                    ..error
                }),
            },
            Err(error) => Err(error),
        }
    }

    pub fn put(&mut self, driver: &dyn Driver, host: HostCopy, bytes: u64) {
        if !host.pageable && self.cached + bytes <= self.capacity {
            self.cached += bytes;
            self.by_bytes.entry(bytes).or_default().push(host.address);
        } else {
            release(driver, host, bytes);
        }
    }

    pub fn clear(&mut self, driver: &dyn Driver) {
        for host in std::mem::take(&mut self.by_bytes).into_values().flatten() {
            let _ = driver.host_free(host);
        }
        self.cached = 0;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::driver::OPERATING_SYSTEM;
    use crate::sim_driver::{Call, SimConfig, SimDriver};

    #[test]
    fn a_host_without_memory_is_out_of_memory_whatever_refused_to_pin() {
        for code in [OUT_OF_MEMORY, OPERATING_SYSTEM] {
            let sim = SimDriver::new(SimConfig::default());
            sim.fail(Call::HostAlloc, 1, code);
            let refused = HostCache::new(0).take(&sim, 1 << 63);
            assert_eq!(refused.map(|_| ()).map_err(|error| error.code), Err(OUT_OF_MEMORY));
        }
    }
}
