//! Tasks that wait for memory or share: one line a partition, and the heads of all lines in service order.

use super::key::Key;
use super::queue::{Place, ServiceQueue};
use std::collections::BTreeSet;
use std::ops::Bound;

/// A task waits behind the earlier ones of its own partition; which heads may pass which is the caller's business.
#[derive(Default)]
pub(super) struct WaitingLines {
    lines: Vec<ServiceQueue>,
    heads: BTreeSet<(Place, usize)>,
}

impl WaitingLines {
    pub fn insert(&mut self, slot: usize, priority: i32, key: Key) {
        if self.lines.len() <= slot {
            self.lines.resize_with(slot + 1, ServiceQueue::default);
        }
        let before = self.head(slot);
        self.lines[slot].insert(priority, key);
        self.relist(slot, before);
    }

    pub fn remove(&mut self, slot: usize, priority: i32, key: Key) -> bool {
        let before = self.head(slot);
        let removed = self.lines.get_mut(slot).is_some_and(|line| line.remove(priority, key));
        if removed {
            self.relist(slot, before);
        }
        removed
    }

    /// How many tasks of its partition are served before one of this priority and key.
    pub fn ahead_of(&self, slot: usize, priority: i32, key: Key) -> usize {
        self.lines.get(slot).map_or(0, |line| line.ahead_of(priority, key))
    }

    /// Tasks in a line.
    pub fn len(&self, slot: usize) -> usize {
        self.lines.get(slot).map_or(0, ServiceQueue::len)
    }

    /// The first task of a line.
    pub fn first(&self, slot: usize) -> Option<Key> {
        Some(self.head(slot)?.1)
    }

    /// The first head after a place, or the very first.
    pub fn head_after(&self, place: Option<Place>) -> Option<(Place, usize)> {
        match place {
            None => self.heads.first().copied(),
            Some(place) => {
                let later = (Bound::Excluded((place, usize::MAX)), Bound::Unbounded);
                self.heads.range(later).next().copied()
            }
        }
    }

    /// Every task, of whichever line.
    pub fn in_service_order(&self) -> Vec<Key> {
        let mut all: Vec<_> = self.lines.iter().flat_map(ServiceQueue::places).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, key)| key).collect()
    }

    /// (key, tasks ahead of it in its line) of every task.
    pub fn places(&self) -> impl Iterator<Item = (Key, usize)> + '_ {
        self.lines
            .iter()
            .flat_map(|line| line.iter().enumerate().map(|(ahead, key)| (key, ahead)))
    }

    fn head(&self, slot: usize) -> Option<Place> {
        let (priority, key) = self.lines.get(slot)?.first()?;
        Some((std::cmp::Reverse(priority), key))
    }

    fn relist(&mut self, slot: usize, before: Option<Place>) {
        let after = self.head(slot);
        if before == after {
            return;
        }
        if let Some(place) = before {
            self.heads.remove(&(place, slot));
        }
        if let Some(place) = after {
            self.heads.insert((place, slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;

    #[test]
    fn heads_are_in_service_order() {
        let mut waiting = WaitingLines::default();
        for (slot, priority, number) in [(0, 0, 1), (2, 5, 2), (0, 7, 3), (2, 5, 4), (1, 0, 5)] {
            waiting.insert(slot, priority, Key::of(number));
        }
        let mut place = None;
        let mut heads = Vec::new();
        while let Some((next, slot)) = waiting.head_after(place) {
            heads.push((slot, next.1.number));
            place = Some(next);
        }
        assert_eq!(heads, [(0, 3), (2, 2), (1, 5)]);
        assert_eq!((waiting.first(0), waiting.first(3)), (Some(Key::of(3)), None));
        assert_eq!(
            (waiting.ahead_of(0, 0, Key::of(1)), waiting.ahead_of(2, 0, Key::LAST)),
            (1, 2)
        );
        assert!(
            waiting.remove(0, 7, Key::of(3)) && !waiting.remove(0, 7, Key::of(3)) && !waiting.remove(9, 0, Key::of(1))
        );
        assert_eq!(waiting.head_after(None), Some(((Reverse(5), Key::of(2)), 2)));
        assert_eq!(
            waiting.places().collect::<Vec<_>>(),
            [(1, 0), (5, 0), (2, 0), (4, 1)].map(|(number, ahead)| (Key::of(number), ahead))
        );
    }
}
