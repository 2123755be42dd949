//! The task table by example: what a policy asks for, checks that hold, reject or pass, what is foretold, and a start by id.

mod scheduler_support;

use pygpukit_core::scheduler::{Outcome, Phase, Policy, Reason, TaskError, TaskSpec, Verdict};
use scheduler_support::*;

#[test]
fn a_policy_fills_in_limits_and_contradictions_are_refused() {
    let (mut table, _) = small();
    let guaranteed = TaskSpec {
        policy: Policy::Guaranteed,
        ..asks("g", 10, 5)
    };
    let record = table.submit(guaranteed.clone(), 0).unwrap();
    assert_eq!((record.memory_limit, record.share_limit_ppm), (Some(10), Some(5)));
    assert_eq!(
        table.submit(guaranteed, 0).unwrap(),
        record,
        "as written, it is the same again"
    );
    let contradiction = TaskSpec {
        policy: Policy::BestEffort,
        ..asks("b", 10, 0)
    };
    let record = table.submit(contradiction, 0).unwrap();
    assert_eq!((record.reason, record.field), (Reason::InvalidSpec, "memory"));
}

#[test]
fn checks_hold_reject_or_pass() {
    let (mut table, _) = small();
    table.set_admission(Box::new(|spec: &TaskSpec, now: u64| match spec.name.as_str() {
        "never" => Verdict::Never(Reason::DeviceUnhealthy),
        "later" if now < 25_000_000 => Verdict::Later(Reason::WaitingForDevice),
        _ => Verdict::Pass,
    }));
    let never = table.submit(asks("never", 10, 0), 0).unwrap();
    assert_eq!((never.phase, never.reason), (Phase::Rejected, Reason::DeviceUnhealthy));
    let later = table.submit(asks("later", 100, 0), 0).unwrap();
    assert_eq!((later.phase, later.reason), (Phase::Queued, Reason::WaitingForDevice));
    assert_eq!((table.stats(0).reserved_memory, table.timer()), (0, Some(10_000_000)));
    table.submit(asks("passes", 100, 0), 0).unwrap();
    assert_eq!(
        next(&mut table, 0).as_deref(),
        Some("passes"),
        "a held task holds nobody back"
    );
    table.finish("passes", Outcome::Succeeded, 1).unwrap();
    table.advance(10_000_000);
    assert_eq!(table.timer(), Some(30_000_000), "twice as long");
    assert_eq!(next(&mut table, 30_000_000).as_deref(), Some("later"));
}

#[test]
fn start_takes_a_certain_task() {
    let (mut table, _) = small();
    for id in ["a", "b"] {
        table.submit(TaskSpec::new(id), 0).unwrap();
    }
    assert_eq!(table.admitted_ids(9, 0), ["a", "b"]);
    assert_eq!(table.start("b", 0).unwrap().context.id, "b");
    assert!(matches!(table.start("b", 0), Err(TaskError::NoEdge { .. })));
    assert_eq!(table.admitted_ids(9, 0), ["a"]);
}

#[test]
fn evaluate_foretells_submit_and_changes_nothing() {
    let (mut table, log) = small();
    table.submit(asks("a", 80, 0), 0).unwrap();
    log.lock().unwrap().clear();
    for (memory, expected) in [(20, Phase::Admitted), (21, Phase::Queued), (101, Phase::Rejected)] {
        let foretold = table.evaluate(asks("x", memory, 0), 0).unwrap();
        assert_eq!(foretold.0, expected);
    }
    assert!(log.lock().unwrap().is_empty());
    assert_eq!(
        table.evaluate(within("nowhere", asks("x", 1, 0)), 0).unwrap_err().field,
        "partition"
    );
}
