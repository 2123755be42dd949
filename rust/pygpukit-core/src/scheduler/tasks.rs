//! The tasks of a table, in slots that are used again.

use super::key::Key;
use super::task::Task;
use std::ops::{Index, IndexMut};

const CHUNK: usize = 64;

/// Chunks never move, and the memory of a task that has gone is the next one's.
#[derive(Default)]
pub(super) struct Tasks {
    chunks: Vec<Vec<Option<Task>>>,
    free: Vec<u32>,
}

impl Tasks {
    /// The key of the next task to come in.
    pub fn next_key(&self, number: u64) -> Key {
        let used = self
            .chunks
            .last()
            .map_or(0, |chunk| (self.chunks.len() - 1) * CHUNK + chunk.len());
        let fresh = || u32::try_from(used).expect("fewer than 2^32 tasks fit in memory");
        let index = self.free.last().copied().unwrap_or_else(fresh);
        Key { number, index }
    }

    /// `key`: from `next_key`.
    pub fn insert(&mut self, key: Key, task: Task) {
        let (chunk, place) = (key.index as usize / CHUNK, key.index as usize % CHUNK);
        if self.free.pop().is_some() {
            self.chunks[chunk][place] = Some(task);
        } else {
            if chunk == self.chunks.len() {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            self.chunks[chunk].push(Some(task));
        }
    }

    pub fn remove(&mut self, key: Key) -> Option<Task> {
        self.get(key)?;
        self.free.push(key.index);
        self.chunks[key.index as usize / CHUNK][key.index as usize % CHUNK].take()
    }

    pub fn get(&self, key: Key) -> Option<&Task> {
        let slot = self
            .chunks
            .get(key.index as usize / CHUNK)?
            .get(key.index as usize % CHUNK)?;
        slot.as_ref().filter(|task| task.number == key.number)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Task> {
        let slot = self
            .chunks
            .get_mut(key.index as usize / CHUNK)?
            .get_mut(key.index as usize % CHUNK)?;
        slot.as_mut().filter(|task| task.number == key.number)
    }

    /// Every task, in order of submission.
    pub fn keys(&self) -> Vec<Key> {
        let slots = (0u32..).zip(self.chunks.iter().flatten());
        let mut keys: Vec<Key> = slots
            .filter_map(|(index, slot)| {
                let number = slot.as_ref()?.number;
                Some(Key { number, index })
            })
            .collect();
        keys.sort_unstable();
        keys
    }
}

impl Index<Key> for Tasks {
    type Output = Task;

    fn index(&self, key: Key) -> &Task {
        self.get(key).expect("a listed task is in the table")
    }
}

impl IndexMut<Key> for Tasks {
    fn index_mut(&mut self, key: Key) -> &mut Task {
        self.get_mut(key).expect("a listed task is in the table")
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::TaskSpec;
    use super::*;
    use crate::partition::Site;

    fn task(number: u64) -> Task {
        Task::new(TaskSpec::new(format!("{number}")), Site::One(0), 0, 0, number, 0)
    }

    #[test]
    fn a_key_outlives_its_task_and_finds_no_other() {
        let mut tasks = Tasks::default();
        let insert = |tasks: &mut Tasks, number| {
            let key = tasks.next_key(number);
            tasks.insert(key, task(number));
            key
        };
        let keys: Vec<Key> = (0..3 * CHUNK as u64).map(|number| insert(&mut tasks, number)).collect();
        assert_eq!(tasks.keys(), keys);
        for key in keys.iter().step_by(2) {
            assert_eq!(tasks.remove(*key).map(|task| task.number), Some(key.number));
            assert!(tasks.remove(*key).is_none() && tasks.get(*key).is_none());
        }
        let again = insert(&mut tasks, 1000);
        assert!(keys
            .iter()
            .any(|key| key.index == again.index && tasks.get_mut(*key).is_none()));
        assert_eq!(tasks[again].number, 1000);
        assert_eq!((tasks.keys().len(), tasks.chunks.len()), (3 * CHUNK / 2 + 1, 3));
        assert_eq!(tasks.keys().last(), Some(&again));
    }
}
