//! What must hold after every call, whatever the calls: sums, bounds, order, preemption, and a log that tells the state.

mod cases;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::partition::{Limits, Reservation};
use pygpukit_core::scheduler::{
    Config, Name, Outcome, Phase, Reason, Retry, TaskSpec, TaskStart, TaskTable, Transition,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

const MEMORY: u64 = 100;
const WHOLE: u64 = 1_000_000;
const PARTITIONS: [&str; 3] = ["", "a", "b"];
/// Quota, borrowing and lending limit in bytes of the named partitions.
const BOUNDS: [(u64, u64, u64); 2] = [(30, 20, 0), (40, 0, 15)];
/// Share of the named partitions, in parts per million.
const SHARE: u32 = 300_000;

/// Memory in bytes, share in parts per million.
type Amounts = [u64; 2];
const TOTAL: Amounts = [MEMORY, WHOLE];
/// What each partition never lends, and what it never exceeds.
const KEPT: [Amounts; 3] = [
    [0, 0],
    [BOUNDS[0].0 - BOUNDS[0].2, SHARE as u64],
    [BOUNDS[1].0 - BOUNDS[1].2, SHARE as u64],
];
const MAX_AMOUNTS: [Amounts; 3] = [
    TOTAL,
    [BOUNDS[0].0 + BOUNDS[0].1, SHARE as u64],
    [BOUNDS[1].0 + BOUNDS[1].1, SHARE as u64],
];

fn asked(spec: &TaskSpec) -> Amounts {
    [spec.memory_bytes, spec.share_ppm.into()]
}

fn partition_of(spec: &TaskSpec) -> usize {
    PARTITIONS.iter().position(|id| spec.partition == *id).unwrap()
}

/// Whether a request stays under a bound of each resource that it asks for.
fn within(request: Amounts, bound: impl Fn(usize) -> u64) -> bool {
    (0..2).all(|r| request[r] == 0 || request[r] <= bound(r))
}

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
    /// Waited for nothing but memory or share after the last call, and the one that was submitted since.
    waited: Vec<u64>,
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
                    ..Limits::new(quota, SHARE)
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
            waited: Vec::new(),
        }
    }

    /// What the tasks of each partition hold, as the log and the caller know it.
    fn used(&self) -> [Amounts; 3] {
        let mut used = [[0; 2]; 3];
        for (number, spec) in &self.specs {
            let phase = self.phases.get(number);
            if matches!(phase, Some(Phase::Admitted | Phase::Running)) || self.inside.contains_key(number) {
                let sum = &mut used[partition_of(spec)];
                *sum = std::array::from_fn(|r| sum[r] + asked(spec)[r]);
            }
        }
        used
    }

    /// In service order.
    fn place(&self, number: u64) -> (i32, u64) {
        (-self.specs[&number].priority, number)
    }

    /// The first of each partition's tasks that waited and still do, in service order.
    fn heads(&self) -> Vec<u64> {
        let mut order = self.waited.clone();
        order.retain(|number| self.phases.get(number) == Some(&Phase::Queued));
        order.sort_by_key(|&number| self.place(number));
        let mut seen = [false; 3];
        order.retain(|number| !std::mem::replace(&mut seen[partition_of(&self.specs[number])], true));
        order
    }

    /// Nobody waits who could be admitted: whoever is first in a partition is short of its own bound, or of what partitions share, or
    /// somebody before it is and it needs more than its partition keeps.
    fn check_waits(&self, used: &[Amounts; 3]) {
        let mut is_short_of_shared = false;
        for number in self.heads() {
            let spec = &self.specs[&number];
            let (own, request) = (partition_of(spec), asked(spec));
            let left = |r: usize| {
                let others = (0..3).filter(|&p| p != own).map(|p| used[p][r].max(KEPT[p][r]));
                TOTAL[r] - others.sum::<u64>() - used[own][r]
            };
            let fits = within(request, |r| MAX_AMOUNTS[own][r] - used[own][r]);
            let is_there = within(request, left);
            let is_kept = within(request, |r| KEPT[own][r].saturating_sub(used[own][r]));
            let may_go = !is_short_of_shared || is_kept;
            assert!(
                !(fits && is_there && may_go),
                "task {number} waits for nothing: {spec:?}, {used:?} in use"
            );
            is_short_of_shared |= !is_there;
        }
    }

    /// Nobody is passed: an earlier task waits on only where it is short of its own partition's bound, or where who passes it takes
    /// what its partition keeps.
    fn check_order(&self, admitted: u64) {
        let Some(spec) = self.specs.get(&admitted).filter(|spec| asked(spec) != [0; 2]) else {
            return;
        };
        let (own, used) = (partition_of(spec), self.used());
        // With what it was just given.
        let is_kept = (0..2).all(|r| asked(spec)[r] == 0 || used[own][r] <= KEPT[own][r]);
        let mut earlier = self.heads();
        earlier.retain(|&number| self.place(number) < self.place(admitted));
        for number in earlier {
            let waiting = &self.specs[&number];
            let theirs = partition_of(waiting);
            assert_ne!(theirs, own, "task {admitted} passed {number} in its own line");
            let is_bound = theirs != 0 && !within(asked(waiting), |r| MAX_AMOUNTS[theirs][r] - used[theirs][r]);
            assert!(
                is_bound || is_kept,
                "task {admitted} passed {number}, which waits for what they share"
            );
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
                self.waited.push(record.number); // if it is queued, those behind it in its line wait for it
            }
            Op::Next => {
                if let Some(TaskStart { context, .. }) = self.table.next(now) {
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
        self.read_log(retried, matches!(op, Op::Wait { .. }));
        self.check();
    }

    /// Replays what the call logged, and looks at the order of starts and at who gave way to whom. `rejoins`: time passed, so that
    /// some came back into their lines that are not known to wait.
    fn read_log(&mut self, retried: Option<u64>, rejoins: bool) {
        let log: Vec<_> = self.log.lock().unwrap()[self.read..].to_vec();
        let mut gave_way: Vec<u64> = Vec::new();
        // Who gives way may leave its partition room that an earlier one did not have.
        let preempts = log.iter().any(|t| (t.1, t.2) == (Phase::Admitted, Phase::Queued));
        let is_ordered = !preempts && !rejoins;
        for &(number, from, to, reason) in &log {
            assert_eq!(self.phases.insert(number, to).unwrap_or(Phase::Submitted), from);
            let spec = self.specs.get(&number);
            if to == Phase::Admitted && is_ordered {
                self.check_order(number);
            }
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
        self.read += log.len();
    }

    fn check(&mut self) {
        self.table.audit().unwrap();
        // The log and what the caller knows give the ledger.
        let used = self.used();
        let sum = |r: usize| used.iter().map(|amounts| amounts[r]).sum::<u64>();
        let stats = self.table.stats(self.now);
        assert_eq!((stats.reserved_memory, stats.reserved_share_ppm), (sum(0), sum(1)));
        assert_eq!(stats.reserved_memory + stats.available_memory, MEMORY);
        for (p, id) in PARTITIONS.iter().enumerate().skip(1) {
            let named = self.table.partitions().used(id).unwrap();
            assert_eq!([named.memory_bytes, named.share_ppm.into()], used[p]);
        }
        // What each keeps and does not use is there for it, whoever else has asked; none exceeds its bound.
        for r in 0..2 {
            let committed: u64 = (0..3).map(|p| used[p][r].max(KEPT[p][r])).sum();
            assert!(committed <= TOTAL[r], "{used:?}");
            assert!((0..3).all(|p| used[p][r] <= MAX_AMOUNTS[p][r]), "{used:?}");
        }
        let snapshot = self.table.snapshot(self.now);
        let waiting = snapshot
            .iter()
            .filter(|task| task.phase == Phase::Queued && task.detail.position.is_some());
        self.waited = waiting.map(|task| task.number).collect();
        self.check_waits(&used);
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
