//! Why a task is not taken in.

use super::key::Key;
use super::reason::Reason;
use super::record::Detail;
use super::spec::TaskSpec;
use super::table::TaskTable;
use crate::partition::{Resource, Scope, Shortage, Site, SpecError};

/// The reason, its numbers, and words where numbers do not say it.
pub(super) type Refusal = (Reason, Box<Detail>, String);

impl TaskTable {
    /// The tasks a specification depends on. They were all submitted before, so that no cycle can be closed; the one
    /// cycle that can be written down is a task that depends on itself.
    pub(super) fn dependencies(&self, spec: &TaskSpec) -> Result<Vec<Key>, SpecError> {
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
    pub(super) fn refusal(&self, spec: &TaskSpec, site: &Site, now: u64) -> Option<Refusal> {
        if self.closed {
            return Some((Reason::ShuttingDown, Box::default(), String::new()));
        }
        if let Some(why) = self.device_fault(site.first().first) {
            return Some((Reason::DeviceUnhealthy, Box::default(), why));
        }
        if let Some(refusal) = self.never(spec, site) {
            return Some(refusal);
        }
        if spec.deadline_ns != 0 {
            let (needed, left) = (self.needed_ns(spec, site, now), spec.deadline_ns.saturating_sub(now));
            if left == 0 || needed > left {
                let detail = Detail::shortage(needed, left);
                return Some((Reason::DeadlineUnmeetable, Box::new(detail), String::new()));
            }
        }
        let (backlog, limit) = (self.waiting_or_admitted(), self.config.max_queue);
        (backlog >= limit).then(|| {
            let detail = Detail::shortage(backlog as u64 + 1, limit as u64);
            (Reason::QueueFull, Box::new(detail), String::new())
        })
    }

    /// What no time and no other task's end could change.
    pub(super) fn never(&self, spec: &TaskSpec, site: &Site) -> Option<Refusal> {
        let slot = site.first().first;
        let partition = self.partitions.at(slot);
        let (lowest, highest) = partition.limits.priorities;
        if !(lowest..=highest).contains(&spec.priority) {
            let (priority, id) = (spec.priority, &partition.id);
            let error = format!("priority {priority}; partition '{id}' allows {lowest} to {highest}");
            return Some((Reason::PriorityNotAllowed, Box::default(), error));
        }
        let short = self.shortage_for_ever(site, spec.reservation())?;
        let reason = match short {
            Shortage {
                scope: Scope::Partition,
                ..
            } if !self.partitions.is_rest(slot) => Reason::ExceedsPartition,
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

    /// Why a task is not left to wait, where the policy says so: the numbers of what is short, or of what those ahead of it wait for.
    pub(super) fn no_room(&self, spec: &TaskSpec, site: &Site, ahead: usize) -> Refusal {
        let (waits_for, detail) = self.waits_for(spec, site, ahead);
        let reason = match waits_for {
            Reason::WaitingForShare => Reason::ShareInUse,
            _ => Reason::MemoryInUse,
        };
        let detail = Detail {
            asked: detail.asked,
            available: detail.available,
            ..Detail::default()
        };
        (reason, Box::new(detail), String::new())
    }
}
