//! Changes to a task that is in the table already: its priority and its share of the device.

use super::error::TaskError;
use super::key::Key;
use super::order::Ready;
use super::phase::Phase;
use super::reason::Reason;
use super::spec::{Policy, TaskSpec};
use super::table::TaskTable;
use crate::partition::words::percent;
use crate::partition::{Reservation, Resource, Shortage, Slots, SpecError};

/// What to change; None = as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub priority: Option<i32>,
    pub share_ppm: Option<u32>,
    /// Of a guaranteed task it is the share, always.
    pub share_limit_ppm: Option<u32>,
}

impl TaskTable {
    /// Changes an unfinished task, or, on an Err, nothing. A new priority counts from now on: one that waits moves in its line, one
    /// that is admitted may have to give way, and one that runs goes on and is served by it should it come back to the queue. A new
    /// share is promised and enforced from now on; one that runs gets more only out of what is free, before those that wait.
    /// The class follows from the requests, save that a guaranteed task stays one.
    pub fn adjust(&mut self, id: &str, change: Change, now: u64) -> Result<(), TaskError> {
        self.advance(now);
        let key = self.unfinished(id)?;
        let task = &self.tasks[key];
        let phase = task.phase;
        let spec = changed(&task.spec, change).map_err(TaskError::Invalid)?;
        self.check_change(key, &spec).map_err(TaskError::Invalid)?;
        let (slot, before, after) = (task.slot(), task.spec.reservation(), spec.reservation());
        if task.reserved.is_some() {
            self.swap_share(&task.slots.clone(), before.share_ppm, after.share_ppm)
                .map_err(|short| TaskError::Invalid(shortage(short)))?;
            self.tasks[key].reserved = Some(after);
        }
        let (old, new) = (self.tasks[key].spec.priority, spec.priority);
        let in_line = phase == Phase::Queued && self.leave_line(key, now);
        if phase == Phase::Admitted && old != new {
            self.admitted.remove(old, slot, key, None);
            let task = Ready::of(&self.tasks, &self.runs, key);
            self.admitted.insert(&Ready { priority: new, ..task });
        }
        let limit_ppm = self.partitions.at(slot).time_limit_ppm(spec.limit_ppm());
        let task = &mut self.tasks[key];
        task.change(spec, limit_ppm);
        if in_line {
            self.make_ready(key, now);
        }
        self.unsettle_all();
        self.advance(now);
        Ok(())
    }

    /// What stands in the way of it for good. What a task holds already it may keep, whatever its partition has become.
    fn check_change(&self, key: Key, spec: &TaskSpec) -> Result<(), SpecError> {
        let task = &self.tasks[key];
        let Some((reason, detail, error)) = self.never(spec, &task.site) else {
            return Ok(());
        };
        if reason == Reason::PriorityNotAllowed {
            // The partition's bounds may have changed since; what it has it may keep.
            let same = spec.priority == task.spec.priority;
            return if same {
                Ok(())
            } else {
                Err(SpecError::new("priority", error))
            };
        }
        if task.reserved.is_some() || spec.reservation() == task.spec.reservation() {
            return Ok(());
        }
        let (asked, limit) = (detail.asked.unwrap_or(0), detail.available.unwrap_or(0));
        let message = format!(
            "{} of the device, and {} is the most it can get ({})",
            percent(asked),
            percent(limit),
            reason.name()
        );
        Err(SpecError::new("bandwidth", message))
    }

    /// On all of its devices or on none.
    fn swap_share(&mut self, slots: &Slots, before: u32, after: u32) -> Result<(), Shortage> {
        let share = |share_ppm| Reservation {
            memory_bytes: 0,
            share_ppm,
        };
        let more = share(after.saturating_sub(before));
        if let Some(short) = slots.iter().find_map(|slot| self.lacks(slot, more)) {
            return Err(short);
        }
        for slot in slots.iter() {
            let ledger = self.partitions.ledger_mut(slot);
            ledger.take(slot, more);
            ledger.release(slot, share(before.saturating_sub(after)));
        }
        Ok(())
    }
}

fn shortage(short: Shortage) -> SpecError {
    debug_assert_eq!(short.resource, Resource::Share, "no memory was asked for");
    let (asked, available) = (percent(short.asked), percent(short.available));
    let message = format!("{asked} more of the device, and {available} is free; take it from another task first");
    SpecError::new("bandwidth", message)
}

/// The specification with the change, and with what its class implies.
fn changed(spec: &TaskSpec, change: Change) -> Result<TaskSpec, SpecError> {
    let mut spec = spec.clone();
    spec.priority = change.priority.unwrap_or(spec.priority);
    let (share_ppm, limit_ppm) = (change.share_ppm.unwrap_or(spec.share_ppm), change.share_limit_ppm);
    if (spec.share_ppm, None) == (share_ppm, limit_ppm) {
        return Ok(spec);
    }
    spec.share_ppm = share_ppm;
    if spec.policy == Policy::Guaranteed {
        spec.share_limit_ppm = limit_ppm.or(Some(share_ppm).filter(|&ppm| ppm > 0));
    } else {
        spec.share_limit_ppm = limit_ppm.or(spec.share_limit_ppm);
        spec.policy = match spec.demand().class() {
            Policy::Guaranteed => Policy::Burstable, // it was not asked to be
            class => class,
        };
    }
    spec.fill()?;
    if spec.share_ppm != share_ppm {
        let limit = percent(spec.share_limit_ppm.unwrap_or(0).into());
        let message = format!("0; its limit of {limit} counts as a request of that size where there is none");
        return Err(SpecError::new("bandwidth", message));
    }
    Ok(spec)
}
