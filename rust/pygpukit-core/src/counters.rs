//! Process-wide ledger of launches and copies: relaxed counters, one cache line each, always on.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of `core.h`, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counter {
    Launches = 0,
    HostLaunches = 1,
    H2dBytes = 2,
    D2hBytes = 3,
    D2dBytes = 4,
    Fills = 5,
    /// Device time of tasks as far as it is measured, and host time in its stead.
    TaskNs = 6,
    /// What the gate issued of a launch after its first part: calls of the driver beyond one a launch.
    LaterParts = 7,
    /// Host buffers that were to be pinned and are pageable, because the system pinned no more; and their bytes.
    PageableBuffers = 8,
    PageableBytes = 9,
}

/// Number of counters, spare ones included (`PK_COUNTERS`).
pub const COUNTERS: usize = 10;

#[repr(align(64))]
#[derive(Default)]
struct CacheLine(AtomicU64);

#[derive(Default)]
pub struct Counters([CacheLine; COUNTERS]);

static GLOBAL: Counters = Counters([const { CacheLine(AtomicU64::new(0)) }; COUNTERS]);

impl Counters {
    pub fn global() -> &'static Counters {
        &GLOBAL
    }

    /// Adds to a counter by its number in `core.h`; a number out of range is refused with false.
    #[inline]
    pub fn add_index(&self, counter: u32, amount: u64) -> bool {
        self.0
            .get(counter as usize)
            .map(|line| line.0.fetch_add(amount, Ordering::Relaxed))
            .is_some()
    }

    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        self.0[counter as usize].0.fetch_add(amount, Ordering::Relaxed);
    }

    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_name_and_number() {
        let counters = Counters::default();
        counters.add(Counter::Fills, 2);
        assert!(counters.add_index(5, 3));
        assert!(!counters.add_index(10, 1));
        assert_eq!((counters.get(Counter::Fills), counters.get(Counter::Launches)), (5, 0));
    }
}
