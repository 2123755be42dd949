//! Admitted tasks in the order they are started: higher priority first; inside a priority, partitions take turns by weight and the
//! tasks of one partition come first come, first served.
//!
//! The turns are start-time fair queueing (Goyal, Vin and Cheng 1996) over starts: each moves its partition's tag on by 1/weight,
//! and a partition that had nothing to start resumes at the present tag, so that it saves up no turns.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What one start of a partition of weight 1 costs, in units of tags.
const TURN: u64 = 1 << 20;

#[derive(Default)]
struct Flow {
    tasks: BTreeSet<u64>,
    tag: u64,
}

#[derive(Default)]
struct Band {
    flows: BTreeMap<usize, Flow>,
    /// (tag, first task, slot) of each open flow with tasks.
    order: BTreeSet<(u64, u64, usize)>,
    now: u64,
    len: usize,
}

impl Band {
    fn unlist(&mut self, slot: usize) {
        if let Some(entry) = self.flows.get(&slot).and_then(|flow| entry(flow, slot)) {
            self.order.remove(&entry);
        }
    }

    fn list(&mut self, slot: usize, open: bool) {
        if let (true, Some(entry)) = (open, self.flows.get(&slot).and_then(|flow| entry(flow, slot))) {
            self.order.insert(entry);
        }
    }
}

fn entry(flow: &Flow, slot: usize) -> Option<(u64, u64, usize)> {
    Some((flow.tag, *flow.tasks.first()?, slot))
}

/// Flows are the slots of partitions.
#[derive(Default)]
pub(super) struct FairQueue {
    bands: BTreeMap<Reverse<i32>, Band>,
    closed: BTreeSet<usize>,
    len: usize,
}

impl FairQueue {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn insert(&mut self, priority: i32, slot: usize, number: u64) {
        let open = !self.closed.contains(&slot);
        let band = self.bands.entry(Reverse(priority)).or_default();
        let now = band.now;
        let flow = band.flows.entry(slot).or_default();
        let first = flow.tasks.first().copied();
        assert!(flow.tasks.insert(number), "task {number} is already in the queue");
        (band.len, self.len) = (band.len + 1, self.len + 1);
        if first.is_none() {
            flow.tag = flow.tag.max(now);
            band.list(slot, open);
        } else if first.is_some_and(|first| number < first) {
            band.order.remove(&(flow.tag, first.unwrap_or(0), slot));
            band.list(slot, open);
        }
    }

    pub fn remove(&mut self, priority: i32, slot: usize, number: u64) -> bool {
        let open = !self.closed.contains(&slot);
        let Some(band) = self.bands.get_mut(&Reverse(priority)) else {
            return false;
        };
        if !band.flows.get(&slot).is_some_and(|flow| flow.tasks.contains(&number)) {
            return false;
        }
        band.unlist(slot);
        if let Some(flow) = band.flows.get_mut(&slot) {
            flow.tasks.remove(&number);
        }
        band.list(slot, open);
        (band.len, self.len) = (band.len - 1, self.len - 1);
        if band.len == 0 {
            self.bands.remove(&Reverse(priority));
        }
        true
    }

    /// (priority, slot, number) of the task to start next.
    pub fn first(&self) -> Option<(i32, usize, u64)> {
        self.bands.iter().find_map(|(priority, band)| {
            let &(_, number, slot) = band.order.first()?;
            Some((priority.0, slot, number))
        })
    }

    /// A task of this partition is about to be started: its turn is used up. The task itself is removed by `remove`.
    pub fn charge(&mut self, priority: i32, slot: usize, weight: u32) {
        let open = !self.closed.contains(&slot);
        let Some(band) = self.bands.get_mut(&Reverse(priority)) else {
            return;
        };
        band.unlist(slot);
        if let Some(flow) = band.flows.get_mut(&slot) {
            band.now = band.now.max(flow.tag);
            flow.tag += TURN / u64::from(weight.max(1));
        }
        band.list(slot, open);
    }

    /// A closed flow keeps its tasks and starts none.
    pub fn set_open(&mut self, slot: usize, open: bool) {
        let changed = if open {
            self.closed.remove(&slot)
        } else {
            self.closed.insert(slot)
        };
        if changed {
            for band in self.bands.values_mut() {
                band.unlist(slot);
                band.list(slot, open);
            }
        }
    }

    /// Every task, in order of priority, slot and number, in bands from the lowest priority up to, and not with, `below`.
    pub fn lower_than(&self, below: i32) -> Vec<(i32, u64)> {
        let bands = self.bands.iter().rev().take_while(|(priority, _)| priority.0 < below);
        bands
            .flat_map(|(priority, band)| {
                let tasks = band.flows.values().flat_map(|flow| &flow.tasks);
                tasks.map(|&number| (priority.0, number))
            })
            .collect()
    }

    pub fn has_lower_than(&self, below: i32) -> bool {
        self.bands
            .last_key_value()
            .is_some_and(|(priority, _)| priority.0 < below)
    }

    /// The tasks by priority, then number: without regard to turns.
    pub fn numbers(&self) -> Vec<u64> {
        let bands = self.bands.values().flat_map(|band| {
            let mut numbers: Vec<u64> = band.flows.values().flat_map(|flow| &flow.tasks).copied().collect();
            numbers.sort_unstable();
            numbers
        });
        bands.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(queue: &mut FairQueue, weights: &[u32]) -> Option<u64> {
        let (priority, slot, number) = queue.first()?;
        queue.charge(priority, slot, weights[slot]);
        assert!(queue.remove(priority, slot, number));
        Some(number)
    }

    #[test]
    fn one_partition_is_served_by_priority_then_number() {
        let mut queue = FairQueue::default();
        for (priority, number) in [(0, 3), (5, 2), (0, 1), (-1, 4), (5, 5)] {
            queue.insert(priority, 0, number);
        }
        assert_eq!(queue.numbers(), [2, 5, 1, 3, 4]);
        assert_eq!(queue.lower_than(5), [(-1, 4), (0, 1), (0, 3)]);
        assert!(queue.has_lower_than(0) && !queue.has_lower_than(-1));
        let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue, &[1])).collect();
        assert_eq!((order, queue.len()), (vec![2, 5, 1, 3, 4], 0));
        assert!(!queue.remove(0, 0, 1));
    }

    #[test]
    fn partitions_take_turns_by_weight() {
        let mut queue = FairQueue::default();
        let weights = [1, 2, 5];
        for number in 0..800 {
            queue.insert(0, number % 3, number as u64);
        }
        let mut starts = [0u32; 3];
        for _ in 0..160 {
            starts[pop(&mut queue, &weights).unwrap() as usize % 3] += 1;
        }
        for (starts, weight) in starts.into_iter().zip(weights) {
            assert!(
                starts.abs_diff(20 * weight) <= 1,
                "{starts} starts with weight {weight}"
            );
        }
    }

    #[test]
    fn a_partition_that_was_idle_saved_nothing_and_a_closed_one_waits() {
        let mut queue = FairQueue::default();
        for number in 0..100 {
            queue.insert(0, 0, number);
        }
        for _ in 0..50 {
            pop(&mut queue, &[1, 1]);
        }
        for number in 100..110 {
            queue.insert(0, 1, number);
        }
        let next: Vec<_> = (0..6).filter_map(|_| pop(&mut queue, &[1, 1])).collect();
        assert_eq!(next.iter().filter(|&&n| n >= 100).count(), 3, "{next:?}");
        queue.set_open(1, false);
        assert!((0..20).all(|_| pop(&mut queue, &[1, 1]).is_some_and(|n| n < 100)));
        queue.set_open(1, true);
        assert!(pop(&mut queue, &[1, 1]).is_some_and(|n| n >= 100));
    }
}
