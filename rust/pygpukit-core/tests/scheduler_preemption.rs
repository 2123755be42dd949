//! The task table by example: who gives way to a higher priority, and who does not.

mod scheduler_support;

use pygpukit_core::partition::Limits;
use pygpukit_core::scheduler::{Phase, Reason};
use scheduler_support::*;

#[test]
fn the_fewest_of_the_lowest_and_youngest_give_way() {
    let (mut table, _) = small();
    for (id, memory, priority) in [("old", 30, 0), ("low", 20, -1), ("young", 30, 0), ("high", 20, 5)] {
        table.submit(urgent(id, memory, priority), 0).unwrap();
    }
    let preemptor = table.submit(urgent("preemptor", 30, 1), 0).unwrap();
    assert_eq!(preemptor.phase, Phase::Admitted);
    let phases = ["old", "low", "young", "high"].map(|id| phase(&mut table, id));
    use Phase::{Admitted, Queued};
    assert_eq!(
        phases,
        [Admitted, Admitted, Queued, Admitted],
        "low went first, was not enough and came back"
    );
    let victim = table.get("young", 0).unwrap();
    assert_eq!(
        (victim.reason, victim.detail.preemptions),
        (Reason::WaitingForMemory, Some(1))
    );
    let equal = table.submit(urgent("equal", 30, 1), 0).unwrap();
    assert_eq!(
        equal.phase,
        Phase::Admitted,
        "at the cost of old, or of low and nothing else"
    );
    assert_eq!(phase(&mut table, "preemptor"), Phase::Admitted, "an equal is no victim");
    table.audit().unwrap();
    table.cancel("preemptor", 1).unwrap();
    table.cancel("equal", 1).unwrap();
    for id in ["old", "low", "young", "high"] {
        assert_eq!(phase(&mut table, id), Phase::Admitted, "{id} has its place again");
    }
}

#[test]
fn what_runs_is_not_preempted_and_no_one_gives_way_in_vain() {
    let (mut table, log) = small();
    table.submit(urgent("running", 60, 0), 0).unwrap();
    next(&mut table, 0);
    table.submit(urgent("admitted", 30, 0), 0).unwrap();
    log.lock().unwrap().clear();
    let record = table.submit(urgent("big", 80, 9), 0).unwrap();
    assert_eq!((record.phase, record.reason), (Phase::Queued, Reason::WaitingForMemory));
    assert_eq!(phase(&mut table, "admitted"), Phase::Admitted);
    assert!(log.lock().unwrap().iter().all(|t| t.3 != Reason::WaitingForPreemption));
}

/// A partition that holds more than it may now: what a vain preemption took is given back all the same.
#[test]
fn a_vain_preemption_in_a_partition_made_smaller_changes_nothing() {
    let (mut table, _) = small();
    create(&mut table, "a", Limits::new(50, 0));
    table.submit(within("a", urgent("runs", 5, 0)), 0).unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("runs"));
    table
        .submit(within("a", urgent("waits for its turn", 40, 0)), 0)
        .unwrap();
    table.with_partitions(0, |partitions| partitions.resize("a", Limits::new(10, 0)).unwrap());
    let record = table.submit(within("a", urgent("wants it", 8, 1)), 0).unwrap();
    assert_eq!((record.phase, record.reason), (Phase::Queued, Reason::WaitingForMemory));
    assert_eq!(table.get("waits for its turn", 0).unwrap().phase, Phase::Admitted);
    assert_eq!(table.stats(0).reserved_memory, 45);
    table.audit().unwrap();
}
