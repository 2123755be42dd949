//! Threads that wait for each other, in many random turns: whoever is not woken is found, since no timed wait ever runs out here.
//! Run with `RUSTFLAGS="--cfg shuttle" cargo test --release -p pygpukit-core --test waits_shuttle`.
#![cfg(shuttle)]

use pygpukit_core::clock::VirtualClock;
use pygpukit_core::driver::{Driver, DriverResult};
use pygpukit_core::pacing::{Command, Gate, Settings, Submitted, Work};
use pygpukit_core::pool::{Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::Ring;
use pygpukit_core::scheduler::{
    Config, Outcome, Policy, Reason, Scheduler, TaskContext, TaskSpec, TaskStart, Transition,
};
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::sync::Arc;
use shuttle::thread;
use std::time::Duration;

const US: u64 = 1_000;
const LONG: Duration = Duration::from_secs(3600);
const FOREVER_NS: u64 = 3_600_000_000_000;

/// In turns at random, and in such with few preemptions at bad moments.
fn explore(test: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(test, 3000);
    shuttle::check_pct(test, 3000, 3);
}

fn asks(id: String, memory_bytes: u64) -> TaskSpec {
    TaskSpec {
        memory_bytes,
        policy: Policy::Burstable,
        ..TaskSpec::new(id)
    }
}

#[test]
fn every_task_ends_and_every_waiter_is_woken() {
    explore(|| {
        const EACH: u64 = 3;
        let clock = std::sync::Arc::new(VirtualClock::default());
        let observer = |_: &Transition<'_>| {};
        let scheduler = Arc::new(Scheduler::new(Config::new(100), clock, Box::new(observer)));
        let used = Arc::new(AtomicU64::new(0));
        let workers: Vec<_> = (0..3)
            .map(|worker| {
                let (scheduler, used) = (scheduler.clone(), used.clone());
                thread::spawn(move || {
                    while let Some(TaskStart { context, .. }) = scheduler.next(LONG) {
                        assert!(used.fetch_add(60, Ordering::SeqCst) + 60 <= 100, "overbooked");
                        context.wait_while_held(LONG);
                        used.fetch_sub(60, Ordering::SeqCst);
                        let (reason, error) = (Reason::UserError, String::new());
                        let outcome = match worker {
                            0 => Outcome::Failed { reason, error },
                            _ => Outcome::Succeeded,
                        };
                        scheduler.finish(&context.id, outcome).unwrap();
                    }
                })
            })
            .collect();
        let submitters: Vec<_> = (0..2)
            .map(|submitter| {
                let scheduler = scheduler.clone();
                thread::spawn(move || {
                    for number in 0..EACH {
                        let id = format!("{submitter} {number}");
                        scheduler.submit(asks(id.clone(), 60)).unwrap();
                        match number {
                            0 => _ = scheduler.cancel(&id).unwrap(),
                            1 => {
                                // It may have ended.
                                _ = scheduler.pause(&id);
                                _ = scheduler.resume(&id);
                            }
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        let mut seen = 0;
        while seen < 2 * EACH {
            seen = scheduler.finished(seen, None, LONG).1;
        }
        scheduler.close();
        submitters
            .into_iter()
            .chain(workers)
            .for_each(|thread| thread.join().unwrap());
        let stats = scheduler.stats();
        assert_eq!(stats.succeeded + stats.failed + stats.cancelled, 2 * EACH);
        assert_eq!((stats.reserved_memory, stats.running), (0, 0));
    });
}

#[test]
fn a_held_task_goes_on_when_it_is_resumed_or_cancelled() {
    explore(|| {
        let context = Arc::new(TaskContext::new(1, "1".into(), 0, 0));
        context.set_paused(true);
        let waits: Vec<_> = (0..2)
            .map(|_| {
                let context = context.clone();
                thread::spawn(move || context.wait_while_held(LONG))
            })
            .collect();
        let stops = {
            let context = context.clone();
            thread::spawn(move || context.stop())
        };
        context.set_paused(false);
        context.set_paused(true);
        stops.join().unwrap();
        waits.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

struct Job(std::sync::Arc<SimDriver>, u64);

impl Command for Job {
    fn issue(&self) -> DriverResult<()> {
        self.0.work(self.1, 20 * US);
        Ok(())
    }
}

/// Submits so many commands, and waits for room where there is none. How many it got in.
fn launch(gate: &Gate, driver: &std::sync::Arc<SimDriver>, context: &std::sync::Arc<TaskContext>, count: u32) -> u32 {
    let stream = context.number;
    let work = Work {
        stream,
        name: 1,
        size: 1,
        ..Work::default()
    };
    let job = || Job(driver.clone(), stream);
    let mut taken = 0;
    while taken < count {
        match gate.submit(context, work, || job().issue(), || std::sync::Arc::new(job()), || ()) {
            Submitted::Issued | Submitted::Deferred => taken += 1,
            Submitted::Full => assert!(gate.wait_for_room(context, stream, FOREVER_NS)),
            Submitted::Stopped => break,
            Submitted::Refused(refusal) => panic!("{refusal:?}"),
        }
    }
    taken
}

/// Two tenants, the dispatcher, and a device whose time goes on. `stop`: the first task is cancelled meanwhile.
fn tenants(stop: bool) {
    const COUNT: u32 = 4;
    static DEFERRED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let driver = std::sync::Arc::new(SimDriver::new(SimConfig::default()));
    let settings = Settings {
        line_commands: 2,
        ..Settings::default()
    };
    let gate = Arc::new(Gate::new(driver.clone(), driver.clone(), settings, &DEFERRED));
    let ended = Arc::new(AtomicBool::new(false));
    let device = {
        let (driver, ended) = (driver.clone(), ended.clone());
        thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                driver.advance_ns(100 * US);
                thread::yield_now();
            }
        })
    };
    let dispatcher = {
        let gate = gate.clone();
        thread::spawn(move || gate.run())
    };
    let contexts = [1, 2].map(|number: u64| {
        let id = number.to_string().into();
        std::sync::Arc::new(TaskContext::new(number, id, 500_000, 1_000_000))
    });
    let threads = contexts.clone().map(|context| {
        let (gate, driver) = (gate.clone(), driver.clone());
        thread::spawn(move || {
            let taken = launch(&gate, &driver, &context, COUNT);
            gate.drain(Some(context.number));
            while !driver.stream_done(context.number).unwrap() {
                thread::yield_now();
            }
            gate.leave(&context);
            taken
        })
    });
    if stop {
        contexts[0].stop();
    }
    let taken = threads.map(|thread| thread.join().unwrap());
    assert!(!gate.has_deferred(None), "drained");
    gate.close();
    dispatcher.join().unwrap();
    ended.store(true, Ordering::SeqCst);
    device.join().unwrap();
    assert_eq!((taken[1], contexts[1].launches()), (COUNT, u64::from(COUNT)));
    assert!(stop || (taken[0], contexts[0].launches()) == (COUNT, u64::from(COUNT)));
}

// At random alone: these threads look at the device again and again, and a scheduler with priorities would let one look for ever.

#[test]
fn tenants_and_the_dispatcher_of_a_gate_wake_each_other() {
    shuttle::check_random(|| tenants(false), 3000);
}

#[test]
fn a_cancelled_tenant_holds_nobody() {
    shuttle::check_random(|| tenants(true), 3000);
}

#[test]
fn allocation_eviction_and_free_exclude_each_other() {
    explore(|| {
        const BLOCK: u64 = 2 << 20;
        let sim = std::sync::Arc::new(SimDriver::new(SimConfig {
            store: false,
            ..SimConfig::default()
        }));
        let config = PoolConfig {
            limit_bytes: 2 * BLOCK,
            eviction: true,
            staging_bytes: 0,
            ..PoolConfig::default()
        };
        let services = Services {
            ring: std::sync::Arc::new(Ring::new(64)),
            clock: sim.clone(),
        };
        let pool = Arc::new(Pool::new(sim.clone(), config, services).expect("the simulated device answers"));
        let threads: Vec<_> = (0..3u64)
            .map(|stream| {
                let (pool, sim) = (pool.clone(), sim.clone());
                thread::spawn(move || {
                    let block = match pool.alloc(BLOCK, stream, Owner::default()) {
                        Ok(block) => block,
                        Err(PoolError::OutOfMemory(_)) => return, // the others have both pinned at this moment
                        Err(error) => panic!("{error}"),
                    };
                    match pool.pin(block.block, 0) {
                        Ok(()) => {
                            sim.launch(stream, block.address, block.bytes, None, 10);
                            thread::yield_now();
                            sim.launch(stream, block.address, block.bytes, None, 10);
                            pool.unpin(block.block);
                        }
                        Err(PoolError::OutOfMemory(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                    let evicted = pool.evict(block.block);
                    assert!(matches!(evicted, Ok(()) | Err(PoolError::Busy { .. })), "{evicted:?}");
                    pool.free(block.block).expect("a live block");
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        pool.audit().expect("the books agree");
        assert_eq!(sim.violations(), Vec::<String>::new());
        let stats = pool.stats();
        assert_eq!((stats.used, stats.evicted, stats.active_blocks), (0, 0, 0));
    });
}
