//! Tasks in the order they are served: higher priority first, then submission order.

use super::fifo::Fifo;
use super::key::Key;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Place in service order: higher priority first, then submission order.
pub(super) type Place = (Reverse<i32>, Key);

#[derive(Default)]
pub(super) struct ServiceQueue {
    bands: BTreeMap<Reverse<i32>, Fifo>,
}

impl ServiceQueue {
    pub fn insert(&mut self, priority: i32, key: Key) {
        let new = self.bands.entry(Reverse(priority)).or_default().insert(key);
        assert!(new, "task {} is already in the queue", key.number);
    }

    pub fn remove(&mut self, priority: i32, key: Key) -> bool {
        let Some(band) = self.bands.get_mut(&Reverse(priority)) else {
            return false;
        };
        let removed = band.remove(key);
        if band.is_empty() {
            self.bands.remove(&Reverse(priority));
        }
        removed
    }

    /// (priority, key) of the task to serve next.
    pub fn first(&self) -> Option<(i32, Key)> {
        let (priority, band) = self.bands.first_key_value()?;
        Some((priority.0, band.first()?))
    }

    /// How many tasks are served before one of this priority and key.
    pub fn ahead_of(&self, priority: i32, key: Key) -> usize {
        let higher: usize = self.bands.range(..Reverse(priority)).map(|(_, band)| band.len()).sum();
        higher + self.bands.get(&Reverse(priority)).map_or(0, |band| band.before(key))
    }

    pub fn len(&self) -> usize {
        self.bands.values().map(Fifo::len).sum()
    }

    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let bands = self.bands.iter();
        bands.flat_map(|(&priority, band)| band.iter().map(move |key| (priority, key)))
    }

    pub fn iter(&self) -> impl Iterator<Item = Key> + '_ {
        self.bands.values().flat_map(Fifo::iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_by_priority_then_number() {
        let mut queue = ServiceQueue::default();
        for (priority, number) in [(0, 1), (5, 2), (0, 3), (-1, 4), (5, 5)] {
            queue.insert(priority, Key::of(number));
        }
        assert_eq!(queue.iter().map(|key| key.number).collect::<Vec<_>>(), [2, 5, 1, 3, 4]);
        assert_eq!(queue.first(), Some((5, Key::of(2))));
        for (ahead, key) in queue.iter().enumerate() {
            let priority = [0, 5, 0, -1, 5][key.number as usize - 1];
            assert_eq!(queue.ahead_of(priority, key), ahead);
        }
        assert_eq!(queue.ahead_of(1, Key::LAST), 2);
        assert!(queue.remove(5, Key::of(2)) && !queue.remove(5, Key::of(2)) && !queue.remove(7, Key::of(1)));
        assert_eq!((queue.iter().count(), queue.first()), (4, Some((5, Key::of(5)))));
    }

    #[test]
    fn old_tasks_come_back_to_their_place() {
        let mut queue = ServiceQueue::default();
        for number in [4, 9, 1, 7, 3] {
            queue.insert(0, Key::of(number));
        }
        assert!(queue.remove(0, Key::of(7)) && !queue.remove(0, Key::of(8)));
        assert_eq!(queue.iter().map(|key| key.number).collect::<Vec<_>>(), [1, 3, 4, 9]);
        assert_eq!(queue.ahead_of(0, Key::of(4)), 2);
    }
}
