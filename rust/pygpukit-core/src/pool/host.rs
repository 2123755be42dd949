//! Pinned host buffers for evicted blocks. Pinning costs far more than copying, so some are kept.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::driver::{Driver, DriverResult};

/// What a pool keeps pinned for its next eviction unless it is told otherwise: a sixteenth of the machine's memory.
pub(super) fn cache_bytes() -> u64 {
    const LEAST: u64 = 256 << 20;
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default(); // "MemTotal:  32843508 kB", where there is one
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
        let total = kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10;
        LEAST.max(total / 16)
    })
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

    /// A buffer of exactly `bytes`.
    pub fn take(&mut self, driver: &dyn Driver, bytes: u64) -> DriverResult<u64> {
        if let Some(host) = self.by_bytes.get_mut(&bytes).and_then(Vec::pop) {
            self.cached -= bytes;
            return Ok(host);
        }
        let host = driver.host_alloc(bytes);
        if host.is_err() && self.cached > 0 {
            self.clear(driver);
            return driver.host_alloc(bytes);
        }
        host
    }

    pub fn put(&mut self, driver: &dyn Driver, host: u64, bytes: u64) {
        if self.cached + bytes <= self.capacity {
            self.cached += bytes;
            self.by_bytes.entry(bytes).or_default().push(host);
        } else {
            let _ = driver.host_free(host); // a refusal comes from a broken device, which shows elsewhere
        }
    }

    pub fn clear(&mut self, driver: &dyn Driver) {
        for host in std::mem::take(&mut self.by_bytes).into_values().flatten() {
            let _ = driver.host_free(host);
        }
        self.cached = 0;
    }
}
