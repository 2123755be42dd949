//! Many threads on one pool: hits, misses, eviction and restore at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::pool::{Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::Ring;
use pygpukit_core::sim_driver::{SimConfig, SimDriver, SimUsage};

const MIB: u64 = 1 << 20;
const THREADS: u64 = 16;

/// A small generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn pool(limit_bytes: u64, eviction: bool) -> (Arc<SimDriver>, Pool) {
    let sim = Arc::new(SimDriver::new(SimConfig {
        memory_bytes: 256 * MIB,
        ..SimConfig::default()
    }));
    let services = Services {
        ring: Arc::new(Ring::new(1 << 10)),
        clock: Arc::new(MonotonicClock),
    };
    let config = PoolConfig {
        limit_bytes,
        eviction,
        ..PoolConfig::default()
    };
    let pool = Pool::new(sim.clone(), config, services).expect("the simulated device answers");
    (sim, pool)
}

fn finish(sim: &SimDriver, pool: Pool) {
    pool.audit().expect("the books agree");
    pool.clear().expect("nothing is pinned");
    let stats = pool.stats();
    assert_eq!(
        (stats.used, stats.reserved, stats.evicted, stats.segment_count),
        (0, 0, 0, 0)
    );
    drop(pool);
    assert_eq!(sim.usage(), SimUsage::default());
    assert_eq!(sim.violations(), Vec::<String>::new());
}

#[test]
fn sixteen_threads_allocate_and_free() {
    let (sim, pool) = pool(128 * MIB, false);
    let refused = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, refused) = (&pool, &refused);
            scope.spawn(move || {
                let mut random = Random(thread);
                let mut held = Vec::new();
                for _ in 0..3000 {
                    if random.below(2) == 0 || held.is_empty() {
                        let bytes = if random.below(20) == 0 {
                            random.below(6 * MIB)
                        } else {
                            random.below(20_000)
                        };
                        match pool.alloc(bytes, random.below(4), Owner::default()) {
                            Ok(allocation) => held.push(allocation.block),
                            Err(PoolError::OutOfMemory(_)) => drop(refused.fetch_add(1, Ordering::Relaxed)),
                            Err(error) => panic!("{error}"),
                        }
                    } else {
                        let block = held.swap_remove(random.below(held.len() as u64) as usize);
                        if random.below(4) == 0 {
                            pool.record_use(block, random.below(4)).expect("a live block");
                        }
                        pool.free(block).expect("a live block");
                    }
                }
                held.into_iter()
                    .for_each(|block| pool.free(block).expect("a live block"));
            });
        }
    });
    let stats = pool.stats();
    assert_eq!((stats.used, stats.active_blocks), (0, 0));
    assert!(stats.allocation_count + refused.into_inner() >= THREADS * 1500);
    finish(&sim, pool);
}

#[test]
fn nobody_evicts_a_block_between_its_way_back_and_its_pin() {
    let (sim, pool) = pool(24 * MIB, true);
    let block = pool.alloc(2 * MIB, 0, Owner::default()).expect("there is room");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let evicting = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                match pool.evict(block.block) {
                    Ok(()) | Err(PoolError::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        while pool.stats().restore_count < 500 {
            pool.pin(block.block, 0).expect("there is room");
            let resident = pool.block(block.block).expect("a live block").resident;
            pool.unpin(block.block);
            if !resident || evicting.is_finished() {
                done.store(true, Ordering::Release);
                panic!("a pinned block was evicted, or the other thread ended");
            }
        }
        done.store(true, Ordering::Release);
    });
    pool.free(block.block).expect("a live block");
    finish(&sim, pool);
}

#[test]
fn contents_and_pins_hold_while_threads_evict_each_other() {
    let (sim, pool) = pool(24 * MIB, true);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, sim) = (&pool, &sim);
            scope.spawn(move || {
                let mut random = Random(thread);
                let (value, bytes) = (thread as u8 + 1, 2 * MIB + thread * 4096);
                let block = loop {
                    // Others may hold every byte pinned for a moment.
                    match pool.alloc(bytes, thread, Owner::default()) {
                        Ok(allocation) => break allocation,
                        Err(PoolError::OutOfMemory(_)) => std::thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                };
                pool.write_block(block.block, 0, &vec![value; block.bytes as usize])
                    .expect("in range");
                for _ in 0..150 {
                    // SAFETY: the block is not freed and the pool lives.
                    let state = unsafe { &*block.state };
                    state.pins.fetch_add(1, Ordering::SeqCst);
                    if state.resident.load(Ordering::SeqCst) == 1 {
                        sim.launch(thread, block.address, block.bytes, None, 10);
                        let at = random.below(block.bytes);
                        assert_eq!(
                            sim.peek(block.address + at, 1),
                            [value],
                            "contents of a pinned, resident block"
                        );
                        state.last_use.store(random.below(1 << 40), Ordering::Relaxed);
                        state.pins.fetch_sub(1, Ordering::SeqCst);
                    } else {
                        state.pins.fetch_sub(1, Ordering::SeqCst);
                        match pool.restore(block.block) {
                            Ok(()) | Err(PoolError::OutOfMemory(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    if random.below(8) == 0 {
                        match pool.evict(block.block) {
                            Ok(()) | Err(PoolError::Busy { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                let mut bytes = vec![0; block.bytes as usize];
                pool.read_block(block.block, 0, &mut bytes).expect("in range");
                assert!(bytes == vec![value; bytes.len()]);
                pool.free(block.block).expect("a live block");
            });
        }
    });
    assert!(pool.stats().eviction_count > THREADS && pool.stats().restore_count > THREADS);
    finish(&sim, pool);
}
