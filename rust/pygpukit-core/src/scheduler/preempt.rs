//! Preemption before the start: an Admitted task gives way to one of strictly higher priority that would fit without it.

use super::key::Key;
use super::phase::Phase;
use super::reason::Reason;
use super::table::TaskTable;
use crate::partition::{Reservation, Scope, Shortage};

struct Victim {
    key: Key,
    slot: usize,
    held: Reservation,
}

impl TaskTable {
    /// Makes room for a waiting task out of what Admitted tasks of lower priority hold; false, and no change, when they hold too
    /// little of what is short. Lowest priority and youngest go first; then, in reverse, all that still fit are given back.
    /// Running tasks are never chosen, and a victim cannot in turn displace its preemptor: the order of priorities is strict.
    pub(super) fn make_room(&mut self, key: Key, now: u64) -> bool {
        let (priority, slot) = (self.tasks[key].spec.priority, self.tasks[key].slot);
        if !self.admitted.has_lower_than(priority) {
            return false;
        }
        let request = self.tasks[key].spec.reservation();
        let mut candidates = self.admitted.lower_than(priority);
        candidates.sort_unstable_by_key(|&(priority, key)| (priority, std::cmp::Reverse(key)));
        let mut candidates: Vec<Victim> = candidates
            .into_iter()
            .filter_map(|(_, key)| {
                let task = &self.tasks[key];
                let held = task.reserved.filter(|held| !held.is_empty())?;
                let slot = task.slot;
                Some(Victim { key, slot, held })
            })
            .collect();
        let mut victims: Vec<Victim> = Vec::new();
        while let Some(short) = self.partitions.ledger().shortage(slot, request) {
            let Some(i) = candidates.iter().position(|v| self.helps(v, slot, &short)) else {
                for Victim { slot, held, .. } in victims {
                    self.partitions.ledger_mut().take(slot, held);
                }
                return false;
            };
            let victim = candidates.remove(i);
            self.partitions.ledger_mut().release(victim.slot, victim.held);
            victims.push(victim);
        }
        for i in (0..victims.len()).rev() {
            let Victim { slot: of, held, .. } = victims[i];
            self.partitions.ledger_mut().take(of, held);
            if self.partitions.ledger().shortage(slot, request).is_none() {
                victims.remove(i);
            } else {
                self.partitions.ledger_mut().release(of, held);
            }
        }
        (self.displaced, self.unsettled) = (true, true);
        for Victim { key, .. } in victims {
            let task = &mut self.tasks[key];
            task.hold(None, now);
            task.preemptions += 1;
            task.preempted.set(true, now);
            self.move_to(key, Phase::Queued, Reason::WaitingForPreemption, now);
            self.join_line(key, now);
        }
        true
    }

    fn helps(&self, victim: &Victim, slot: usize, short: &Shortage) -> bool {
        let reachable = victim.slot == slot
            || (short.scope == Scope::Device && self.partitions.ledger().lends(victim.slot, short.resource));
        reachable && victim.held.of(short.resource) > 0
    }
}
