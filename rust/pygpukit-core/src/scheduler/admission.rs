//! Admission: how a task enters the table, what it waits for, and what time and freed reservations let through.

use super::check::Verdict;
use super::phase::Phase;
use super::reason::Reason;
use super::record::Detail;
use super::spec::TaskSpec;
use super::table::TaskTable;
use super::task::Task;
use super::waiting::Place;
use crate::partition::{PartitionManager, Resource, Scope, Shortage, SpecError, DEFAULT_SLOT};
use std::cmp::Reverse;

/// Why a task is not taken in: the reason, its numbers, and words where numbers do not say it.
type Refusal = (Reason, Detail, String);

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
        if self.unsettled {
            self.settle(now);
        }
    }

    /// Admits what fits, in service order. A head of line that is short of its partition's own bound holds back its line; one that
    /// is short of what partitions share holds back all later ones, save those that need only what their partition keeps.
    fn settle(&mut self, now: u64) {
        self.blocked = None;
        let mut last = None;
        while let Some((place, _)) = self.waiting.head_after(last) {
            last = Some(place);
            self.try_admit(place.1, now);
        }
        self.unsettled = false;
    }

    /// Changes partitions, then rejects what can never run any more and admits what now fits.
    pub fn with_partitions<T>(&mut self, now: u64, change: impl FnOnce(&mut PartitionManager) -> T) -> T {
        self.advance(now);
        let result = change(&mut self.partitions);
        let unfinished: Vec<(u64, usize)> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.entered)
            .map(|(&number, task)| (number, task.slot))
            .collect();
        for (number, slot) in unfinished {
            self.open_or_close(slot);
            let task = &self.tasks[&number];
            if task.phase != Phase::Queued {
                continue;
            }
            if let Some(refusal) = self.never(&task.spec, slot) {
                self.reject(number, refusal, now);
            }
        }
        self.unsettled = true;
        self.advance(now);
        result
    }

    /// What would become of a task if it were submitted now; nothing changes. Room that preemption could make does not count.
    pub fn evaluate(&mut self, mut spec: TaskSpec, now: u64) -> Result<(Phase, Reason, Detail), SpecError> {
        self.advance(now);
        spec.fill()?;
        self.dependencies(&spec)?;
        let slot = self.partitions.slot_of(&spec.partition)?;
        if let Some((reason, detail, _)) = self.refusal(&spec, slot, now) {
            return Ok((Phase::Rejected, reason, detail));
        }
        let ahead = self.waiting.ahead_of(slot, spec.priority, u64::MAX);
        let place = (Reverse(spec.priority), u64::MAX);
        if self.would_fit(&spec, slot, ahead, place) {
            return Ok((Phase::Admitted, Reason::None, Detail::default()));
        }
        let (reason, detail) = self.waits_for(&spec, slot, ahead);
        Ok((Phase::Queued, reason, detail))
    }

    /// Puts a new task in the table and takes its first edge.
    pub(super) fn enter(&mut self, number: u64, spec: TaskSpec, now: u64) {
        let found = self
            .dependencies(&spec)
            .and_then(|dependencies| Ok((dependencies, self.partitions.slot_of(&spec.partition)?)));
        let slot = found.as_ref().map_or(DEFAULT_SLOT, |(_, slot)| *slot);
        let refusal = found.as_ref().ok().and_then(|_| self.refusal(&spec, slot, now));
        self.ids.insert(spec.id.clone(), number);
        let (priority, deadline_ns, empty) = (spec.priority, spec.deadline_ns, spec.reservation().is_empty());
        self.tasks.insert(number, Task::new(spec, slot, number, now));
        let dependencies = match found {
            Ok((dependencies, _)) => dependencies,
            Err(error) => {
                let task = self.task_mut(number);
                (task.field, task.error) = (error.field, error.to_string());
                return self.end(number, Phase::Rejected, Reason::InvalidSpec, now);
            }
        };
        if let Some(refusal) = refusal {
            return self.reject(number, refusal, now);
        }
        self.task_mut(number).entered = true;
        self.partitions.at_mut(slot).tasks += 1;
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
            let behind = !empty && self.waiting.ahead_of(slot, priority, number) > 0;
            if behind || !self.try_admit(number, now) {
                self.wait(number, now);
            }
        }
    }

    /// Nothing but the ledger is in the way of a Queued task any more.
    pub(super) fn make_ready(&mut self, number: u64, now: u64) {
        let task = self.task_mut(number);
        task.held_until_ns = 0;
        let (slot, priority) = (task.slot, task.spec.priority);
        if task.spec.reservation().is_empty() {
            self.try_admit(number, now);
        } else {
            self.waiting.insert(slot, priority, number);
            self.unsettled = true;
        }
    }

    /// Back to the queue, or on with waiting in it, but not admitted before a pause is over.
    pub(super) fn hold(&mut self, number: u64, reason: Reason, pause_ns: u64, now: u64) {
        let until = now.saturating_add(pause_ns.max(1));
        if self.tasks[&number].phase != Phase::Queued {
            self.move_to(number, Phase::Queued, reason, now);
        } else {
            let (slot, priority) = (self.tasks[&number].slot, self.tasks[&number].spec.priority);
            self.waiting.remove(slot, priority, number);
        }
        let task = self.task_mut(number);
        (task.reason, task.detail, task.held_until_ns) = (reason, Detail::default(), until);
        self.held.insert((until, number));
    }

    /// Submitted to Queued, waiting for memory or share.
    fn wait(&mut self, number: u64, now: u64) {
        let task = &self.tasks[&number];
        let (slot, priority) = (task.slot, task.spec.priority);
        let ahead = self.waiting.ahead_of(slot, priority, number);
        let (reason, detail) = self.waits_for(&task.spec, slot, ahead);
        self.waiting.insert(slot, priority, number);
        self.unsettled |= ahead == 0;
        self.move_to(number, Phase::Queued, reason, now);
        self.task_mut(number).detail = detail;
    }

    /// First phase: memory and share are reserved, if need be out of what lower priorities hold. Second phase: the checks. False
    /// when it is short of something and stays where it is; else it has been admitted, held or rejected.
    fn try_admit(&mut self, number: u64, now: u64) -> bool {
        let task = &self.tasks[&number];
        let (slot, request) = (task.slot, task.spec.reservation());
        let place = (Reverse(task.spec.priority), number);
        if self.is_held_back(place) && !self.partitions.ledger().within_kept(slot, request) {
            return false;
        }
        if let Err(short) = self.partitions.ledger_mut().reserve(slot, request) {
            if !self.make_room(number, now) {
                if short.scope == Scope::Device || slot == DEFAULT_SLOT {
                    self.blocked = Some(self.blocked.map_or(place, |earlier| earlier.min(place)));
                }
                return false;
            }
            let taken = self.partitions.ledger_mut().reserve(slot, request);
            taken.expect("room was just made for it");
        }
        let spec = &self.tasks[&number].spec;
        let verdicts = self.checks.iter_mut().map(|check| check.check(spec, now));
        let verdict = verdicts
            .into_iter()
            .find(|v| *v != Verdict::Pass)
            .unwrap_or(Verdict::Pass);
        if verdict != Verdict::Pass {
            self.partitions.ledger_mut().release(slot, request);
            self.unsettled = true;
        }
        match verdict {
            Verdict::Pass => {
                let task = self.task_mut(number);
                (task.reserved, task.holds) = (Some(request), 0);
                self.move_to(number, Phase::Admitted, Reason::None, now);
            }
            Verdict::Later(reason) => {
                let task = self.task_mut(number);
                task.holds = task.holds.saturating_add(1);
                let pause_ns = task.spec.retry.backoff.pause_ns(task.holds - 1);
                self.hold(number, reason, pause_ns, now);
            }
            Verdict::Never(reason) => self.reject(number, (reason, Detail::default(), String::new()), now),
        }
        true
    }

    /// An earlier task waits for what partitions share.
    fn is_held_back(&self, place: Place) -> bool {
        self.blocked.is_some_and(|blocked| blocked < place)
    }

    fn would_fit(&self, spec: &TaskSpec, slot: usize, ahead: usize, place: Place) -> bool {
        let (ledger, request) = (self.partitions.ledger(), spec.reservation());
        let may_pass = !self.is_held_back(place) || ledger.within_kept(slot, request);
        request.is_empty() || (ahead == 0 && may_pass && ledger.shortage(slot, request).is_none())
    }

    fn reject(&mut self, number: u64, (reason, detail, error): Refusal, now: u64) {
        self.end(number, Phase::Rejected, reason, now);
        if let Some(task) = self.tasks.get_mut(&number) {
            (task.detail, task.error) = (detail, error);
        }
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
    fn refusal(&self, spec: &TaskSpec, slot: usize, now: u64) -> Option<Refusal> {
        if self.closed {
            return Some((Reason::ShuttingDown, Detail::default(), String::new()));
        }
        if let Some(refusal) = self.never(spec, slot) {
            return Some(refusal);
        }
        if spec.deadline_ns != 0 {
            let (needed, left) = (self.needed_ns(spec, slot), spec.deadline_ns.saturating_sub(now));
            if left == 0 || needed > left {
                let detail = Detail::shortage(needed, left);
                return Some((Reason::DeadlineUnmeetable, detail, String::new()));
            }
        }
        let (backlog, most) = (self.waiting_or_admitted(), self.config.max_queue);
        (backlog >= most).then(|| {
            let detail = Detail::shortage(backlog as u64 + 1, most as u64);
            (Reason::QueueFull, detail, String::new())
        })
    }

    /// What no time and no other task's end could change.
    fn never(&self, spec: &TaskSpec, slot: usize) -> Option<Refusal> {
        let partition = self.partitions.at(slot);
        let (lowest, highest) = partition.limits.priorities;
        if !(lowest..=highest).contains(&spec.priority) {
            let (priority, id) = (spec.priority, &partition.id);
            let error = format!("priority {priority}; partition '{id}' allows {lowest} to {highest}");
            return Some((Reason::PriorityNotAllowed, Detail::default(), error));
        }
        let short = self.partitions.ledger().shortage_when_empty(slot, spec.reservation())?;
        let reason = match short {
            Shortage {
                scope: Scope::Partition,
                ..
            } if slot != DEFAULT_SLOT => Reason::ExceedsPartition,
            Shortage {
                resource: Resource::Memory,
                ..
            } => Reason::ExceedsDevice,
            Shortage {
                resource: Resource::Share,
                ..
            } => Reason::ShareOversubscribed,
        };
        Some((reason, Detail::shortage(short.asked, short.available), String::new()))
    }

    /// The time to its end as far as anything is known: the wait for its turn, from the mean run so far, and its own run, as the
    /// caller expects it or as tasks of its name took. 0 when nothing is known.
    fn needed_ns(&self, spec: &TaskSpec, slot: usize) -> u64 {
        let own = match spec.run_ns {
            0 => self.runs.of_name(&spec.name).unwrap_or(0),
            ns => ns,
        };
        let ahead = self.waiting.ahead_of(slot, spec.priority, u64::MAX);
        if self.would_fit(spec, slot, ahead, (Reverse(spec.priority), u64::MAX)) {
            return own;
        }
        own.saturating_add(self.estimated_wait_ns(ahead as u64 + 1).unwrap_or(0))
    }

    fn estimated_wait_ns(&self, position: u64) -> Option<u64> {
        let mean_ns = self.runs.mean_ns().filter(|&ns| ns > 0)?;
        Some(mean_ns.saturating_mul(position) / self.running().max(1))
    }

    /// What a task that is behind `ahead` others of its partition waits for. One that would fit by itself waits for what the first
    /// of them lacks, or the first of all that wait.
    pub(super) fn waits_for(&self, spec: &TaskSpec, slot: usize, ahead: usize) -> (Reason, Detail) {
        let lacks = |slot: usize, spec: &TaskSpec| self.partitions.ledger().shortage(slot, spec.reservation());
        let lacked_by = |number: u64| lacks(self.tasks[&number].slot, &self.tasks[&number].spec);
        let own = lacks(slot, spec);
        let position = ahead as u64 + 1;
        let place = Detail {
            position: Some(position),
            estimated_wait_ns: self.estimated_wait_ns(position),
            ..Detail::default()
        };
        let blocking = own
            .or_else(|| lacked_by(self.waiting.first(slot)?))
            .or_else(|| lacked_by(self.blocked?.1));
        let reason = match blocking.map(|short| short.resource) {
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
}
