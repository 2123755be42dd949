//! Policies by name: each order beside a sort of what is admitted, each admission beside what it promises, and nothing is lost in any.

mod cases;
mod scheduler_support;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::partition::Limits;
use pygpukit_core::scheduler::{
    admission_named, admission_names, order_names, Change, Config, Outcome, Phase, Reason, TaskRecord, TaskSpec,
    TaskTable,
};
use scheduler_support::*;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

const MEMORY: u64 = 100;
const WHOLE: u32 = 1_000_000;
/// Tasks that may run at a time in the partition "narrow".
const NARROW: usize = 2;

#[derive(Clone, Debug)]
enum Op {
    Submit {
        memory: u64,
        share_ppm: u32,
        priority: i32,
        narrow: bool,
        deadline_ns: u64,
        run_ns: u64,
        after: Option<usize>,
    },
    Next,
    Finish(usize),
    Cancel(usize),
    Prioritise(usize, i32),
    Pause(usize, bool),
}

fn op() -> impl Strategy<Value = Op> {
    let submit = (
        prop_oneof![2 => Just(0u64), 6 => 1..60u64, 1 => 60..=MEMORY],
        prop_oneof![3 => Just(0u32), 1 => 1..=WHOLE],
        0..3i32,
        any::<bool>(),
        // Far enough away: none expires.
        prop_oneof![1 => Just(0u64), 2 => 1u64 << 40..1 << 41],
        1..50u64,
        prop_oneof![4 => Just(None), 1 => (0..8usize).prop_map(Some)],
    );
    prop_oneof![
        6 => submit.prop_map(|(memory, share_ppm, priority, narrow, deadline_ns, run_ns, after)| Op::Submit {
            memory, share_ppm, priority, narrow, deadline_ns, run_ns, after
        }),
        4 => Just(Op::Next),
        3 => (0..8usize).prop_map(Op::Finish),
        1 => (0..8usize).prop_map(Op::Cancel),
        1 => (0..8usize, 0..3i32).prop_map(|(who, priority)| Op::Prioritise(who, priority)),
        1 => (0..8usize, any::<bool>()).prop_map(|(who, pause)| Op::Pause(who, pause)),
    ]
}

struct World {
    table: TaskTable,
    order: &'static str,
    admission: &'static str,
    /// What was said of each task.
    specs: HashMap<String, TaskSpec>,
    running: Vec<String>,
    /// What has been admitted at least once.
    admitted: HashSet<String>,
    now: u64,
}

impl World {
    fn new(order: &'static str, admission: &'static str) -> World {
        let config = Config {
            max_finished: 1 << 20,
            ..Config::new(MEMORY)
        };
        let (mut table, _) = table(config);
        table.set_order(order).unwrap();
        table.set_admission(admission_named(admission).unwrap());
        let limits = Limits {
            max_streams: NARROW as u32,
            borrow: pygpukit_core::partition::Reservation {
                memory_bytes: MEMORY,
                share_ppm: WHOLE,
            },
            ..Limits::new(0, 0)
        };
        create(&mut table, "narrow", limits);
        World {
            table,
            order,
            admission,
            specs: HashMap::new(),
            running: Vec::new(),
            admitted: HashSet::new(),
            now: 1,
        }
    }

    fn records(&mut self) -> Vec<TaskRecord> {
        self.table.snapshot(self.now)
    }

    /// The id of one of the last tasks that have not ended.
    fn unfinished(&mut self, who: usize) -> Option<String> {
        let records = self.records();
        let open = records.iter().rev().filter(|record| !record.phase.is_terminal());
        open.map(|record| record.id.to_string()).nth(who)
    }

    /// What is started next: a full search by the order's own rule. "turns" has a model of its own (scheduler::order::turns).
    fn expected_next(&mut self) -> Option<String> {
        let records = self.records();
        let inside = records
            .iter()
            .filter(|r| r.partition == *"narrow" && self.running.contains(&r.id.to_string()));
        let full = inside.count() >= NARROW;
        let ready = records
            .iter()
            .filter(|r| r.phase == Phase::Admitted && !(full && r.partition == *"narrow"));
        let rank = |r: &TaskRecord| match self.order {
            "deadline" if r.deadline_ns == 0 => u64::MAX,
            "deadline" => r.deadline_ns,
            "shortest" => r.submitted_ns + 8 * self.specs[r.id.as_str()].run_ns,
            _ => 0,
        };
        let first = ready.min_by_key(|r| (Reverse(r.priority), rank(r), r.number));
        first.map(|r| r.id.to_string())
    }

    fn apply(&mut self, op: &Op) {
        self.now += 1;
        match op {
            &Op::Submit {
                memory,
                share_ppm,
                priority,
                narrow,
                deadline_ns,
                run_ns,
                after,
            } => {
                let after = after.and_then(|who| self.unfinished(who));
                let spec = TaskSpec {
                    priority,
                    deadline_ns,
                    run_ns,
                    depends_on: after.iter().map(|id| id.as_str().into()).collect(),
                    partition: if narrow { "narrow" } else { "" }.into(),
                    ..asks(&format!("t{}", self.specs.len()), memory, share_ppm)
                };
                self.submit(spec);
            }
            Op::Next => self.next(),
            Op::Finish(who) => {
                if *who < self.running.len() {
                    let id = self.running.remove(*who);
                    self.table.finish(&id, Outcome::Succeeded, self.now).unwrap();
                }
            }
            Op::Cancel(who) => {
                if let Some(id) = self.unfinished(*who) {
                    self.table.cancel(&id, self.now).unwrap();
                }
            }
            Op::Prioritise(who, priority) => {
                if let Some(id) = self.unfinished(*who) {
                    let change = Change {
                        priority: Some(*priority),
                        ..Change::default()
                    };
                    self.table.adjust(&id, change, self.now).unwrap();
                }
            }
            Op::Pause(who, pause) => {
                if let Some(id) = self.unfinished(*who) {
                    if *pause {
                        self.table.pause(&id, self.now).unwrap();
                    } else {
                        self.table.resume(&id, self.now).unwrap();
                    }
                }
            }
        }
        self.check();
    }

    fn submit(&mut self, spec: TaskSpec) {
        let before = self.records();
        let stats = self.table.stats(self.now);
        let foretold = self.table.evaluate(spec.clone(), self.now).unwrap();
        let record = self.table.submit(spec.clone(), self.now).unwrap();
        self.specs.insert(spec.id.to_string(), spec.clone());
        if foretold.0 == Phase::Rejected && spec.depends_on.is_empty() {
            // Room that preemption makes was not foretold.
            assert!(record.reason == foretold.1 || record.phase == Phase::Admitted);
        }
        if matches!(record.reason, Reason::MemoryInUse | Reason::ShareInUse) {
            assert_eq!(self.admission, "at-once");
            let lower = before
                .iter()
                .filter(|r| r.phase == Phase::Admitted && r.priority < spec.priority);
            let lower = lower.fold((0, 0), |sum: (u64, u64), r| {
                (sum.0 + r.memory_bytes, sum.1 + u64::from(r.share_ppm))
            });
            let waits = before.iter().any(|r| r.phase == Phase::Queued);
            let memory = stats.available_memory + lower.0;
            let share = u64::from(WHOLE) - stats.reserved_share_ppm + lower.1;
            let fits = spec.memory_bytes <= memory && u64::from(spec.share_ppm) <= share;
            assert!(
                !fits || waits || lower.0 + lower.1 > 0,
                "it would have fitted: {record:?}"
            );
        }
    }

    fn next(&mut self) {
        let expected = self.expected_next();
        let started = next(&mut self.table, self.now);
        match self.order {
            "turns" => assert_eq!(started.is_some(), expected.is_some()),
            _ => assert_eq!(started, expected, "{}", self.order),
        }
        self.running.extend(started);
    }

    /// What holds after every call.
    fn check(&mut self) {
        self.table.audit().unwrap();
        let stats = self.table.stats(self.now);
        assert!(stats.reserved_memory <= MEMORY && stats.reserved_share_ppm <= u64::from(WHOLE));
        let waits = |r: &&TaskRecord| {
            matches!(r.reason, Reason::WaitingForMemory | Reason::WaitingForShare)
                && r.phase == Phase::Queued
                && !r.paused
        };
        let share = u64::from(WHOLE) - stats.reserved_share_ppm;
        let records = self.records();
        let admitted = records.iter().filter(|r| r.phase == Phase::Admitted);
        self.admitted.extend(admitted.map(|r| r.id.to_string()));
        for waiting in records.iter().filter(waits) {
            match self.admission {
                "at-once" => assert!(
                    waiting.detail.preemptions.is_some() || self.admitted.contains(waiting.id.as_str()),
                    "{waiting:?} waits, and was never admitted"
                ),
                "first-fit" => assert!(
                    waiting.memory_bytes > stats.available_memory || u64::from(waiting.share_ppm) > share,
                    "{waiting:?} fits, and waits"
                ),
                _ => {}
            }
        }
    }

    /// Everything that is there ends, and is there once.
    fn drain(&mut self) {
        let paused: Vec<String> = self
            .records()
            .iter()
            .filter(|r| r.paused)
            .map(|r| r.id.to_string())
            .collect();
        for id in paused {
            _ = self.table.resume(&id, self.now);
        }
        while self.records().iter().any(|r| !r.phase.is_terminal()) {
            let before = self.running.len();
            self.now += 1;
            self.next();
            if self.running.len() == before {
                assert!(
                    !self.running.is_empty(),
                    "nothing runs, nothing starts: {:?}",
                    self.records()
                );
                let id = self.running.remove(0);
                self.table.finish(&id, Outcome::Succeeded, self.now).unwrap();
            }
            self.check();
        }
        for id in std::mem::take(&mut self.running) {
            self.table.finish(&id, Outcome::Succeeded, self.now).unwrap();
        }
        let records = self.records();
        assert_eq!(records.len(), self.specs.len());
        let stats = self.table.stats(self.now);
        assert_eq!((stats.reserved_memory, stats.reserved_share_ppm), (0, 0));
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_order_with_any_admission(ops in prop::collection::vec(op(), 1..120)) {
        for order in order_names() {
            for admission in admission_names() {
                let mut world = World::new(order, admission);
                ops.iter().for_each(|op| world.apply(op));
                world.drain();
            }
        }
    }
}

#[test]
fn a_task_that_is_rejected_when_it_is_resumed_holds_nobody_back() {
    let mut world = World::new("fifo", "at-once");
    world.submit(asks("first", 0, 0));
    world.submit(asks("holder", 90, 0));
    world.submit(TaskSpec {
        depends_on: vec!["first".into()],
        ..asks("large", 50, 0)
    });
    world.next();
    world.running.clear();
    world.table.pause("large", world.now).unwrap();
    world.table.finish("first", Outcome::Succeeded, world.now).unwrap();
    world.table.resume("large", world.now).unwrap();
    let reason = |world: &mut World, id: &str| world.table.get(id, world.now).unwrap().reason;
    assert_eq!(reason(&mut world, "large"), Reason::MemoryInUse);
    world.submit(asks("small", 1, 0));
    assert_eq!(reason(&mut world, "small"), Reason::None);
}

#[test]
fn unknown_names_are_refused_with_those_there_are() {
    let (mut table, _) = small();
    let error = table.set_order("lifo").unwrap_err();
    assert_eq!(
        error.to_string(),
        "order: no order \"lifo\"; choose one of turns, fifo, deadline, shortest"
    );
    let error = admission_named("").err().unwrap();
    assert_eq!(
        error.to_string(),
        "admission: no admission \"\"; choose one of in-order, first-fit, at-once"
    );
}

fn with_policies(order: &str, admission: &str) -> TaskTable {
    let (mut table, _) = small();
    table.set_order(order).unwrap();
    table.set_admission(admission_named(admission).unwrap());
    table
}

fn started(table: &mut TaskTable) -> Vec<String> {
    std::iter::from_fn(|| next(table, 0)).collect()
}

#[test]
fn each_order_starts_the_same_tasks_in_its_own() {
    for (order, expected) in [
        ("turns", ["urgent", "a1", "b1", "a2", "b2"]),
        ("fifo", ["urgent", "a1", "a2", "b1", "b2"]),
        ("deadline", ["urgent", "b2", "a2", "a1", "b1"]),
        ("shortest", ["urgent", "b1", "a2", "b2", "a1"]),
    ] {
        let mut table = with_policies(order, "in-order");
        create(&mut table, "b", Limits::new(0, 0));
        for (id, partition, deadline_ns, run_ns) in [
            ("a1", "", 0, 40),
            ("a2", "", 900, 20),
            ("b1", "b", 0, 10),
            ("b2", "b", 500, 30),
        ] {
            let spec = TaskSpec {
                deadline_ns,
                run_ns,
                ..within(partition, TaskSpec::new(id))
            };
            table.submit(spec, 0).unwrap();
        }
        table.submit(urgent("urgent", 0, 1), 0).unwrap();
        assert_eq!(started(&mut table), expected, "{order}");
    }
}

/// A long task is passed by shorter ones of eight of its runs, not for ever.
#[test]
fn shortest_starves_nobody() {
    let mut table = with_policies("shortest", "in-order");
    let runs = |id: &str, run_ns| TaskSpec {
        run_ns,
        ..TaskSpec::new(id)
    };
    table.submit(runs("long", 100), 0).unwrap();
    let mut before = 0;
    for now in (0..10_000).step_by(10) {
        table.submit(runs(&format!("short {now}"), 1), now).unwrap();
        let id = next(&mut table, now).unwrap();
        if id == "long" {
            break;
        }
        before += 1;
    }
    assert_eq!(before, 80);
}

#[test]
fn what_waits_holds_back_is_passed_or_is_not_left_to_wait() {
    let big = |table: &mut TaskTable| table.submit(asks("big", 80, 0), 0).unwrap();
    for (admission, phases) in [
        ("in-order", [Phase::Queued, Phase::Queued]),
        ("first-fit", [Phase::Queued, Phase::Admitted]),
        ("at-once", [Phase::Rejected, Phase::Admitted]),
    ] {
        let mut table = with_policies("turns", admission);
        table.submit(asks("first", 50, 0), 0).unwrap();
        let foretold = table.evaluate(asks("big", 80, 0), 0).unwrap();
        let record = big(&mut table);
        assert_eq!((foretold.0, foretold.1), (record.phase, record.reason));
        table.submit(asks("small", 40, 0), 0).unwrap();
        assert_eq!(
            [phase(&mut table, "big"), phase(&mut table, "small")],
            phases,
            "{admission}"
        );
        if admission == "at-once" {
            assert_eq!(record.reason, Reason::MemoryInUse);
            assert_eq!(detail(&record), [("asked", 80), ("available", 50)]);
            let share = table.submit(asks("all of it", 0, 1_000_000), 0).unwrap();
            assert_eq!(share.phase, Phase::Admitted);
            let share = table.submit(asks("more", 0, 1), 0).unwrap();
            assert_eq!((share.phase, share.reason), (Phase::Rejected, Reason::ShareInUse));
        }
    }
}

/// At once or not at all: also for a task whose turn comes when what it depends on has ended; but not for one that gave way.
#[test]
fn at_once_counts_from_when_a_task_can_begin() {
    let mut table = with_policies("turns", "at-once");
    table.submit(asks("first", 50, 0), 0).unwrap();
    assert_eq!(next(&mut table, 0).as_deref(), Some("first"));
    table.submit(asks("held", 50, 0), 0).unwrap();
    let waits = TaskSpec {
        memory_bytes: 60,
        policy: pygpukit_core::scheduler::Policy::Burstable,
        ..after("then", &["first"])
    };
    assert_eq!(table.submit(waits, 0).unwrap().reason, Reason::WaitingForDependency);
    table.submit(after("and then", &["then"]), 0).unwrap();
    table.finish("first", Outcome::Succeeded, 1).unwrap();
    let record = table.get("then", 1).unwrap();
    assert_eq!((record.phase, record.reason), (Phase::Rejected, Reason::MemoryInUse));
    assert_eq!(table.get("and then", 1).unwrap().reason, Reason::DependencyFailed);
    assert_eq!(table.submit(urgent("urgent", 70, 5), 1).unwrap().phase, Phase::Admitted);
    assert_eq!(phase(&mut table, "held"), Phase::Queued);
    table.cancel("urgent", 2).unwrap();
    assert_eq!(table.get("held", 2).unwrap().phase, Phase::Admitted);
}
