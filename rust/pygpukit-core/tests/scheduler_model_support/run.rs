//! A task table and its model side by side: each operation is done to both, and both are compared.

use super::model::{Model, MAX_QUEUE, MEMORY, SHARE};
use super::strategies::{Ending, Op};
use pygpukit_core::scheduler::{
    edge, Change, Config, DeviceHealth, Outcome, Phase, Policy, Reason, Retry, TaskError, TaskSpec, TaskTable,
    Transition,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const MS: u64 = 1_000_000;

pub type Log = Vec<(u64, Phase, Phase, Reason, u64)>;

struct Run {
    table: TaskTable,
    model: Model,
    log: Arc<Mutex<Log>>,
    health: Arc<DeviceHealth>,
    broken: Arc<AtomicBool>,
    now: u64,
}

impl Run {
    fn new() -> Run {
        let log = Arc::new(Mutex::new(Log::new()));
        let sink = log.clone();
        let observer = move |t: &Transition<'_>| sink.lock().unwrap().push((t.number, t.from, t.to, t.reason, t.t_ns));
        let config = Config {
            total_share_ppm: SHARE,
            max_queue: MAX_QUEUE,
            max_finished: 1 << 30,
            ..Config::new(MEMORY)
        };
        let broken = Arc::new(AtomicBool::new(false));
        let asked = broken.clone();
        let health = Arc::new(DeviceHealth::new(move || asked.load(Ordering::Relaxed)));
        let mut table = TaskTable::new(config, Box::new(observer));
        table.watch(health.clone());
        Run {
            table,
            model: Model::default(),
            log,
            health,
            broken,
            now: 1,
        }
    }

    /// The task that a small number means: among those with a dispatcher inside, or among the youngest.
    fn pick(&self, who: u8, inside: bool) -> Option<usize> {
        let tasks = &self.model.tasks;
        let candidates: Vec<usize> = (0..tasks.len())
            .rev()
            .filter(|&i| !inside || tasks[i].occupied)
            .take(20)
            .collect();
        candidates.get(usize::from(who)).copied()
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        self.model.advance(now);
        match op {
            Op::Submit {
                memory,
                share,
                policy,
                priority,
                depends,
                deadline_ms,
                idempotent,
                retries,
            } => {
                let i = self.model.tasks.len();
                let policy = [Policy::BestEffort, Policy::Burstable, Policy::Guaranteed][usize::from(*policy)];
                // 0 is the task itself or one to come: refused.
                let depends = depends
                    .iter()
                    .filter(|&&d| d > 0 || i % 7 == 0)
                    .map(|&d| i.saturating_sub(d.into()));
                let spec = TaskSpec {
                    memory_bytes: *memory,
                    share_ppm: *share,
                    policy,
                    priority: (*priority).into(),
                    depends_on: depends.map(|d| d.to_string().into()).collect(),
                    deadline_ns: if *deadline_ms == 0 {
                        0
                    } else {
                        now + u64::from(*deadline_ms - 30) * MS
                    },
                    idempotent: *idempotent,
                    retry: Retry {
                        retries: *retries,
                        ..Retry::default()
                    },
                    name: "any".into(),
                    ..TaskSpec::new(i.to_string())
                };
                let record = self.table.submit(spec.clone(), now).unwrap();
                self.model.submit(spec.clone(), now);
                if record.reason == Reason::DeadlineUnmeetable && spec.deadline_ns > now {
                    // From the run times so far, which the model does not know.
                    assert!(record.detail.asked > record.detail.available);
                    self.model.tasks[i].phase = Phase::Rejected;
                }
            }
            Op::Next => {
                let expected = self.model.in_order(Phase::Admitted).first().copied();
                let got = self
                    .table
                    .next(now)
                    .map(|start| start.context.id.parse::<usize>().unwrap());
                assert_eq!(got, expected, "higher priority first, then first come");
                if let Some(i) = expected {
                    (self.model.tasks[i].phase, self.model.tasks[i].occupied) = (Phase::Running, true);
                }
            }
            Op::Finish { who, how } => {
                let Some(i) = self.pick(*who, true) else { return };
                let (reason, error) = (Reason::StickyDeviceError, "e".to_string());
                let outcome = match how {
                    Ending::Ok => Outcome::Succeeded,
                    Ending::Failed => Outcome::Failed {
                        reason: Reason::UserError,
                        error,
                    },
                    Ending::Lost => Outcome::Lost { reason, error },
                };
                let ended = self.table.finish(&i.to_string(), outcome, now).unwrap();
                let task = &mut self.model.tasks[i];
                task.occupied = false;
                if *how == Ending::Lost && task.runs() && task.spec.idempotent && !task.lost {
                    (task.phase, task.lost) = (Phase::Queued, true);
                    (task.held_until, task.requeues) = (now + 10 * MS, task.requeues + 1);
                    assert_eq!(ended, Phase::Queued);
                    return self.check(op);
                }
                let ok = *how == Ending::Ok;
                let again = !ok && task.runs() && task.retries < task.spec.retry.retries && !self.model.broken;
                if again {
                    task.phase = Phase::Queued;
                    task.held_until = now + ((10 * MS) << task.retries);
                    (task.retries, task.requeues) = (task.retries + 1, task.requeues + 1);
                    assert_eq!(ended, Phase::Queued);
                    return self.check(op);
                }
                if !task.phase.is_terminal() {
                    self.model.end(i, if ok { Phase::Succeeded } else { Phase::Failed });
                }
                assert_eq!(ended, self.model.tasks[i].phase);
            }
            Op::Cancel { who } => {
                let Some(i) = self.pick(*who, false) else { return };
                let open = !self.model.tasks[i].phase.is_terminal();
                assert_eq!(self.table.cancel(&i.to_string(), now), Ok(open));
                if open {
                    self.model.end(i, Phase::Cancelled);
                }
            }
            Op::Requeue { who } => {
                let Some(i) = self.pick(*who, false) else { return };
                let task = &mut self.model.tasks[i];
                let may = task.phase == Phase::Admitted || (task.runs() && task.spec.idempotent);
                assert_eq!(
                    self.table
                        .requeue(&i.to_string(), Reason::WaitingForDevice, now)
                        .is_ok(),
                    may
                );
                if may {
                    (task.phase, task.occupied) = (Phase::Queued, false);
                    task.held_until = now + ((10 * MS) << task.requeues).min(1000 * MS);
                    task.requeues += 1;
                }
            }
            Op::Pause { who } => self.pause(*who, true),
            Op::Resume { who } => self.pause(*who, false),
            Op::Adjust { who, priority, share } => {
                let Some(i) = self.pick(*who, false) else { return };
                let change = Change {
                    priority: *priority,
                    share_ppm: *share,
                    share_limit_ppm: None,
                };
                let may = self.model.adjust(i, *priority, *share);
                assert_eq!(self.table.adjust(&i.to_string(), change, now).is_ok(), may, "{op:?}");
            }
            Op::Wait { ms } => {
                self.now += u64::from(*ms) * MS;
                self.table.advance(self.now);
            }
            Op::Device { broken } => {
                self.broken.store(*broken, Ordering::Relaxed);
                if *broken {
                    self.health.fail("broken");
                }
                self.model.broken = *broken;
            }
        }
        self.check(op);
    }

    fn check(&mut self, op: &Op) {
        self.model.advance(self.now);
        let stats = self.table.stats(self.now);
        assert_eq!(
            (stats.reserved_memory, stats.reserved_share_ppm),
            self.model.reserved(),
            "after {op:?}"
        );
        assert_eq!(stats.available_memory + stats.reserved_memory, MEMORY);
    }

    fn pause(&mut self, who: u8, paused: bool) {
        let Some(i) = self.pick(who, false) else { return };
        self.set_paused(i, paused);
    }

    fn set_paused(&mut self, i: usize, paused: bool) {
        let (id, task) = (i.to_string(), &mut self.model.tasks[i]);
        let done = if paused {
            self.table.pause(&id, self.now)
        } else {
            self.table.resume(&id, self.now)
        };
        if task.phase.is_terminal() {
            assert!(matches!(done, Err(TaskError::Ended { .. })));
            return;
        }
        assert_eq!(done, Ok(task.paused != paused));
        task.paused = paused;
        task.phase = match (task.phase, paused) {
            (Phase::Running, true) => Phase::Suspended,
            (Phase::Admitted, true) => Phase::Queued,
            (Phase::Suspended, false) => Phase::Running,
            (phase, _) => phase,
        };
    }

    fn compare(&mut self) {
        self.table.audit().unwrap();
        for (record, entry) in self.table.snapshot(self.now).iter().zip(&self.model.tasks) {
            assert_eq!(record.phase, entry.phase, "task {}", record.id);
            let paused = entry.paused && !entry.phase.is_terminal();
            assert_eq!(record.paused, paused, "task {}", record.id);
            let waits = paused && entry.phase == Phase::Queued;
            assert_eq!(record.reason == Reason::WaitingForResume, waits, "task {}", record.id);
            let spec = &entry.spec;
            let asked = (record.priority, record.share_ppm, record.policy);
            assert_eq!(
                asked,
                (spec.priority, spec.share_ppm, spec.policy),
                "task {}",
                record.id
            );
            assert_eq!(self.table.get(&record.id, self.now).as_ref(), Some(record));
        }
    }

    /// Lets everything end, then checks the log as a whole.
    fn drain(mut self) -> Log {
        for i in 0..self.model.tasks.len() {
            self.set_paused(i, false);
            self.model.advance(self.now);
        }
        for _ in 0..10_000 {
            self.apply(&Op::Wait { ms: 255 });
            while self.pick(0, true).is_some() {
                self.apply(&Op::Finish {
                    who: 0,
                    how: Ending::Ok,
                });
            }
            self.apply(&Op::Next);
            if self.model.tasks.iter().all(|t| t.phase.is_terminal() && !t.occupied) {
                break;
            }
        }
        self.compare();
        let stats = self.table.stats(self.now);
        assert_eq!(
            (stats.reserved_memory, stats.reserved_share_ppm),
            (0, 0),
            "the ledger is zero after the drain"
        );
        assert_eq!(
            (stats.queued, stats.admitted, stats.running, stats.suspended),
            (0, 0, 0, 0)
        );
        let ended = stats.succeeded + stats.failed + stats.cancelled + stats.rejected + stats.expired;
        assert_eq!((ended, self.table.finished_count()), (stats.submitted, stats.submitted));
        let log = std::mem::take(&mut *self.log.lock().unwrap());
        let mut phases: HashMap<u64, Phase> = HashMap::new();
        for &(number, from, to, reason, _) in &log {
            let before = phases.insert(number, to).unwrap_or(Phase::Submitted);
            assert_eq!(before, from, "task {number}: the log has a gap");
            let edge = edge(from, to).expect("no edge outside the table");
            assert_eq!(edge.reasons, reason.group());
        }
        assert_eq!(phases.len(), self.model.tasks.len());
        assert!(phases.values().all(|phase| phase.is_terminal()));
        log
    }
}

pub fn run(ops: &[Op], compare_every: usize) -> Log {
    let mut run = Run::new();
    for (i, op) in ops.iter().enumerate() {
        run.apply(op);
        if i % compare_every == 0 {
            run.compare();
        }
    }
    run.drain()
}
