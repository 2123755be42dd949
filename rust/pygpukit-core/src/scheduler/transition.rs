//! The one place where a task's phase changes, and what follows from it: books, dependants, history.

use super::phase::{edge, Phase};
use super::reason::Reason;
use super::record::{Detail, Transition};
use super::table::TaskTable;
use super::task::Task;
use std::collections::VecDeque;

impl TaskTable {
    pub(super) fn move_to(&mut self, number: u64, to: Phase, reason: Reason, now: u64) {
        let task = self.tasks.get_mut(&number).expect("a listed task is in the table");
        let from = task.phase;
        let Some(edge) = edge(from, to) else {
            panic!("task {number}: no edge {from:?} -> {to:?}")
        };
        assert_eq!(
            edge.reasons,
            reason.group(),
            "task {number}: {reason:?} on {from:?} -> {to:?}"
        );
        let (priority, slot) = (task.spec.priority, task.slot);
        match from {
            Phase::Queued => {
                self.held.remove(&(task.held_until_ns, number));
                self.unsettled |= self.waiting.remove(slot, priority, number);
            }
            Phase::Admitted => _ = self.admitted.remove(priority, slot, number),
            _ => {}
        }
        (task.phase, task.reason, task.detail) = (to, reason, Detail::default());
        if to == Phase::Admitted {
            self.admitted.insert(priority, slot, number);
        }
        if from != Phase::Submitted {
            self.counts[from as usize] -= 1;
        }
        self.counts[to as usize] += 1;
        let (id, name) = (task.spec.id.as_str(), task.spec.name.as_str());
        self.observer.transition(&Transition {
            number,
            id,
            name,
            from,
            to,
            reason,
            t_ns: now,
        });
    }

    /// Moves a task to a terminal phase and settles those that depend on it. The caller advances the table afterwards.
    pub(super) fn end(&mut self, number: u64, to: Phase, reason: Reason, now: u64) {
        let mut ending = VecDeque::from([(number, to, reason)]);
        while let Some((number, to, reason)) = ending.pop_front() {
            // Two of its dependencies may have ended in this same loop, and it may even be forgotten by now.
            if self.tasks.get(&number).map_or(true, |task| task.phase.is_terminal()) {
                continue;
            }
            self.move_to(number, to, reason, now);
            let task = self.task_mut(number);
            task.finished_ns = now;
            let (deadline, slot) = ((task.spec.deadline_ns, number), task.slot);
            let entered = std::mem::take(&mut task.entered);
            let dependants = std::mem::take(&mut task.dependants);
            if task.occupied {
                task.context.stop();
            }
            let (occupied, id) = (task.occupied, task.spec.id.clone());
            self.deadlines.remove(&deadline);
            if entered {
                self.partitions.at_mut(slot).tasks -= 1;
            }
            if !occupied {
                self.vacate(number);
            }
            for dependant in dependants {
                // It may have been cancelled in the meantime, and then forgotten.
                let Some(task) = self.tasks.get_mut(&dependant).filter(|task| !task.phase.is_terminal()) else {
                    continue;
                };
                if to == Phase::Succeeded {
                    task.unmet -= 1;
                    if task.unmet == 0 {
                        self.make_ready(dependant, now);
                    }
                } else {
                    task.error = format!("dependency '{id}' ended {}", to.name());
                    ending.push_back((dependant, Phase::Failed, Reason::DependencyFailed));
                }
            }
            self.remember(number);
        }
    }

    /// No dispatcher is inside the task: its reservation goes back.
    pub(super) fn vacate(&mut self, number: u64) {
        self.leave(number);
        let task = self.task_mut(number);
        let (reserved, slot, forgotten) = (task.reserved.take(), task.slot, task.forgotten);
        if let Some(reserved) = reserved {
            self.partitions.ledger_mut().release(slot, reserved);
            self.unsettled = true;
        }
        if forgotten {
            self.forget(number);
        }
    }

    /// A dispatcher enters the task: one stream of its partition is in use.
    pub(super) fn occupy(&mut self, number: u64) {
        let task = self.task_mut(number);
        task.occupied = true;
        let slot = task.slot;
        self.partitions.at_mut(slot).occupied += 1;
        self.open_or_close(slot);
    }

    pub(super) fn leave(&mut self, number: u64) {
        let task = self.task_mut(number);
        let slot = task.slot;
        if std::mem::take(&mut task.occupied) {
            self.partitions.at_mut(slot).occupied -= 1;
            self.open_or_close(slot);
        }
    }

    /// Starts no more tasks of a partition while all its streams are in use.
    pub(super) fn open_or_close(&mut self, slot: usize) {
        let partition = self.partitions.at(slot);
        let open = partition.occupied < partition.limits.max_streams;
        self.admitted.set_open(slot, open);
    }

    fn remember(&mut self, number: u64) {
        self.history.push_back(number);
        self.finished += 1;
        while self.history.len() > self.config.max_finished.max(1) {
            let Some(oldest) = self.history.pop_front() else { return };
            let task = self.task_mut(oldest);
            if task.occupied {
                task.forgotten = true;
            } else {
                self.forget(oldest);
            }
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(task) = self.tasks.remove(&number) {
            self.ids.remove(&task.spec.id);
        }
    }

    pub(super) fn task_mut(&mut self, number: u64) -> &mut Task {
        self.tasks.get_mut(&number).expect("a listed task is in the table")
    }
}
