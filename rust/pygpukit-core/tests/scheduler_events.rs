//! The log of transitions and moves replayed is the table's state, and what tenants used adds up, whatever happens.

use proptest::prelude::*;
use pygpukit_core::partition::Limits;
use pygpukit_core::scheduler::{
    Change, Config, Move, Observer, Outcome, Phase, Reason, TaskContext, TaskTable, TenantUse, TenantView, Transition,
    Used, MAX_TENANTS,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

mod cases;
mod scheduler_support;

use cases::cases;
use scheduler_support::{asks, failed};

const MS: u64 = 1_000_000;
const PARTITIONS: [&str; 3] = ["", "first", "second"];

/// What a reader of the log knows.
#[derive(Default)]
struct Replay {
    phases: HashMap<u64, Phase>,
    /// Task numbers by partition.
    lines: HashMap<String, Vec<u64>>,
    t_ns: u64,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Replay>>);

impl Observer for Log {
    fn transition(&mut self, t: &Transition<'_>) {
        let mut replay = self.0.lock().unwrap();
        let before = replay.phases.insert(t.number, t.to).unwrap_or(Phase::Submitted);
        assert_eq!(before, t.from);
        assert!(replay.t_ns <= t.t_ns);
        replay.t_ns = t.t_ns;
    }

    fn moved(&mut self, m: &Move<'_>) {
        let mut replay = self.0.lock().unwrap();
        assert!(replay.t_ns <= m.t_ns);
        let line = replay.lines.entry(m.partition.to_string()).or_default();
        let at = m.place as usize - 1;
        if m.came {
            line.insert(at, m.number);
        } else {
            assert_eq!(line.remove(at), m.number);
        }
        assert_eq!(line.len() as u64, m.depth);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Submit {
        tenant: u8,
        memory: u64,
        priority: i32,
        partition: usize,
        after: bool,
    },
    Next,
    Work(u64),
    Finish(bool),
    Cancel(u8),
    Pause(u8),
    Resume(u8),
    Requeue(u8),
    Reprioritise(u8, i32),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let submit = (0u8..100, 0u64..60, -1i32..3, 0usize..3, any::<bool>());
    prop_oneof![
        8 => submit.prop_map(|(tenant, memory, priority, partition, after)| Op::Submit {
            tenant, memory, priority, partition, after: after && tenant < 30,
        }),
        6 => Just(Op::Next),
        4 => (1u64..1000).prop_map(Op::Work),
        5 => any::<bool>().prop_map(Op::Finish),
        1 => any::<u8>().prop_map(Op::Cancel),
        1 => any::<u8>().prop_map(Op::Pause),
        2 => any::<u8>().prop_map(Op::Resume),
        1 => any::<u8>().prop_map(Op::Requeue),
        2 => (any::<u8>(), -1i32..3).prop_map(|(who, priority)| Op::Reprioritise(who, priority)),
        2 => (0u64..40).prop_map(Op::Wait),
    ]
}

struct Run {
    table: TaskTable,
    log: Log,
    inside: Vec<Arc<TaskContext>>,
    submitted: u64,
    /// What was ever used, by name.
    used: HashMap<String, Used>,
    requeued: u64,
    before: HashMap<String, TenantUse>,
    now: u64,
}

impl Run {
    fn new() -> Run {
        let log = Log::default();
        let config = Config {
            max_finished: 5,
            max_queue: 40,
            ..Config::new(100)
        };
        let mut table = TaskTable::new(config, Box::new(log.clone()));
        table.with_partitions(1, |partitions| {
            for id in &PARTITIONS[1..] {
                partitions.create(id, id, Limits::new(30, 0)).unwrap();
            }
        });
        Run {
            table,
            log,
            inside: Vec::new(),
            submitted: 0,
            used: HashMap::new(),
            requeued: 0,
            before: HashMap::new(),
            now: 1,
        }
    }

    fn anybody(&mut self, who: u8) -> Option<String> {
        let tasks = self.table.snapshot(self.now);
        let i = usize::from(who) % tasks.len().max(1);
        tasks.get(i).map(|task| task.id.to_string())
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        match *op {
            Op::Submit {
                tenant,
                memory,
                priority,
                partition,
                after,
            } => {
                self.submitted += 1;
                let mut spec = asks(&self.submitted.to_string(), memory, 0);
                (spec.name, spec.priority) = (format!("tenant {tenant}").into(), priority);
                spec.partition = PARTITIONS[partition].into();
                spec.idempotent = true;
                if after {
                    spec.depends_on = self.anybody(tenant).into_iter().map(Into::into).collect();
                }
                self.table.submit(spec, now).unwrap();
            }
            Op::Next => self.inside.extend(self.table.next(now).map(|start| start.context)),
            Op::Work(ns) => {
                let Some(context) = self.inside.last() else { return };
                let used = Used {
                    launches: 1,
                    gpu_ns: ns,
                    throttles: ns % 2,
                    throttled_ns: ns / 3,
                    asked_ns: ns,
                    others_ns: ns / 5,
                    host_ns: ns / 4,
                    ..Used::default()
                };
                context.add(&used);
                let name = self.table.get(&context.id, now).unwrap().name;
                *self.used.entry(name.to_string()).or_default() += used;
            }
            Op::Finish(ok) => {
                let Some(context) = self.inside.pop() else { return };
                let outcome = if ok { Outcome::Succeeded } else { failed("e") };
                self.table.finish(&context.id, outcome, now).unwrap();
            }
            Op::Cancel(who) => {
                self.anybody(who).map(|id| self.table.cancel(&id, now));
            }
            Op::Pause(who) => {
                self.anybody(who).map(|id| self.table.pause(&id, now));
            }
            Op::Resume(who) => {
                self.anybody(who).map(|id| self.table.resume(&id, now));
            }
            Op::Requeue(who) => {
                let Some(id) = self.anybody(who) else { return };
                let done = self.table.requeue(&id, Reason::WaitingForDevice, now);
                self.requeued += u64::from(done.is_ok());
                if done.is_ok() {
                    self.inside.retain(|context| context.id != *id);
                }
            }
            Op::Reprioritise(who, priority) => {
                let change = Change {
                    priority: Some(priority),
                    ..Change::default()
                };
                self.anybody(who).map(|id| self.table.adjust(&id, change, now));
            }
            Op::Wait(ms) => self.now += ms * MS,
        }
    }

    fn check(&mut self) {
        let records = self.table.snapshot(self.now);
        let stats = self.table.stats(self.now);
        let tenants = self.table.tenants(self.now);
        let replay = self.log.0.lock().unwrap();
        let mut waiting = HashMap::new();
        for line in replay.lines.values() {
            waiting.extend(line.iter().zip(1u64..).map(|(&number, place)| (number, place)));
        }
        for record in &records {
            assert_eq!(replay.phases[&record.number], record.phase, "task {}", record.id);
            assert_eq!(
                record.detail.position,
                waiting.get(&record.number).copied(),
                "task {}",
                record.id
            );
        }
        let count = |phase| replay.phases.values().filter(|&&p| p == phase).count() as u64;
        let counts = [
            Phase::Queued,
            Phase::Admitted,
            Phase::Running,
            Phase::Suspended,
            Phase::Succeeded,
        ]
        .map(count);
        let stated = [
            stats.queued,
            stats.admitted,
            stats.running,
            stats.suspended,
            stats.succeeded,
        ];
        assert_eq!(counts, stated);
        for (partition, depth) in self.table.depths() {
            assert_eq!(
                replay.lines.get(&partition).map_or(0, Vec::len) as u64,
                depth,
                "{partition:?}"
            );
        }
        drop(replay);
        self.check_tenants(tenants, waiting.len() as u64);
    }

    fn check_tenants(&mut self, tenants: Vec<TenantView>, waiting: u64) {
        assert!(tenants.len() <= MAX_TENANTS + 1);
        assert_eq!(tenants.iter().map(|t| t.waiting).sum::<u64>(), waiting);
        assert!(tenants.iter().all(|t| (t.waiting > 0) == (t.place > 0)));
        let (mut sum, mut everything) = (TenantUse::default(), Used::default());
        for (name, used) in &self.used {
            everything += *used;
            if let Some(view) = tenants.iter().find(|t| t.name.as_deref() == Some(name)) {
                assert_eq!(view.total.used, *used, "{name}");
            }
        }
        for view in tenants {
            sum += view.total;
            let name = view.name.map_or(String::new(), |name| name.to_string());
            let before = self.before.insert(name.clone(), view.total).unwrap_or_default();
            let fell = |get: fn(&TenantUse) -> u64| get(&view.total) < get(&before);
            assert!(
                ![fell(|t| t.tasks), fell(|t| t.requeues), fell(|t| t.used.gpu_ns)].contains(&true),
                "{name}"
            );
        }
        assert_eq!(
            (sum.tasks, sum.used, sum.requeues),
            (self.submitted, everything, self.requeued)
        );
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn the_log_and_the_tenants_tell_the_state(ops in prop::collection::vec(op(), 1..250)) {
        let mut run = Run::new();
        for op in &ops {
            run.apply(op);
            run.check();
        }
    }
}

#[test]
fn names_beyond_the_bound_are_counted_together() {
    let mut run = Run::new();
    for tenant in 0..100 {
        let submit = Op::Submit {
            tenant,
            memory: 0,
            priority: 0,
            partition: 0,
            after: false,
        };
        for op in [submit, Op::Next, Op::Work(10), Op::Finish(true)] {
            run.apply(&op);
        }
        run.check();
    }
    let tenants = run.table.tenants(run.now);
    let others = tenants.last().unwrap();
    assert_eq!((tenants.len(), &others.name), (MAX_TENANTS + 1, &None));
    assert_eq!((others.total.tasks, others.total.used.gpu_ns), (36, 360));
}
