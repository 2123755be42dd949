//! Tasks in the order they are served: higher priority first, then submission order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Task numbers grow with submission, so the order inside a priority is that of the numbers.
#[derive(Default)]
pub(super) struct ServiceQueue {
    bands: BTreeMap<Reverse<i32>, BTreeSet<u64>>,
}

impl ServiceQueue {
    pub fn insert(&mut self, priority: i32, number: u64) {
        let new = self.bands.entry(Reverse(priority)).or_default().insert(number);
        assert!(new, "task {number} is already in the queue");
    }

    pub fn remove(&mut self, priority: i32, number: u64) -> bool {
        let Some(band) = self.bands.get_mut(&Reverse(priority)) else {
            return false;
        };
        let removed = band.remove(&number);
        if band.is_empty() {
            self.bands.remove(&Reverse(priority));
        }
        removed
    }

    /// (priority, number) of the task to serve next.
    pub fn first(&self) -> Option<(i32, u64)> {
        let (priority, band) = self.bands.first_key_value()?;
        Some((priority.0, *band.first()?))
    }

    /// How many tasks are served before one of this priority and number.
    pub fn ahead_of(&self, priority: i32, number: u64) -> usize {
        let higher: usize = self.bands.range(..Reverse(priority)).map(|(_, band)| band.len()).sum();
        let Some(band) = self.bands.get(&Reverse(priority)) else {
            return higher;
        };
        // New tasks come last in their band: the common case needs no count.
        let before = match band.last() {
            Some(&last) if last < number => band.len(),
            Some(&last) if last == number => band.len() - 1,
            _ => band.range(..number).count(),
        };
        higher + before
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.bands.values().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_by_priority_then_number() {
        let mut queue = ServiceQueue::default();
        for (priority, number) in [(0, 1), (5, 2), (0, 3), (-1, 4), (5, 5)] {
            queue.insert(priority, number);
        }
        assert_eq!(queue.iter().collect::<Vec<_>>(), [2, 5, 1, 3, 4]);
        assert_eq!(queue.first(), Some((5, 2)));
        for (ahead, number) in queue.iter().enumerate() {
            let priority = [0, 5, 0, -1, 5][number as usize - 1];
            assert_eq!(queue.ahead_of(priority, number), ahead);
        }
        assert_eq!(queue.ahead_of(1, 9), 2);
        assert!(queue.remove(5, 2) && !queue.remove(5, 2) && !queue.remove(7, 1));
        assert_eq!((queue.iter().count(), queue.first()), (4, Some((5, 5))));
    }
}
