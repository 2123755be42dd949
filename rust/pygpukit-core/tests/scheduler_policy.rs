//! The task table by example: QoS, preemption, deadlines by estimate, retries, checks and partitions.

mod scheduler_support;

use pygpukit_core::partition::{Isolation, Limits, Reservation};
use pygpukit_core::scheduler::{
    Backoff, Config, Outcome, Phase, Policy, Reason, Retry, TaskError, TaskSpec, TaskTable, Transition, Verdict,
};
use scheduler_support::*;

fn urgent(id: &str, memory: u64, priority: i32) -> TaskSpec {
    TaskSpec {
        priority,
        ..asks(id, memory, 0)
    }
}

fn within(partition: &str, spec: TaskSpec) -> TaskSpec {
    TaskSpec {
        partition: partition.into(),
        ..spec
    }
}

fn create(table: &mut TaskTable, id: &str, limits: Limits) {
    table
        .with_partitions(0, |partitions| partitions.create(id, id, limits))
        .unwrap();
}

fn bytes(memory_bytes: u64) -> Reservation {
    Reservation {
        memory_bytes,
        share_ppm: 0,
    }
}

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
fn checks_hold_reject_or_pass() {
    let (mut table, _) = small();
    table.add_check(Box::new(|spec: &TaskSpec, now: u64| match spec.name.as_str() {
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
    assert_eq!(table.start("b", 0).unwrap().id, "b");
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

#[test]
fn a_quota_is_kept_and_bounds() {
    let (mut table, _) = small();
    create(&mut table, "p", Limits::new(40, 0));
    assert_eq!(
        table.submit(asks("rest", 61, 0), 0).unwrap().reason,
        Reason::ExceedsDevice
    );
    table.submit(asks("all the rest", 60, 0), 0).unwrap();
    let over = table.submit(within("p", asks("over", 41, 0)), 0).unwrap();
    assert_eq!(
        (over.reason, detail(&over)),
        (Reason::ExceedsPartition, vec![("asked", 41), ("available", 40)])
    );
    table.submit(asks("waits", 1, 0), 0).unwrap();
    let kept = table.submit(within("p", asks("kept", 40, 0)), 0).unwrap();
    assert_eq!(
        kept.phase,
        Phase::Admitted,
        "others wait for what is shared; this is its own"
    );
    let unknown = table.submit(within("q", TaskSpec::new("unknown")), 0).unwrap();
    assert_eq!((unknown.reason, unknown.field), (Reason::InvalidSpec, "partition"));
    let gone = table.with_partitions(0, |partitions| partitions.delete("p"));
    assert!(gone.unwrap_err().message.contains("1 unfinished"));
    table.audit().unwrap();
}

#[test]
fn what_is_lent_can_be_borrowed_and_comes_back() {
    let (mut table, _) = small();
    let lender = Limits {
        lend: bytes(50),
        ..Limits::new(60, 0)
    };
    let borrower = Limits {
        borrow: bytes(30),
        ..Limits::new(40, 0)
    };
    create(&mut table, "lender", lender);
    create(&mut table, "borrower", borrower);
    let borrows = table.submit(within("borrower", asks("borrows", 70, 0)), 0).unwrap();
    assert_eq!(borrows.phase, Phase::Admitted);
    let too_much = table.submit(within("borrower", asks("too much", 71, 0)), 0).unwrap();
    assert_eq!(too_much.reason, Reason::ExceedsPartition);
    let own = table.submit(within("lender", asks("own", 30, 0)), 0).unwrap();
    assert_eq!(own.phase, Phase::Admitted);
    let waits = table.submit(within("lender", asks("waits", 30, 0)), 0).unwrap();
    assert_eq!((waits.phase, waits.detail.available), (Phase::Queued, Some(0)));
    let urgent = table.submit(within("lender", urgent("urgent", 30, 1)), 0).unwrap();
    assert_eq!(
        urgent.phase,
        Phase::Admitted,
        "a higher priority gets its own back before the start"
    );
    assert_eq!(
        phase(&mut table, "own"),
        Phase::Queued,
        "its own partition's task was the younger"
    );
    table.audit().unwrap();
}

#[test]
fn partitions_are_resized_while_they_run() {
    let (mut table, _) = small();
    create(&mut table, "p", Limits::new(50, 0));
    table.submit(within("p", asks("runs", 40, 0)), 0).unwrap();
    next(&mut table, 0);
    table.submit(within("p", asks("waits", 30, 0)), 0).unwrap();
    table.submit(within("p", asks("small", 20, 0)), 0).unwrap();
    let mut resize =
        |memory: u64, now: u64| table.with_partitions(now, |partitions| partitions.resize("p", Limits::new(memory, 0)));
    assert_eq!(resize(101, 1).unwrap_err().field, "memory");
    resize(25, 1).unwrap();
    assert_eq!(table.get("waits", 1).unwrap().reason, Reason::ExceedsPartition);
    assert_eq!(
        (phase(&mut table, "runs"), phase(&mut table, "small")),
        (Phase::Running, Phase::Queued)
    );
    table
        .with_partitions(2, |partitions| partitions.resize("p", Limits::new(60, 0)))
        .unwrap();
    assert_eq!(phase(&mut table, "small"), Phase::Admitted);
    table.audit().unwrap();
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

#[test]
fn bands_streams_and_weights() {
    let (mut table, _) = small();
    let limits = |weight, max_streams| Limits {
        weight,
        max_streams,
        priorities: (0, 3),
        ..Limits::new(10, 0)
    };
    create(&mut table, "heavy", limits(3, 16));
    create(&mut table, "light", limits(1, 16));
    create(&mut table, "narrow", limits(1, 1));
    let high = table.submit(within("heavy", urgent("high", 1, 4)), 0).unwrap();
    assert_eq!(high.reason, Reason::PriorityNotAllowed);
    assert_eq!(high.error, "priority 4; partition 'heavy' allows 0 to 3");
    for i in 0..8 {
        for partition in ["heavy", "light"] {
            table
                .submit(within(partition, TaskSpec::new(format!("{partition}-{i}"))), 0)
                .unwrap();
        }
    }
    let order: Vec<String> = (0..8).filter_map(|_| next(&mut table, 0)).collect();
    assert_eq!(
        order.iter().filter(|id| id.starts_with("heavy")).count(),
        6,
        "{order:?}"
    );
    for id in ["n1", "n2"] {
        table.submit(within("narrow", urgent(id, 1, 1)), 0).unwrap();
    }
    assert_eq!(next(&mut table, 0).as_deref(), Some("n1"));
    assert_ne!(next(&mut table, 0).as_deref(), Some("n2"), "its one stream is in use");
    table.finish("n1", Outcome::Succeeded, 0).unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("n2"));
    table.audit().unwrap();
}

#[test]
fn malformed_partitions_name_the_field() {
    let (mut table, _) = small();
    create(&mut table, "p", Limits::new(60, 600_000));
    let quota = || Limits::new(10, 0);
    type Change = fn(Limits) -> Limits;
    let wrong: [(&str, &str, Change); 9] = [
        ("p", "id", |l| l),
        ("", "id", |l| l),
        ("q", "memory", |l| Limits { memory_bytes: 41, ..l }),
        ("q", "compute", |l| Limits {
            share_ppm: 400_001,
            ..l
        }),
        ("q", "bandwidth", |l| Limits {
            bandwidth_ppm: 1_000_001,
            ..l
        }),
        ("q", "lend", |l| Limits { lend: bytes(11), ..l }),
        ("q", "priorities", |l| Limits {
            priorities: (1, 0),
            ..l
        }),
        ("q", "weight", |l| Limits { weight: 0, ..l }),
        ("q", "isolation", |l| Limits {
            isolation: Isolation::Mig,
            ..l
        }),
    ];
    for (id, field, change) in wrong {
        let made = table.with_partitions(0, |partitions| partitions.create(id, id, change(quota())));
        assert_eq!(made.unwrap_err().field, field);
    }
    table.submit(asks("holds", 40, 0), 0).unwrap();
    let held = table.with_partitions(0, |partitions| partitions.create("q", "q", quota()));
    assert!(held.unwrap_err().message.contains("0 not in use by tasks now"));
    let ids = table.with_partitions(0, |partitions| partitions.ids().map(str::to_string).collect::<Vec<_>>());
    assert_eq!(ids, ["p"]);
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
fn a_worker_runs_one_task_at_a_time_and_a_level_stays() {
    let (mut table, _) = small();
    let limits = || Limits {
        isolation: Isolation::Process,
        ..Limits::new(60, 0)
    };
    let refused = table.with_partitions(0, |partitions| partitions.create("p", "p", limits()));
    assert_eq!(refused.unwrap_err().field, "isolation", "nobody has offered it");
    table.with_partitions(0, |partitions| partitions.offer(Isolation::Process));
    create(&mut table, "p", limits());
    for id in ["a", "b"] {
        let task = asks(id, 10, 0);
        table
            .submit(
                TaskSpec {
                    partition: "p".into(),
                    ..task
                },
                0,
            )
            .unwrap();
    }
    table.submit(asks("elsewhere", 10, 0), 0).unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("a"));
    assert_eq!(next(&mut table, 0).as_deref(), Some("elsewhere"), "b waits for a");
    assert_eq!(next(&mut table, 0), None);
    table.cancel("a", 0).unwrap();
    assert_eq!(next(&mut table, 0), None, "the dispatcher is still inside");
    table.finish("a", Outcome::Succeeded, 0).unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("b"));
    let shared = table.with_partitions(0, |partitions| partitions.resize("p", Limits::new(60, 0)));
    assert_eq!(shared.unwrap_err().field, "isolation");
    let found = |table: &TaskTable, id: &str| table.partitions().worker_partition(id).map(str::to_string);
    assert_eq!(found(&table, "p").as_deref(), Some("p"));
    assert_eq!((found(&table, ""), found(&table, "q")), (None, None));
    table
        .with_partitions(0, |partitions| partitions.set_default(Some("p")))
        .unwrap();
    assert_eq!(found(&table, "").as_deref(), Some("p"));
}

#[test]
fn a_new_first_of_a_line_lets_pass_at_once_whom_the_one_before_held_back() {
    let (mut table, log) = small();
    let limits = Limits {
        borrow: bytes(70),
        ..Limits::new(30, 0)
    };
    create(&mut table, "p", limits);
    table.submit(asks("default", 60, 0), 0).unwrap();
    table.submit(within("p", asks("kept", 25, 0)), 0).unwrap();
    assert!(next(&mut table, 0).is_some() && next(&mut table, 0).is_some());
    table.submit(within("p", urgent("first", 20, 1)), 0).unwrap(); // the device has 15 for it
    let held_back = table.submit(urgent("held back", 10, 1), 0).unwrap();
    assert_eq!(held_back.phase, Phase::Queued);
    table.submit(within("p", urgent("over the bound", 80, 3)), 0).unwrap();
    let last = *log.lock().unwrap().last().unwrap(); // no other call has been made
    assert_eq!((last.0, last.2), (held_back.number, Phase::Admitted));
}
