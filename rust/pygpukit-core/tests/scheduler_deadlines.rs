//! The task table by example: deadlines that are admitted or refused by an estimate of the wait and the run.

mod scheduler_support;

use pygpukit_core::partition::Limits;
use pygpukit_core::scheduler::{Config, Outcome, Phase, Reason, TaskSpec, TaskTable, Transition};
use scheduler_support::*;

#[test]
fn deadlines_are_admitted_by_estimate() {
    let (mut table, _) = small();
    let due = |id: &str, deadline_ns, run_ns| TaskSpec {
        deadline_ns,
        run_ns,
        name: "known".into(),
        ..asks(id, 100, 0)
    };
    assert_eq!(
        table.submit(due("first", 5000, 0), 0).unwrap().phase,
        Phase::Admitted,
        "nothing is known yet"
    );
    next(&mut table, 0);
    table.finish("first", Outcome::Succeeded, 1000).unwrap();
    let late = table.submit(due("late", 1999, 0), 1000).unwrap();
    assert_eq!((late.phase, late.reason), (Phase::Rejected, Reason::DeadlineUnmeetable));
    assert_eq!(detail(&late), [("asked", 1000), ("available", 999)]);
    assert_eq!(
        table.submit(due("in time", 2000, 0), 1000).unwrap().phase,
        Phase::Admitted
    );
    let behind = table.submit(due("behind", 2000, 0), 1000).unwrap();
    assert_eq!(
        detail(&behind),
        [("asked", 2000), ("available", 1000)],
        "one mean run of waiting"
    );
    assert_eq!(
        table.submit(due("short", 2500, 400), 1000).unwrap().phase,
        Phase::Queued
    );
    assert_eq!(table.get("short", 2500).unwrap().phase, Phase::Expired);
}

#[test]
fn a_deadline_counts_the_wait_for_a_worker() {
    let mut table = TaskTable::new(
        Config {
            workers: 2,
            ..Config::new(100)
        },
        Box::new(|_: &Transition<'_>| {}),
    );
    create(&mut table, "lab", Limits::new(10, 0));
    let runs = |id: &str, run_ns, priority| TaskSpec {
        run_ns,
        priority,
        ..TaskSpec::new(id)
    };
    // The time that one of 1 ns would need, where that is more.
    let asked = |table: &mut TaskTable, spec: TaskSpec, now: u64| {
        let deadline_ns = now + 1;
        let (_, reason, detail) = table.evaluate(TaskSpec { deadline_ns, ..spec }, now).unwrap();
        detail.asked.filter(|_| reason == Reason::DeadlineUnmeetable)
    };
    table.submit(runs("long", 1000, 0), 0).unwrap();
    next(&mut table, 0);
    assert_eq!(asked(&mut table, runs("?", 1, 0), 400), None, "a worker is free");
    table.submit(runs("short", 700, 0), 400).unwrap();
    next(&mut table, 400);
    assert_eq!(
        asked(&mut table, runs("?", 1, 0), 400),
        Some(601),
        "after what is left of `long`"
    );
    table.submit(runs("first", 300, 0), 400).unwrap();
    table.submit(runs("low", 5000, -1), 400).unwrap();
    table.submit(runs("unknown", 0, 0), 400).unwrap();
    table.submit(runs("last", 500, 0), 400).unwrap();
    assert_eq!(
        asked(&mut table, runs("?", 1, 0), 400),
        Some(901),
        "`first` follows `long`; `unknown`, for no time that is known, and `last` follow `short`"
    );
    assert_eq!(
        asked(&mut table, runs("?", 1, 1), 400),
        Some(601),
        "urgent: before the admitted"
    );
    assert_eq!(
        asked(&mut table, within("lab", runs("?", 1, 0)), 400),
        Some(701),
        "the turn after `first` is another partition's"
    );
    let late = TaskSpec {
        deadline_ns: 1301,
        ..runs("late", 2, 0)
    };
    let late = table.submit(late, 400).unwrap();
    assert_eq!((late.phase, late.reason), (Phase::Rejected, Reason::DeadlineUnmeetable));
    assert_eq!(detail(&late), [("asked", 902), ("available", 901)]);
    assert_eq!(
        asked(&mut table, runs("?", 1, 0), 5000),
        Some(301),
        "what is overdue may end any moment"
    );
    table.audit().unwrap();
}
