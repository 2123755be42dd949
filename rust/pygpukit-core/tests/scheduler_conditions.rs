//! Conditions: what they say, why, and since when.

use pygpukit_core::scheduler::{Config, Outcome, Phase, Reason, Retry, Status, TaskSpec, TaskTable};

mod scheduler_support;
use scheduler_support::{asks, failed, next, phase, small, table};

/// (status, reason, since) of a condition.
fn condition(table: &mut TaskTable, id: &str, kind: &str, now: u64) -> (Status, &'static str, u64) {
    let conditions = table.conditions(id, now).unwrap();
    let mut of_kind = conditions.iter().filter(|c| c.kind.name() == kind);
    let condition = of_kind.next().unwrap();
    assert!(of_kind.next().is_none());
    (condition.status, condition.reason, condition.since_ns)
}

#[test]
fn quota_is_reserved_from_admission_until_the_dispatcher_is_out() {
    let (mut table, _) = small();
    let kind = "QuotaReserved";
    table.submit(asks("first", 60, 0), 1).unwrap();
    table.submit(asks("second", 60, 0), 2).unwrap();
    assert_eq!(condition(&mut table, "first", kind, 3), (Status::True, "Reserved", 1));
    assert_eq!(
        condition(&mut table, "second", kind, 3),
        (Status::False, "WaitingForMemory", 2)
    );
    next(&mut table, 4);
    table.cancel("first", 5).unwrap();
    assert_eq!(
        condition(&mut table, "first", kind, 6),
        (Status::True, "Reserved", 1),
        "it is still inside"
    );
    table.finish("first", Outcome::Succeeded, 7).unwrap();
    assert_eq!(condition(&mut table, "first", kind, 8), (Status::False, "Released", 7));
    assert_eq!(condition(&mut table, "second", kind, 8), (Status::True, "Reserved", 7));
    table.submit(asks("third", 101, 0), 9).unwrap();
    assert_eq!(condition(&mut table, "third", kind, 9), (Status::False, "Rejected", 9));
    assert!(table.conditions("nobody", 9).is_none());
}

#[test]
fn who_gives_way_is_preempted_until_it_is_admitted_again() {
    let (mut table, _) = small();
    let kind = "Preempted";
    table.submit(asks("low", 60, 0), 1).unwrap();
    assert_eq!(condition(&mut table, "low", kind, 1), (Status::False, "Never", 1));
    let high = TaskSpec {
        priority: 1,
        ..asks("high", 60, 0)
    };
    table.submit(high, 2).unwrap();
    let (status, reason, since) = condition(&mut table, "low", kind, 3);
    assert_eq!((status, since), (Status::True, 2));
    assert_eq!(reason, "WaitingForMemory", "what it lacks now");
    assert_eq!(condition(&mut table, "low", "QuotaReserved", 3).2, 2);
    assert_eq!(next(&mut table, 4).as_deref(), Some("high"));
    table.finish("high", Outcome::Succeeded, 5).unwrap();
    assert_eq!(
        condition(&mut table, "low", kind, 6),
        (Status::False, "AdmittedAgain", 5)
    );
    table.cancel("low", 7).unwrap();
    assert_eq!(condition(&mut table, "low", kind, 8), (Status::False, "Ended", 5));
}

#[test]
fn who_is_tried_again_is_requeued_until_then() {
    let (mut table, _) = small();
    let kind = "Requeued";
    let retried = TaskSpec {
        retry: Retry {
            retries: 1,
            ..Retry::default()
        },
        ..asks("a", 1, 0)
    };
    table.submit(retried, 1).unwrap();
    next(&mut table, 2);
    assert_eq!(condition(&mut table, "a", kind, 2), (Status::False, "Never", 1));
    assert_eq!(table.finish("a", failed("e"), 3), Ok(Phase::Queued));
    assert_eq!(
        condition(&mut table, "a", kind, 4),
        (Status::True, "WaitingForRetry", 3)
    );
    let message = &table.conditions("a", 4).unwrap()[2].message;
    assert_eq!(message, "1 so far");
    assert_eq!(
        condition(&mut table, "a", kind, 20_000_000),
        (Status::False, "AdmittedAgain", 20_000_000)
    );
}

#[test]
fn a_deadline_is_at_risk_once_less_time_is_left_than_a_run_takes() {
    let (mut table, _) = table(Config::new(100));
    let kind = "DeadlineAtRisk";
    let due = |id: &str, deadline_ns, run_ns| TaskSpec {
        deadline_ns,
        run_ns,
        ..asks(id, 1, 0)
    };
    table.submit(asks("free", 1, 0), 1).unwrap();
    assert_eq!(condition(&mut table, "free", kind, 1), (Status::False, "NoDeadline", 1));
    table.submit(due("unknown", 1000, 0), 1).unwrap();
    assert_eq!(
        condition(&mut table, "unknown", kind, 1),
        (Status::Unknown, "NoEstimate", 1)
    );
    table.submit(due("known", 1000, 300), 2).unwrap();
    assert_eq!(
        condition(&mut table, "known", kind, 700),
        (Status::False, "EstimateWithinDeadline", 2)
    );
    assert_eq!(
        condition(&mut table, "known", kind, 701),
        (Status::True, "EstimateBeyondDeadline", 700)
    );
    table.submit(due("timely", 1000, 200), 720).unwrap();
    for _ in 0..4 {
        next(&mut table, 750).unwrap();
    }
    assert_eq!(
        condition(&mut table, "known", kind, 760).0,
        Status::True,
        "it began too late"
    );
    assert_eq!(
        condition(&mut table, "timely", kind, 990).0,
        Status::False,
        "it began early enough"
    );
    table.finish("timely", Outcome::Succeeded, 995).unwrap();
    assert_eq!(
        condition(&mut table, "timely", kind, 999),
        (Status::False, "Ended", 995)
    );
    assert_eq!(
        condition(&mut table, "known", kind, 1000),
        (Status::True, "DeadlinePassed", 1000)
    );
    assert_eq!(phase(&mut table, "known"), Phase::Expired);
    assert_eq!(table.get("unknown", 1000).unwrap().reason, Reason::None);
}
