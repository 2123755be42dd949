//! Admitted tasks in the order they are started: higher priority first; inside a priority, partitions take turns by weight and the
//! tasks of one partition come first come, first served.
//!
//! The turns are start-time fair queueing (Goyal, Vin and Cheng 1996) over starts: each moves its partition's tag on by 1/weight,
//! and a partition that had nothing to start resumes at the present tag, so that it saves up no turns.

use super::{Order, Ready};
use crate::hash::Seeded;
use crate::scheduler::fifo::Fifo;
use crate::scheduler::key::Key;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// What one start of a partition of weight 1 costs, in units of tags.
const TURN: u64 = 1 << 20;
/// Bands that are kept when empty, for their memory.
const KEPT_BANDS: usize = 16;

#[derive(Default)]
struct Flow {
    line: Fifo,
    tag: u64,
}

/// (tag, first task, slot) of an open flow with tasks.
type Turn = (u64, Key, usize);

/// The tasks of one priority.
#[derive(Default)]
struct Band {
    flows: HashMap<usize, Flow, Seeded>,
    /// The turn of every flow that has one, and turns that are out of date; the first is not.
    order: BinaryHeap<Reverse<Turn>>,
    now: u64,
    /// The latest tag: where all resume when the band has been empty.
    latest: u64,
    len: usize,
}

impl Band {
    fn first(&self) -> Option<Turn> {
        self.order.peek().map(|turn| turn.0)
    }

    fn turn(&self, slot: usize, closed: &[bool]) -> Option<Turn> {
        let flow = self.flows.get(&slot).filter(|_| !is_closed(closed, slot))?;
        Some((flow.tag, flow.line.first()?, slot))
    }

    /// To be called when the turn of a flow has changed.
    fn list(&mut self, slot: usize, closed: &[bool]) {
        if let Some(turn) = self.turn(slot, closed) {
            self.order.push(Reverse(turn));
        }
        while self.first().is_some_and(|turn| self.turn(turn.2, closed) != Some(turn)) {
            self.order.pop();
        }
        if self.order.len() > 2 * self.flows.len() + KEPT_BANDS {
            let turns = self.flows.keys().filter_map(|&slot| self.turn(slot, closed));
            self.order = turns.map(Reverse).collect();
        }
    }
}

fn is_closed(closed: &[bool], slot: usize) -> bool {
    closed.get(slot).copied().unwrap_or(false)
}

/// Flows are the slots of partitions.
#[derive(Default)]
pub(super) struct Turns {
    bands: BTreeMap<Reverse<i32>, Band>,
    closed: Vec<bool>,
    len: usize,
}

impl Turns {
    fn add(&mut self, priority: i32, slot: usize, key: Key) {
        let band = self.bands.entry(Reverse(priority)).or_default();
        let flow = band.flows.entry(slot).or_default();
        let first = flow.line.first();
        assert!(flow.line.insert(key), "task {} is already in the queue", key.number);
        (band.len, self.len) = (band.len + 1, self.len + 1);
        if first.is_none() {
            flow.tag = flow.tag.max(band.now);
        }
        if first.map_or(true, |first| key < first) {
            band.list(slot, &self.closed);
        }
    }

    /// (priority, slot, key) of the task to start next.
    fn next(&self) -> Option<(i32, usize, Key)> {
        self.bands.iter().find_map(|(priority, band)| {
            let (_, key, slot) = band.first()?;
            Some((priority.0, slot, key))
        })
    }
}

impl Order for Turns {
    fn len(&self) -> usize {
        self.len
    }

    fn insert(&mut self, task: &Ready<'_>) {
        self.add(task.priority, task.slot, task.key);
    }

    /// A start uses up a turn of its partition.
    fn remove(&mut self, priority: i32, slot: usize, key: Key, starts: Option<u32>) -> bool {
        let Some(band) = self.bands.get_mut(&Reverse(priority)) else {
            return false;
        };
        let Some(flow) = band.flows.get_mut(&slot) else {
            return false;
        };
        let first = flow.line.first();
        if !flow.line.remove(key) {
            return false;
        }
        if let Some(weight) = starts {
            band.now = band.now.max(flow.tag);
            flow.tag += TURN / u64::from(weight.max(1));
            band.latest = band.latest.max(flow.tag);
        }
        if starts.is_some() || first == Some(key) {
            band.list(slot, &self.closed);
        }
        (band.len, self.len) = (band.len - 1, self.len - 1);
        if band.len == 0 {
            band.now = band.latest;
            if self.bands.len() > KEPT_BANDS {
                self.bands.remove(&Reverse(priority));
            }
        }
        true
    }

    fn first(&self) -> Option<Key> {
        self.next().map(|(_, _, key)| key)
    }

    fn set_open(&mut self, slot: usize, open: bool) {
        if open != is_closed(&self.closed, slot) {
            return;
        }
        if self.closed.len() <= slot {
            self.closed.resize(slot + 1, false);
        }
        self.closed[slot] = !open;
        for band in self.bands.values_mut() {
            band.list(slot, &self.closed);
        }
    }

    fn before(&self, task: &Ready<'_>, weight: &dyn Fn(usize) -> u32) -> Vec<Key> {
        let &Ready { priority, slot, .. } = task;
        let mut turns = Vec::new();
        for (&Reverse(level), band) in self.bands.range(..=Reverse(priority)) {
            let turn = |slot: usize| TURN / u64::from(weight(slot).max(1));
            let mut last = u64::MAX;
            if level == priority {
                last = band
                    .flows
                    .get(&slot)
                    .map_or(band.now, |own| match own.line.len() as u64 {
                        0 => own.tag.max(band.now),
                        ahead => own.tag.saturating_add(ahead.saturating_mul(turn(slot))),
                    });
            }
            for (&of, flow) in &band.flows {
                if of == slot || !is_closed(&self.closed, of) {
                    let tags = (0u64..).map(|i| flow.tag.saturating_add(i.saturating_mul(turn(of))));
                    let first = tags.zip(flow.line.iter()).take_while(|(tag, _)| *tag <= last);
                    turns.extend(first.map(|(tag, key)| (Reverse(level), tag, key)));
                }
            }
        }
        turns.sort_unstable();
        turns.into_iter().map(|(_, _, key)| key).collect()
    }

    fn lower_than(&self, below: i32) -> Vec<(i32, Key)> {
        let bands = self.bands.iter().rev().take_while(|(priority, _)| priority.0 < below);
        bands
            .flat_map(|(priority, band)| {
                let tasks = band.flows.values().flat_map(|flow| flow.line.iter());
                tasks.map(|key| (priority.0, key))
            })
            .collect()
    }

    fn has_lower_than(&self, below: i32) -> bool {
        let mut bands = self.bands.iter().rev().take_while(|(priority, _)| priority.0 < below);
        bands.any(|(_, band)| band.len > 0)
    }

    fn keys(&self) -> Vec<Key> {
        let bands = self.bands.values().flat_map(|band| {
            let mut keys: Vec<Key> = band.flows.values().flat_map(|flow| flow.line.iter()).collect();
            keys.sort_unstable();
            keys
        });
        bands.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::estimate::RunTimes;
    use crate::scheduler::spec::TaskSpec;

    fn pop(queue: &mut Turns, weights: &[u32]) -> Option<u64> {
        let (priority, slot, key) = queue.next()?;
        assert!(queue.remove(priority, slot, key, Some(weights[slot])));
        Some(key.number)
    }

    #[test]
    fn one_partition_is_served_by_priority_then_number() {
        let mut queue = Turns::default();
        for (priority, number) in [(0, 3), (5, 2), (0, 1), (-1, 4), (5, 5)] {
            queue.add(priority, 0, Key::of(number));
        }
        assert_eq!(
            queue.keys().iter().map(|key| key.number).collect::<Vec<_>>(),
            [2, 5, 1, 3, 4]
        );
        assert_eq!(
            queue.lower_than(5),
            [(-1, 4), (0, 1), (0, 3)].map(|(priority, number)| (priority, Key::of(number)))
        );
        assert!(queue.has_lower_than(0) && !queue.has_lower_than(-1));
        let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue, &[1])).collect();
        assert_eq!((order, queue.len()), (vec![2, 5, 1, 3, 4], 0));
        assert!(!queue.remove(0, 0, Key::of(1), None) && !queue.has_lower_than(9));
    }

    #[test]
    fn partitions_take_turns_by_weight() {
        let mut queue = Turns::default();
        let weights = [1, 2, 5];
        for number in 0..800 {
            queue.add(0, number % 3, Key::of(number as u64));
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
    fn what_is_before_a_task_is_what_is_served_before_it() {
        let (mut spec, runs) = (TaskSpec::new("one more"), RunTimes::default());
        let weights = [1, 3, 7, 2];
        let mut random = 1u64;
        let mut draw = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..300 {
            let mut queue = Turns::default();
            for number in 0..draw(60) {
                queue.add(draw(2) as i32, draw(4) as usize, Key::of(number));
                if draw(4) == 0 {
                    pop(&mut queue, &weights);
                }
            }
            let (priority, slot, closed) = (draw(2) as i32, draw(4) as usize, draw(4) as usize);
            queue.set_open(closed, closed == slot);
            spec.priority = priority;
            let before = queue.before(&Ready::one_more(&spec, slot, 0, &runs), &|slot| weights[slot]);
            queue.add(priority, slot, Key::of(1000));
            let served = std::iter::from_fn(|| pop(&mut queue, &weights)).take_while(|&number| number != 1000);
            assert_eq!(
                before.iter().map(|key| key.number).collect::<Vec<_>>(),
                served.collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_partition_that_was_idle_saved_nothing_and_a_closed_one_waits() {
        let mut queue = Turns::default();
        for number in 0..100 {
            queue.add(0, 0, Key::of(number));
        }
        for _ in 0..50 {
            pop(&mut queue, &[1, 1]);
        }
        for number in 100..110 {
            queue.add(0, 1, Key::of(number));
        }
        let next: Vec<_> = (0..6).filter_map(|_| pop(&mut queue, &[1, 1])).collect();
        assert_eq!(next.iter().filter(|&&n| n >= 100).count(), 3, "{next:?}");
        queue.set_open(1, false);
        assert!((0..20).all(|_| pop(&mut queue, &[1, 1]).is_some_and(|n| n < 100)));
        queue.set_open(1, true);
        assert!(pop(&mut queue, &[1, 1]).is_some_and(|n| n >= 100));
    }

    /// Against a queue that looks at everything each time.
    #[test]
    fn the_heap_of_turns_serves_as_a_full_search_does() {
        let weights = [1, 3, 7, 2];
        let (mut queue, mut random) = (Turns::default(), 1u64);
        // (priority, slot, number), and by (priority, slot) the tag, and by priority (now, latest).
        let mut model: Vec<(i32, usize, u64)> = Vec::new();
        let mut tags: HashMap<(i32, usize), u64> = HashMap::new();
        let mut times: HashMap<i32, (u64, u64)> = HashMap::new();
        let mut closed = [false; 4];
        for number in 0..40_000u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (priority, slot) = ((random >> 33) as i32 % 3, (random >> 40) as usize % 4);
            match random >> 60 {
                0..=5 => {
                    if !model.iter().any(|task| (task.0, task.1) == (priority, slot)) {
                        let tag = tags.entry((priority, slot)).or_default();
                        *tag = (*tag).max(times.entry(priority).or_default().0);
                    }
                    model.push((priority, slot, number));
                    queue.add(priority, slot, Key::of(number));
                }
                6 => {
                    closed[slot] = !closed[slot];
                    queue.set_open(slot, !closed[slot]);
                }
                7 if !model.is_empty() => {
                    let (priority, slot, number) = model.remove((random >> 33) as usize % model.len());
                    assert!(queue.remove(priority, slot, Key::of(number), None));
                    if !model.iter().any(|task| task.0 == priority) {
                        let time = times.entry(priority).or_default();
                        time.0 = time.1;
                    }
                }
                _ => {
                    let open = model.iter().filter(|task| !closed[task.1]);
                    let first = open.min_by_key(|task| {
                        let own = model.iter().filter(|other| (other.0, other.1) == (task.0, task.1));
                        let line = own.map(|other| other.2).min();
                        (Reverse(task.0), tags[&(task.0, task.1)], line, task.2)
                    });
                    let first = first.copied();
                    assert_eq!(
                        queue.next().map(|(priority, slot, key)| (priority, slot, key.number)),
                        first
                    );
                    let Some((priority, slot, number)) = first else {
                        continue;
                    };
                    assert_eq!(pop(&mut queue, &weights), Some(number));
                    model.retain(|task| task.2 != number);
                    let (tag, time) = (
                        tags.get_mut(&(priority, slot)).unwrap(),
                        times.get_mut(&priority).unwrap(),
                    );
                    time.0 = time.0.max(*tag);
                    *tag += TURN / u64::from(weights[slot]);
                    time.1 = time.1.max(*tag);
                    if !model.iter().any(|task| task.0 == priority) {
                        time.0 = time.1;
                    }
                }
            }
            assert_eq!(queue.len(), model.len());
            assert!(queue
                .bands
                .values()
                .all(|band| band.order.len() <= 2 * 4 + KEPT_BANDS + 1));
        }
    }

    #[test]
    fn empty_bands_do_not_pile_up() {
        let mut queue = Turns::default();
        for priority in 0..1000 {
            queue.add(priority, 0, Key::of(priority as u64));
            assert!(queue.remove(priority, 0, Key::of(priority as u64), Some(1)));
        }
        assert!(queue.bands.len() <= KEPT_BANDS && queue.first().is_none() && !queue.has_lower_than(i32::MAX));
    }
}
