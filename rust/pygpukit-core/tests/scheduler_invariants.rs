//! What must hold after every call, whatever the calls: sums, bounds, order, preemption, and a log that tells the state.

mod cases;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::partition::{Limits, Reservation};
use pygpukit_core::scheduler::{Config, Name, Outcome, Phase, Reason, Retry, TaskSpec, TaskTable, Transition};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

const MEMORY: u64 = 100;
const PARTITIONS: [&str; 3] = ["", "a", "b"];
/// Quota, borrowing and lending limit in bytes of the named partitions.
const BOUNDS: [(u64, u64, u64); 2] = [(30, 20, 0), (40, 0, 15)];

#[derive(Clone, Debug)]
enum Op {
    Submit {
        memory: u64,
        share: u32,
        partition: usize,
        priority: i32,
        idempotent: bool,
        retries: u32,
    },
    Next,
    Finish {
        who: usize,
        ok: bool,
    },
    Cancel {
        who: usize,
    },
    LoseWorker {
        who: usize,
    },
    Wait {
        ms: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let submit = (0..45u64, 0..400_000u32, 0..3usize, 0..4i32, any::<bool>(), 0..2u32);
    prop_oneof![
        6 => submit.prop_map(|(memory, share, partition, priority, idempotent, retries)| {
            Op::Submit { memory, share, partition, priority, idempotent, retries }
        }),
        4 => Just(Op::Next),
        4 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(who, ok)| Op::Finish { who, ok }),
        1 => any::<usize>().prop_map(|who| Op::Cancel { who }),
        1 => any::<usize>().prop_map(|who| Op::LoseWorker { who }),
        1 => (0..2000u64).prop_map(|ms| Op::Wait { ms }),
    ]
}

type Log = Arc<Mutex<Vec<(u64, Phase, Phase, Reason)>>>;

struct Run {
    table: TaskTable,
    log: Log,
    read: usize,
    now: u64,
    /// By number.
    specs: BTreeMap<u64, TaskSpec>,
    /// As the log tells it.
    phases: HashMap<u64, Phase>,
    /// A dispatcher is inside: what the caller knows.
    inside: HashMap<u64, Name>,
    /// Went back to the queue, so that its place among equals may have been passed.
    requeued: HashSet<u64>,
    /// The last started of each partition and priority.
    started: HashMap<(Name, i32), u64>,
}

impl Run {
    fn new() -> Run {
        let log: Log = Arc::default();
        let sink = log.clone();
        let observer = move |t: &Transition<'_>| sink.lock().unwrap().push((t.number, t.from, t.to, t.reason));
        let mut table = TaskTable::new(Config::new(MEMORY), Box::new(observer));
        table.with_partitions(0, |partitions| {
            for (id, (quota, borrow, lend)) in PARTITIONS[1..].iter().zip(BOUNDS) {
                let bytes = |memory_bytes| Reservation {
                    memory_bytes,
                    share_ppm: 0,
                };
                let limits = Limits {
                    borrow: bytes(borrow),
                    lend: bytes(lend),
                    ..Limits::new(quota, 300_000)
                };
                partitions.create(id, id, limits).unwrap();
            }
        });
        let (specs, phases, inside, requeued) = Default::default();
        Run {
            table,
            log,
            read: 0,
            now: 1,
            specs,
            phases,
            inside,
            requeued,
            started: HashMap::new(),
        }
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        let pick = |who: usize, inside: &HashMap<u64, Name>| {
            let mut numbers: Vec<u64> = inside.keys().copied().collect();
            numbers.sort_unstable();
            numbers.get(who % numbers.len().max(1)).copied()
        };
        let failed = |reason| Outcome::Failed {
            reason,
            error: String::new(),
        };
        let mut retried = None;
        match *op {
            Op::Submit {
                memory,
                share,
                partition,
                priority,
                idempotent,
                retries,
            } => {
                let mut spec = TaskSpec {
                    memory_bytes: memory,
                    share_ppm: share,
                    partition: PARTITIONS[partition].into(),
                    priority,
                    idempotent,
                    retry: Retry {
                        retries,
                        ..Retry::default()
                    },
                    ..TaskSpec::new(self.specs.len().to_string())
                };
                spec.policy = spec.demand().class();
                let record = self.table.submit(spec.clone(), now).unwrap();
                self.specs.insert(record.number, spec);
            }
            Op::Next => {
                if let Some(context) = self.table.next(now) {
                    self.inside.insert(context.number, context.id.clone());
                }
            }
            Op::Finish { who, ok } => {
                let Some(number) = pick(who, &self.inside) else { return };
                let id = self.inside.remove(&number).unwrap();
                let outcome = if ok {
                    Outcome::Succeeded
                } else {
                    failed(Reason::UserError)
                };
                if self.table.finish(&id, outcome, now).unwrap() == Phase::Queued {
                    retried = Some(number);
                }
            }
            Op::Cancel { who } => {
                let numbers: Vec<u64> = self.specs.keys().copied().collect();
                let Some(number) = numbers.get(who % numbers.len().max(1)) else {
                    return;
                };
                self.table.cancel(&self.specs[number].id.clone(), now).unwrap();
            }
            Op::LoseWorker { who } => {
                let Some(number) = pick(who, &self.inside) else { return };
                let id = self.inside.remove(&number).unwrap();
                if self.table.requeue(&id, Reason::WaitingForDevice, now).is_ok() {
                    assert!(
                        self.specs[&number].idempotent,
                        "only these may start again after their worker was lost"
                    );
                    retried = Some(number);
                } else {
                    self.table.finish(&id, failed(Reason::WorkerLost), now).unwrap();
                }
            }
            Op::Wait { ms } => {
                self.now += ms * 1_000_000;
                self.table.advance(self.now);
            }
        }
        self.read_log(retried);
        self.check();
    }

    /// Replays what the call logged, and looks at the order of starts and at who gave way to whom.
    fn read_log(&mut self, retried: Option<u64>) {
        let log = self.log.lock().unwrap();
        let mut gave_way: Vec<u64> = Vec::new();
        for &(number, from, to, reason) in &log[self.read..] {
            assert_eq!(self.phases.insert(number, to).unwrap_or(Phase::Submitted), from);
            let spec = self.specs.get(&number);
            match (from, to) {
                (Phase::Running, Phase::Queued) => {
                    assert!(Some(number) == retried || reason == Reason::WaitingForRetry);
                    self.requeued.insert(number);
                }
                (Phase::Admitted, Phase::Queued) => {
                    assert_eq!(reason, Reason::WaitingForPreemption);
                    assert!(!gave_way.contains(&number), "it gave way twice in one call");
                    gave_way.push(number);
                    self.requeued.insert(number);
                }
                (_, Phase::Admitted) => {
                    for victim in gave_way.drain(..) {
                        let victim = &self.specs[&victim];
                        assert!(
                            spec.is_none() || victim.priority < spec.unwrap().priority,
                            "strictly by priority"
                        );
                    }
                }
                (_, Phase::Running) => {
                    let spec = spec.expect("it was submitted in an earlier call");
                    if !self.requeued.contains(&number) {
                        let last = self.started.insert((spec.partition.clone(), spec.priority), number);
                        assert!(last.unwrap_or(0) < number, "first come, first served among equals");
                    }
                }
                _ => {}
            }
        }
        assert!(gave_way.is_empty(), "it gave way to nobody");
        self.read = log.len();
    }

    fn check(&mut self) {
        self.table.audit().unwrap();
        // The log and what the caller knows give the ledger.
        let mut used = [0u64; 3];
        let mut share = 0u64;
        for (number, spec) in &self.specs {
            let holds =
                matches!(self.phases[number], Phase::Admitted | Phase::Running) || self.inside.contains_key(number);
            if holds {
                used[PARTITIONS.iter().position(|id| spec.partition == *id).unwrap()] += spec.memory_bytes;
                share += u64::from(spec.share_ppm);
            }
        }
        let stats = self.table.stats(self.now);
        assert_eq!(
            (stats.reserved_memory, stats.reserved_share_ppm),
            (used.iter().sum::<u64>(), share)
        );
        assert_eq!(stats.reserved_memory + stats.available_memory, MEMORY);
        assert!(share <= 1_000_000);
        for (i, (quota, borrow, _)) in BOUNDS.into_iter().enumerate() {
            let named = self.table.partitions().used(PARTITIONS[i + 1]).unwrap();
            assert_eq!(named.memory_bytes, used[i + 1]);
            assert!(named.memory_bytes <= quota + borrow);
        }
        // What each keeps and does not use is there for it, whoever else has asked.
        let kept: u64 = (0..2).map(|i| (BOUNDS[i].0 - BOUNDS[i].2).max(used[i + 1])).sum();
        assert!(used[0] + kept <= MEMORY, "{used:?}");
        // Work goes on: the first of all that wait is short of something.
        let snapshot = self.table.snapshot(self.now);
        let waiting = snapshot
            .iter()
            .filter(|task| task.phase == Phase::Queued && task.detail.position.is_some());
        let first = waiting.min_by_key(|task| (-task.priority, task.number));
        assert!(first.map_or(true, |task| task.detail.available.is_some()), "{first:?}");
    }

    /// Nothing fails any more: everything ends, and holds nothing.
    fn drain(mut self) {
        for _ in 0..40 {
            for op in [Op::Wait { ms: 1500 }, Op::Next, Op::Finish { who: 0, ok: true }] {
                self.apply(&op);
            }
        }
        while self.phases.values().any(|phase| !phase.is_terminal()) || !self.inside.is_empty() {
            let before = (self.log.lock().unwrap().len(), self.inside.len());
            for op in [Op::Next, Op::Finish { who: 0, ok: true }] {
                self.apply(&op);
            }
            assert_ne!(before, (self.log.lock().unwrap().len(), self.inside.len()), "stuck");
        }
        let stats = self.table.stats(self.now);
        assert_eq!((stats.reserved_memory, stats.reserved_share_ppm), (0, 0));
        let ends = self.log.lock().unwrap().iter().filter(|t| t.2.is_terminal()).count();
        assert_eq!(ends, self.specs.len(), "each ended once");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn invariants_hold_after_every_call(ops in prop::collection::vec(op(), 1..120)) {
        let mut run = Run::new();
        for op in &ops {
            run.apply(op);
        }
        run.drain();
    }
}
