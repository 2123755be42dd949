//! Tasks in order of submission: mostly a new one comes last and the first is taken.

use super::key::Key;
use std::collections::VecDeque;

/// Those two take constant time and no allocation; anywhere else the keys on the shorter side move up.
#[derive(Default)]
pub(super) struct Fifo(VecDeque<Key>);

impl Fifo {
    /// False, and no change, when it is in line already.
    pub fn insert(&mut self, key: Key) -> bool {
        if self.0.back().map_or(true, |&last| last < key) {
            self.0.push_back(key);
            return true;
        }
        match self.0.binary_search(&key) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, key);
                true
            }
        }
    }

    pub fn remove(&mut self, key: Key) -> bool {
        if self.0.front() == Some(&key) {
            self.0.pop_front();
            return true;
        }
        self.0.binary_search(&key).is_ok_and(|at| self.0.remove(at).is_some())
    }

    pub fn first(&self) -> Option<Key> {
        self.0.front().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many are before this one.
    pub fn before(&self, key: Key) -> usize {
        match self.0.back() {
            Some(&last) if last < key => self.0.len(),
            _ => self.0.partition_point(|&other| other < key),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Key> + '_ {
        self.0.iter().copied()
    }
}
