//! Commands at the gate, one case after the other: refused, cancelled, paused, bounded, and charged for what they took.

mod pacing_support;

use pacing_support::DEFERRED;
use pygpukit_core::clock::{Clock, MonotonicClock};
use pygpukit_core::driver::{Driver, DriverError, DriverResult};
use pygpukit_core::pacing::{Command, Gate, Next, Settings, Submitted, Work};
use pygpukit_core::partition::{Activity, WorkKind};
use pygpukit_core::scheduler::TaskContext;
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Work that takes so long, or that the driver refuses.
struct Job {
    driver: Arc<SimDriver>,
    stream: u64,
    ns: u64,
    refused: bool,
}

impl Command for Job {
    fn issue(&self) -> DriverResult<()> {
        if self.refused {
            return Err(DriverError {
                code: 1,
                text: "no such kernel".into(),
            });
        }
        self.driver.work(self.stream, self.ns);
        Ok(())
    }
}

fn submit(gate: &Gate, driver: &Arc<SimDriver>, context: &Arc<TaskContext>, ns: u64, refused: bool) -> Submitted {
    submit_named(gate, driver, context, context.number as u32, ns, refused)
}

fn submit_named(
    gate: &Gate,
    driver: &Arc<SimDriver>,
    context: &Arc<TaskContext>,
    name: u32,
    ns: u64,
    refused: bool,
) -> Submitted {
    let (stream, driver) = (context.number, driver.clone());
    let work = Work {
        stream,
        name,
        size: 1,
        ..Work::default()
    };
    let job = Job {
        driver: driver.clone(),
        stream,
        ns,
        refused,
    };
    let kept = Job {
        driver,
        stream,
        ns,
        refused,
    };
    gate.submit(context, work, || job.issue(), || Arc::new(kept), || ())
}

fn context(number: u64, share_ppm: u32) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        number,
        number.to_string().into(),
        share_ppm,
        1_000_000,
    ))
}

#[test]
fn a_device_that_fails_stops_nobody() {
    for call in [
        Call::EventRecord,
        Call::EventDone,
        Call::EventElapsed,
        Call::StreamWaitEvent,
        Call::StreamDone,
    ] {
        let driver = Arc::new(SimDriver::new(SimConfig::default()));
        let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
        let contexts = [context(1, 500_000), context(2, 500_000)];
        for round in 0..400u64 {
            if round % 20 == 7 {
                driver.fail(call, 1, 700);
            }
            let context = &contexts[(round / 4 % 2) as usize];
            let mut steps = 0;
            while submit(&gate, &driver, context, 30 * US, false) == Submitted::Full {
                driver.advance_ns(20 * US);
                gate.step();
                steps += 1;
                assert!(steps < 10_000, "{call:?} in round {round}");
            }
            driver.advance_ns(10 * US);
            gate.step();
        }
        driver.heal();
        for _ in 0..1000 {
            driver.advance_ns(MS);
            gate.step();
        }
        contexts.iter().for_each(|c| gate.leave(c));
        assert!(gate.view().tenants.is_empty(), "{call:?}");
        assert!(!gate.has_deferred(None), "{call:?}");
    }
}

/// Two tenants that both want the device, so that both are deferred.
fn contended() -> (Arc<SimDriver>, Gate, [Arc<TaskContext>; 2]) {
    let driver = Arc::new(SimDriver::new(SimConfig::default()));
    let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
    let contexts = [context(1, 500_000), context(2, 500_000)];
    assert_eq!(submit(&gate, &driver, &contexts[0], 100 * US, false), Submitted::Issued);
    assert_eq!(
        submit(&gate, &driver, &contexts[1], 100 * US, false),
        Submitted::Deferred
    );
    (driver, gate, contexts)
}

fn step_until_idle(gate: &Gate, driver: &SimDriver) {
    while gate.step() != Next::Idle {
        driver.advance_ns(50 * US);
    }
}

#[test]
fn a_paused_task_waits_at_the_gate_and_slows_nobody() {
    let driver = Arc::new(SimDriver::new(SimConfig::default()));
    let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
    let [paused, other] = [context(1, 500_000), context(2, 500_000)];
    assert_eq!(submit(&gate, &driver, &other, US, false), Submitted::Issued);
    assert_eq!(submit(&gate, &driver, &paused, US, false), Submitted::Deferred);
    paused.set_paused(true);
    assert_eq!(submit(&gate, &driver, &paused, US, false), Submitted::Full);
    step_until_idle(&gate, &driver);
    assert_eq!(paused.launches(), 1, "what it launched before goes on");
    driver.advance_ns(Settings::default().alone_ns + 1);
    for _ in 0..10 {
        assert_eq!(submit(&gate, &driver, &paused, US, false), Submitted::Full);
        assert!(!gate.wait_for_room(&paused, 1, 1));
        assert_eq!(
            submit(&gate, &driver, &other, US, false),
            Submitted::Issued,
            "as if it were alone"
        );
        driver.advance_ns(MS);
    }
    const FOREVER: u64 = 3_600_000_000_000;
    const INTO_ITS_WAIT: std::time::Duration = std::time::Duration::from_millis(50);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| gate.wait_for_room(&paused, 1, FOREVER));
        std::thread::sleep(INTO_ITS_WAIT);
        paused.set_paused(false);
        assert!(waits.join().unwrap());
    });
    paused.set_paused(true);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| gate.wait_for_room(&paused, 1, FOREVER));
        std::thread::sleep(INTO_ITS_WAIT);
        paused.stop();
        assert!(waits.join().unwrap());
    });
    assert_eq!(submit(&gate, &driver, &paused, US, false), Submitted::Stopped);
}

#[test]
fn a_refusal_is_told_once_and_drops_what_came_after() {
    let (driver, gate, contexts) = contended();
    let refused = &contexts[0];
    assert_eq!(submit(&gate, &driver, refused, US, true), Submitted::Deferred);
    for _ in 0..5 {
        assert_eq!(submit(&gate, &driver, refused, US, false), Submitted::Deferred);
    }
    assert!(gate.has_deferred(Some(1)) && gate.has_deferred(Some(2)) && !gate.has_deferred(Some(3)));
    step_until_idle(&gate, &driver);
    assert_eq!(
        contexts[0].launches(),
        1,
        "the first went directly, the others were dropped"
    );
    assert_eq!(contexts[1].launches(), 1);
    let outcome = submit(&gate, &driver, refused, US, false);
    assert!(
        matches!(&outcome, Submitted::Refused(r) if r.error.text == "no such kernel" && r.name == 1),
        "{outcome:?}"
    );
    assert_ne!(submit(&gate, &driver, refused, US, false), outcome, "once");
    assert_eq!(submit(&gate, &driver, refused, US, true), Submitted::Deferred);
    step_until_idle(&gate, &driver);
    assert!(gate.take_refusal(2).is_none());
    assert!(gate.take_refusal(1).is_some() && gate.take_refusal(1).is_none());
}

#[test]
fn a_cancelled_task_drops_its_line() {
    let (driver, gate, contexts) = contended();
    for _ in 0..20 {
        assert_eq!(
            submit(&gate, &driver, &contexts[1], 100 * US, false),
            Submitted::Deferred
        );
    }
    contexts[1].stop();
    assert_eq!(submit(&gate, &driver, &contexts[1], US, false), Submitted::Stopped);
    assert!(!gate.has_deferred(Some(2)));
    step_until_idle(&gate, &driver);
    assert_eq!(contexts[1].launches(), 0);
}

#[test]
fn a_line_is_bounded_in_time_and_in_number() {
    let (driver, gate, contexts) = contended();
    let settings = Settings::default();
    let mut deferred = 1;
    while submit(&gate, &driver, &contexts[1], 100 * US, false) == Submitted::Deferred {
        deferred += 1;
    }
    assert_eq!(deferred, settings.line_ns / settings.guess_ns);
    assert!(!gate.wait_for_room(&contexts[1], 2, US));
    step_until_idle(&gate, &driver);
    assert!(gate.wait_for_room(&contexts[1], 2, US));
}

#[test]
fn what_work_took_is_charged_and_not_what_it_was_taken_for() {
    let (driver, gate, contexts) = contended();
    // Each of another name, so that it is taken for a tenth of what it takes.
    let mut name = 10;
    while driver.now_ns() < 400 * MS {
        while submit_named(&gate, &driver, &contexts[0], name, MS, false) == Submitted::Deferred {
            name += 1;
        }
        while submit(&gate, &driver, &contexts[1], 100 * US, false) == Submitted::Deferred {}
        gate.step();
        driver.advance_ns(50 * US);
    }
    let had = contexts.map(|context| context.gpu_ns());
    assert!(had.iter().sum::<u64>() > 300 * MS, "{had:?}");
    assert!(had[0].abs_diff(had[1]) <= 10 * MS, "{had:?}");
}

#[test]
fn what_ran_on_the_host_counts_for_the_limit_however_long_its_task_slept() {
    let driver = Arc::new(SimDriver::new(SimConfig::default()));
    let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
    let limited = Arc::new(TaskContext::new(1, "1".into(), 200_000, 200_000));
    for sleep_ns in [MS, 10_000 * MS] {
        driver.advance_ns(sleep_ns + 10 * MS);
        gate.ran_on_host(&limited, 10 * MS);
        let ended_ns = driver.now_ns();
        assert_eq!(submit(&gate, &driver, &limited, US, false), Submitted::Deferred);
        step_until_idle(&gate, &driver);
        // 10 ms at a fifth of the time are 50 ms, of which it had 10, and it may be 2 ms ahead, which are 10 more.
        let held_ns = driver.now_ns() - ended_ns;
        assert!((28 * MS..=32 * MS).contains(&held_ns), "{held_ns} ns after {sleep_ns}");
    }
}

/// Alone and below its limit its work is issued at once, and what ends a request may be measured long after its end.
#[test]
fn a_limit_holds_for_work_that_takes_longer_than_it_did() {
    let driver = Arc::new(SimDriver::new(SimConfig::default()));
    let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
    let limited = Arc::new(TaskContext::new(1, "1".into(), 200_000, 200_000));
    let (mut had_ns, mut from_ns) = (0, 0);
    for request in 0..200 {
        // The second kernel takes as long as its data say.
        let second_ns = if request < 10 { 10 * US } else { 5 * MS };
        if request == 10 {
            from_ns = driver.now_ns();
        }
        for (name, ns) in [(1, 100 * US), (2, second_ns)] {
            while submit_named(&gate, &driver, &limited, name, ns, false) == Submitted::Full {
                gate.step();
                driver.advance_ns(10 * US);
            }
            had_ns += if request < 10 { 0 } else { ns };
        }
        while gate.has_deferred(None) {
            gate.step();
            driver.advance_ns(10 * US);
        }
        driver.advance_ns(second_ns + 500 * US);
    }
    let took_ns = driver.now_ns() - from_ns;
    assert!(
        had_ns * 100 <= took_ns * 22,
        "{had_ns} of {took_ns} ns under a limit of 20 %"
    );
    assert!(
        limited.gpu_ns().abs_diff(had_ns) <= 10 * MS,
        "{} ns of {had_ns}",
        limited.gpu_ns()
    );
}

/// While a batch of it is open, which ends where its last work was when its limit still held.
#[test]
fn work_of_a_task_whose_limit_is_lifted_is_measured_to_its_end() {
    let driver = Arc::new(SimDriver::new(SimConfig::default()));
    let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
    let context = Arc::new(TaskContext::new(1, "1".into(), 500_000, 500_000));
    let mut had_ns = 0;
    for request in 0..50 {
        context.set_shares(500_000, 500_000);
        for command in 0..6 {
            if command == 4 {
                context.set_shares(500_000, 1_000_000);
            }
            while submit_named(&gate, &driver, &context, 1, 100 * US, false) == Submitted::Full {
                gate.step();
                driver.advance_ns(10 * US);
            }
            had_ns += 100 * US;
        }
        while gate.has_deferred(None) {
            gate.step();
            driver.advance_ns(10 * US);
        }
        driver.advance_ns(if request % 2 == 0 { 100 * US } else { 2 * MS });
    }
    driver.advance_ns(MS);
    gate.leave(&context);
    assert!(
        context.gpu_ns().abs_diff(had_ns) <= had_ns / 50,
        "{} ns of {had_ns}",
        context.gpu_ns()
    );
    assert!(driver.violations().is_empty(), "{:?}", driver.violations());
}

#[test]
fn a_stream_is_in_one_line_at_a_time() {
    let (driver, gate, contexts) = contended();
    let work = Work {
        stream: 2,
        name: 1,
        size: 1,
        ..Work::default()
    };
    let issue = || Ok(());
    let other = gate.submit(&contexts[0], work, issue, || unreachable!("it must wait"), || ());
    assert_eq!(other, Submitted::Full);
    step_until_idle(&gate, &driver);
    assert!(gate.wait_for_room(&contexts[0], 2, US));
}

/// Real threads on a device whose time a further thread moves.
#[test]
fn threads_wait_for_each_other_and_end() {
    let driver = Arc::new(SimDriver::new(SimConfig::default()));
    let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
    let contexts: Vec<_> = (1..=6).map(|i| context(i, 100_000 * i as u32)).collect();
    let (running, submitted) = (AtomicBool::new(true), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let dispatcher = scope.spawn(|| gate.run());
        let tenants: Vec<_> = contexts
            .iter()
            .map(|context| {
                let (gate, driver, submitted) = (&gate, &driver, &submitted);
                scope.spawn(move || {
                    for _ in 0..300 {
                        let mut got = submit(gate, driver, context, 20 * US * context.number, false);
                        while got == Submitted::Full {
                            gate.wait_for_room(context, context.number, 5 * MS);
                            got = submit(gate, driver, context, 20 * US * context.number, false);
                        }
                        if got == Submitted::Stopped {
                            break;
                        }
                        submitted.fetch_add(1, Ordering::Relaxed);
                    }
                    gate.drain(Some(context.number));
                    while !driver.stream_done(context.number).unwrap() {
                        std::thread::yield_now();
                    }
                    gate.leave(context);
                })
            })
            .collect();
        let device = scope.spawn(|| {
            let begin = MonotonicClock.now_ns();
            let mut moved = 0;
            while running.load(Ordering::Relaxed) {
                let due = (MonotonicClock.now_ns() - begin).saturating_sub(moved);
                driver.advance_ns(due);
                moved += due;
                std::thread::yield_now();
            }
        });
        while submitted.load(Ordering::Relaxed) < 600 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        contexts[0].stop();
        tenants.into_iter().for_each(|tenant| tenant.join().unwrap());
        gate.close();
        dispatcher.join().unwrap();
        running.store(false, Ordering::Relaxed);
        device.join().unwrap();
    });
    assert_eq!(contexts[1..].iter().map(|c| c.launches()).sum::<u64>(), 5 * 300);
    // A thread may rest between a command and the mark after it; never do the times add up to more than there was.
    for context in &contexts[1..] {
        let (ran, measured) = (300 * 20 * US * context.number, context.gpu_ns());
        assert!(measured > ran / 2, "{measured} of {ran}");
    }
    let total: u64 = contexts.iter().map(|context| context.gpu_ns()).sum();
    assert!(total <= driver.now_ns(), "{total} of {}", driver.now_ns());
}

#[test]
fn a_partition_counts_what_of_its_tasks_waits() {
    let activity = Arc::new(Activity::default());
    let driver = Arc::new(SimDriver::new(SimConfig::default()));
    let gate = Gate::new(driver.clone(), driver.clone(), Settings::default(), &DEFERRED);
    let of = |number| {
        let context = TaskContext::new(number, number.to_string().into(), 500_000, 1_000_000);
        Arc::new(context.in_partition(activity.clone()))
    };
    let (first, second, outside) = (of(1), of(2), context(3, 500_000));
    let put = |context: &Arc<TaskContext>, kind| {
        let work = Work {
            stream: context.number,
            size: 1,
            kind,
            ..Work::default()
        };
        let job = || Job {
            driver: driver.clone(),
            stream: context.number,
            ns: 100 * US,
            refused: false,
        };
        gate.submit(context, work, || job().issue(), || Arc::new(job()), || ())
    };
    assert_eq!(put(&outside, WorkKind::Kernel), Submitted::Issued);
    for kind in [WorkKind::Kernel, WorkKind::Kernel, WorkKind::Transfer, WorkKind::Fill] {
        assert_eq!(put(&first, kind), Submitted::Deferred);
        assert_eq!(put(&second, kind), Submitted::Deferred);
        assert_eq!(put(&outside, kind), Submitted::Deferred);
    }
    let waiting = |activity: &Activity| (activity.figures().pending_kernels, activity.figures().pending_transfers);
    assert_eq!(waiting(&activity), (4, 2));
    assert_eq!(
        (first.figures().pending_kernels, first.figures().pending_transfers),
        (2, 1)
    );
    second.stop();
    assert_eq!(put(&second, WorkKind::Kernel), Submitted::Stopped);
    assert_eq!(waiting(&activity), (2, 1), "what was dropped waits no more");
    step_until_idle(&gate, &driver);
    assert_eq!(waiting(&activity), (0, 0));
    assert_eq!(activity.figures().gpu_ns, first.gpu_ns() + second.gpu_ns());
    assert!(first.gpu_ns() >= 400 * US && second.gpu_ns() == 0);
}
