//! Preemption before the start: an Admitted task gives way to one of strictly higher priority that would fit without it.

use super::key::Key;
use super::phase::Phase;
use super::reason::Reason;
use super::table::TaskTable;
use crate::partition::{Reservation, Scope, Shortage, Site, Slots};
use std::cmp::Reverse;

struct Victim {
    key: Key,
    priority: i32,
    slots: Slots,
    held: Reservation,
}

/// What room is made for on each slot.
#[derive(Clone, Copy)]
struct Need {
    request: Reservation,
    /// It is of several devices, and needs the seats of them.
    seat: bool,
}

impl TaskTable {
    /// Makes room for a waiting task out of what Admitted tasks of lower priority hold, on all devices that it needs: where it fits now.
    /// None, and no change, when they hold too little of what is short. Lowest priority and youngest go first; then, in reverse, all that
    /// still fit are given back. Running tasks are never chosen, and a victim cannot in turn displace its preemptor: the order of
    /// priorities is strict.
    pub(super) fn make_room(&mut self, key: Key, now: u64) -> Option<Slots> {
        let priority = self.tasks[key].spec.priority;
        if !self.admitted.has_lower_than(priority) {
            return None;
        }
        let mut candidates = self.candidates_below(priority);
        let mut victims: Vec<Victim> = Vec::new();
        let (site, request) = (self.tasks[key].site.clone(), self.tasks[key].spec.reservation());
        let need = Need {
            request,
            seat: site.count() > 1,
        };
        let slots: Vec<usize> = match &site {
            Site::One(slot) => vec![*slot],
            Site::All(slots) => slots.to_vec(),
            Site::Any(_) => self.open_slots(key, need.seat),
        };
        let mut cleared = slots
            .into_iter()
            .filter(|&slot| self.clear(slot, need, &mut candidates, &mut victims));
        let mut cleared: Vec<usize> = cleared.by_ref().take(site.count()).collect();
        for victim in &victims {
            self.books(victim, true);
        }
        if cleared.len() < site.count() {
            return None;
        }
        cleared.sort_unstable();
        self.spare(&mut victims, &cleared, need);
        for Victim { key, .. } in victims {
            self.displace(key, now);
        }
        Some(Slots::of(cleared.into_iter()))
    }

    /// Admitted tasks of lower priority that hold something: the lowest and youngest first.
    fn candidates_below(&self, priority: i32) -> Vec<Victim> {
        let lower = self.admitted.lower_than(priority);
        let victim = |(priority, key): (i32, Key)| {
            let task = &self.tasks[key];
            let held = task.reserved.filter(|held| !held.is_empty() || task.site.count() > 1)?;
            let slots = task.slots.clone();
            Some(Victim {
                key,
                priority,
                slots,
                held,
            })
        };
        let mut candidates: Vec<Victim> = lower.into_iter().filter_map(victim).collect();
        sort(&mut candidates);
        candidates
    }

    /// Takes candidates off until there is room on a slot; false, and no change, when they hold too little.
    fn clear(&mut self, slot: usize, need: Need, candidates: &mut Vec<Victim>, victims: &mut Vec<Victim>) -> bool {
        let before = victims.len();
        loop {
            let next = if let Some(short) = self.lacks(slot, need.request) {
                candidates.iter().position(|victim| self.helps(victim, slot, &short))
            } else if let Some(holder) = self.seated(slot, need, victims) {
                candidates.iter().position(|victim| victim.key == holder)
            } else {
                return true;
            };
            let Some(next) = next else { break };
            let victim = candidates.remove(next);
            self.books(&victim, false);
            victims.push(victim);
        }
        for victim in victims.drain(before..) {
            self.books(&victim, true);
            candidates.push(victim);
        }
        sort(candidates);
        false
    }

    /// Lets victims go that there is room for beside the task.
    fn spare(&mut self, victims: &mut Vec<Victim>, slots: &[usize], need: Need) {
        for victim in &*victims {
            self.books(victim, false);
        }
        for i in (0..victims.len()).rev() {
            let victim = victims.remove(i);
            self.books(&victim, true);
            let fits =
                |&slot: &usize| self.lacks(slot, need.request).is_none() && self.seated(slot, need, victims).is_none();
            if !slots.iter().all(fits) {
                self.books(&victim, false);
                victims.insert(i, victim);
            }
        }
        for victim in &*victims {
            self.books(victim, true);
        }
    }

    /// Back to the queue.
    fn displace(&mut self, key: Key, now: u64) {
        for slot in self.tasks[key].slots.iter() {
            self.again.mark(self.partitions.device_of(slot));
        }
        self.give_back(key, now);
        let task = &mut self.tasks[key];
        task.preemptions += 1;
        task.preempted.set(true, now);
        self.move_to(key, Phase::Queued, Reason::WaitingForPreemption, now);
        self.join_line(key, now);
    }

    /// Who has the seat that is needed, apart from the victims.
    fn seated(&self, slot: usize, need: Need, victims: &[Victim]) -> Option<Key> {
        let holder = self.seat_of(slot).filter(|_| need.seat)?;
        (!victims.iter().any(|victim| victim.key == holder)).then_some(holder)
    }

    /// What a victim holds, in the ledgers again or off them.
    fn books(&mut self, victim: &Victim, again: bool) {
        for slot in victim.slots.iter() {
            let ledger = self.partitions.ledger_mut(slot);
            if again {
                ledger.take(slot, victim.held);
            } else {
                ledger.release(slot, victim.held);
            }
        }
    }

    fn helps(&self, victim: &Victim, slot: usize, short: &Shortage) -> bool {
        let device = self.partitions.device_of(slot);
        let lends = |of: usize| {
            let there = short.scope == Scope::Device && self.partitions.device_of(of) == device;
            there && self.partitions.ledger(of).lends(of, short.resource)
        };
        victim.held.of(short.resource) > 0 && victim.slots.iter().any(|of| of == slot || lends(of))
    }
}

fn sort(candidates: &mut [Victim]) {
    candidates.sort_unstable_by_key(|victim| (victim.priority, Reverse(victim.key)));
}
