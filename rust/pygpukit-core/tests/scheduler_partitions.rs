//! The task table by example: quotas of partitions, what they lend and borrow, turns between them, and their isolation.

mod scheduler_support;

use pygpukit_core::partition::{Isolation, Limits};
use pygpukit_core::scheduler::{Config, Outcome, Phase, Reason, TaskSpec, TaskTable};
use scheduler_support::*;

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
        let outcome = table.with_partitions(0, |partitions| partitions.create(id, id, change(quota())));
        assert_eq!(outcome.unwrap_err().field, field);
    }
    table.submit(asks("holds", 40, 0), 0).unwrap();
    let held = table.with_partitions(0, |partitions| partitions.create("q", "q", quota()));
    assert!(held.unwrap_err().message.contains("0 bytes not in use by tasks now"));
    let ids = table.with_partitions(0, |partitions| partitions.ids().map(str::to_string).collect::<Vec<_>>());
    assert_eq!(ids, ["p"]);
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
    table.with_partitions(0, |partitions| partitions.offer_workers());
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
    let partition_of = |table: &TaskTable, id: &str| table.partitions().worker_partition(id).map(str::to_string);
    assert_eq!(partition_of(&table, "p").as_deref(), Some("p"));
    assert_eq!((partition_of(&table, ""), partition_of(&table, "q")), (None, None));
    table
        .with_partitions(0, |partitions| partitions.set_default(Some("p")))
        .unwrap();
    assert_eq!(partition_of(&table, "").as_deref(), Some("p"));
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

#[test]
fn who_ended_keeps_its_device_when_its_partition_goes() {
    let config = Config {
        further_memory: vec![100; 2],
        ..Config::new(100)
    };
    let (mut table, _) = table(config);
    let on = |device| Limits {
        device,
        ..Limits::new(40, 0)
    };
    create(&mut table, "p", on(2));
    table.submit(within("p", asks("a", 10, 0)), 0).unwrap();
    next(&mut table, 1).unwrap();
    table.finish("a", Outcome::Succeeded, 2).unwrap();
    table
        .with_partitions(3, |partitions| partitions.delete("p").map(drop))
        .unwrap();
    assert_eq!(table.get("a", 3).unwrap().devices.first, Some(2));
    create(&mut table, "q", on(1)); // in its slot
    assert_eq!(table.snapshot(3)[0].devices.first, Some(2));
}
