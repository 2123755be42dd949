//! A driver that stands still now and then inside a batch, as while it loads code: the device runs dry, and nobody pays for that.

mod pacing_support;

use pacing_support::{Random, Tenant, World};
use pygpukit_core::clock::Clock;
use pygpukit_core::driver::Driver;
use pygpukit_core::pacing::{CostTable, Line, Settings, Work};
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

#[test]
fn shares_of_what_the_device_did_are_kept_through_stalls() {
    for seed in 0..10 {
        let mut world = World::new(&four(), Settings::default(), seed);
        let mut random = Random(seed + 50);
        // The first second is there for costs to be learnt.
        let stalls: Vec<(u64, u64)> = (0..60)
            .map(|i| (1_000 * MS + i * 50 * MS, MS + random.below(30 * MS)))
            .collect();
        world.books.lock().unwrap().stalls.extend(&stalls);
        world.run(4_000 * MS);
        assert_eq!(world.books.lock().unwrap().stalls.len(), 0);
        let mut begin = 1_000 * MS;
        while begin + 400 * MS < world.now() {
            let had = world.had_ns(begin, begin + 400 * MS);
            let all: u64 = had.iter().sum();
            for (had, t) in had.iter().zip(&world.tenants) {
                let error = *had as f64 / all as f64 * 100.0 - f64::from(t.share_ppm) / 1e4;
                assert!(
                    error.abs() <= 2.0,
                    "seed {seed}: {error:.2} pp in the 400 ms from {begin} on, {t:?}"
                );
            }
            begin += 10 * MS;
        }
        let view = world.gate.view();
        let had = world.had_ns(0, view.now_ns);
        for (tenant, had) in view.tenants.iter().zip(&had) {
            let difference = tenant.gpu_ns.abs_diff(*had);
            assert!(difference <= 3 * MS + had / 200, "seed {seed}: {tenant:?}, {had} had");
        }
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
    /// What the device has to do before it.
    before_ns: u64,
    /// What it is known to take.
    known_ns: Option<u64>,
    ns: u64,
    /// A copy, or a graph.
    is_copy: bool,
    /// In the call that launches it, before and after the device has it.
    launch_ns: [u64; 2],
    /// In the call that marks its end.
    mark_ns: u64,
}

#[test]
fn a_batch_is_charged_without_what_the_driver_stood_still_for() {
    let guess_ns = 100 * US;
    let work = |is_copy: bool| Work {
        grid: [u32::from(!is_copy); 3],
        ..Work::default()
    };
    let none = Case::default();
    let usual = Case {
        known_ns: Some(50 * US),
        ns: 50 * US,
        ..none
    };
    let longer = Case { ns: 8 * MS, ..usual };
    let as_long_a_call = Case {
        known_ns: Some(5 * MS),
        ns: 4 * MS,
        launch_ns: [5 * MS, 0],
        is_copy: true,
        ..none
    };
    let stalled = |case: Case, launch_ns: [u64; 2], mark_ns: u64| Case {
        launch_ns,
        mark_ns,
        ..case
    };
    let unknown = Case {
        known_ns: None,
        ..usual
    };
    let copy = |case: Case| Case { is_copy: true, ..case };
    let behind = |case: Case| Case {
        before_ns: 5 * MS,
        ..case
    };
    for (case, charged_ns) in [
        (usual, 50 * US),
        (stalled(usual, [16 * MS, 0], 0), 50 * US),
        (stalled(usual, [0, 16 * MS], 0), 50 * US),
        (stalled(usual, [0, 0], 16 * MS), 50 * US),
        (stalled(usual, [16 * MS, 0], 5 * MS), 50 * US),
        (stalled(usual, [150 * US, 0], 0), 200 * US), // short
        (longer, 8 * MS),
        (stalled(longer, [16 * MS, 0], 0), 8 * MS),
        (stalled(behind(longer), [3 * MS, 0], 0), 8 * MS), // the device did not run dry
        (as_long_a_call, 9 * MS),                          // as a copy's
        (unknown, 50 * US),
        (stalled(unknown, [16 * MS, 0], 0), guess_ns),
        (stalled(unknown, [0, 0], 16 * MS), guess_ns),
        (stalled(copy(usual), [16 * MS, 0], 0), 50 * US),
        (stalled(copy(unknown), [16 * MS, 0], 0), 16 * MS + 50 * US), // perhaps it copied
        (stalled(copy(unknown), [0, 0], 16 * MS), guess_ns),
    ] {
        let device = Arc::new(SimDriver::new(SimConfig::default()));
        let clock = Arc::new(Jumps {
            device: device.clone(),
            ns: AtomicU64::new(0),
        });
        let mut costs = CostTable::default();
        let mut known = |name: u32, ns: u64| {
            let guess = costs.estimate(name, 1, guess_ns);
            costs.learn([guess].into_iter(), guess_ns, ns);
            costs.estimate(name, 1, guess_ns)
        };
        let before = known(1, 5 * MS);
        let cost = match case.known_ns {
            Some(ns) => known(2, ns),
            None => costs.estimate(2, 1, guess_ns),
        };
        let mut line = Line::new(device.clone(), clock.clone());
        if case.before_ns > 0 {
            line.open(0, 1, device.now_ns()).unwrap();
            device.work(1, case.before_ns);
            line.add(work(false), before, device.now_ns());
            line.close(true).unwrap();
        }
        line.open(0, 1, device.now_ns()).unwrap();
        let from_ns = device.now_ns();
        device.advance_ns(case.launch_ns[0]);
        device.work(1, case.ns);
        device.advance_ns(case.launch_ns[1]);
        line.add(work(case.is_copy), cost, from_ns);
        clock.ns.store(case.mark_ns, Ordering::Relaxed);
        line.close(true).unwrap();
        let calls_ns = device.now_ns();
        device.advance_ns(100 * MS);
        assert!(device.stream_done(1).unwrap());
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
        let given_ns = case.launch_ns[0].max(case.before_ns);
        let ended_ns = calls_ns.max(given_ns + case.ns);
        assert!(
            retired.ended_ns.abs_diff(ended_ns) <= 2 * slack,
            "{case:?}: {} not {ended_ns}",
            retired.ended_ns
        );
    }
}
