//! Nanoseconds of the pool's fast path, records included: `cargo run --release --example pool_bench`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pygpukit_core::clock::{Clock, MonotonicClock};
use pygpukit_core::pool::{Owner, Pool, PoolConfig, Services};
use pygpukit_core::ring::{Event, Ring};
use pygpukit_core::sim_driver::{SimConfig, SimDriver};

const ROUNDS: usize = 15;
const CALLS: u64 = 400_000;

/// As `measure`, of a call that so many threads make at a time: nanoseconds of one thread's call.
fn measure_together(name: &str, threads: u64, call: impl Fn() + Sync) {
    measure(&format!("{name}, {threads} threads"), CALLS / threads, || {
        timed(|| {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| (0..CALLS / threads).for_each(|_| call()));
                }
            });
        })
    });
}

/// Median over rounds of the mean time of one call.
fn measure(name: &str, calls: u64, mut round: impl FnMut() -> f64) {
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round() / calls as f64).collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<44} {:>7.1} ns  (best {:.1})", times[ROUNDS / 2], times[0]);
}

fn timed(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64
}

fn main() {
    let clock = MonotonicClock;
    clock.now_ns();
    std::thread::sleep(Duration::from_millis(30)); // a process's clock is slower in its first 20 ms
    measure("clock", CALLS, || {
        timed(|| {
            for _ in 0..CALLS {
                black_box(clock.now_ns());
            }
        })
    });
    let ring = Ring::global();
    let event = Event {
        kind: 1,
        ..Event::default()
    };
    measure("ring push, clock included", CALLS, || {
        timed(|| {
            for _ in 0..CALLS {
                ring.push(clock.now_ns(), black_box(&event));
            }
        })
    });

    let sim = SimDriver::new(SimConfig {
        memory_bytes: 1 << 30,
        store: false,
        ..SimConfig::default()
    });
    let config = PoolConfig {
        limit_bytes: 1 << 30,
        ..PoolConfig::default()
    };
    let pool = Pool::new(Arc::new(sim), config, Services::default()).expect("the simulated device answers");
    let owner = Owner {
        tenant: 1,
        name: 2,
        cell: 3,
        line: 4,
        account: 0,
    };
    for bytes in [1000, 1 << 20, 100 << 20] {
        pool.free(pool.alloc(bytes, 0, owner).expect("room").block)
            .expect("live");
        measure(&format!("alloc + free, {bytes} bytes"), CALLS, || {
            timed(|| {
                for _ in 0..CALLS {
                    let allocation = black_box(&pool).try_alloc(black_box(bytes), 0, owner).expect("a hit");
                    pool.free(allocation.block).expect("live");
                }
            })
        });
    }

    for threads in [2, 8] {
        measure_together("ring push, clock included", threads, || {
            ring.push(clock.now_ns(), black_box(&event));
        });
        measure_together("alloc + free, 1000 bytes", threads, || {
            let allocation = pool.alloc(black_box(1000), 0, owner).expect("room");
            pool.free(allocation.block).expect("live");
        });
    }

    const LIVE: usize = 1000;
    let mut blocks = Vec::with_capacity(LIVE);
    let (mut allocs, mut frees) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS * 50 {
        allocs.push(timed(|| {
            (0..LIVE).for_each(|_| blocks.push(pool.alloc(1000, 0, owner).expect("room").block))
        }));
        frees.push(timed(|| {
            blocks.drain(..).for_each(|block| pool.free(block).expect("live"))
        }));
    }
    for (name, mut times) in [("alloc, 1000 blocks live", allocs), ("free, 1000 blocks live", frees)] {
        times.sort_by(f64::total_cmp);
        println!("{name:<44} {:>7.1} ns", times[times.len() / 2] / LIVE as f64);
    }
    println!("{:?}", pool.stats());
    measure_choice_of_victims();
}

/// The eviction of one block among many, each in a segment of its own: the choice looks at all of them while the pool is locked. The copy is
/// simulated and takes no time.
fn measure_choice_of_victims() {
    const BYTES: u64 = 2 << 20;
    for blocks in [100, 1000, 10_000] {
        let sim = SimDriver::new(SimConfig {
            memory_bytes: 2 * blocks * BYTES,
            store: false,
            ..SimConfig::default()
        });
        let config = PoolConfig {
            limit_bytes: blocks * BYTES,
            eviction: true,
            ..PoolConfig::default()
        };
        let pool = Pool::new(Arc::new(sim), config, Services::default()).expect("the simulated device answers");
        for _ in 0..blocks {
            pool.alloc(BYTES, 0, Owner::default()).expect("room");
        }
        measure(&format!("alloc that evicts one of {blocks} blocks"), 20, || {
            timed(|| {
                for _ in 0..20 {
                    black_box(pool.alloc(BYTES, 0, Owner::default()).expect("one can go"));
                }
            })
        });
    }
}
