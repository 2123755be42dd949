//! Which kernels the gate would like to cut, and when it says so.

mod pacing_support;

use pacing_support::DEFERRED;
use pygpukit_core::driver::DriverResult;
use pygpukit_core::pacing::{Command, Gate, Next, Settings, Submitted, Work};
use pygpukit_core::scheduler::TaskContext;
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

const US: u64 = 1_000;

struct Kernel {
    driver: Arc<SimDriver>,
    stream: u64,
    ns: u64,
    requests: Arc<AtomicU32>,
}

impl Command for Kernel {
    fn issue(&self) -> DriverResult<()> {
        self.driver.work(self.stream, self.ns);
        Ok(())
    }

    fn want_parts(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

struct Bench {
    driver: Arc<SimDriver>,
    gate: Gate,
    requests: Arc<AtomicU32>,
}

impl Bench {
    fn new() -> Bench {
        let driver = Arc::new(SimDriver::new(SimConfig::default()));
        let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
        let requests = Arc::default();
        Bench { driver, gate, requests }
    }

    /// What became of a kernel, and whether the gate asked for its parts at once.
    fn submit(&self, context: &Arc<TaskContext>, work: Work, ns: u64) -> (Submitted, bool) {
        let before = self.requests();
        let kernel = || Kernel {
            driver: self.driver.clone(),
            stream: work.stream,
            ns,
            requests: self.requests.clone(),
        };
        let submitted = self.gate.submit(
            context,
            work,
            || kernel().issue(),
            || Arc::new(kernel()),
            || kernel().want_parts(),
        );
        (submitted, self.requests() > before)
    }

    fn finish(&self) {
        while self.gate.step() != Next::Idle {
            self.driver.advance_ns(50 * US);
        }
    }

    fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }
}

fn context(number: u64) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(number, number.to_string().into(), 500_000, 1_000_000))
}

fn kernel(name: u32, size: u64) -> Work {
    Work {
        stream: 1,
        name,
        size,
        grid: [size as u32, 1, 1],
        ..Work::default()
    }
}

#[test]
fn the_long_kernel_of_a_tenant_alone_is_wanted_in_parts_once_it_was_measured() {
    let bench = Bench::new();
    let alone = context(1);
    let long = kernel(1, 64);
    assert_eq!(bench.submit(&alone, long, 400 * US), (Submitted::Issued, false));
    bench.finish();
    assert_eq!(bench.submit(&alone, long, 400 * US), (Submitted::Issued, true));
}

#[test]
fn what_is_short_or_has_one_block_or_parts_already_is_not_wanted() {
    let cases = [
        (kernel(1, 64), 20 * US),
        (kernel(2, 1), 400 * US),
        (
            Work {
                wave: 8,
                ..kernel(3, 64)
            },
            400 * US,
        ),
    ];
    for (work, ns) in cases {
        let bench = Bench::new();
        let alone = context(1);
        for _ in 0..3 {
            assert_eq!(bench.submit(&alone, work, ns), (Submitted::Issued, false), "{work:?}");
            bench.finish();
        }
    }
}

#[test]
fn a_deferred_kernel_that_was_measured_meanwhile_is_wanted_when_its_turn_comes() {
    let bench = Bench::new();
    let (first, second) = (context(1), context(2));
    let other = Work {
        stream: 2,
        ..kernel(9, 1)
    };
    assert_eq!(bench.submit(&second, other, 100 * US).0, Submitted::Issued);
    for _ in 0..4 {
        assert_eq!(
            bench.submit(&first, kernel(1, 64), 400 * US),
            (Submitted::Deferred, false)
        );
    }
    bench.finish();
    assert!(bench.requests() > 0);
}
