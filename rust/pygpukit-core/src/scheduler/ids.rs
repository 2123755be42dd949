//! The tasks of a table by id. The texts stay with the tasks: a second holder of each would cost every submission an atomic step.

use super::key::Key;
use super::tasks::Tasks;
use crate::hash::Seeded;
use hashbrown::HashTable;
use std::hash::BuildHasher;

struct Listed {
    /// Of the id: what most others differ in, and what a growing table asks for.
    hash: u64,
    key: Key,
}

#[derive(Default)]
pub(super) struct Ids {
    table: HashTable<Listed>,
    seed: Seeded,
}

impl Ids {
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// `tasks`: those that are listed.
    pub fn get(&self, tasks: &Tasks, id: &str) -> Option<Key> {
        self.find(self.hash(id), tasks, id)
    }

    /// Lists a task that is about to come in, unless there is one with that id: that one then.
    pub fn insert(&mut self, tasks: &Tasks, id: &str, key: Key) -> Result<(), Key> {
        let hash = self.hash(id);
        match self.find(hash, tasks, id) {
            Some(taken) => Err(taken),
            None => {
                self.table
                    .insert_unique(hash, Listed { hash, key }, |listed| listed.hash);
                Ok(())
            }
        }
    }

    pub fn remove(&mut self, id: &str, key: Key) {
        let hash = self.hash(id);
        if let Ok(listed) = self.table.find_entry(hash, |listed| listed.key == key) {
            listed.remove();
        }
    }

    fn hash(&self, id: &str) -> u64 {
        self.seed.hash_one(id)
    }

    fn find(&self, hash: u64, tasks: &Tasks, id: &str) -> Option<Key> {
        let is_it = |listed: &Listed| listed.hash == hash && *tasks[listed.key].spec.id == *id;
        self.table.find(hash, is_it).map(|listed| listed.key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::TaskSpec;
    use super::super::task::Task;
    use super::*;
    use crate::partition::Site;

    #[test]
    fn a_task_is_found_by_its_id_until_it_is_taken_off() {
        let (mut ids, mut tasks) = (Ids::default(), Tasks::default());
        let id = |number: u64| format!("task-{}", number % 1000);
        let mut insert = |ids: &mut Ids, number: u64| {
            let key = tasks.next_key(number);
            let inserted = ids.insert(&tasks, &id(number), key);
            if inserted.is_ok() {
                tasks.insert(key, Task::new(TaskSpec::new(id(number)), Site::One(0), 0, 0, number, 0));
            }
            inserted.map(|()| key)
        };
        let keys: Vec<Key> = (0..1000)
            .map(|number| insert(&mut ids, number).expect("a new id"))
            .collect();
        for number in 1000..2000 {
            assert_eq!(insert(&mut ids, number), Err(keys[number as usize % 1000]));
        }
        for (number, &key) in (0..).zip(&keys) {
            assert_eq!(ids.get(&tasks, &id(number)), Some(key));
            if number % 2 == 0 {
                ids.remove(&id(number), key);
                tasks.remove(key);
                assert_eq!(ids.get(&tasks, &id(number)), None);
            }
        }
        assert_eq!((ids.len(), ids.get(&tasks, "task-1000")), (500, None));
    }
}
