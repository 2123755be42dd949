//! Time as a trait, so that tests can own it.

mod tsc;

use std::sync::atomic::{AtomicU64, Ordering};

/// Monotonic nanoseconds.
pub trait Clock: Send + Sync {
    fn now_ns(&self) -> u64;
}

/// Nanoseconds since the first reading in this process.
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        tsc::now_ns().unwrap_or_else(tsc::now_ns_slow)
    }
}

/// A clock that moves only when told to.
#[derive(Default)]
pub struct VirtualClock(AtomicU64);

impl VirtualClock {
    pub fn advance_ns(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
