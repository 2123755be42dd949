//! The one place where a task's phase changes, and what follows from it: books, dependants, history.

use super::key::Key;
use super::order::Ready;
use super::phase::{edge, Phase};
use super::reason::Reason;
use super::record::{Move, Transition};
use super::table::TaskTable;
use super::waiting::WaitingLines;
use crate::partition::Isolation;
use std::cmp::Reverse;
use std::collections::VecDeque;

impl TaskTable {
    pub(super) fn move_to(&mut self, key: Key, to: Phase, reason: Reason, now: u64) {
        let task = &mut self.tasks[key];
        let number = key.number;
        let from = task.phase;
        let Some(edge) = edge(from, to) else {
            panic!("task {number}: no edge {from:?} -> {to:?}")
        };
        assert_eq!(
            edge.reasons,
            reason.group(),
            "task {number}: {reason:?} on {from:?} -> {to:?}"
        );
        let (priority, slot) = (task.spec.priority, task.slot());
        match from {
            Phase::Queued => {
                self.held.remove(&(task.held_until_ns, key));
                task.preempted.set(false, now);
                task.requeued.set(false, now);
                if self.leave_line(key, now) {
                    self.unsettle(key);
                }
            }
            Phase::Admitted => {
                let starts = (to == Phase::Running).then(|| self.partitions.at(slot).limits.weight);
                self.admitted.remove(priority, slot, key, starts);
            }
            _ => {}
        }
        let task = &mut self.tasks[key];
        (task.phase, task.reason) = (to, reason);
        let task = &self.tasks[key];
        if to == Phase::Admitted {
            self.admitted.insert(&Ready::of(&self.tasks, &self.runs, key));
        }
        if from != Phase::Submitted {
            self.counts[from as usize] -= 1;
        }
        self.counts[to as usize] += 1;
        let device = self.devices_of(task).first;
        let (id, name) = (task.spec.id.as_str(), task.spec.name.as_str());
        self.observer.transition(&Transition {
            number,
            id,
            name,
            device,
            from,
            to,
            reason,
            t_ns: now,
        });
    }

    /// Moves a task to a terminal phase and settles those that depend on it. The caller advances the table afterwards.
    pub(super) fn end(&mut self, key: Key, to: Phase, reason: Reason, now: u64) {
        let mut failed = VecDeque::new();
        self.end_one(key, to, reason, now, &mut failed);
        while let Some(dependant) = failed.pop_front() {
            self.end_one(dependant, Phase::Failed, Reason::DependencyFailed, now, &mut failed);
        }
    }

    /// `failed`: gets the tasks that cannot succeed any more.
    fn end_one(&mut self, key: Key, to: Phase, reason: Reason, now: u64, failed: &mut VecDeque<Key>) {
        // Two of its dependencies may have ended just now, and it may even be forgotten.
        if self.tasks.get(key).map_or(true, |task| task.phase.is_terminal()) {
            return;
        }
        self.move_to(key, to, reason, now);
        let task = &mut self.tasks[key];
        task.finished_ns = now;
        let (deadline_ns, slot) = (task.spec.deadline_ns, task.slot());
        let entered = std::mem::take(&mut task.entered);
        let dependants = std::mem::take(&mut task.dependants);
        let occupied = task.occupied;
        if occupied {
            self.context_of(key).stop();
        }
        if deadline_ns != 0 {
            self.deadlines.remove(&(deadline_ns, key));
        }
        if entered {
            self.partitions.at_mut(slot).tasks -= 1;
            let task = &self.tasks[key];
            self.waiting.leave(&task.site, task.line);
        }
        if !occupied {
            self.vacate(key, now);
        }
        let lost = (to != Phase::Succeeded && !dependants.is_empty())
            .then(|| format!("dependency '{}' ended {}", self.tasks[key].spec.id, to.name()));
        for dependant in dependants {
            // It may have been cancelled in the meantime, and then forgotten.
            let Some(task) = self.tasks.get_mut(dependant).filter(|task| !task.phase.is_terminal()) else {
                continue;
            };
            if let Some(lost) = &lost {
                task.trouble().error.clone_from(lost);
                failed.push_back(dependant);
                continue;
            }
            task.unmet -= 1;
            if task.unmet == 0 {
                self.make_ready(dependant, now);
            }
        }
        self.remember(key);
    }

    /// No dispatcher is inside the task: its reservation goes back.
    pub(super) fn vacate(&mut self, key: Key, now: u64) {
        self.leave(key);
        self.give_back(key, now);
        if self.tasks[key].forgotten {
            self.forget(key);
        }
    }

    /// A dispatcher enters the task: one stream of its partition is in use.
    pub(super) fn occupy(&mut self, key: Key) {
        let task = &mut self.tasks[key];
        task.occupied = true;
        let slot = task.slot();
        self.occupied.push(key);
        self.partitions.at_mut(slot).occupied += 1;
        self.open_or_close(slot);
    }

    pub(super) fn leave(&mut self, key: Key) {
        let task = &mut self.tasks[key];
        let slot = task.slot();
        if std::mem::take(&mut task.occupied) {
            self.occupied.retain(|&other| other != key);
            self.partitions.at_mut(slot).occupied -= 1;
            self.open_or_close(slot);
        }
    }

    /// Starts no more tasks of a partition while all its streams are in use, or another's worker has its turn.
    pub(super) fn open_or_close(&mut self, slot: usize) {
        let partition = self.partitions.at(slot);
        if partition.limits.isolation == Isolation::Timesliced {
            let slots: Vec<usize> = self.partitions.turns(partition.limits.device as usize).collect();
            let free = slots.iter().all(|&slot| self.partitions.at(slot).occupied == 0);
            for slot in slots {
                self.admitted.set_open(slot, free);
            }
            return;
        }
        let open = partition.occupied < partition.limits.streams();
        self.admitted.set_open(slot, open);
    }

    /// Into the line of its partition, at its place.
    pub(super) fn join_line(&mut self, key: Key, now: u64) {
        let task = &self.tasks[key];
        self.waiting.insert(task.line, task.spec.priority, key);
        self.tell_move(key, true, now);
    }

    /// Out of the line; false when it was not there.
    pub(super) fn leave_line(&mut self, key: Key, now: u64) -> bool {
        let task = &self.tasks[key];
        let place = (Reverse(task.spec.priority), key);
        let there = self.waiting.remove(task.line, task.spec.priority, key);
        if there {
            self.let_through(place);
            self.tell_move(key, false, now);
        }
        there
    }

    fn tell_move(&mut self, key: Key, came: bool, now: u64) {
        let task = &self.tasks[key];
        let ahead = self.waiting.ahead_of(task.line, task.spec.priority, key);
        self.observer.moved(&Move {
            number: key.number,
            partition: &self.partitions.at(task.slot()).id,
            device: self.devices_of(task).first,
            line: WaitingLines::short(task.line),
            came,
            place: ahead as u64 + 1,
            depth: self.waiting.len(task.line) as u64,
            t_ns: now,
        });
    }

    fn remember(&mut self, key: Key) {
        self.history.push_back(key);
        self.finished += 1;
        while self.history.len() > self.config.max_finished.max(1) {
            let Some(oldest) = self.history.pop_front() else { return };
            let task = &mut self.tasks[oldest];
            if task.occupied {
                task.forgotten = true;
            } else {
                self.forget(oldest);
            }
        }
    }

    fn forget(&mut self, key: Key) {
        if let Some(task) = self.tasks.remove(key) {
            self.ids.remove(&task.spec.id, key);
            *self.tenants.of(&task.spec.name) += task.used();
        }
    }
}
