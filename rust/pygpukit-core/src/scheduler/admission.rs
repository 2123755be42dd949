//! Admission: how a task enters the table, what it waits for, and what time and freed reservations let through.

use super::check::Verdict;
use super::key::Key;
use super::phase::Phase;
use super::reason::Reason;
use super::record::Detail;
use super::spec::TaskSpec;
use super::table::TaskTable;
use super::task::Task;
use super::waiting::Place;
use crate::partition::{Isolation, PartitionManager, Resource, Scope, Shortage, SpecError, DEFAULT_SLOT};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Why a task is not taken in: the reason, its numbers, and words where numbers do not say it.
type Refusal = (Reason, Box<Detail>, String);

impl TaskTable {
    /// Brings the table up to `now`: deadlines, a device that failed, ended holds, then whatever fits. Every public call begins
    /// with it.
    pub fn advance(&mut self, now: u64) {
        while let Some(&(deadline, key)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.end(key, Phase::Expired, Reason::None, now);
        }
        if let Some(why) = self.health.fault() {
            self.end_all_not_begun(&why, now);
        }
        while let Some(&(until, key)) = self.held.first() {
            if until > now {
                break;
            }
            self.held.remove(&(until, key));
            self.make_ready(key, now);
        }
        if self.unsettled {
            self.settle(now);
        }
    }

    /// The device failed: what waits for it is rejected, and what was admitted to it fails. What runs finds out by itself, and what
    /// runs in a worker process has a device context of its own.
    #[cold]
    fn end_all_not_begun(&mut self, why: &str, now: u64) {
        if self.waiting_or_admitted() == 0 {
            return;
        }
        for key in self.tasks.keys() {
            // Ending one may end others, and forget them.
            let Some(task) = self.tasks.get(key).filter(|task| task.entered) else {
                continue;
            };
            let (slot, phase) = (task.slot, task.phase);
            if self.runs_elsewhere(slot) {
                continue;
            }
            match phase {
                Phase::Queued => self.reject(key, (Reason::DeviceUnhealthy, Box::default(), why.to_string()), now),
                Phase::Admitted => {
                    self.tasks[key].trouble().error = why.to_string();
                    self.end(key, Phase::Failed, Reason::StickyDeviceError, now);
                }
                _ => {}
            }
        }
    }

    /// Why tasks of a partition cannot run: the device of this process failed.
    pub(super) fn device_fault(&self, slot: usize) -> Option<String> {
        self.health.fault().filter(|_| !self.runs_elsewhere(slot))
    }

    fn runs_elsewhere(&self, slot: usize) -> bool {
        self.partitions.at(slot).limits.isolation == Isolation::Process
    }

    /// Admits what fits, in service order. A head of line that is short of its partition's own bound holds back its line; one that
    /// is short of what partitions share holds back all later ones, save those that need only what their partition keeps.
    fn settle(&mut self, now: u64) {
        loop {
            (self.blocked, self.displaced) = (None, false);
            let mut last = None;
            while let Some((place, _)) = self.waiting.head_after(last) {
                last = Some(place);
                self.try_admit(place.1, now);
            }
            // Each round that displaces puts a higher priority in a lower one's place, so that the rounds end.
            if !self.displaced {
                break;
            }
        }
        self.unsettled = false;
    }

    /// Changes partitions, then rejects what can never run any more and admits what now fits.
    pub fn with_partitions<T>(&mut self, now: u64, change: impl FnOnce(&mut PartitionManager) -> T) -> T {
        self.advance(now);
        let result = change(&mut self.partitions);
        for key in self.tasks.keys() {
            // Rejecting one may end others, and forget them.
            let Some(task) = self.tasks.get(key).filter(|task| task.entered) else {
                continue;
            };
            let (slot, queued) = (task.slot, task.phase == Phase::Queued);
            let refusal = if queued { self.never(&task.spec, slot) } else { None };
            self.open_or_close(slot);
            if let Some(refusal) = refusal {
                self.reject(key, refusal, now);
            }
        }
        self.unsettled = true;
        self.advance(now);
        result
    }

    /// What would become of a task if it were submitted now; nothing changes. Room that preemption could make does not count.
    pub fn evaluate(&mut self, mut spec: TaskSpec, now: u64) -> Result<(Phase, Reason, Detail), SpecError> {
        self.advance(now);
        let (_, slot) = self.place(&mut spec)?;
        if let Some((reason, detail, _)) = self.refusal(&spec, slot, now) {
            return Ok((Phase::Rejected, reason, *detail));
        }
        let ahead = self.waiting.ahead_of(slot, spec.priority, Key::LAST);
        let place = (Reverse(spec.priority), Key::LAST);
        if self.would_fit(&spec, slot, ahead, place) {
            return Ok((Phase::Admitted, Reason::None, Detail::default()));
        }
        let (reason, detail) = self.waits_for(&spec, slot, ahead);
        Ok((Phase::Queued, reason, detail))
    }

    /// Completes a specification: what it depends on, and the slot of its partition. An Err says what is malformed.
    pub(super) fn place(&self, spec: &mut TaskSpec) -> Result<(Vec<Key>, usize), SpecError> {
        spec.complete()?;
        Ok((self.dependencies(spec)?, self.partitions.slot_of(&spec.partition)?))
    }

    /// Puts a new task in the table and takes its first edge. `placed`: by `place`.
    pub(super) fn enter(&mut self, key: Key, spec: TaskSpec, placed: Result<(Vec<Key>, usize), SpecError>, now: u64) {
        let slot = placed.as_ref().map_or(DEFAULT_SLOT, |(_, slot)| *slot);
        let refusal = placed.as_ref().ok().and_then(|_| self.refusal(&spec, slot, now));
        let partition = self.partitions.at(slot);
        let limit_ppm = partition.time_limit_ppm(spec.limit_ppm());
        self.tasks
            .insert(key, Task::new(spec, slot, limit_ppm, key.number, now));
        match (placed, refusal) {
            (Err(error), _) => {
                let trouble = self.tasks[key].trouble();
                (trouble.field, trouble.error) = (error.field, error.to_string());
                self.end(key, Phase::Rejected, Reason::InvalidSpec, now);
            }
            (_, Some(refusal)) => self.reject(key, refusal, now),
            (Ok((dependencies, _)), None) => self.take_in(key, dependencies, now),
        }
    }

    /// A new task of which nothing is wrong: it is admitted, or it waits.
    fn take_in(&mut self, key: Key, dependencies: Vec<Key>, now: u64) {
        let task = &mut self.tasks[key];
        task.entered = true;
        let (slot, priority, deadline_ns) = (task.slot, task.spec.priority, task.spec.deadline_ns);
        let empty = task.spec.reservation().is_empty();
        self.partitions.at_mut(slot).tasks += 1;
        if deadline_ns != 0 {
            self.deadlines.insert((deadline_ns, key));
        }
        let mut failed = None;
        for dependency in dependencies {
            let first = &mut self.tasks[dependency];
            if !first.phase.is_terminal() {
                first.dependants.push(key);
                self.tasks[key].unmet += 1;
            } else if first.phase != Phase::Succeeded {
                failed = Some(format!("dependency '{}' ended {}", first.spec.id, first.phase.name()));
            }
        }
        if let Some(error) = failed {
            self.move_to(key, Phase::Queued, Reason::WaitingForDependency, now);
            self.tasks[key].trouble().error = error;
            self.end(key, Phase::Failed, Reason::DependencyFailed, now);
        } else if self.tasks[key].unmet > 0 {
            self.move_to(key, Phase::Queued, Reason::WaitingForDependency, now);
        } else {
            let behind = !empty && self.waiting.ahead_of(slot, priority, key) > 0;
            if behind || !self.try_admit(key, now) {
                self.wait(key, now);
            }
        }
    }

    /// Nothing but the ledger is in the way of a Queued task any more.
    pub(super) fn make_ready(&mut self, key: Key, now: u64) {
        let task = &mut self.tasks[key];
        task.held_until_ns = 0;
        if task.paused() {
            return; // until it is resumed
        }
        if task.spec.reservation().is_empty() {
            self.try_admit(key, now);
        } else {
            self.join_line(key, now);
            self.unsettled = true;
        }
    }

    /// Back to the queue, or on with waiting in it, but not admitted before a pause is over.
    pub(super) fn hold(&mut self, key: Key, reason: Reason, pause_ns: u64, now: u64) {
        let until = now.saturating_add(pause_ns.max(1));
        if self.tasks[key].phase != Phase::Queued {
            self.move_to(key, Phase::Queued, reason, now);
        } else {
            self.leave_line(key, now);
        }
        let task = &mut self.tasks[key];
        (task.reason, task.held_until_ns) = (reason, until);
        self.held.insert((until, key));
    }

    /// Submitted to Queued, waiting for memory or share.
    fn wait(&mut self, key: Key, now: u64) {
        let task = &self.tasks[key];
        let (slot, priority) = (task.slot, task.spec.priority);
        let ahead = self.waiting.ahead_of(slot, priority, key);
        let (reason, _) = self.waits_for(&task.spec, slot, ahead);
        self.unsettled |= ahead == 0;
        self.move_to(key, Phase::Queued, reason, now);
        self.join_line(key, now);
    }

    /// First phase: memory and share are reserved, if need be out of what lower priorities hold. Second phase: the checks. False
    /// when it is short of something and stays where it is; else it has been admitted, held or rejected.
    fn try_admit(&mut self, key: Key, now: u64) -> bool {
        let task = &self.tasks[key];
        let (slot, request) = (task.slot, task.spec.reservation());
        let place = (Reverse(task.spec.priority), key);
        if self.is_held_back(place) && !self.partitions.ledger().within_kept(slot, request) {
            return false;
        }
        if let Err(short) = self.partitions.ledger_mut().reserve(slot, request) {
            if !self.make_room(key, now) {
                if short.scope == Scope::Device || slot == DEFAULT_SLOT {
                    self.blocked = Some(self.blocked.map_or(place, |earlier| earlier.min(place)));
                }
                return false;
            }
            let taken = self.partitions.ledger_mut().reserve(slot, request);
            taken.expect("room was just made for it");
        }
        let spec = &self.tasks[key].spec;
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
                let task = &mut self.tasks[key];
                task.holds = 0;
                task.hold(Some(request), now);
                self.move_to(key, Phase::Admitted, Reason::None, now);
            }
            Verdict::Later(reason) => {
                let task = &mut self.tasks[key];
                task.holds = task.holds.saturating_add(1);
                let pause_ns = task.spec.retry.backoff.pause_ns(task.holds - 1);
                self.hold(key, reason, pause_ns, now);
            }
            Verdict::Never(reason) => self.reject(key, (reason, Box::default(), String::new()), now),
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

    fn reject(&mut self, key: Key, (reason, detail, error): Refusal, now: u64) {
        self.end(key, Phase::Rejected, reason, now);
        if let Some(task) = self.tasks.get_mut(key) {
            let trouble = task.trouble();
            (trouble.refused, trouble.error) = (*detail, error);
        }
    }

    /// The tasks a specification depends on. They were all submitted before, so that no cycle can be closed; the one
    /// cycle that can be written down is a task that depends on itself.
    fn dependencies(&self, spec: &TaskSpec) -> Result<Vec<Key>, SpecError> {
        let mut keys = Vec::with_capacity(spec.depends_on.len());
        for id in &spec.depends_on {
            if *id == spec.id {
                return Err(SpecError::new("depends_on", format!("cycle: '{id}' depends on itself")));
            }
            match self.find(id) {
                Some(key) => keys.push(key),
                None => return Err(SpecError::new("depends_on", format!("no task '{id}'; submit it first"))),
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// Why a well-formed task can never, or must not now, be taken in.
    fn refusal(&self, spec: &TaskSpec, slot: usize, now: u64) -> Option<Refusal> {
        if self.closed {
            return Some((Reason::ShuttingDown, Box::default(), String::new()));
        }
        if let Some(why) = self.device_fault(slot) {
            return Some((Reason::DeviceUnhealthy, Box::default(), why));
        }
        if let Some(refusal) = self.never(spec, slot) {
            return Some(refusal);
        }
        if spec.deadline_ns != 0 {
            let (needed, left) = (self.needed_ns(spec, slot, now), spec.deadline_ns.saturating_sub(now));
            if left == 0 || needed > left {
                let detail = Detail::shortage(needed, left);
                return Some((Reason::DeadlineUnmeetable, Box::new(detail), String::new()));
            }
        }
        let (backlog, most) = (self.waiting_or_admitted(), self.config.max_queue);
        (backlog >= most).then(|| {
            let detail = Detail::shortage(backlog as u64 + 1, most as u64);
            (Reason::QueueFull, Box::new(detail), String::new())
        })
    }

    /// What no time and no other task's end could change.
    pub(super) fn never(&self, spec: &TaskSpec, slot: usize) -> Option<Refusal> {
        let partition = self.partitions.at(slot);
        let (lowest, highest) = partition.limits.priorities;
        if !(lowest..=highest).contains(&spec.priority) {
            let (priority, id) = (spec.priority, &partition.id);
            let error = format!("priority {priority}; partition '{id}' allows {lowest} to {highest}");
            return Some((Reason::PriorityNotAllowed, Box::default(), error));
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
        Some((
            reason,
            Box::new(Detail::shortage(short.asked, short.available)),
            String::new(),
        ))
    }

    /// The time to its end as far as anything is known: the wait for memory and share, from the mean run so far, that for a worker,
    /// which may go on meanwhile, and its own run, as the caller expects it or as tasks of its name took. 0 when nothing is known.
    fn needed_ns(&self, spec: &TaskSpec, slot: usize, now: u64) -> u64 {
        let own = self.run_ns(spec).unwrap_or(0);
        let ahead = self.waiting.ahead_of(slot, spec.priority, Key::LAST);
        let mut wait = self.worker_wait_ns(spec.priority, slot, now);
        if !self.would_fit(spec, slot, ahead, (Reverse(spec.priority), Key::LAST)) {
            wait = wait.max(self.estimated_wait_ns(ahead as u64 + 1).unwrap_or(0));
        }
        own.saturating_add(wait)
    }

    /// When the first worker is free for one more task: after what runs, and the admitted tasks before it, each on the worker that is
    /// free first. A run of unknown length counts nothing, so that no task is rejected on a guess.
    fn worker_wait_ns(&self, priority: i32, slot: usize, now: u64) -> u64 {
        let (workers, busy) = (self.config.workers, self.occupied.len());
        if workers == 0 || busy + self.admitted.len() < workers {
            return 0;
        }
        let run_ns = |key: Key| self.run_ns(&self.tasks[key].spec).unwrap_or(0);
        let left_ns = |&key: &Key| {
            let task = &self.tasks[key];
            let ended = task.phase.is_terminal(); // its dispatcher may be out of it any moment
            let ran = now.saturating_sub(task.run_started_ns);
            Reverse(if ended { 0 } else { run_ns(key).saturating_sub(ran) })
        };
        let mut free: BinaryHeap<Reverse<u64>> = self.occupied.iter().map(left_ns).collect();
        free.extend((busy..workers).map(|_| Reverse(0)));
        let weight = |slot: usize| self.partitions.at(slot).limits.weight;
        for key in self.admitted.before(priority, slot, weight) {
            if let Some(mut first) = free.peek_mut() {
                first.0 = first.0.saturating_add(run_ns(key));
            }
        }
        free.peek().map_or(0, |first| first.0)
    }

    /// How long a run takes, as far as its caller or earlier ones of its name tell.
    pub(super) fn run_ns(&self, spec: &TaskSpec) -> Option<u64> {
        let said = (spec.run_ns > 0).then_some(spec.run_ns);
        said.or_else(|| self.runs.of_name(&spec.name))
    }

    pub(super) fn estimated_wait_ns(&self, position: u64) -> Option<u64> {
        let mean_ns = self.runs.mean_ns().filter(|&ns| ns > 0)?;
        Some(mean_ns.saturating_mul(position) / self.running().max(1))
    }

    /// What a task that is behind `ahead` others of its partition waits for. One that would fit by itself waits for what the first
    /// of them lacks, or the first of all that wait.
    pub(super) fn waits_for(&self, spec: &TaskSpec, slot: usize, ahead: usize) -> (Reason, Detail) {
        let lacks = |slot: usize, spec: &TaskSpec| self.partitions.ledger().shortage(slot, spec.reservation());
        let lacked_by = |key: Key| lacks(self.tasks[key].slot, &self.tasks[key].spec);
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
