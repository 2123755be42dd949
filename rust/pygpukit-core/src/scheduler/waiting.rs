//! Tasks that wait for memory or share: one line a partition, and the heads of all lines in service order.

use super::queue::ServiceQueue;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Place in service order: higher priority first, then submission order.
pub(super) type Place = (Reverse<i32>, u64);

/// A task waits behind the earlier ones of its own partition; which heads may pass which is the caller's business.
#[derive(Default)]
pub(super) struct WaitingLines {
    lines: Vec<ServiceQueue>,
    heads: BTreeSet<(Place, usize)>,
}

impl WaitingLines {
    pub fn insert(&mut self, slot: usize, priority: i32, number: u64) {
        if self.lines.len() <= slot {
            self.lines.resize_with(slot + 1, ServiceQueue::default);
        }
        let before = self.head(slot);
        self.lines[slot].insert(priority, number);
        self.relist(slot, before);
    }

    pub fn remove(&mut self, slot: usize, priority: i32, number: u64) -> bool {
        let before = self.head(slot);
        let removed = self
            .lines
            .get_mut(slot)
            .is_some_and(|line| line.remove(priority, number));
        if removed {
            self.relist(slot, before);
        }
        removed
    }

    /// How many tasks of its partition are served before one of this priority and number.
    pub fn ahead_of(&self, slot: usize, priority: i32, number: u64) -> usize {
        self.lines.get(slot).map_or(0, |line| line.ahead_of(priority, number))
    }

    /// The number of the first task of a line.
    pub fn first(&self, slot: usize) -> Option<u64> {
        Some(self.head(slot)?.1)
    }

    /// The first head after a place, or the very first.
    pub fn head_after(&self, place: Option<Place>) -> Option<(Place, usize)> {
        match place {
            None => self.heads.first().copied(),
            Some((priority, number)) => self.heads.range(((priority, number + 1), 0)..).next().copied(),
        }
    }

    /// (number, tasks ahead of it in its line) of every task.
    pub fn places(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.lines
            .iter()
            .flat_map(|line| line.iter().enumerate().map(|(ahead, number)| (number, ahead)))
    }

    fn head(&self, slot: usize) -> Option<Place> {
        let (priority, number) = self.lines.get(slot)?.first()?;
        Some((Reverse(priority), number))
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

    #[test]
    fn heads_are_in_service_order() {
        let mut waiting = WaitingLines::default();
        for (slot, priority, number) in [(0, 0, 1), (2, 5, 2), (0, 7, 3), (2, 5, 4), (1, 0, 5)] {
            waiting.insert(slot, priority, number);
        }
        let mut place = None;
        let mut heads = Vec::new();
        while let Some((next, slot)) = waiting.head_after(place) {
            heads.push((slot, next.1));
            place = Some(next);
        }
        assert_eq!(heads, [(0, 3), (2, 2), (1, 5)]);
        assert_eq!((waiting.first(0), waiting.first(3)), (Some(3), None));
        assert_eq!((waiting.ahead_of(0, 0, 1), waiting.ahead_of(2, 0, 9)), (1, 2));
        assert!(waiting.remove(0, 7, 3) && !waiting.remove(0, 7, 3) && !waiting.remove(9, 0, 1));
        assert_eq!(waiting.head_after(None), Some(((Reverse(5), 2), 2)));
        assert_eq!(waiting.places().collect::<Vec<_>>(), [(1, 0), (5, 0), (2, 0), (4, 1)]);
    }
}
