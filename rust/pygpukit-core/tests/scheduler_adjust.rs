//! Changes to tasks in the table, by example: priorities of those that wait, shares of those that run, and what is refused.

mod scheduler_support;

use pygpukit_core::partition::Limits;
use pygpukit_core::scheduler::{Change, Phase, Policy, TaskError, TaskSpec, TaskStart, TaskTable};
use scheduler_support::*;

fn priority(priority: i32) -> Change {
    Change {
        priority: Some(priority),
        ..Change::default()
    }
}

fn share(share_ppm: u32) -> Change {
    Change {
        share_ppm: Some(share_ppm),
        ..Change::default()
    }
}

/// The field of the refusal.
fn refused(table: &mut TaskTable, id: &str, change: Change) -> &'static str {
    let before = table.snapshot(0);
    let error = table.adjust(id, change, 0).unwrap_err();
    assert_eq!(table.snapshot(0), before, "nothing changed");
    table.audit().unwrap();
    match error {
        TaskError::Invalid(error) => error.field,
        other => panic!("{other}"),
    }
}

#[test]
fn one_that_waits_moves_in_its_line() {
    let (mut table, _) = small();
    table.submit(asks("holds", 100, 0), 0).unwrap();
    next(&mut table, 0);
    for id in ["a", "b", "c"] {
        table.submit(asks(id, 60, 0), 0).unwrap();
    }
    let position = |table: &mut TaskTable, id: &str| table.get(id, 0).unwrap().detail.position;
    assert_eq!(position(&mut table, "c"), Some(3));
    table.adjust("c", priority(4), 0).unwrap();
    assert_eq!(
        ["a", "b", "c"].map(|id| position(&mut table, id)),
        [Some(2), Some(3), Some(1)]
    );
    table.cancel("holds", 0).unwrap();
    table
        .finish("holds", pygpukit_core::scheduler::Outcome::Succeeded, 0)
        .unwrap();
    assert_eq!(phase(&mut table, "c"), Phase::Admitted);
    table.audit().unwrap();
}

#[test]
fn one_that_is_admitted_gives_way_when_it_falls_and_starts_first_when_it_rises() {
    let (mut table, _) = small();
    table.submit(asks("admitted", 60, 0), 0).unwrap();
    table.submit(asks("waits", 60, 0), 0).unwrap();
    assert_eq!(phase(&mut table, "waits"), Phase::Queued);
    table.adjust("admitted", priority(-1), 0).unwrap();
    let phases = ["admitted", "waits"].map(|id| phase(&mut table, id));
    assert_eq!(phases, [Phase::Queued, Phase::Admitted]);
    table.submit(asks("other", 10, 0), 0).unwrap();
    table.adjust("other", priority(2), 0).unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("other"));
    table.adjust("other", priority(-5), 0).unwrap();
    assert_eq!(phase(&mut table, "other"), Phase::Running, "what runs goes on");
    table.audit().unwrap();
}

#[test]
fn one_that_runs_gets_another_share_at_once_out_of_what_is_free() {
    let (mut table, _) = small();
    let spec = TaskSpec {
        policy: Policy::Guaranteed,
        ..asks("g", 10, 300_000)
    };
    table.submit(spec, 0).unwrap();
    table.submit(asks("b", 10, 500_000), 0).unwrap();
    let TaskStart { context, .. } = table.next(0).unwrap();
    assert_eq!(context.shares_ppm(), (300_000, 300_000));
    table.adjust("g", share(400_000), 0).unwrap();
    assert_eq!(
        context.shares_ppm(),
        (400_000, 400_000),
        "the limit of a guaranteed task is its share"
    );
    assert_eq!(table.stats(0).reserved_share_ppm, 900_000);
    assert_eq!(refused(&mut table, "g", share(500_001)), "bandwidth");
    assert_eq!(refused(&mut table, "g", share(0)), "bandwidth");
    table.submit(asks("waits", 0, 200_000), 0).unwrap();
    assert_eq!(phase(&mut table, "waits"), Phase::Queued);
    table.adjust("b", share(400_000), 0).unwrap();
    assert_eq!(
        phase(&mut table, "waits"),
        Phase::Admitted,
        "what is given back goes to those that wait"
    );
    table.audit().unwrap();
}

#[test]
fn a_limit_and_the_class_follow_the_share() {
    let (mut table, _) = small();
    table.submit(TaskSpec::new("t"), 0).unwrap();
    table.adjust("t", share(100_000), 0).unwrap();
    let limited = Change {
        share_limit_ppm: Some(200_000),
        ..Change::default()
    };
    table.adjust("t", limited, 0).unwrap();
    let record = table.get("t", 0).unwrap();
    assert_eq!(
        (record.policy, record.share_limit_ppm),
        (Policy::Burstable, Some(200_000))
    );
    assert_eq!(table.context("t").unwrap().shares_ppm(), (100_000, 200_000));
    assert_eq!(refused(&mut table, "t", share(300_000)), "bandwidth_limit");
    assert_eq!(
        refused(&mut table, "t", share(0)),
        "bandwidth",
        "its limit would be its request"
    );
    let (mut table, _) = small();
    table.submit(asks("t", 0, 100_000), 0).unwrap();
    table.adjust("t", share(0), 0).unwrap();
    assert_eq!(table.get("t", 0).unwrap().policy, Policy::BestEffort);
}

#[test]
fn bounds_of_the_partition_hold_for_what_is_new() {
    let (mut table, _) = small();
    let limits = Limits {
        priorities: (0, 3),
        ..Limits::new(50, 200_000)
    };
    table
        .with_partitions(0, |partitions| partitions.create("p", "p", limits.clone()))
        .unwrap();
    for id in ["runs", "waits"] {
        let spec = TaskSpec {
            partition: "p".into(),
            ..asks(id, 40, 100_000)
        };
        table.submit(spec, 0).unwrap();
    }
    next(&mut table, 0);
    assert_eq!(refused(&mut table, "waits", priority(4)), "priority");
    assert_eq!(refused(&mut table, "waits", share(200_001)), "bandwidth");
    table.adjust("waits", priority(3), 0).unwrap();
    let smaller = Limits {
        share_ppm: 50_000,
        memory_bytes: 40,
        priorities: (1, 3),
        ..limits
    };
    table
        .with_partitions(0, |partitions| partitions.resize("p", smaller))
        .unwrap();
    assert_eq!(refused(&mut table, "runs", share(150_000)), "bandwidth");
    table.adjust("runs", share(20_000), 0).unwrap();
    table.audit().unwrap();
}

#[test]
fn what_has_ended_or_never_was_is_told() {
    let (mut table, _) = small();
    table.submit(asks("done", 1, 0), 0).unwrap();
    table.cancel("done", 0).unwrap();
    let error = table.adjust("done", priority(1), 0).unwrap_err();
    assert_eq!(error.to_string(), "task 'done' is Cancelled: it has ended");
    assert!(matches!(
        table.adjust("no", priority(1), 0),
        Err(TaskError::Unknown { .. })
    ));
}

#[test]
fn a_limit_stays_one_of_the_partitions_multiprocessors() {
    let (mut table, _) = small();
    table
        .with_partitions(0, |partitions| {
            partitions.create("p", "p", Limits::new(50, 200_000))?;
            partitions.set_sm_ppm("p", 250_000)
        })
        .unwrap();
    for (id, share_limit_ppm) in [("plain", None), ("limited", Some(100_000))] {
        let spec = TaskSpec {
            partition: "p".into(),
            share_limit_ppm,
            ..asks(id, 1, 0)
        };
        table.submit(spec, 0).unwrap();
    }
    let limit = |table: &TaskTable, id: &str| table.context(id).unwrap().limit_ppm();
    let before = ["plain", "limited"].map(|id| limit(&table, id));
    assert_eq!(before, [800_000, 400_000]);
    for id in ["plain", "limited"] {
        table.adjust(id, priority(3), 0).unwrap();
    }
    assert_eq!(["plain", "limited"].map(|id| limit(&table, id)), before);
    let less = Change {
        share_limit_ppm: Some(50_000),
        ..share(50_000)
    };
    table.adjust("limited", less, 0).unwrap();
    assert_eq!(limit(&table, "limited"), 200_000);
    table.audit().unwrap();
}
