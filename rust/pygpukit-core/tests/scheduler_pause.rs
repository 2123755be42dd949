//! Pausing one task by example: what it is held back from, what it keeps, and what goes on without it.

mod scheduler_support;

use pygpukit_core::partition::{Isolation, Limits};
use pygpukit_core::scheduler::{Backoff, Outcome, Phase, Reason, Retry, TaskError, TaskSpec};
use scheduler_support::*;

#[test]
fn one_that_waits_holds_nobody_back_and_comes_back_to_its_place() {
    let (mut table, _) = small();
    table.submit(asks("runs", 60, 0), 0).unwrap();
    for id in ["first", "second", "third"] {
        table.submit(asks(id, 80, 0), 0).unwrap();
    }
    next(&mut table, 0);
    assert_eq!(table.pause("first", 1), Ok(true));
    let record = table.get("first", 1).unwrap();
    assert_eq!(
        (record.phase, record.reason, record.paused),
        (Phase::Queued, Reason::WaitingForResume, true)
    );
    assert_eq!(detail(&record), []);
    assert_eq!(
        detail(&table.get("second", 1).unwrap())[..3],
        [("asked", 80), ("available", 40), ("position", 1)]
    );
    table.submit(asks("small", 20, 0), 1).unwrap();
    table.finish("runs", Outcome::Succeeded, 2).unwrap();
    assert_eq!(phase(&mut table, "first"), Phase::Queued, "there was room for it");
    assert_eq!(next(&mut table, 2).as_deref(), Some("second"));
    assert_eq!(table.resume("first", 3), Ok(true));
    let record = table.get("first", 3).unwrap();
    assert_eq!((record.reason, record.paused), (Reason::WaitingForMemory, false));
    table.finish("second", Outcome::Succeeded, 4).unwrap();
    assert_eq!(
        (phase(&mut table, "first"), phase(&mut table, "third")),
        (Phase::Admitted, Phase::Queued)
    );
    table.audit().unwrap();
}

#[test]
fn one_that_is_admitted_gives_back_what_it_reserved() {
    let (mut table, log) = small();
    table.submit(asks("paused", 80, 0), 0).unwrap();
    table.submit(asks("behind", 80, 0), 0).unwrap();
    log.lock().unwrap().clear();
    assert_eq!(table.pause("paused", 1), Ok(true));
    assert_eq!(table.stats(1).reserved_memory, 80);
    let taken: Vec<_> = log
        .lock()
        .unwrap()
        .iter()
        .map(|&(_, from, to, why)| (from, to, why))
        .collect();
    assert_eq!(
        taken,
        [
            (Phase::Admitted, Phase::Queued, Reason::WaitingForResume),
            (Phase::Queued, Phase::Admitted, Reason::None)
        ]
    );
    assert_eq!(next(&mut table, 1).as_deref(), Some("behind"));
    assert_eq!(next(&mut table, 1), None);
    table.finish("behind", Outcome::Succeeded, 2).unwrap();
    assert_eq!(next(&mut table, 2), None, "there is room, and it is paused");
    table.resume("paused", 3).unwrap();
    assert_eq!(next(&mut table, 3).as_deref(), Some("paused"));
    assert_eq!(
        detail(&table.get("paused", 3).unwrap()),
        [],
        "no requeue and no preemption"
    );
}

#[test]
fn one_that_runs_keeps_what_it_reserved_and_its_launches_are_held() {
    let (mut table, _) = small();
    table.submit(asks("runs", 80, 300_000), 0).unwrap();
    next(&mut table, 0);
    let context = table.context("runs").unwrap();
    assert_eq!(table.pause("runs", 1), Ok(true));
    assert!(context.held());
    let record = table.get("runs", 1).unwrap();
    assert_eq!((record.phase, record.paused), (Phase::Suspended, true));
    let stats = table.stats(1);
    assert_eq!(
        (stats.reserved_memory, stats.reserved_share_ppm, stats.suspended),
        (80, 300_000, 1)
    );
    assert_eq!(table.resume("runs", 2), Ok(true));
    assert!(!context.held());
    assert_eq!(phase(&mut table, "runs"), Phase::Running);
    table.pause("runs", 3).unwrap();
    table.cancel("runs", 4).unwrap();
    assert!(
        context.stopped() && !context.held(),
        "its launches end instead of waiting"
    );
    let record = table.get("runs", 4).unwrap();
    assert_eq!((record.phase, record.paused), (Phase::Cancelled, false));
    for ended in [table.pause("runs", 5), table.resume("runs", 5)] {
        assert!(matches!(
            ended,
            Err(TaskError::Ended {
                phase: Phase::Cancelled,
                ..
            })
        ));
    }
}

#[test]
fn dependencies_and_retries_end_while_it_stays_paused() {
    let (mut table, _) = small();
    table.submit(asks("first", 10, 0), 0).unwrap();
    table.submit(after("second", &["first"]), 0).unwrap();
    table.pause("second", 0).unwrap();
    next(&mut table, 0);
    table.finish("first", Outcome::Succeeded, 1).unwrap();
    assert_eq!(
        (phase(&mut table, "second"), next(&mut table, 1)),
        (Phase::Queued, None)
    );
    table.resume("second", 1).unwrap();
    assert_eq!(next(&mut table, 1).as_deref(), Some("second"));

    let retry = Retry {
        retries: 1,
        backoff: Backoff::default(),
    };
    table
        .submit(
            TaskSpec {
                retry,
                ..asks("again", 10, 0)
            },
            2,
        )
        .unwrap();
    next(&mut table, 2);
    table.pause("again", 2).unwrap();
    assert_eq!(table.finish("again", failed("x"), 3), Ok(Phase::Queued));
    table.advance(1_000_000_000);
    assert_eq!((next(&mut table, 1_000_000_000), table.timer()), (None, None));
    table.resume("again", 1_000_000_000).unwrap();
    assert_eq!(next(&mut table, 1_000_000_000).as_deref(), Some("again"));
    table.audit().unwrap();
}

#[test]
fn what_runs_in_a_worker_process_is_refused_by_name() {
    let (mut table, _) = small();
    table.with_partitions(0, |partitions| {
        partitions.offer(Isolation::Process);
        let limits = Limits {
            isolation: Isolation::Process,
            ..Limits::new(50, 0)
        };
        partitions.create("apart", "apart", limits).unwrap();
    });
    let spec = |id: &str| TaskSpec {
        partition: "apart".into(),
        ..asks(id, 10, 0)
    };
    table.submit(spec("early"), 0).unwrap();
    table.submit(spec("late"), 0).unwrap();
    assert_eq!(table.pause("late", 0), Ok(true), "it has not started");
    assert_eq!(next(&mut table, 0).as_deref(), Some("early"));
    let error = table.pause("early", 0).unwrap_err();
    assert!(
        error.to_string().contains("worker process of partition 'apart'"),
        "{error}"
    );
    assert_eq!(phase(&mut table, "early"), Phase::Running);
}
