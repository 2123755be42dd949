//! Admission: how a task enters the table, what it waits for, and what time and freed reservations let through.

use super::ledger::Resource;
use super::phase::Phase;
use super::reason::Reason;
use super::record::{Detail, TaskRecord};
use super::spec::{SpecError, TaskSpec};
use super::table::TaskTable;
use super::task::Task;

impl TaskTable {
    /// Brings the table up to `now`: deadlines, ended holds, then whatever fits. Every public call begins with it.
    pub fn advance(&mut self, now: u64) {
        while let Some(&(deadline, number)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.end(number, Phase::Expired, Reason::None, now);
        }
        while let Some(&(until, number)) = self.held.first() {
            if until > now {
                break;
            }
            self.held.remove(&(until, number));
            self.make_ready(number, now);
        }
        while let Some((_, number)) = self.waiting.first() {
            if !self.try_admit(number, now) {
                break;
            }
        }
    }

    /// Puts a new task in the table and takes its first edge.
    pub(super) fn enter(&mut self, number: u64, spec: TaskSpec, now: u64) {
        let dependencies = self.dependencies(&spec);
        let backlog = self.waiting_or_admitted();
        self.ids.insert(spec.id.clone(), number);
        self.tasks.insert(number, Task::new(spec, number, now));
        let dependencies = match dependencies {
            Ok(dependencies) => dependencies,
            Err(error) => {
                let task = self.task_mut(number);
                (task.field, task.error) = (error.field, error.to_string());
                return self.end(number, Phase::Rejected, Reason::InvalidSpec, now);
            }
        };
        if let Some((reason, detail)) = self.refusal(&self.tasks[&number].spec, backlog, now) {
            self.end(number, Phase::Rejected, reason, now);
            self.task_mut(number).detail = detail;
            return;
        }
        let task = self.task_mut(number);
        let (priority, deadline_ns) = (task.spec.priority, task.spec.deadline_ns);
        if deadline_ns != 0 {
            self.deadlines.insert((deadline_ns, number));
        }
        let mut failed = None;
        for dependency in dependencies {
            let (phase, id) = (self.tasks[&dependency].phase, &self.tasks[&dependency].spec.id);
            if phase.is_terminal() && phase != Phase::Succeeded {
                failed = Some(format!("dependency '{id}' ended {}", phase.name()));
            } else if phase != Phase::Succeeded {
                self.task_mut(dependency).dependants.push(number);
                self.task_mut(number).unmet += 1;
            }
        }
        if let Some(error) = failed {
            self.move_to(number, Phase::Queued, Reason::WaitingForDependency, now);
            self.task_mut(number).error = error;
            self.end(number, Phase::Failed, Reason::DependencyFailed, now);
        } else if self.tasks[&number].unmet > 0 {
            self.move_to(number, Phase::Queued, Reason::WaitingForDependency, now);
        } else {
            let behind =
                self.waiting.ahead_of(priority, number) > 0 && !self.tasks[&number].spec.reservation().is_empty();
            if behind || !self.try_admit(number, now) {
                self.wait(number, now);
            }
        }
    }

    /// Nothing but the ledger is in the way of a Queued task any more.
    pub(super) fn make_ready(&mut self, number: u64, now: u64) {
        let task = self.task_mut(number);
        task.held_until_ns = 0;
        let (priority, reservation) = (task.spec.priority, task.spec.reservation());
        if reservation.is_empty() {
            self.try_admit(number, now);
        } else {
            self.waiting.insert(priority, number);
        }
    }

    /// Submitted to Queued, waiting for memory or share.
    fn wait(&mut self, number: u64, now: u64) {
        let priority = self.tasks[&number].spec.priority;
        let ahead = self.waiting.ahead_of(priority, number);
        let (reason, detail) = self.waits_for(&self.tasks[&number], ahead);
        self.waiting.insert(priority, number);
        self.move_to(number, Phase::Queued, reason, now);
        self.task_mut(number).detail = detail;
    }

    fn try_admit(&mut self, number: u64, now: u64) -> bool {
        let reservation = self.tasks[&number].spec.reservation();
        if self.ledger.reserve(reservation).is_err() {
            return false;
        }
        self.task_mut(number).reserved = Some(reservation);
        self.move_to(number, Phase::Admitted, Reason::None, now);
        true
    }

    /// Numbers of the tasks a specification depends on. They were all submitted before, so that no cycle can be closed; the one
    /// cycle that can be written down is a task that depends on itself.
    fn dependencies(&self, spec: &TaskSpec) -> Result<Vec<u64>, SpecError> {
        spec.check()?;
        let mut numbers = Vec::with_capacity(spec.depends_on.len());
        for id in &spec.depends_on {
            if *id == spec.id {
                return Err(SpecError::new("depends_on", format!("cycle: '{id}' depends on itself")));
            }
            match self.ids.get(id) {
                Some(&number) => numbers.push(number),
                None => return Err(SpecError::new("depends_on", format!("no task '{id}'; submit it first"))),
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Why a well-formed task can never, or must not now, be taken in.
    fn refusal(&self, spec: &TaskSpec, backlog: usize, now: u64) -> Option<(Reason, Detail)> {
        if self.closed {
            return Some((Reason::ShuttingDown, Detail::default()));
        }
        if let Some(short) = self.ledger.shortage_when_empty(spec.reservation()) {
            let reason = match short.resource {
                Resource::Memory => Reason::ExceedsDevice,
                Resource::Share => Reason::ShareOversubscribed,
            };
            return Some((reason, Detail::shortage(short.asked, short.available)));
        }
        if spec.deadline_ns != 0 && spec.deadline_ns <= now {
            return Some((Reason::DeadlineUnmeetable, Detail::shortage(spec.deadline_ns, now)));
        }
        if backlog >= self.config.max_queue {
            return Some((
                Reason::QueueFull,
                Detail::shortage(backlog as u64 + 1, self.config.max_queue as u64),
            ));
        }
        None
    }

    /// What a task that is behind `ahead` others waits for. One that would fit by itself waits for what the first of them lacks.
    fn waits_for(&self, task: &Task, ahead: usize) -> (Reason, Detail) {
        let own = self.ledger.shortage(task.spec.reservation());
        let first = || {
            self.ledger
                .shortage(self.tasks[&self.waiting.first()?.1].spec.reservation())
        };
        let position = ahead as u64 + 1;
        let running = self.running().max(1);
        let place = Detail {
            position: Some(position),
            estimated_wait_ns: (self.mean_run_ns > 0).then(|| self.mean_run_ns.saturating_mul(position) / running),
            ..Detail::default()
        };
        let reason = match own.or_else(first).map(|short| short.resource) {
            Some(Resource::Memory) => Reason::WaitingForMemory,
            Some(Resource::Share) => Reason::WaitingForShare,
            None => Reason::WaitingForDevice,
        };
        match own {
            Some(short) => (
                reason,
                Detail {
                    asked: Some(short.asked),
                    available: Some(short.available),
                    ..place
                },
            ),
            None => (reason, place),
        }
    }

    /// The record of a task, with its present place in the queue.
    pub(super) fn record(&self, number: u64) -> TaskRecord {
        let task = &self.tasks[&number];
        let waits = task.phase == Phase::Queued && task.unmet == 0 && task.held_until_ns == 0;
        self.record_in_place(task, waits.then(|| self.waiting.ahead_of(task.spec.priority, number)))
    }

    pub(super) fn record_in_place(&self, task: &Task, ahead: Option<usize>) -> TaskRecord {
        let mut record = task.record();
        if let Some(ahead) = ahead {
            let requeues = record.detail.requeues;
            let (reason, detail) = self.waits_for(task, ahead);
            (record.reason, record.detail) = (reason, Detail { requeues, ..detail });
        }
        record
    }

    /// Recounts everything that is kept incrementally; an Err is a defect of this module. For tests and for bug reports.
    pub fn audit(&self) -> Result<(), String> {
        let mut reserved = (0u64, 0u64);
        let mut admitted = 0;
        for (number, task) in &self.tasks {
            if let Some(held) = task.reserved {
                reserved = (reserved.0 + held.memory_bytes, reserved.1 + u64::from(held.share_ppm));
            }
            let holds = matches!(task.phase, Phase::Admitted | Phase::Running | Phase::Suspended) || task.occupied;
            if task.reserved.is_some() != holds {
                return Err(format!(
                    "task {number} is {:?}, occupied {}: holds {:?}",
                    task.phase, task.occupied, task.reserved
                ));
            }
            if self.ids.get(&task.spec.id) != Some(number) {
                return Err(format!("task {number} is not listed under its id '{}'", task.spec.id));
            }
            admitted += usize::from(task.phase == Phase::Admitted);
        }
        let books = self.ledger.reserved();
        if (books.memory_bytes, u64::from(books.share_ppm)) != reserved {
            return Err(format!("ledger holds {books:?}, tasks hold {reserved:?}"));
        }
        if (self.ids.len(), self.admitted.len()) != (self.tasks.len(), admitted) {
            return Err(format!(
                "{} ids of {} tasks, {admitted} admitted",
                self.ids.len(),
                self.tasks.len()
            ));
        }
        Ok(())
    }
}
