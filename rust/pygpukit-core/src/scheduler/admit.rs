//! Admission: how a task enters the table, what it waits for, and what time and freed reservations let through.

use super::admission::{NoRoom, Verdict};
use super::key::Key;
use super::phase::Phase;
use super::queue::Place;
use super::reason::Reason;
use super::record::Detail;
use super::refusal::Refusal;
use super::room::Fit;
use super::spec::TaskSpec;
use super::table::TaskTable;
use super::task::Task;
use crate::partition::{PartitionManager, Site, SpecError, DEFAULT_SLOT};
use std::cmp::Reverse;

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
        if !self.unsettled.is_empty() {
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
            let (slot, phase) = (task.slot(), task.phase);
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
        self.partitions.at(slot).limits.isolation.in_worker()
    }

    /// Admits what fits, in service order, on the devices where something has changed.
    fn settle(&mut self, now: u64) {
        // Each round puts a higher priority in a lower one's place or an earlier task in a later one's, so that the rounds end.
        while !self.unsettled.is_empty() {
            self.settling.clear();
            std::mem::swap(&mut self.unsettled, &mut self.settling);
            for &device in self.settling.as_slice() {
                (self.devices[device].blocked, self.devices[device].awaited) = (None, None);
            }
            self.again.clear();
            if self.may_be_passed() {
                self.admit_all_that_fit(now);
            } else {
                self.admit_heads(now);
            }
            self.unsettled.clear(); // what the round itself changed it has looked at
            std::mem::swap(&mut self.unsettled, &mut self.again);
        }
    }

    /// Those behind a waiting task that fit pass it.
    pub(super) fn may_be_passed(&self) -> bool {
        self.admission.no_room() == NoRoom::IsPassed
    }

    /// A head of line that is short of its partition's own bound holds back its line; one that is short of what partitions share holds
    /// back all later ones on its devices, save those that need only what their partition keeps.
    fn admit_heads(&mut self, now: u64) {
        let mut last = None;
        while let Some((place, _)) = self.waiting.head_after(last, self.settling.as_slice()) {
            last = Some(place);
            self.try_admit(place.1, now);
        }
    }

    fn admit_all_that_fit(&mut self, now: u64) {
        for key in self.waiting.in_service_order() {
            // One that was rejected may have ended others, and forgotten them.
            if self.tasks.get(key).is_some_and(Task::waits_in_line) {
                self.try_admit(key, now);
            }
        }
    }

    /// Changes partitions, then rejects what can never run any more and admits what now fits.
    pub fn with_partitions<T>(&mut self, now: u64, change: impl FnOnce(&mut PartitionManager) -> T) -> T {
        self.advance(now);
        let result = change(&mut self.partitions);
        for slot in self.partitions.all_slots().collect::<Vec<_>>() {
            self.open_or_close(slot);
        }
        for key in self.tasks.keys() {
            // Rejecting one may end others, and forget them.
            let Some(task) = self.tasks.get(key).filter(|task| task.entered) else {
                continue;
            };
            let refusal = if task.phase == Phase::Queued {
                self.never(&task.spec, &task.site)
            } else {
                None
            };
            if let Some(refusal) = refusal {
                self.reject(key, refusal, now);
            }
        }
        self.unsettle_all();
        self.advance(now);
        result
    }

    /// What would become of a task if it were submitted now; nothing changes. Room that preemption could make does not count.
    pub fn evaluate(&mut self, mut spec: TaskSpec, now: u64) -> Result<(Phase, Reason, Detail), SpecError> {
        self.advance(now);
        let (_, site) = self.place(&mut spec)?;
        if let Some((reason, detail, _)) = self.refusal(&spec, &site, now) {
            return Ok((Phase::Rejected, reason, *detail));
        }
        let ahead = self.ahead_of_next(&spec, &site);
        let place = (Reverse(spec.priority), Key::LAST);
        if self.would_fit(&spec, &site, ahead, place) {
            return Ok((Phase::Admitted, Reason::None, Detail::default()));
        }
        if self.admission.no_room() == NoRoom::IsRejected {
            let (reason, detail, _) = self.no_room(&spec, &site, ahead);
            return Ok((Phase::Rejected, reason, *detail));
        }
        let (reason, detail) = self.waits_for(&spec, &site, ahead);
        Ok((Phase::Queued, reason, detail))
    }

    /// Tasks that are served before one that would come now, in its line.
    pub(super) fn ahead_of_next(&self, spec: &TaskSpec, site: &Site) -> usize {
        let line = self.waiting.line_of(site);
        line.map_or(0, |line| self.waiting.ahead_of(line, spec.priority, Key::LAST))
    }

    /// Completes a specification: what it depends on, and where it may be. An Err says what is malformed.
    pub(super) fn place(&self, spec: &mut TaskSpec) -> Result<(Vec<Key>, Site), SpecError> {
        spec.complete()?;
        let site = self.partitions.site_of(&spec.partition, &spec.devices)?;
        Ok((self.dependencies(spec)?, site))
    }

    /// Puts a new task in the table and takes its first edge. `placed`: by `place`.
    pub(super) fn enter(&mut self, key: Key, spec: TaskSpec, placed: Result<(Vec<Key>, Site), SpecError>, now: u64) {
        let refusal = placed
            .as_ref()
            .ok()
            .and_then(|(_, site)| self.refusal(&spec, site, now));
        let (site, placed) = match placed {
            Ok((dependencies, site)) => (site, Ok(dependencies)),
            Err(error) => (Site::One(DEFAULT_SLOT), Err(error)),
        };
        let partition = self.partitions.at(site.first().first);
        let (device, limit_ppm) = (partition.limits.device, partition.time_limit_ppm(spec.limit_ppm()));
        let task = Task::new(spec, site, device as usize, limit_ppm, key.number, now);
        self.tasks.insert(key, task);
        match (placed, refusal) {
            (Err(error), _) => {
                let trouble = self.tasks[key].trouble();
                (trouble.field, trouble.error) = (error.field, error.to_string());
                self.end(key, Phase::Rejected, Reason::InvalidSpec, now);
            }
            (_, Some(refusal)) => self.reject(key, refusal, now),
            (Ok(dependencies), None) => self.take_in(key, dependencies, now),
        }
    }

    /// A new task of which nothing is wrong: it is admitted, or it waits.
    fn take_in(&mut self, key: Key, dependencies: Vec<Key>, now: u64) {
        let task = &mut self.tasks[key];
        task.entered = true;
        task.line = self.waiting.enter(&task.site, |slot| self.partitions.device_of(slot));
        let (slot, deadline_ns) = (task.slot(), task.spec.deadline_ns);
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
            self.admit_new(key, now);
        }
    }

    /// Nothing but the ledger is in the way of a Queued task any more.
    pub(super) fn make_ready(&mut self, key: Key, now: u64) {
        let task = &mut self.tasks[key];
        task.held_until_ns = 0;
        if task.paused() {
            return; // until it is resumed
        }
        let admitted_before = task.reserved_since_ns != 0;
        if Self::asks_nothing(&task.spec, &task.site) {
            self.try_admit(key, now);
        } else if self.admission.no_room() == NoRoom::IsRejected && !admitted_before {
            self.admit_new(key, now);
        } else {
            self.join_line(key, now);
            self.unsettle(key);
        }
    }

    /// Admits a task that was never admitted yet, or does with it what the policy does where there is no room.
    fn admit_new(&mut self, key: Key, now: u64) {
        let behind = self.is_behind(key);
        if !behind && self.try_admit(key, now) {
            return;
        }
        if self.admission.no_room() != NoRoom::IsRejected {
            return self.wait(key, now);
        }
        let task = &self.tasks[key];
        let ahead = self.waiting.ahead_of(task.line, task.spec.priority, key);
        self.reject(key, self.no_room(&task.spec, &task.site, ahead), now);
    }

    /// It asks for room that others of its partition get first.
    fn is_behind(&self, key: Key) -> bool {
        let task = &self.tasks[key];
        let may_pass = self.may_be_passed() || Self::asks_nothing(&task.spec, &task.site);
        !may_pass && self.waiting.ahead_of(task.line, task.spec.priority, key) > 0
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
        let ahead = self.waiting.ahead_of(task.line, task.spec.priority, key);
        let (reason, _) = self.waits_for(&task.spec, &task.site, ahead);
        if ahead == 0 {
            self.unsettle(key);
        }
        self.move_to(key, Phase::Queued, reason, now);
        self.join_line(key, now);
    }

    /// First phase: memory and share are reserved on all its devices or on none, if need be out of what lower priorities hold. Second
    /// phase: the policy's check. False when it is short of something and stays where it is; else it has been admitted, held or rejected.
    pub(super) fn try_admit(&mut self, key: Key, now: u64) -> bool {
        let task = &self.tasks[key];
        let since_ns = task.reserved_since_ns;
        let place = (Reverse(task.spec.priority), key);
        let slots = match self.fit(&task.site, task.spec.reservation(), place) {
            Fit::Here(slots) => slots,
            short => {
                let room = match short {
                    Fit::Behind => None,
                    _ => self.make_room(key, now),
                };
                let Some(slots) = room else {
                    // One that is rejected instead of waiting stands in nobody's way.
                    let waits = self.waiting.first(self.tasks[key].line) == Some(key);
                    if waits || self.admission.no_room() != NoRoom::IsRejected {
                        self.hold_back(key, &short);
                    }
                    return false;
                };
                slots
            }
        };
        self.take_room(key, slots, now);
        let verdict = self.admission.check(&self.tasks[key].spec, now);
        if verdict != Verdict::Pass {
            self.give_back(key, now);
            self.tasks[key].reserved_since_ns = since_ns;
        }
        match verdict {
            Verdict::Pass => {
                self.tasks[key].holds = 0;
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

    pub(super) fn would_fit(&self, spec: &TaskSpec, site: &Site, ahead: usize, place: Place) -> bool {
        let first = ahead == 0 || self.may_be_passed();
        let fits = || matches!(self.fit(site, spec.reservation(), place), Fit::Here(_));
        Self::asks_nothing(spec, site) || (first && fits())
    }

    fn reject(&mut self, key: Key, (reason, detail, error): Refusal, now: u64) {
        self.end(key, Phase::Rejected, reason, now);
        if let Some(task) = self.tasks.get_mut(key) {
            let trouble = task.trouble();
            (trouble.refused, trouble.error) = (*detail, error);
        }
    }
}
