//! What is told of each task, and of all together.

use super::key::Key;
use super::name::Name;
use super::phase::Phase;
use super::reason::Reason;
use super::record::{Detail, Stats, TaskRecord};
use super::table::TaskTable;
use super::task::Task;
use crate::hash::Seeded;
use crate::partition::Ledger;
use std::collections::HashMap;

impl TaskTable {
    pub fn get(&mut self, id: &str, now: u64) -> Option<TaskRecord> {
        self.advance(now);
        Some(self.record(self.find(id)?))
    }

    /// Every remembered task in submission order.
    pub fn snapshot(&mut self, now: u64) -> Vec<TaskRecord> {
        self.advance(now);
        let places: HashMap<Key, usize, Seeded> = self.waiting.places().collect();
        let tasks = self.tasks.keys().into_iter().map(|key| (key, &self.tasks[key]));
        tasks
            .filter(|(_, task)| !task.forgotten)
            .map(|(key, task)| self.record_in_place(task, places.get(&key).copied()))
            .collect()
    }

    /// (number, name, first start, end) of every task that is remembered; 0 = not yet.
    pub fn runs(&self) -> Vec<(u64, Name, u64, u64)> {
        let run = |key: Key| {
            let task = &self.tasks[key];
            (key.number, task.spec.name.clone(), task.started_ns, task.finished_ns)
        };
        self.tasks.keys().into_iter().map(run).collect()
    }

    /// Tasks that ended after the first `since` did, oldest first, and how many have ended in all. Those forgotten are left out.
    pub fn finished(&self, since: u64) -> (Vec<TaskRecord>, u64) {
        let new = usize::try_from(self.finished.saturating_sub(since)).unwrap_or(usize::MAX);
        let skip = self.history.len().saturating_sub(new);
        (
            self.history.iter().skip(skip).map(|&key| self.record(key)).collect(),
            self.finished,
        )
    }

    pub fn finished_count(&self) -> u64 {
        self.finished
    }

    pub fn stats(&mut self, now: u64) -> Stats {
        self.advance(now);
        let in_phase = |phase: Phase| self.counts[phase as usize];
        let over = |of: &dyn Fn(&Ledger) -> u64| self.partitions.ledgers().iter().map(of).fold(0, u64::saturating_add);
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
            reserved_memory: over(&|ledger| ledger.reserved().memory_bytes),
            available_memory: over(&|ledger| ledger.available().memory_bytes),
            reserved_share_ppm: over(&|ledger| ledger.reserved().share_ppm.into()),
        }
    }

    /// The record of a task, with its present place in the queue.
    pub(super) fn record(&self, key: Key) -> TaskRecord {
        let task = &self.tasks[key];
        let waits = task.waits_in_line();
        let ahead = waits.then(|| self.waiting.ahead_of(task.line, task.spec.priority, key));
        self.record_in_place(task, ahead)
    }

    fn record_in_place(&self, task: &Task, ahead: Option<usize>) -> TaskRecord {
        let mut record = task.record(self.devices_of(task));
        if record.paused && record.phase == Phase::Queued {
            record.reason = Reason::WaitingForResume;
        }
        if let Some(ahead) = ahead {
            let (reason, detail) = self.waits_for(&task.spec, &task.site, ahead);
            let Detail {
                requeues, preemptions, ..
            } = record.detail;
            record.reason = reason;
            record.detail = Detail {
                requeues,
                preemptions,
                ..detail
            };
        }
        record
    }
}
