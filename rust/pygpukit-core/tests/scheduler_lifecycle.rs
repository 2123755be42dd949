//! The task table by example: how running, suspended, requeued and finished tasks go on.

mod scheduler_support;

use pygpukit_core::scheduler::{Config, Outcome, Phase, Reason, TaskError, TaskRecord, TaskSpec};
use scheduler_support::*;

#[test]
fn cancel_in_every_phase() {
    let (mut table, _) = small();
    table.submit(asks("running", 60, 0), 0).unwrap();
    table.submit(asks("suspended", 10, 0), 0).unwrap();
    next(&mut table, 0);
    next(&mut table, 0);
    table.pause("suspended", 0).unwrap();
    table.submit(asks("admitted", 20, 0), 0).unwrap();
    table.submit(asks("queued", 50, 0), 0).unwrap();
    let context = table.context("running").unwrap();
    assert!(!context.stopped());
    for id in ["queued", "admitted", "suspended", "running"] {
        assert_eq!(table.cancel(id, 1), Ok(true), "{id}");
        assert_eq!(table.cancel(id, 1), Ok(false), "{id}");
        assert_eq!(phase(&mut table, id), Phase::Cancelled);
    }
    assert!(context.stopped());
    assert_eq!(table.stats(1).reserved_memory, 70, "two dispatchers are still inside");
    assert_eq!(table.finish("running", Outcome::Succeeded, 2), Ok(Phase::Cancelled));
    assert_eq!(table.finish("suspended", failed("x"), 2), Ok(Phase::Cancelled));
    assert_eq!(table.stats(2).reserved_memory, 0);
    assert!(matches!(table.cancel("nobody", 2), Err(TaskError::Unknown { .. })));
}

#[test]
fn deadlines_end_every_phase() {
    let (mut table, log) = small();
    let until = |id: &str, memory: u64, deadline_ns| TaskSpec {
        deadline_ns,
        ..asks(id, memory, 0)
    };
    table.submit(until("running", 50, 30), 0).unwrap();
    table.submit(until("suspended", 10, 30), 0).unwrap();
    next(&mut table, 0);
    next(&mut table, 0);
    table.pause("suspended", 0).unwrap();
    table.submit(until("admitted", 40, 20), 0).unwrap();
    table.submit(until("queued", 40, 10), 0).unwrap();
    table.submit(asks("patient", 40, 0), 0).unwrap();
    assert_eq!(table.timer(), Some(10));
    assert_eq!(table.get("queued", 9).unwrap().phase, Phase::Queued);
    assert_eq!(table.get("queued", 10).unwrap().phase, Phase::Expired);
    assert_eq!(table.get("admitted", 20).unwrap().phase, Phase::Expired);
    assert_eq!(table.get("patient", 20).unwrap().phase, Phase::Admitted);
    table.advance(30);
    assert_eq!((table.stats(30).expired, table.timer()), (4, None));
    assert_eq!(table.finish("running", Outcome::Succeeded, 31), Ok(Phase::Expired));
    assert_eq!(table.stats(31).reserved_memory, 40 + 10);
    let expired: Vec<_> = log
        .lock()
        .unwrap()
        .iter()
        .filter(|t| t.2 == Phase::Expired)
        .map(|t| t.1)
        .collect();
    assert_eq!(
        expired,
        [Phase::Queued, Phase::Admitted, Phase::Running, Phase::Suspended]
    );
    table.audit().unwrap();
}

#[test]
fn suspended_tasks_resume_succeed_or_fail() {
    let (mut table, log) = small();
    for id in ["a", "b", "c"] {
        table.submit(asks(id, 10, 0), 0).unwrap();
        next(&mut table, 0);
        table.pause(id, 1).unwrap();
    }
    assert_eq!(table.pause("a", 1), Ok(false));
    assert_eq!(table.stats(1).suspended, 3);
    assert_eq!(table.resume("a", 2), Ok(true));
    assert_eq!(table.resume("a", 2), Ok(false));
    table.finish("a", Outcome::Succeeded, 3).unwrap();
    table.finish("b", failed("x"), 3).unwrap();
    log.lock().unwrap().clear();
    table.finish("c", Outcome::Succeeded, 3).unwrap();
    let edges: Vec<_> = log.lock().unwrap().iter().map(|&(_, from, to, _)| (from, to)).collect();
    assert_eq!(
        edges,
        [(Phase::Suspended, Phase::Running), (Phase::Running, Phase::Succeeded)]
    );
    assert_eq!(
        (
            table.stats(3).succeeded,
            table.stats(3).failed,
            table.stats(3).reserved_memory
        ),
        (2, 1, 0)
    );
}

#[test]
fn requeue_keeps_the_place_and_holds_longer_each_time() {
    let (mut table, _) = small();
    table.submit(asks("once", 100, 0), 0).unwrap();
    table.submit(asks("behind", 100, 0), 0).unwrap();
    table.requeue("once", Reason::WaitingForPreemption, 0).unwrap();
    let record = table.get("once", 0).unwrap();
    assert_eq!(
        (record.phase, record.reason),
        (Phase::Queued, Reason::WaitingForPreemption)
    );
    assert_eq!(detail(&record), [("requeues", 1)]);
    assert_eq!(
        phase(&mut table, "behind"),
        Phase::Admitted,
        "a held task holds nobody back"
    );
    next(&mut table, 0);
    assert!(matches!(
        table.requeue("behind", Reason::WaitingForDevice, 0),
        Err(TaskError::NotIdempotent { .. })
    ));
    assert_eq!(table.timer(), Some(10_000_000));
    table.finish("behind", Outcome::Succeeded, 1).unwrap();
    assert_eq!(table.get("once", 9_999_999).unwrap().phase, Phase::Queued);
    assert_eq!(table.get("once", 10_000_000).unwrap().phase, Phase::Admitted);
    table.requeue("once", Reason::WaitingForDevice, 10_000_000).unwrap();
    assert_eq!(table.timer(), Some(30_000_000));
    assert!(matches!(
        table.requeue("once", Reason::WaitingForDevice, 10_000_000),
        Err(TaskError::NoEdge { .. })
    ));
    assert!(matches!(
        table.finish("once", Outcome::Succeeded, 10_000_000),
        Err(TaskError::NoEdge { .. })
    ));

    table
        .submit(
            TaskSpec {
                idempotent: true,
                ..asks("again", 10, 0)
            },
            40_000_000,
        )
        .unwrap();
    table.cancel("once", 40_000_000).unwrap();
    assert_eq!(next(&mut table, 40_000_000).as_deref(), Some("again"));
    table.requeue("again", Reason::WaitingForDevice, 40_000_000).unwrap();
    assert_eq!(table.stats(40_000_000).reserved_memory, 0);
    assert_eq!(next(&mut table, 50_000_000).as_deref(), Some("again"));
    assert_eq!(table.get("again", 50_000_000).unwrap().started_ns, 40_000_000);
}

#[test]
fn calls_that_do_not_fit_change_nothing() {
    let (mut table, log) = small();
    table.submit(asks("waits", 0, 0), 0).unwrap();
    log.lock().unwrap().clear();
    let wrong = Outcome::Failed {
        reason: Reason::QueueFull,
        error: String::new(),
    };
    assert_eq!(
        table.finish("waits", wrong, 1),
        Err(TaskError::WrongReason {
            reason: Reason::QueueFull
        })
    );
    assert!(matches!(
        table.finish("waits", Outcome::Succeeded, 1),
        Err(TaskError::NoEdge { .. })
    ));
    assert!(matches!(
        table.requeue("waits", Reason::UserError, 1),
        Err(TaskError::WrongReason { .. })
    ));
    for error in [
        table.finish("nobody", Outcome::Succeeded, 1).unwrap_err(),
        table.pause("nobody", 1).unwrap_err(),
        table.resume("nobody", 1).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "no task 'nobody': never submitted here, or finished and forgotten"
        );
    }
    assert!(log.lock().unwrap().is_empty());
    table.finish("waits", failed("could not start"), 2).unwrap();
    assert_eq!(table.get("waits", 2).unwrap().error, "could not start");
}

#[test]
fn the_history_is_bounded_and_read_by_cursor() {
    let (mut table, _) = table(Config {
        max_finished: 3,
        ..Config::new(100)
    });
    for i in 0..5 {
        table.submit(TaskSpec::new(i.to_string()), 0).unwrap();
        next(&mut table, 0);
        if i != 1 {
            table.finish(&i.to_string(), Outcome::Succeeded, 0).unwrap();
        } else {
            table.cancel("1", 0).unwrap();
        }
    }
    let ids =
        |(records, at): (Vec<TaskRecord>, u64)| (records.into_iter().map(|r| r.id).collect::<Vec<_>>().join(" "), at);
    assert_eq!(ids(table.finished(0)), ("2 3 4".into(), 5));
    assert_eq!(ids(table.finished(4)), ("4".into(), 5));
    assert_eq!(ids(table.finished(5)), (String::new(), 5));
    assert!(table.get("0", 0).is_none());
    assert_eq!(table.snapshot(0).len(), 3);
    // Forgotten, but its dispatcher is still inside: the reservation is found when it comes out.
    assert_eq!(table.finish("1", Outcome::Succeeded, 0), Ok(Phase::Cancelled));
    assert!(table.get("1", 0).is_none());
    assert_eq!(table.stats(0).succeeded + table.stats(0).cancelled, 5);
    table.audit().unwrap();
}

#[test]
fn a_dependant_that_was_cancelled_and_forgotten_is_not_missed() {
    let (mut table, _) = table(Config {
        max_finished: 1,
        ..Config::new(100)
    });
    table.submit(TaskSpec::new("first"), 0).unwrap();
    for i in 0..3 {
        let id = format!("after-{i}");
        table.submit(after(&id, &["first"]), 0).unwrap();
        table.cancel(&id, 0).unwrap();
    }
    next(&mut table, 0);
    assert_eq!(table.finish("first", Outcome::Succeeded, 1), Ok(Phase::Succeeded));
    assert_eq!(table.stats(1).cancelled, 3);
    table.audit().unwrap();
}
