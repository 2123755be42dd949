//! The task table: every task of one scheduler, on however many devices, what it reserved, and the edges it takes. Pure state; time comes in as an argument.

use super::admission::{Admission, ADMISSIONS};
use super::context::TaskContext;
use super::device_set::DeviceSet;
use super::error::{Outcome, TaskError};
use super::estimate::RunTimes;
use super::health::DeviceHealth;
use super::ids::Ids;
use super::key::Key;
use super::name::Name;
use super::order::{Order, ORDERS};
use super::phase::{edge, Phase};
use super::placement::Placement;
use super::policy::named;
use super::reason::Reason;
use super::record::{Observer, TaskRecord, TaskStart};
use super::room::DeviceState;
use super::spec::{Config, Policy, TaskSpec};
use super::tasks::Tasks;
use super::tenants::Tenants;
use super::waiting::WaitingLines;
use crate::partition::{Isolation, PartitionConfig, PartitionManager, SpecError};
use crate::pool::Promise;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Admission is by default strictly in service order among the tasks of a partition that reserve something: one that waits for memory or
/// share holds back those behind it, so that none starves. A task that reserves nothing waits for none of them.
pub struct TaskTable {
    pub(super) config: Config,
    pub(super) partitions: PartitionManager,
    pub(super) tasks: Tasks,
    pub(super) ids: Ids,
    /// Queued, with nothing but the ledger in the way.
    pub(super) waiting: WaitingLines,
    pub(super) devices: Vec<DeviceState>,
    pub(super) placement: Placement,
    /// Devices on which something has changed that may let a waiting task through.
    pub(super) unsettled: DeviceSet,
    /// Those that are looked at just now, and those to look at once more: a task has given way there, and what it held beyond what was
    /// short may let an earlier one through, or one that held back others does not wait any more.
    pub(super) settling: DeviceSet,
    pub(super) again: DeviceSet,
    pub(super) admitted: Box<dyn Order>,
    pub(super) admission: Box<dyn Admission>,
    pub(super) health: Arc<DeviceHealth>,
    /// Tasks that a dispatcher is inside of.
    pub(super) occupied: Vec<Key>,
    /// (time, task) of Queued tasks held after a requeue.
    pub(super) held: BTreeSet<(u64, Key)>,
    /// (deadline, task) of unfinished tasks.
    pub(super) deadlines: BTreeSet<(u64, Key)>,
    /// The last finished tasks, oldest first.
    pub(super) history: VecDeque<Key>,
    pub(super) finished: u64,
    pub(super) counts: [u64; Phase::COUNT],
    pub(super) submitted: u64,
    /// What the tasks that are forgotten used.
    pub(super) tenants: Tenants,
    pub(super) runs: RunTimes,
    pub(super) closed: bool,
    pub(super) observer: Box<dyn Observer>,
}

impl TaskTable {
    pub(super) fn find(&self, id: &str) -> Option<Key> {
        self.ids.get(&self.tasks, id)
    }

    pub fn new(config: Config, observer: Box<dyn Observer>) -> TaskTable {
        let devices = 1 + config.further_memory.len();
        TaskTable {
            // Whoever makes an `sm` partition sees to its multiprocessors first.
            partitions: PartitionManager::new(PartitionConfig {
                isolation: vec![Isolation::Shared, Isolation::Sm],
                further_memory: config.further_memory.clone(),
                ..PartitionConfig::new(config.total_memory, config.total_share_ppm)
            }),
            config,
            tasks: Tasks::default(),
            ids: Ids::default(),
            waiting: WaitingLines::default(),
            devices: (0..devices).map(|_| DeviceState::default()).collect(),
            placement: Placement::default(),
            unsettled: DeviceSet::default(),
            settling: DeviceSet::default(),
            again: DeviceSet::default(),
            admitted: ORDERS[0].1(),
            admission: ADMISSIONS[0].1(),
            health: Arc::default(),
            occupied: Vec::new(),
            held: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            history: VecDeque::new(),
            finished: 0,
            counts: [0; Phase::COUNT],
            submitted: 0,
            tenants: Tenants::default(),
            runs: RunTimes::default(),
            closed: false,
            observer,
        }
    }

    /// The order in which admitted tasks are started, by name, before the first task comes. An Err names those there are.
    pub fn set_order(&mut self, name: &str) -> Result<(), SpecError> {
        assert_eq!(self.submitted, 0, "tasks are in another order already");
        self.admitted = named("order", name, ORDERS)?.1();
        Ok(())
    }

    /// What decides on every later admission.
    pub fn set_admission(&mut self, admission: Box<dyn Admission>) {
        self.admission = admission;
        self.unsettle_all();
    }

    /// Which devices later tasks get that leave the choice.
    pub fn set_placement(&mut self, placement: Placement) {
        self.placement = placement;
    }

    /// From now on, nothing that runs in this process is taken in or begun while its device has failed.
    pub fn watch(&mut self, health: Arc<DeviceHealth>) {
        self.health = health;
    }

    pub fn partitions(&self) -> &PartitionManager {
        &self.partitions
    }

    /// Takes a task in. Rejected, Queued and Admitted tasks all get a record; only a defect of the id itself is an error,
    /// since there is nothing to record it under. The same specification again is the same task.
    pub fn submit(&mut self, spec: TaskSpec, now: u64) -> Result<TaskRecord, SpecError> {
        match self.receive(spec, "id", true, now)? {
            (key, Some(spec)) if self.tasks[key].spec != spec => Err(self.taken("id", key)),
            (key, _) => Ok(self.record(key)),
        }
    }

    /// The same for a task that must be a new one, and without the record, which costs as much again: the phase it is in now. A malformed
    /// one is an error, and nothing is kept of it: its id may be used for another.
    pub fn submit_new(&mut self, spec: TaskSpec, now: u64) -> Result<Phase, SpecError> {
        match self.receive(spec, "task_id", false, now)? {
            (key, Some(_)) => Err(self.taken("task_id", key)),
            (key, None) => Ok(self.tasks[key].phase),
        }
    }

    /// The key of the task with this id, and the specification back when there was one before. field: what the caller calls the id.
    /// keep: a malformed task gets its record, instead of an error.
    fn receive(
        &mut self,
        mut spec: TaskSpec,
        field: &'static str,
        keep: bool,
        now: u64,
    ) -> Result<(Key, Option<TaskSpec>), SpecError> {
        self.advance(now);
        spec.check_id(field)?;
        let placed = self.place(&mut spec);
        let number = (u64::from(self.config.ordinal) << 32) + self.submitted + 1;
        let key = self.tasks.next_key(number);
        let placed = match placed {
            Err(error) if !keep => return self.find(&spec.id).map(|taken| (taken, Some(spec))).ok_or(error),
            placed => placed,
        };
        if let Err(taken) = self.ids.insert(&self.tasks, &spec.id, key) {
            return Ok((taken, Some(spec)));
        }
        self.submitted += 1;
        self.enter(key, spec, placed, now);
        if !self.unsettled.is_empty() {
            self.advance(now); // it may have put another task first that no longer stands in the way of others
        }
        Ok((key, None))
    }

    fn taken(&self, field: &'static str, by: Key) -> SpecError {
        let (id, phase) = (&self.tasks[by].spec.id, self.tasks[by].phase.name());
        let message = format!("'{id}' is taken by another task, which is {phase}; choose another");
        SpecError::new(field, message)
    }

    /// The next Admitted task in service order, now Running.
    pub fn next(&mut self, now: u64) -> Option<TaskStart> {
        self.advance(now);
        let key = self.admitted.first()?;
        Some(self.run(key, now))
    }

    /// A certain Admitted task, now Running, whoever's turn it is.
    pub fn start(&mut self, id: &str, now: u64) -> Result<TaskStart, TaskError> {
        self.advance(now);
        let key = self.key_with_edge(id, Phase::Running)?;
        match self.tasks[key].phase {
            Phase::Admitted => Ok(self.run(key, now)),
            from => Err(no_edge(id, from, Phase::Running)),
        }
    }

    fn run(&mut self, key: Key, now: u64) -> TaskStart {
        let task = &mut self.tasks[key];
        if task.started_ns == 0 {
            task.started_ns = now;
        }
        task.run_started_ns = now;
        let context = self.context_of(key).clone();
        let start = self.tasks[key].start(context, self.devices_of(&self.tasks[key]));
        self.move_to(key, Phase::Running, Reason::None, now);
        self.occupy(key);
        start
    }

    /// Ids of the Admitted tasks, by priority and then submission, at most so many.
    pub fn admitted_ids(&mut self, limit: usize, now: u64) -> Vec<Name> {
        self.advance(now);
        let keys = self.admitted.keys().into_iter().take(limit);
        keys.map(|key| self.tasks[key].spec.id.clone()).collect()
    }

    /// The dispatcher is out of a task. Returns the phase it is in now, which is not the outcome's if it had ended before (cancelled,
    /// expired), and Queued if it failed and is to be retried; either way its reservation is free now.
    pub fn finish(&mut self, id: &str, outcome: Outcome, now: u64) -> Result<Phase, TaskError> {
        self.advance(now);
        let key = self.key(id)?;
        let from = self.tasks[key].phase;
        let to = match &outcome {
            Outcome::Succeeded => Phase::Succeeded,
            Outcome::Failed { reason, .. } | Outcome::Lost { reason, .. } => {
                self.check_reason(from, Phase::Failed, *reason)?;
                Phase::Failed
            }
        };
        if from.is_terminal() {
            self.vacate(key, now);
            self.advance(now);
            return Ok(from);
        }
        if from == Phase::Suspended && to == Phase::Succeeded {
            self.move_to(key, Phase::Running, Reason::None, now);
        } else if edge(from, to).is_none() || from == Phase::Queued {
            return Err(no_edge(id, from, to));
        }
        self.leave(key);
        let task = &mut self.tasks[key];
        let run_ns = now.saturating_sub(task.run_started_ns);
        let reason = match outcome {
            Outcome::Succeeded => {
                self.runs.add(&task.spec.name, run_ns);
                Reason::None
            }
            Outcome::Failed { reason, error } => {
                task.trouble().error = error;
                if from != Phase::Admitted && self.retry(key, reason, now) {
                    self.advance(now);
                    return Ok(Phase::Queued);
                }
                reason
            }
            Outcome::Lost { reason, error } => {
                task.trouble().error = error;
                if from != Phase::Admitted && self.start_over(key, reason, now) {
                    self.advance(now);
                    return Ok(Phase::Queued);
                }
                reason
            }
        };
        self.end(key, to, reason, now);
        self.advance(now);
        Ok(to)
    }

    /// Cancels an unfinished task; false when it had already ended. A running one keeps its reservation until its dispatcher
    /// calls `finish`.
    pub fn cancel(&mut self, id: &str, now: u64) -> Result<bool, TaskError> {
        self.advance(now);
        let key = self.key(id)?;
        if self.tasks[key].phase.is_terminal() {
            return Ok(false);
        }
        self.end(key, Phase::Cancelled, Reason::None, now);
        self.advance(now);
        Ok(true)
    }

    /// Every later submission is rejected with ShuttingDown; tasks already here go on.
    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn context(&self, id: &str) -> Option<Arc<TaskContext>> {
        Some(self.context_of(self.find(id)?).clone())
    }

    /// The partition that a task is in, if it has a name and its tasks run in this process.
    pub fn partition_here(&self, id: &str) -> Option<&str> {
        let partition = self.partitions.at(self.tasks[self.find(id)?].slot());
        let here = !partition.limits.isolation.in_worker() && !partition.id.is_empty();
        here.then_some(&partition.id)
    }

    /// The most bytes that a task may hold at a time (u64::MAX: any), and what it may count on under pressure. None for an unknown one,
    /// and for one of whom nothing is said but that it takes what is there.
    pub fn memory_terms(&self, id: &str) -> Option<(u64, Promise)> {
        let spec = &self.tasks[self.find(id)?].spec;
        let promise = Promise {
            bytes: spec.memory_bytes,
            guaranteed: spec.policy == Policy::Guaranteed,
            priority: spec.priority,
        };
        let said = spec.memory_bytes > 0 || spec.memory_limit.is_some() || spec.priority != 0;
        said.then_some((spec.memory_limit.unwrap_or(u64::MAX), promise))
    }

    /// When the next deadline or hold ends.
    pub fn timer(&self) -> Option<u64> {
        [self.deadlines.first(), self.held.first()]
            .into_iter()
            .flatten()
            .map(|&(t, _)| t)
            .min()
    }

    /// Whether `next` would find something.
    pub fn has_admitted(&self) -> bool {
        self.admitted.first().is_some()
    }

    pub(super) fn waiting_or_admitted(&self) -> usize {
        (self.counts[Phase::Queued as usize] + self.counts[Phase::Admitted as usize]) as usize
    }

    pub(super) fn running(&self) -> u64 {
        self.counts[Phase::Running as usize]
    }

    pub(super) fn key(&self, id: &str) -> Result<Key, TaskError> {
        self.find(id).ok_or_else(|| TaskError::Unknown { id: id.to_string() })
    }

    /// A task's context, made now if need be: one that has ended without one did nothing, in no partition.
    pub(super) fn context_of(&self, key: Key) -> &Arc<TaskContext> {
        let task = &self.tasks[key];
        task.context(|| (!task.phase.is_terminal()).then(|| self.partitions.at(task.slot()).activity.clone()))
    }

    pub(super) fn key_with_edge(&self, id: &str, to: Phase) -> Result<Key, TaskError> {
        let key = self.key(id)?;
        let from = self.tasks[key].phase;
        edge(from, to).map(|_| key).ok_or_else(|| no_edge(id, from, to))
    }

    /// The reason must belong to the edge, or, when there is none, to the edges into that phase.
    pub(super) fn check_reason(&self, from: Phase, to: Phase, reason: Reason) -> Result<(), TaskError> {
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

fn no_edge(id: &str, from: Phase, to: Phase) -> TaskError {
    TaskError::NoEdge {
        id: id.to_string(),
        from,
        to,
    }
}
