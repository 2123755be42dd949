//! The task table by example: tasks that start again, after a failure or after their worker was lost.

mod scheduler_support;

use pygpukit_core::scheduler::{Backoff, Outcome, Phase, Reason, Retry, TaskSpec};
use scheduler_support::*;

#[test]
fn a_failure_is_retried_as_often_as_asked() {
    let (mut table, _) = small();
    let backoff = Backoff {
        first_ns: 10,
        longest_ns: 15,
    };
    let again = |id: &str| TaskSpec {
        retry: Retry { retries: 2, backoff },
        ..asks(id, 50, 0)
    };
    table.submit(again("a"), 0).unwrap();
    table.submit(after("then", &["a"]), 0).unwrap();
    for (start, wait) in [(0, 10), (10, 15)] {
        assert_eq!(next(&mut table, start).as_deref(), Some("a"));
        assert_eq!(table.finish("a", failed("boom"), start), Ok(Phase::Queued));
        let record = table.get("a", start).unwrap();
        assert_eq!(
            (record.reason, record.error.as_str()),
            (Reason::WaitingForRetry, "boom")
        );
        assert_eq!(
            (next(&mut table, start + wait - 1), table.stats(start).reserved_memory),
            (None, 0)
        );
    }
    assert_eq!(next(&mut table, 25).as_deref(), Some("a"));
    assert_eq!(table.finish("a", failed("boom"), 25), Ok(Phase::Failed));
    assert_eq!(phase(&mut table, "then"), Phase::Failed);
    table.submit(again("b"), 30).unwrap();
    next(&mut table, 30);
    let compile = Outcome::Failed {
        reason: Reason::CompileError,
        error: "x".into(),
    };
    assert_eq!(
        table.finish("b", compile, 30),
        Ok(Phase::Failed),
        "it would not compile next time"
    );
    let wrong = TaskSpec {
        retry: Retry {
            retries: 1,
            backoff: Backoff {
                first_ns: 2,
                longest_ns: 1,
            },
        },
        ..TaskSpec::new("wrong")
    };
    assert_eq!(table.submit(wrong, 30).unwrap().field, "retry");
    table.audit().unwrap();
}

#[test]
fn a_task_whose_worker_is_lost_starts_over_once_if_it_bears_it() {
    let lost = || Outcome::Lost {
        reason: Reason::StickyDeviceError,
        error: "gone".into(),
    };
    let (mut table, _) = small();
    let again = TaskSpec {
        idempotent: true,
        retry: Retry {
            retries: 1,
            ..Retry::default()
        },
        ..asks("again", 50, 0)
    };
    table.submit(again, 0).unwrap();
    table.submit(asks("never", 50, 0), 0).unwrap();
    let mut now = 0;
    // Once because it is idempotent, once more because it has a retry, which a device that stays lost would not get.
    for reason in [Reason::WaitingForDevice, Reason::WaitingForRetry] {
        assert_eq!(next(&mut table, now).as_deref(), Some("again"));
        assert_eq!(table.finish("again", lost(), now), Ok(Phase::Queued));
        let record = table.get("again", now).unwrap();
        assert_eq!((record.reason, record.error.as_str()), (reason, "gone"));
        now += 10_000_000;
        if reason == Reason::WaitingForDevice {
            assert_eq!(next(&mut table, now - 1).as_deref(), Some("never"));
            assert_eq!(table.finish("never", lost(), now - 1), Ok(Phase::Failed));
        }
    }
    assert_eq!(next(&mut table, now).as_deref(), Some("again"));
    assert_eq!(table.finish("again", lost(), now), Ok(Phase::Failed));
    assert_eq!(table.get("again", now).unwrap().reason, Reason::StickyDeviceError);
    assert_eq!(table.stats(now).reserved_memory, 0);
    table.audit().unwrap();
}

#[test]
fn a_kernel_that_took_too_long_is_not_run_again() {
    let (mut table, _) = small();
    let again = |id: &str| TaskSpec {
        idempotent: true,
        retry: Retry {
            retries: 3,
            ..Retry::default()
        },
        ..asks(id, 10, 0)
    };
    let (reason, error) = (Reason::WatchdogTimeout, "it ran longer than 2 s".to_string());
    let here = Outcome::Failed {
        reason,
        error: error.clone(),
    };
    for (id, outcome) in [("here", here), ("in a worker", Outcome::Lost { reason, error })] {
        table.submit(again(id), 0).unwrap();
        assert_eq!(next(&mut table, 0).as_deref(), Some(id));
        assert_eq!(table.finish(id, outcome, 0), Ok(Phase::Failed));
        let record = table.get(id, 0).unwrap();
        assert_eq!(
            (record.reason, record.error.as_str()),
            (reason, "it ran longer than 2 s")
        );
    }
    table.audit().unwrap();
}
