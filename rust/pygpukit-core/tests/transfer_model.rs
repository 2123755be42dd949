//! The transfer engine against a simple model: random transfers, orders, cancels and failing device calls.

mod cases;
mod transfer_support;

use std::collections::HashMap;
use std::sync::Arc;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::clock::Clock;
use pygpukit_core::sim_driver::Call;
use pygpukit_core::transfer::{Direction, State};
use transfer_support::{settings, Issue, World, IN_FLIGHT, SLOT, SLOTS, STORED};

#[derive(Clone, Debug)]
enum Step {
    Submit {
        direction: Direction,
        bytes: u64,
        priority: i32,
        /// Of work on a stream that comes first; 0 = none.
        work_ns: u64,
        /// Comes after an earlier transfer.
        after: Option<usize>,
    },
    Cancel(usize),
    Pump,
    Advance(u64),
    Fail(Call, u64),
}

fn steps(failures: bool) -> impl Strategy<Value = Vec<Step>> {
    let direction = prop::sample::select(STORED.to_vec());
    let bytes = prop_oneof![1 => Just(0u64), 3 => 1u64..5000, 5 => 5000..SLOT];
    let work = prop::sample::select(vec![0u64, 0, 0, 20_000, 300_000]);
    let after = prop::option::weighted(0.2, 0usize..100);
    let call = prop::sample::select(vec![
        Call::CopyToHost,
        Call::CopyToDevice,
        Call::CopyOnDevice,
        Call::EventCreate,
        Call::EventRecord,
        Call::EventDone,
        Call::EventElapsed,
    ]);
    let fail = (call, 1u64..4).prop_map(|(call, nth)| Step::Fail(call, nth));
    let step = prop_oneof![
        6 => (direction, bytes, -2i32..3, work, after).prop_map(|(direction, bytes, priority, work_ns, after)| {
            Step::Submit { direction, bytes, priority, work_ns, after }
        }),
        2 => (0usize..100).prop_map(Step::Cancel),
        8 => Just(Step::Pump),
        6 => (0u64..100_000).prop_map(Step::Advance),
        2 => if failures { fail.boxed() } else { Just(Step::Pump).boxed() },
    ];
    prop::collection::vec(step, 1..120)
}

/// What the model knows of a transfer.
struct Known {
    id: u64,
    slot: u64,
    direction: Direction,
    bytes: u64,
    priority: i32,
    submitted_ns: u64,
    /// When the work that comes first is over.
    ready_ns: u64,
    after: Option<u64>,
    cancelled_issues: Option<usize>,
}

fn run(steps: Vec<Step>, failures: bool) {
    let world = World::new(settings());
    let kept = Arc::new(());
    let mut known: Vec<Known> = Vec::new();
    let mut slots = 0; // a refused transfer leaves its slot behind
    for step in steps {
        match step {
            Step::Submit {
                direction,
                bytes,
                priority,
                work_ns,
                after,
            } if slots < SLOTS => {
                let slot = slots;
                slots += 1;
                let mut request = world.request(slot, direction, bytes);
                request.priority = priority;
                request.report = true;
                request.keep = Some(Box::new(kept.clone()));
                if work_ns > 0 {
                    let stream = 5000 + slot;
                    world.sim.work(stream, work_ns);
                    request.after_streams.push(stream);
                }
                let earlier = after.filter(|_| !known.is_empty()).map(|at| known[at % known.len()].id);
                request.after.extend(earlier);
                let now = world.sim.now_ns();
                let Ok(id) = world.engine.submit(request) else {
                    assert!(failures, "a transfer was refused without reason");
                    continue;
                };
                known.push(Known {
                    id,
                    slot,
                    direction,
                    bytes,
                    priority,
                    submitted_ns: now,
                    ready_ns: now + work_ns,
                    after: earlier,
                    cancelled_issues: None,
                });
            }
            Step::Submit { .. } => {}
            Step::Cancel(at) if !known.is_empty() => {
                let at = at % known.len();
                if world.engine.cancel(known[at].id) {
                    known[at].cancelled_issues = Some(world.spy.issues().len());
                }
            }
            Step::Cancel(_) => {}
            Step::Pump => drop(world.engine.pump()),
            Step::Advance(ns) => world.sim.advance_ns(ns),
            Step::Fail(call, nth) => world.sim.fail(call, nth, 700),
        }
        assert!(world.spy.peak() <= IN_FLIGHT, "more in flight than allowed");
    }
    world.sim.heal();
    world.drain();
    check(&world, &known, failures);
    assert_eq!(Arc::strong_count(&kept), 1, "what a transfer kept goes with its end");
    for t in &known {
        assert!(world.engine.forget(t.id), "it has ended");
    }
    let World { sim, engine, .. } = world;
    drop(engine);
    let usage = sim.usage();
    assert_eq!((usage.events, usage.streams), (0, 0), "something is left behind");
}

/// The copies of one transfer, in their order.
fn pieces<'a>(issues: &'a [Issue], world: &World, t: &Known) -> Vec<(usize, &'a Issue)> {
    let (from, to) = world.ends(t.slot, t.direction);
    let mine = |issue: &Issue| issue.direction == t.direction && (from..from + SLOT).contains(&issue.from);
    let matching: Vec<_> = issues.iter().enumerate().filter(|(_, issue)| mine(issue)).collect();
    let mut at = 0;
    for (_, issue) in &matching {
        assert_eq!(
            (issue.from, issue.to),
            (from + at, to + at),
            "a piece out of order, lost or copied twice"
        );
        at += issue.bytes;
    }
    matching
}

fn check(world: &World, known: &[Known], failures: bool) {
    let issues = world.spy.issues();
    let mut reported: HashMap<u64, State> = HashMap::new();
    for info in world.engine.ended(std::time::Duration::ZERO) {
        assert!(reported.insert(info.id, info.state).is_none(), "an end was told twice");
    }
    let stats = world.engine.stats();
    assert_eq!((stats.queued, stats.in_progress), (0, 0));
    assert_eq!(stats.sum(|s| s.submitted), known.len() as u64);
    let mut ends = [0u64; 3];
    let mut landed = 0;
    let mut ranges = Vec::new();
    for t in known {
        let info = world.engine.info(t.id).expect("nobody forgot it");
        assert_eq!(reported.get(&t.id), Some(&info.state), "an end was not told");
        let mine = pieces(&issues, world, t);
        let issued: u64 = mine.iter().map(|(_, issue)| issue.bytes).sum();
        let target = world.target(t.slot, t.direction);
        landed += info.landed_bytes;
        match info.state {
            State::Completed => {
                ends[0] += 1;
                assert_eq!((issued, info.landed_bytes), (t.bytes, t.bytes));
                assert!(
                    target[..t.bytes as usize].iter().all(|&byte| byte == t.slot as u8 + 1),
                    "bytes are wrong"
                );
            }
            State::Failed => {
                ends[1] += 1;
                assert!(failures && info.error.is_some(), "{info:?}");
            }
            State::Cancelled => {
                ends[2] += 1;
                let at = t.cancelled_issues.expect("only what was cancelled is");
                assert!(
                    mine.iter().all(|&(number, _)| number < at),
                    "a piece was issued after the cancel"
                );
                assert_eq!(issued, info.landed_bytes);
            }
            state => panic!("a transfer ended as {state:?}"),
        }
        assert!(
            target[issued as usize..].iter().all(|&byte| byte != t.slot as u8 + 1),
            "bytes past its own"
        );
        for &(_, issue) in &mine {
            assert!(issue.at_ns >= t.ready_ns, "it began before what comes first");
            if let Some(before) = t.after {
                let before = world.engine.info(before).expect("nobody forgot it");
                assert!(before.ended_ns <= issue.at_ns, "it began before another transfer ended");
            }
        }
        if let (Some(first), Some(last)) = (mine.first(), mine.last()) {
            ranges.push((t, first.0, last.0));
        }
    }
    let figures = [
        stats.sum(|s| s.completed),
        stats.sum(|s| s.failed),
        stats.sum(|s| s.cancelled),
    ];
    assert_eq!(figures, ends);
    assert_eq!(stats.sum(|s| s.bytes), landed);
    // No piece of a transfer goes while one that precedes it, and waits for nothing, has pieces left.
    for &(first, begin, _) in ranges
        .iter()
        .filter(|(t, ..)| t.after.is_none() && t.ready_ns == t.submitted_ns)
    {
        let _ = begin;
        let last = ranges.iter().find(|(t, ..)| t.id == first.id).map_or(0, |r| r.2);
        for &(second, ..) in ranges
            .iter()
            .filter(|(t, ..)| t.direction == first.direction && t.id != first.id)
        {
            let precedes = (-first.priority, first.id) < (-second.priority, second.id);
            if !precedes {
                continue;
            }
            for (number, issue) in pieces(&issues, world, second) {
                assert!(
                    number > last || issue.at_ns <= first.submitted_ns,
                    "transfer {} went before {}, which precedes it",
                    second.id,
                    first.id
                );
            }
        }
    }
    assert_eq!(world.sim.violations(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn transfers_follow_the_model(steps in steps(false)) {
        run(steps, false);
    }

    #[test]
    fn failures_end_transfers_and_nothing_else(steps in steps(true)) {
        run(steps, true);
    }
}
