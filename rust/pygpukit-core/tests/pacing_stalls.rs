//! A driver that stands still now and then inside a batch, as while it loads code: the device runs dry, and nobody pays for that.

mod pacing_support;

use pacing_support::{Random, Stall, Tenant, World};
use pygpukit_core::clock::Clock;
use pygpukit_core::driver::Driver;
use pygpukit_core::pacing::{CostTable, Line, Settings};
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn four() -> [Tenant; 4] {
    [
        Tenant::backlogged(200_000, 20 * US),
        Tenant::backlogged(500_000, 150 * US),
        Tenant::backlogged(200_000, 400 * US),
        Tenant::backlogged(100_000, 1000 * US),
    ]
}

/// Stalls of 1 to 31 ms, one every so often; the first second is there for costs to be learnt.
fn stalls(random: &mut Random, every_ns: u64, until_ns: u64) -> Vec<Stall> {
    let times = (1_000 * MS..until_ns).step_by(every_ns as usize);
    let stall = |at_ns| Stall {
        at_ns,
        ns: MS + random.below(30 * MS),
        late: random.below(2) == 0,
    };
    times.map(stall).collect()
}

/// That the meter of each tells what it had, but for what is in flight.
fn assert_metered(world: &World) {
    let view = world.gate.view();
    let had = world.had_ns(0, view.now_ns);
    for (tenant, had) in view.tenants.iter().zip(&had) {
        let difference = tenant.gpu_ns.abs_diff(*had);
        assert!(difference <= 3 * MS + had / 100, "{tenant:?}, {had} had");
    }
}

#[test]
fn shares_of_what_the_device_did_are_kept_through_stalls() {
    for seed in 0..10 {
        let mut world = World::new(&four(), Settings::default(), seed);
        let stalls = stalls(&mut Random(seed + 50), 50 * MS, 4_000 * MS);
        world.books.lock().unwrap().stalls.extend(&stalls);
        world.run(4_000 * MS);
        assert!(world.books.lock().unwrap().stalls.len() < 20);
        let mut begin = 1_000 * MS;
        while begin + 400 * MS < world.now() {
            let had = world.had_ns(begin, begin + 400 * MS);
            let all: u64 = had.iter().sum();
            for (had, t) in had.iter().zip(&world.tenants) {
                let error = *had as f64 / all as f64 * 100.0 - f64::from(t.share_ppm) / 1e4;
                assert!(
                    error.abs() <= 2.5,
                    "seed {seed}: {error:.2} pp in the 400 ms from {begin} on, {t:?}"
                );
            }
            begin += 10 * MS;
        }
        assert_metered(&world);
    }
}

#[test]
fn a_limited_tenant_alone_does_not_pay_for_stalls() {
    let tenant = Tenant {
        limit_ppm: 500_000,
        burst: 10,
        pause_ns: 3 * MS,
        ..Tenant::backlogged(500_000, 100 * US)
    };
    for seed in 0..10 {
        let mut world = World::new(&[tenant], Settings::default(), seed);
        let stalls = stalls(&mut Random(seed), 100 * MS, 3_000 * MS);
        world.books.lock().unwrap().stalls.extend(&stalls);
        world.run(3_000 * MS);
        assert_metered(&world);
        assert_eq!(world.contexts[0].throttled_ns(), 0, "it uses a third of the device");
    }
}

/// As where CUDA_LAUNCH_BLOCKING is set: every call takes as long as its work, and none of that is a stall.
#[test]
fn limits_and_shares_hold_where_launches_wait() {
    let kernels = |kernel_ns: u64, spread: u64| Tenant {
        spread,
        host_ns: 100, // in a world of one thread, so that all have work whenever a launch returns
        ..Tenant::backlogged(500_000, kernel_ns)
    };
    for spread in [0, 20, 90] {
        let limited = Tenant {
            limit_ppm: 100_000,
            share_ppm: 100_000,
            ..kernels(8 * MS, spread)
        };
        let mut world = World::new(&[limited], Settings::default(), 3);
        world.books.lock().unwrap().blocking = true;
        world.run(4_000 * MS);
        let had = world.had_ns(1_000 * MS, 4_000 * MS)[0];
        assert!(
            had <= 330 * MS,
            "{had} of the 300 ms that it may have, spread {spread} %"
        );

        let mut world = World::new(
            &[kernels(8 * MS, spread), kernels(150 * US, spread)],
            Settings::default(),
            3,
        );
        world.books.lock().unwrap().blocking = true;
        world.run(4_000 * MS);
        let had = world.had_ns(1_000 * MS, 4_000 * MS);
        assert!(had[0].abs_diff(had[1]) <= 100 * MS, "{had:?}, spread {spread} %");
        assert_metered(&world);
    }
}

/// Time that jumps after a reading of the clock, once, if it is told to.
struct Jumps {
    device: Arc<SimDriver>,
    ns: AtomicU64,
}

impl Clock for Jumps {
    fn now_ns(&self) -> u64 {
        let now_ns = self.device.now_ns();
        self.device.advance_ns(self.ns.swap(0, Ordering::Relaxed));
        now_ns
    }
}

/// A batch of one piece of work, and where the driver stands still meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    /// What the device has to do before it: what it is known to take, and takes.
    before_ns: Option<[u64; 2]>,
    /// What it is known to take.
    known_ns: Option<u64>,
    /// The host stood still at the last launch of its kind, too.
    again: bool,
    ns: u64,
    /// In the call that launches it, before and after the device has it.
    launch_ns: [u64; 2],
    /// In the call that marks its end.
    mark_ns: u64,
}

#[test]
fn a_batch_is_charged_without_what_the_driver_stood_still_for() {
    let usual = Case {
        known_ns: Some(50 * US),
        ns: 50 * US,
        ..Case::default()
    };
    let short = Case {
        known_ns: Some(20 * US),
        ns: 20 * US,
        ..usual
    };
    let longer = Case { ns: 8 * MS, ..usual };
    let unknown = Case {
        known_ns: None,
        ..usual
    };
    let as_long_a_call = Case {
        known_ns: Some(5 * MS),
        ns: 4 * MS,
        ..usual
    };
    let again = Case { again: true, ..usual };
    let behind = |ns: u64| Case {
        before_ns: Some([5 * MS, ns]),
        ..longer
    };
    let launch = |case: Case, launch_ns: [u64; 2]| Case { launch_ns, ..case };
    let mark = |case: Case, mark_ns: u64| Case { mark_ns, ..case };
    for (case, charged_ns, stalled) in [
        (usual, 50 * US, false),
        (launch(usual, [16 * MS, 0]), 50 * US, true),
        (launch(usual, [0, 16 * MS]), 50 * US, true),
        (mark(usual, 16 * MS), 50 * US, true),
        (mark(launch(usual, [16 * MS, 0]), 5 * MS), 50 * US, true),
        (launch(short, [150 * US, 0]), 170 * US, false), // a busy host
        (longer, 8 * MS, false),
        (launch(longer, [16 * MS, 0]), 8 * MS, true),
        (launch(longer, [0, 16 * MS]), 50 * US, true), // nobody can tell; but once
        (mark(longer, 16 * MS), 50 * US, true),
        (launch(behind(5 * MS), [3 * MS, 0]), 8 * MS, false), // the device did not run dry
        (launch(behind(20 * MS), [14 * MS, 0]), 8 * MS, false), // nor here, though it should have
        (launch(behind(20 * MS), [24 * MS, 0]), 8 * MS, true),
        (launch(as_long_a_call, [5 * MS, 0]), 9 * MS, false), // as a copy's
        (launch(again, [16 * MS, 0]), 16 * MS + 50 * US, false),
        (mark(again, 16 * MS), 16 * MS, false),
        (launch(unknown, [16 * MS, 0]), 16 * MS + 50 * US, false), // nobody knows better
        (mark(unknown, 16 * MS), 16 * MS, false),
    ] {
        for stream_before in [1, 2] {
            check(case, stream_before, charged_ns, stalled);
        }
    }
}

/// stream_before: of the batch before the case's, whose stream is 2.
fn check(case: Case, stream_before: u64, charged_ns: u64, stalled: bool) {
    let device = Arc::new(SimDriver::new(SimConfig::default()));
    let clock = Arc::new(Jumps {
        device: device.clone(),
        ns: AtomicU64::new(0),
    });
    let mut costs = CostTable::default();
    let guess_ns = 100 * US;
    let mut known = |name: u32, ns: u64| {
        let guess = costs.estimate(name, 1, guess_ns);
        costs.learn([guess].into_iter(), guess_ns, ns);
        costs.estimate(name, 1, guess_ns)
    };
    let before = case.before_ns.map(|[known_ns, ns]| (known(1, known_ns), ns));
    if let Some(ns) = case.known_ns {
        known(2, ns);
    }
    let cost = costs.estimate(2, 1, guess_ns);
    if case.again {
        costs.note_stall([cost].into_iter());
    }
    let cost = costs.estimate(2, 1, guess_ns);
    let mut line = Line::new(device.clone(), clock.clone());
    if let Some((before, ns)) = before {
        line.open(0, stream_before, device.now_ns()).unwrap();
        device.work(stream_before, ns);
        line.add(before, device.now_ns());
        line.close(true).unwrap();
    }
    line.open(1, 2, device.now_ns()).unwrap();
    let from_ns = device.now_ns();
    device.advance_ns(case.launch_ns[0]);
    device.work(2, case.ns);
    device.advance_ns(case.launch_ns[1]);
    line.add(cost, from_ns);
    clock.ns.store(case.mark_ns, Ordering::Relaxed);
    line.close(true).unwrap();
    let calls_ns = device.now_ns();
    device.advance_ns(100 * MS);
    assert!(device.stream_done(2).unwrap());
    let mut retired = None;
    while let Some(next) = line.poll(device.now_ns()).unwrap() {
        retired = Some(next);
    }
    let retired = retired.unwrap();
    let slack = US; // events take time, too
    assert!(
        retired.actual_ns.abs_diff(charged_ns) <= slack,
        "{case:?}: {} charged, not {charged_ns}",
        retired.actual_ns
    );
    assert_eq!(retired.stalled, stalled, "{case:?}");
    let before_ns = case.before_ns.map_or(0, |[_, ns]| ns);
    let ended_ns = calls_ns.max(case.launch_ns[0].max(before_ns) + case.ns);
    assert!(
        retired.ended_ns.abs_diff(ended_ns) <= 2 * slack,
        "{case:?}: {} not {ended_ns}",
        retired.ended_ns
    );
}
