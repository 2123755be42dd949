//! Workers that take turns, and partitions on instances of their own: by example, and against a recount on random operations.

mod cases;
mod scheduler_support;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::partition::{Isolation, Limits};
use pygpukit_core::scheduler::{Config, Outcome, Phase, Reason, TaskTable};
use scheduler_support::*;

fn of(isolation: Isolation, device: u32) -> Limits {
    Limits {
        isolation,
        device,
        ..Limits::new(0, 0)
    }
}

fn offered(devices: usize) -> TaskTable {
    let config = Config {
        further_memory: vec![100; devices - 1],
        ..Config::new(100)
    };
    let (mut table, _) = table(config);
    table.with_partitions(0, |partitions| partitions.offer_workers());
    table
}

fn submit(table: &mut TaskTable, partition: &str, id: &str) {
    table.submit(within(partition, asks(id, 0, 0)), 0).unwrap();
}

#[test]
fn workers_of_a_device_take_turns_and_others_run_beside_them() {
    let mut table = offered(2);
    for (id, isolation, device) in [
        ("a", Isolation::Timesliced, 0),
        ("b", Isolation::Timesliced, 0),
        ("far", Isolation::Timesliced, 1),
        ("own", Isolation::Process, 0),
    ] {
        create(&mut table, id, of(isolation, device));
    }
    for (partition, id) in [
        ("a", "a1"),
        ("a", "a2"),
        ("b", "b1"),
        ("b", "b2"),
        ("far", "f1"),
        ("own", "o1"),
        ("", "here"),
    ] {
        submit(&mut table, partition, id);
    }
    let mut started: Vec<String> = std::iter::from_fn(|| next(&mut table, 0)).collect();
    started.sort();
    assert_eq!(started, ["a1", "f1", "here", "o1"], "b waits for a's turn to end");
    table.finish("o1", Outcome::Succeeded, 1).unwrap();
    assert_eq!(next(&mut table, 1), None);
    // The worker dies: its turn goes to the next one, and comes back by weight.
    let lost = Outcome::Lost {
        reason: Reason::WorkerLost,
        error: "signal 9".into(),
    };
    assert_eq!(table.finish("a1", lost, 2), Ok(Phase::Failed));
    let mut order = Vec::new();
    while let Some(id) = next(&mut table, 3) {
        assert_eq!(next(&mut table, 3), None, "one at a time");
        table.audit().unwrap();
        table.finish(&id, Outcome::Succeeded, 3).unwrap();
        order.push(id);
    }
    assert_eq!(order, ["b1", "a2", "b2"]);
}

#[test]
fn a_turn_lasts_until_the_dispatcher_is_out_of_the_task() {
    let mut table = offered(1);
    create(&mut table, "a", of(Isolation::Timesliced, 0));
    submit(&mut table, "a", "runs");
    assert_eq!(next(&mut table, 0).as_deref(), Some("runs"));
    table.cancel("runs", 1).unwrap();
    create(&mut table, "late", of(Isolation::Timesliced, 0));
    submit(&mut table, "late", "waits");
    assert_eq!(next(&mut table, 1), None, "its worker is not ended yet");
    // The place of a partition that is gone while another has its turn is no longer in the line of turns.
    table.cancel("waits", 1).unwrap();
    table
        .with_partitions(1, |partitions| partitions.delete("late"))
        .unwrap();
    create(&mut table, "shared", Limits::new(0, 0));
    submit(&mut table, "shared", "beside");
    assert_eq!(next(&mut table, 1).as_deref(), Some("beside"));
    table.finish("runs", Outcome::Succeeded, 2).unwrap();
    submit(&mut table, "a", "next");
    assert_eq!(next(&mut table, 2).as_deref(), Some("next"));
    table.audit().unwrap();
}

#[test]
fn an_instance_brings_its_own_quota() {
    let mut table = offered(1);
    create(&mut table, "all", Limits::new(100, 1_000_000));
    let instance = || Limits {
        isolation: Isolation::Mig,
        ..Limits::new(1000, 1_000_000)
    };
    create(&mut table, "mig", instance());
    table.submit(within("all", asks("here", 100, 1_000_000)), 0).unwrap();
    let there = table.submit(within("mig", asks("there", 1000, 1_000_000)), 0).unwrap();
    assert_eq!(there.phase, Phase::Admitted, "neither takes anything of the other");
    let more = table.submit(within("mig", asks("more", 1001, 0)), 0).unwrap();
    assert_eq!(more.reason, Reason::ExceedsPartition);
    assert_eq!(
        table.submit(asks("rest", 1, 0), 0).unwrap().reason,
        Reason::ExceedsDevice
    );
    let stats = table.partitions().stats();
    assert_eq!((stats.promised[0], stats.left[0]), (100, 0));
    for (field, limits) in [
        (
            "lend",
            Limits {
                lend: bytes(1),
                ..instance()
            },
        ),
        (
            "borrow",
            Limits {
                borrow: bytes(1),
                ..instance()
            },
        ),
    ] {
        let refused = table.with_partitions(0, |partitions| partitions.create("q", "q", limits));
        assert_eq!(refused.unwrap_err().field, field);
    }
    for id in ["here", "there"] {
        table.start(id, 0).unwrap();
        table.finish(id, Outcome::Succeeded, 0).unwrap();
    }
    table.with_partitions(0, |partitions| partitions.delete("mig")).unwrap();
    let (stats, available) = (table.partitions().stats(), asks("after", 101, 0));
    assert_eq!(stats.left[0], 0);
    assert_eq!(
        table.submit(within("all", available), 0).unwrap().reason,
        Reason::ExceedsPartition
    );
    table.audit().unwrap();
}

#[derive(Clone, Debug)]
enum Op {
    Submit { partition: usize, priority: i32 },
    Next,
    Finish { who: usize, how: usize },
    Cancel { who: usize },
    Create { partition: usize },
    Delete { partition: usize },
}

/// By number: isolation and device.
const PARTITIONS: [(Isolation, u32); 6] = [
    (Isolation::Timesliced, 0),
    (Isolation::Timesliced, 0),
    (Isolation::Timesliced, 0),
    (Isolation::Timesliced, 1),
    (Isolation::Process, 0),
    (Isolation::Mig, 0),
];

fn op() -> impl Strategy<Value = Op> {
    let partition = 0usize..PARTITIONS.len();
    prop_oneof![
        6 => (partition.clone(), -1i32..2).prop_map(|(partition, priority)| Op::Submit { partition, priority }),
        6 => Just(Op::Next),
        5 => (any::<usize>(), 0usize..4).prop_map(|(who, how)| Op::Finish { who, how }),
        1 => any::<usize>().prop_map(|who| Op::Cancel { who }),
        3 => partition.clone().prop_map(|partition| Op::Create { partition }),
        1 => partition.prop_map(|partition| Op::Delete { partition }),
    ]
}

fn outcome(how: usize) -> Outcome {
    match how {
        0 => failed("x"),
        1 => Outcome::Lost {
            reason: Reason::WorkerLost,
            error: "signal 9".into(),
        },
        _ => Outcome::Succeeded,
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn no_two_workers_have_their_turn_and_none_waits_for_nobody(
        order in 0usize..4,
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut table = offered(2);
        table.set_order(pygpukit_core::scheduler::order_names()[order]).unwrap();
        // Of each task that a dispatcher is inside of: its id and its partition's number.
        let mut inside: Vec<(String, usize)> = Vec::new();
        let mut home = std::collections::HashMap::new();
        for (t, op) in ops.into_iter().enumerate() {
            let t = t as u64;
            match op {
                Op::Submit { partition, priority } => {
                    let id = format!("{t}");
                    let mut spec = within(&format!("p{partition}"), urgent(&id, 0, priority));
                    spec.idempotent = t % 2 == 0;
                    if table.submit(spec, t).is_ok_and(|record| record.phase != Phase::Rejected) {
                        home.insert(id, partition);
                    }
                }
                Op::Next => {
                    if let Some(id) = next(&mut table, t) {
                        inside.push((id.clone(), home[&id]));
                    } else {
                        // Whoever waits, waits for its own worker or for another one's turn.
                        for id in table.admitted_ids(1000, t) {
                            let (level, device) = PARTITIONS[home[id.as_str()]];
                            let held = inside.iter().any(|&(_, other)| {
                                let turns = level == Isolation::Timesliced && PARTITIONS[other] == (level, device);
                                other == home[id.as_str()] || turns
                            });
                            prop_assert!(held, "{id:?} waits for nobody; inside: {inside:?}");
                        }
                    }
                }
                Op::Finish { who, how } if !inside.is_empty() => {
                    let (id, _) = inside.swap_remove(who % inside.len());
                    table.finish(&id, outcome(how), t).unwrap();
                }
                Op::Cancel { who } if !home.is_empty() => {
                    let mut ids: Vec<&String> = home.keys().collect();
                    ids.sort_unstable();
                    let _ = table.cancel(ids[who % ids.len()], t); // it may have ended, and be forgotten
                }
                Op::Create { partition } => {
                    let (level, device) = PARTITIONS[partition];
                    let id = format!("p{partition}");
                    let _ = table.with_partitions(t, |partitions| partitions.create(&id, &id, of(level, device)));
                }
                Op::Delete { partition } => {
                    let id = format!("p{partition}");
                    let _ = table.with_partitions(t, |partitions| partitions.delete(&id)); // it may have tasks, or be gone
                }
                _ => {}
            }
            for device in 0..2 {
                let turns = inside.iter().filter(|&&(_, of)| PARTITIONS[of] == (Isolation::Timesliced, device));
                prop_assert!(turns.count() <= 1, "{inside:?}");
            }
            prop_assert_eq!(table.audit(), Ok(()));
        }
        // Everything ends, whoever dies.
        let end = 1_000_000_000_000;
        for round in 0..10_000 {
            match inside.pop() {
                Some((id, _)) => table.finish(&id, outcome(2 + round % 2), end).map(drop).unwrap(),
                None => match next(&mut table, end) {
                    Some(id) => inside.push((id.clone(), home[&id])),
                    None => break,
                },
            }
        }
        prop_assert_eq!(table.admitted_ids(1000, end).len(), 0);
        prop_assert_eq!(table.audit(), Ok(()));
    }
}
