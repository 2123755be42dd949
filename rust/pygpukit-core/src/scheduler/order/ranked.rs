//! Admitted tasks by a rank that each has from its admission on: the lowest of the highest priority first, and of equals the earliest.

use super::{Order, Ready};
use crate::hash::Seeded;
use crate::scheduler::key::Key;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

type Rank = fn(&Ready<'_>) -> u64;

/// (priority, rank, task).
type Place = (Reverse<i32>, u64, Key);

pub(super) struct Ranked {
    rank: Rank,
    /// Slot and rank of every task.
    tasks: HashMap<Key, (usize, u64), Seeded>,
    /// Those of open partitions.
    open: BTreeSet<Place>,
    /// Those of the others, by slot.
    closed: HashMap<usize, BTreeSet<Place>, Seeded>,
}

impl Ranked {
    pub fn by(rank: Rank) -> Ranked {
        Ranked {
            rank,
            tasks: HashMap::default(),
            open: BTreeSet::new(),
            closed: HashMap::default(),
        }
    }

    /// Where tasks of a slot are.
    fn places(&mut self, slot: usize) -> &mut BTreeSet<Place> {
        self.closed.get_mut(&slot).unwrap_or(&mut self.open)
    }

    fn all(&self) -> impl Iterator<Item = &Place> {
        self.open.iter().chain(self.closed.values().flatten())
    }
}

impl Order for Ranked {
    fn len(&self) -> usize {
        self.tasks.len()
    }

    fn insert(&mut self, task: &Ready<'_>) {
        let rank = (self.rank)(task);
        let before = self.tasks.insert(task.key, (task.slot, rank));
        assert!(before.is_none(), "task {} is already in the queue", task.key.number);
        self.places(task.slot).insert((Reverse(task.priority), rank, task.key));
    }

    fn remove(&mut self, priority: i32, slot: usize, key: Key, _starts: Option<u32>) -> bool {
        let Some((_, rank)) = self.tasks.remove(&key) else {
            return false;
        };
        self.places(slot).remove(&(Reverse(priority), rank, key))
    }

    fn first(&self) -> Option<Key> {
        self.open.first().map(|place| place.2)
    }

    fn set_open(&mut self, slot: usize, open: bool) {
        if open {
            self.open.extend(self.closed.remove(&slot).unwrap_or_default());
        } else if !self.closed.contains_key(&slot) {
            let own = |place: &&Place| self.tasks[&place.2].0 == slot;
            let places: BTreeSet<Place> = self.open.iter().filter(own).copied().collect();
            self.open.retain(|place| !places.contains(place));
            self.closed.insert(slot, places);
        }
    }

    fn before(&self, task: &Ready<'_>, _weight: &dyn Fn(usize) -> u32) -> Vec<Key> {
        let place = (Reverse(task.priority), (self.rank)(task), task.key);
        let own = self.closed.get(&task.slot).into_iter().flatten();
        let mut before: Vec<Place> = self.open.iter().chain(own).copied().filter(|&p| p < place).collect();
        before.sort_unstable();
        before.into_iter().map(|place| place.2).collect()
    }

    fn lower_than(&self, below: i32) -> Vec<(i32, Key)> {
        let lower = self.all().filter(|place| place.0 .0 < below);
        lower.map(|place| (place.0 .0, place.2)).collect()
    }

    fn has_lower_than(&self, below: i32) -> bool {
        let mut last = self.closed.values().chain([&self.open]).filter_map(BTreeSet::last);
        last.any(|place| place.0 .0 < below)
    }

    fn keys(&self) -> Vec<Key> {
        let mut places: Vec<(Reverse<i32>, Key)> = self.all().map(|place| (place.0, place.2)).collect();
        places.sort_unstable();
        places.into_iter().map(|place| place.1).collect()
    }
}
