//! What becomes of tasks when the device of the process fails, and when it works again.

mod scheduler_support;

use pygpukit_core::partition::{Isolation, Limits};
use pygpukit_core::scheduler::{DeviceHealth, Outcome, Phase, Reason, Retry, TaskSpec, TaskTable};
use scheduler_support::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

#[test]
fn a_device_that_failed_takes_nothing_until_it_works_again() {
    let (mut table, log) = small();
    let broken = Arc::new(AtomicBool::new(true));
    let asked = broken.clone();
    let health = Arc::new(DeviceHealth::new(move || asked.load(Ordering::Relaxed)));
    table.watch(health.clone());
    table.with_partitions(0, |partitions| partitions.offer(Isolation::Process));
    let limits = Limits {
        isolation: Isolation::Process,
        ..Limits::new(20, 0)
    };
    create(&mut table, "worker", limits);
    let retry = Retry {
        retries: 1,
        ..Retry::default()
    };
    table
        .submit(
            TaskSpec {
                retry,
                ..asks("runs", 10, 0)
            },
            0,
        )
        .unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("runs"));
    table.submit(asks("admitted", 70, 0), 0).unwrap();
    table.submit(asks("waits", 70, 0), 0).unwrap();
    table.submit(after("later", &["runs"]), 0).unwrap();
    table.submit(within("worker", asks("elsewhere", 20, 0)), 0).unwrap();
    table
        .submit(within("worker", asks("waits elsewhere", 20, 0)), 0)
        .unwrap();

    health.fail("device 0 failed");
    let refusal = |table: &mut TaskTable, id: &str| {
        let record = table.get(id, 0).unwrap();
        (record.phase, record.reason, record.error)
    };
    let rejected = (Phase::Rejected, Reason::DeviceUnhealthy, "device 0 failed".to_string());
    assert_eq!(
        refusal(&mut table, "admitted"),
        (Phase::Failed, Reason::StickyDeviceError, "device 0 failed".into())
    );
    assert_eq!(refusal(&mut table, "waits"), rejected);
    assert_eq!(refusal(&mut table, "later"), rejected);
    table.submit(asks("new", 1000, 0), 0).unwrap();
    assert_eq!(refusal(&mut table, "new"), rejected, "the device comes first");
    let (phase, reason, _) = table.evaluate(TaskSpec::new("asked"), 0).unwrap();
    assert_eq!((phase, reason), (Phase::Rejected, Reason::DeviceUnhealthy));

    assert_eq!(next(&mut table, 0).as_deref(), Some("elsewhere"), "its device works");
    assert_eq!(next(&mut table, 0), None);
    assert_eq!(table.finish("elsewhere", Outcome::Succeeded, 0), Ok(Phase::Succeeded));
    assert_eq!(next(&mut table, 0).as_deref(), Some("waits elsewhere"));
    assert_eq!(
        table.finish("runs", failed("no answer"), 0),
        Ok(Phase::Failed),
        "there is nothing to run it on again"
    );
    assert_eq!(refusal(&mut table, "runs").2, "no answer");

    broken.store(false, Ordering::Relaxed);
    table.submit(asks("healthy", 10, 0), 0).unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("healthy"));
    let ended = log.lock().unwrap().iter().filter(|t| t.2.is_terminal()).count();
    assert_eq!(ended, 6, "each once");
    table.audit().unwrap();
}
