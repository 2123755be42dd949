//! How long a task waits, and what for, as far as that can be told.

use super::key::Key;
use super::order::Ready;
use super::reason::Reason;
use super::record::Detail;
use super::spec::TaskSpec;
use super::table::TaskTable;
use crate::partition::{Resource, Site};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl TaskTable {
    /// The time to its end as far as anything is known: the wait for memory and share, from the mean run so far, that for a worker,
    /// which may go on meanwhile, and its own run, as the caller expects it or as tasks of its name took. 0 when nothing is known.
    pub(super) fn needed_ns(&self, spec: &TaskSpec, site: &Site, now: u64) -> u64 {
        let own = self.runs.expected_ns(spec).unwrap_or(0);
        let ahead = self.ahead_of_next(spec, site);
        let mut wait = self.worker_wait_ns(spec, site.first().first, now);
        if !self.would_fit(spec, site, ahead, (Reverse(spec.priority), Key::LAST)) {
            wait = wait.max(self.estimated_wait_ns(ahead as u64 + 1).unwrap_or(0));
        }
        own.saturating_add(wait)
    }

    /// When the first worker is free for one more task: after what runs, and the admitted tasks before it, each on the worker that is
    /// free first. A run of unknown length counts nothing, so that no task is rejected on a guess.
    fn worker_wait_ns(&self, spec: &TaskSpec, slot: usize, now: u64) -> u64 {
        let (workers, busy) = (self.config.workers, self.occupied.len());
        if workers == 0 || busy + self.admitted.len() < workers {
            return 0;
        }
        let run_ns = |key: Key| self.runs.expected_ns(&self.tasks[key].spec).unwrap_or(0);
        let left_ns = |&key: &Key| {
            let task = &self.tasks[key];
            let ended = task.phase.is_terminal(); // its dispatcher may be out of it any moment
            let ran = now.saturating_sub(task.run_started_ns);
            Reverse(if ended { 0 } else { run_ns(key).saturating_sub(ran) })
        };
        let mut free: BinaryHeap<Reverse<u64>> = self.occupied.iter().map(left_ns).collect();
        free.extend((busy..workers).map(|_| Reverse(0)));
        let weight = |slot: usize| self.partitions.at(slot).limits.weight;
        let one_more = Ready::one_more(spec, slot, now, &self.runs);
        for key in self.admitted.before(&one_more, &weight) {
            if let Some(mut first) = free.peek_mut() {
                first.0 = first.0.saturating_add(run_ns(key));
            }
        }
        free.peek().map_or(0, |first| first.0)
    }

    pub(super) fn estimated_wait_ns(&self, position: u64) -> Option<u64> {
        let mean_ns = self.runs.mean_ns().filter(|&ns| ns > 0)?;
        Some(mean_ns.saturating_mul(position) / self.running().max(1))
    }

    /// What a task that is behind `ahead` others of its partition waits for. One that would fit by itself waits for what the first
    /// of them lacks, or the first of all that wait.
    pub(super) fn waits_for(&self, spec: &TaskSpec, site: &Site, ahead: usize) -> (Reason, Detail) {
        let lacks = |site: &Site, spec: &TaskSpec| self.shortage_now(site, spec.reservation());
        let lacked_by = |key: Key| lacks(&self.tasks[key].site, &self.tasks[key].spec);
        let own = lacks(site, spec);
        let line = self.waiting.line_of(site);
        let position = ahead as u64 + 1;
        let place = Detail {
            position: Some(position),
            estimated_wait_ns: self.estimated_wait_ns(position),
            ..Detail::default()
        };
        let blocking = own
            .or_else(|| lacked_by(self.waiting.first(line?)?))
            .or_else(|| lacked_by(self.blocked_for(site)?.1));
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
