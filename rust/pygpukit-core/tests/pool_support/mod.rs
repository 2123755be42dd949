//! A pool on a simulated device of its own, and short calls on it; in the end the books agree and the device was not misused.
#![allow(dead_code)] // each test binary uses its own part

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pygpukit_core::pool::{Allocation, Owner, Pool, PoolConfig, Services};
use pygpukit_core::ring::Ring;
use pygpukit_core::sim_driver::{SimConfig, SimDriver};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const NOBODY: Owner = Owner {
    tenant: 0,
    name: 0,
    cell: 0,
    line: 0,
    account: 0,
};

pub struct Rig {
    pub sim: Arc<SimDriver>,
    pub ring: Arc<Ring>,
    pub pool: Pool,
}

pub fn rig(limit_bytes: u64, eviction: bool) -> Rig {
    let sim = Arc::new(SimDriver::new(SimConfig::default()));
    let ring = Arc::new(Ring::new(1 << 12));
    let services = Services {
        ring: ring.clone(),
        clock: sim.clone(),
    };
    let config = PoolConfig {
        limit_bytes,
        eviction,
        ..PoolConfig::default()
    };
    let pool = Pool::new(sim.clone(), config, services).expect("the simulated device answers");
    Rig { sim, ring, pool }
}

impl Rig {
    pub fn alloc(&self, bytes: u64, stream: u64) -> Allocation {
        self.sim.advance_ns(1); // a later time for each, so that eviction order is known
        self.pool.alloc(bytes, stream, NOBODY).expect("there is room")
    }

    pub fn free(&self, allocation: &Allocation) {
        self.pool.free(allocation.block).expect("a live block");
    }

    pub fn resident(&self, allocation: &Allocation) -> bool {
        self.pool.block(allocation.block).expect("a live block").resident
    }

    pub fn kinds(&self) -> Vec<u16> {
        self.ring.read(1, 1000).0.iter().map(|r| r.event.kind).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.sim.violations(), Vec::<String>::new());
            self.pool.audit().expect("the books agree");
        }
    }
}

pub fn pin(allocation: &Allocation, by: i32) {
    // SAFETY: the tests keep pool and block alive.
    let pins = &unsafe { &*allocation.state }.pins;
    if by > 0 {
        pins.fetch_add(1, Ordering::SeqCst);
    } else {
        pins.fetch_sub(1, Ordering::SeqCst);
    }
}
