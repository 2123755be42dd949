//! Pinning against eviction under every order in which loads and stores of their threads can take effect, as loom explores them.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p pygpukit-core --test pool_loom`.
#![cfg(loom)]

use loom::thread;
use pygpukit_core::pool::{Allocation, Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::Ring;
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use std::sync::atomic::Ordering;
use std::sync::Arc;

const BLOCK: u64 = 2 << 20;

fn pool() -> (Arc<SimDriver>, Arc<Pool>) {
    let sim = Arc::new(SimDriver::new(SimConfig {
        store: false,
        ..SimConfig::default()
    }));
    let config = PoolConfig {
        eviction: true,
        staging_bytes: 0,
        spare_bytes: 0,
        ..PoolConfig::default()
    };
    let services = Services {
        ring: Arc::new(Ring::new(1)),
        clock: sim.clone(),
    };
    let pool = Pool::new(sim.clone(), config, services).expect("the simulated device answers");
    (sim, Arc::new(pool))
}

/// As a launcher does, which takes no lock: pins, looks, launches, unpins. The device tells when a launch finds no memory.
fn launch(sim: &SimDriver, block: &Allocation) {
    // SAFETY: the block is not freed and the pool lives.
    let state = unsafe { &*block.state };
    state.pins.fetch_add(1, Ordering::SeqCst);
    if state.resident.load(Ordering::SeqCst) == 1 {
        thread::yield_now();
        sim.launch(0, block.address, block.bytes, None, 10);
    }
    state.pins.fetch_sub(1, Ordering::SeqCst);
}

fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 10_000;
    model.check(test);
}

#[test]
fn what_is_pinned_stays_and_what_leaves_is_seen_to_leave() {
    explore(|| {
        let (sim, pool) = pool();
        let block = pool.alloc(BLOCK, 0, Owner::default()).expect("there is room");
        let launcher = {
            let sim = sim.clone();
            thread::spawn(move || launch(&sim, &block))
        };
        let evicted = pool.evict(block.block);
        assert!(matches!(evicted, Ok(()) | Err(PoolError::Busy { .. })), "{evicted:?}");
        launcher.join().unwrap();
        assert_eq!(sim.violations(), Vec::<String>::new());
        pool.pin(block.block, 0).expect("it comes back");
        launch(&sim, &block);
        assert_eq!(sim.violations(), Vec::<String>::new());
        pool.unpin(block.block);
        pool.audit().expect("the books agree");
    });
}
