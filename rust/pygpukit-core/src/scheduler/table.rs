//! The task table: every task of one scheduler, what it reserved, and the edges it takes. Pure state; time comes in as an argument.

use super::context::TaskContext;
use super::error::{Outcome, TaskError};
use super::ledger::Ledger;
use super::phase::{edge, Phase};
use super::queue::ServiceQueue;
use super::reason::Reason;
use super::record::{Observer, Stats, TaskRecord};
use super::spec::{Config, SpecError, TaskSpec};
use super::task::Task;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// First wait of a task that went back to the queue; doubles each time.
const REQUEUE_BASE_NS: u64 = 10_000_000;
const REQUEUE_MAX_NS: u64 = 1_000_000_000;

/// Admission is strictly in service order among tasks that reserve something: one that waits for memory or share holds back those
/// behind it, so that none starves. A task that reserves nothing waits for none of them.
pub struct TaskTable {
    pub(super) config: Config,
    pub(super) ledger: Ledger,
    pub(super) tasks: BTreeMap<u64, Task>,
    pub(super) ids: HashMap<String, u64>,
    /// Queued, with nothing but the ledger in the way.
    pub(super) waiting: ServiceQueue,
    pub(super) admitted: ServiceQueue,
    /// (time, number) of Queued tasks held after a requeue.
    pub(super) held: BTreeSet<(u64, u64)>,
    /// (deadline, number) of unfinished tasks.
    pub(super) deadlines: BTreeSet<(u64, u64)>,
    /// The last finished tasks, oldest first.
    pub(super) history: VecDeque<u64>,
    pub(super) finished: u64,
    pub(super) counts: [u64; Phase::COUNT],
    pub(super) submitted: u64,
    pub(super) mean_run_ns: u64,
    pub(super) closed: bool,
    pub(super) observer: Box<dyn Observer>,
}

impl TaskTable {
    pub fn new(config: Config, observer: Box<dyn Observer>) -> TaskTable {
        TaskTable {
            ledger: Ledger::new(config.total_memory, config.total_share_ppm),
            config,
            tasks: BTreeMap::new(),
            ids: HashMap::new(),
            waiting: ServiceQueue::default(),
            admitted: ServiceQueue::default(),
            held: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            history: VecDeque::new(),
            finished: 0,
            counts: [0; Phase::COUNT],
            submitted: 0,
            mean_run_ns: 0,
            closed: false,
            observer,
        }
    }

    /// Takes a task in. Rejected, Queued and Admitted tasks all get a record; only a defect of the id itself is an error,
    /// since there is nothing to record it under. The same specification again is the same task.
    pub fn submit(&mut self, spec: TaskSpec, now: u64) -> Result<TaskRecord, SpecError> {
        self.advance(now);
        spec.check_id()?;
        if let Some(&number) = self.ids.get(&spec.id) {
            return match &self.tasks[&number] {
                task if task.spec == spec => Ok(self.record(number)),
                task => {
                    let phase = task.phase.name();
                    let message = format!(
                        "'{}' is taken by another task, which is {phase}; choose another",
                        spec.id
                    );
                    Err(SpecError::new("id", message))
                }
            };
        }
        self.submitted += 1;
        let number = (u64::from(self.config.ordinal) << 32) + self.submitted;
        self.enter(number, spec, now);
        Ok(self.record(number))
    }

    /// The next Admitted task in service order, now Running.
    pub fn next(&mut self, now: u64) -> Option<Arc<TaskContext>> {
        self.advance(now);
        let (_, number) = self.admitted.first()?;
        self.move_to(number, Phase::Running, Reason::None, now);
        let task = self.task_mut(number);
        task.occupied = true;
        if task.started_ns == 0 {
            task.started_ns = now;
        }
        Some(task.context.clone())
    }

    /// The dispatcher is out of a task. Returns the phase it ended in, which is not the outcome's if it had ended before
    /// (cancelled, expired); either way its reservation is free now.
    pub fn finish(&mut self, id: &str, outcome: Outcome, now: u64) -> Result<Phase, TaskError> {
        self.advance(now);
        let number = self.number(id)?;
        let from = self.tasks[&number].phase;
        let to = match &outcome {
            Outcome::Succeeded => Phase::Succeeded,
            Outcome::Failed { reason, .. } => {
                self.check_reason(from, Phase::Failed, *reason)?;
                Phase::Failed
            }
        };
        if from.is_terminal() {
            self.vacate(number);
            self.advance(now);
            return Ok(from);
        }
        if from == Phase::Suspended && to == Phase::Succeeded {
            self.move_to(number, Phase::Running, Reason::None, now);
        } else if edge(from, to).is_none() || from == Phase::Queued {
            return Err(TaskError::NoEdge {
                id: id.to_string(),
                from,
                to,
            });
        }
        let task = self.task_mut(number);
        task.occupied = false;
        let run_ns = now.saturating_sub(task.started_ns);
        let reason = match outcome {
            Outcome::Succeeded => {
                self.mean_run_ns = if self.mean_run_ns == 0 {
                    run_ns
                } else {
                    (self.mean_run_ns * 7 + run_ns) / 8
                };
                Reason::None
            }
            Outcome::Failed { reason, error } => {
                task.error = error;
                reason
            }
        };
        self.end(number, to, reason, now);
        self.advance(now);
        Ok(to)
    }

    /// Cancels an unfinished task; false when it had already ended. A running one keeps its reservation until its dispatcher
    /// calls `finish`.
    pub fn cancel(&mut self, id: &str, now: u64) -> Result<bool, TaskError> {
        self.advance(now);
        let number = self.number(id)?;
        if self.tasks[&number].phase.is_terminal() {
            return Ok(false);
        }
        self.end(number, Phase::Cancelled, Reason::None, now);
        self.advance(now);
        Ok(true)
    }

    /// Back to the queue with its old place: an Admitted task that was preempted, or an idempotent Running one whose worker was
    /// lost. It is held for 10 ms, doubled each time up to 1 s.
    pub fn requeue(&mut self, id: &str, reason: Reason, now: u64) -> Result<(), TaskError> {
        self.advance(now);
        let number = self.number_with_edge(id, Phase::Queued)?;
        let task = &self.tasks[&number];
        self.check_reason(task.phase, Phase::Queued, reason)?;
        if task.phase == Phase::Running && !task.spec.idempotent {
            return Err(TaskError::NotIdempotent { id: id.to_string() });
        }
        self.move_to(number, Phase::Queued, reason, now);
        self.vacate(number);
        let task = self.task_mut(number);
        task.held_until_ns = now.saturating_add((REQUEUE_BASE_NS << task.requeues.min(20)).min(REQUEUE_MAX_NS));
        task.requeues += 1;
        let hold = (task.held_until_ns, number);
        self.held.insert(hold);
        self.advance(now);
        Ok(())
    }

    /// Running to Suspended. The reservation stays.
    pub fn suspend(&mut self, id: &str, now: u64) -> Result<(), TaskError> {
        self.advance(now);
        let number = self.number_with_edge(id, Phase::Suspended)?;
        self.move_to(number, Phase::Suspended, Reason::None, now);
        Ok(())
    }

    /// Suspended to Running.
    pub fn resume(&mut self, id: &str, now: u64) -> Result<(), TaskError> {
        self.advance(now);
        let number = self.number(id)?;
        let from = self.tasks[&number].phase;
        if from != Phase::Suspended {
            return Err(TaskError::NoEdge {
                id: id.to_string(),
                from,
                to: Phase::Running,
            });
        }
        self.move_to(number, Phase::Running, Reason::None, now);
        Ok(())
    }

    /// Every later submission is rejected with ShuttingDown; tasks already here go on.
    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn context(&self, id: &str) -> Option<Arc<TaskContext>> {
        Some(self.tasks[self.ids.get(id)?].context.clone())
    }

    pub fn get(&mut self, id: &str, now: u64) -> Option<TaskRecord> {
        self.advance(now);
        Some(self.record(*self.ids.get(id)?))
    }

    /// Every remembered task in submission order.
    pub fn snapshot(&mut self, now: u64) -> Vec<TaskRecord> {
        self.advance(now);
        let places: HashMap<u64, usize> = self
            .waiting
            .iter()
            .enumerate()
            .map(|(ahead, number)| (number, ahead))
            .collect();
        let tasks = self.tasks.iter().filter(|(_, task)| !task.forgotten);
        tasks
            .map(|(number, task)| self.record_in_place(task, places.get(number).copied()))
            .collect()
    }

    /// Tasks that ended after the first `since` did, oldest first, and how many have ended in all. Those forgotten are left out.
    pub fn finished(&self, since: u64) -> (Vec<TaskRecord>, u64) {
        let new = usize::try_from(self.finished.saturating_sub(since)).unwrap_or(usize::MAX);
        let skip = self.history.len().saturating_sub(new);
        (
            self.history
                .iter()
                .skip(skip)
                .map(|&number| self.record(number))
                .collect(),
            self.finished,
        )
    }

    pub fn finished_count(&self) -> u64 {
        self.finished
    }

    /// When the next deadline or hold ends.
    pub fn timer(&self) -> Option<u64> {
        [self.deadlines.first(), self.held.first()]
            .into_iter()
            .flatten()
            .map(|&(t, _)| t)
            .min()
    }

    pub fn has_admitted(&self) -> bool {
        self.admitted.len() > 0
    }

    pub fn stats(&mut self, now: u64) -> Stats {
        self.advance(now);
        let in_phase = |phase: Phase| self.counts[phase as usize];
        Stats {
            submitted: self.submitted,
            queued: in_phase(Phase::Queued),
            admitted: in_phase(Phase::Admitted),
            running: in_phase(Phase::Running),
            suspended: in_phase(Phase::Suspended),
            succeeded: in_phase(Phase::Succeeded),
            failed: in_phase(Phase::Failed),
            cancelled: in_phase(Phase::Cancelled),
            rejected: in_phase(Phase::Rejected),
            expired: in_phase(Phase::Expired),
            reserved_memory: self.ledger.reserved().memory_bytes,
            available_memory: self.ledger.available().memory_bytes,
            reserved_share_ppm: self.ledger.reserved().share_ppm.into(),
        }
    }

    pub(super) fn waiting_or_admitted(&self) -> usize {
        (self.counts[Phase::Queued as usize] + self.counts[Phase::Admitted as usize]) as usize
    }

    pub(super) fn running(&self) -> u64 {
        self.counts[Phase::Running as usize]
    }

    fn number(&self, id: &str) -> Result<u64, TaskError> {
        self.ids
            .get(id)
            .copied()
            .ok_or_else(|| TaskError::Unknown { id: id.to_string() })
    }

    fn number_with_edge(&self, id: &str, to: Phase) -> Result<u64, TaskError> {
        let number = self.number(id)?;
        let from = self.tasks[&number].phase;
        edge(from, to).map(|_| number).ok_or(TaskError::NoEdge {
            id: id.to_string(),
            from,
            to,
        })
    }

    /// The reason must belong to the edge, or, when there is none, to the edges into that phase.
    fn check_reason(&self, from: Phase, to: Phase, reason: Reason) -> Result<(), TaskError> {
        let group = edge(from, to)
            .or_else(|| edge(Phase::Running, to))
            .map(|edge| edge.reasons);
        if group == Some(reason.group()) {
            Ok(())
        } else {
            Err(TaskError::WrongReason { reason })
        }
    }
}
