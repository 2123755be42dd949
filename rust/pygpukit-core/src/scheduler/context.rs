//! What a running task and the launch gate share: identity and counters, readable and writable without the table's lock.

use super::name::Name;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One per task, in an `Arc`: it outlives the task's record for as long as someone launches in it.
#[derive(Debug)]
pub struct TaskContext {
    /// Unique in the process.
    pub number: u64,
    pub id: Name,
    pub share_ppm: u32,
    /// The most of the device's time that it may have.
    pub limit_ppm: u32,
    launches: AtomicU64,
    gpu_ns: AtomicU64,
    paced: AtomicU64,
    waited_ns: AtomicU64,
    throttled_ns: AtomicU64,
    stopped: AtomicBool,
}

impl TaskContext {
    pub fn new(number: u64, id: Name, share_ppm: u32, limit_ppm: u32) -> TaskContext {
        TaskContext {
            number,
            id,
            share_ppm,
            limit_ppm,
            launches: AtomicU64::new(0),
            gpu_ns: AtomicU64::new(0),
            paced: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            throttled_ns: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// The gate let one launch through.
    pub fn add_launch(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// Measured device time of finished launches.
    pub fn add_gpu_ns(&self, ns: u64) {
        self.gpu_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The gate held a launch back.
    pub fn add_paced(&self) {
        self.paced.fetch_add(1, Ordering::Relaxed);
    }

    /// Time that its launches waited for a turn.
    pub fn add_waited_ns(&self, ns: u64) {
        self.waited_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Time that its limit held its launches back.
    pub fn add_throttled_ns(&self, ns: u64) {
        self.throttled_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub fn waited_ns(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }

    pub fn throttled_ns(&self) -> u64 {
        self.throttled_ns.load(Ordering::Relaxed)
    }

    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    pub fn gpu_ns(&self) -> u64 {
        self.gpu_ns.load(Ordering::Relaxed)
    }

    pub fn paced(&self) -> u64 {
        self.paced.load(Ordering::Relaxed)
    }

    /// True once the task was cancelled or expired while it ran: what it still launches is wasted.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }
}
