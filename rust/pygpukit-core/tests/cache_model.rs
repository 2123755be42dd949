//! The kernel cache against a plain list: what is found where, what goes first, and the figures, with and without a disk.

mod cache_support;
mod cases;

use cache_support::{digest, figure};
use cases::cases;
use proptest::prelude::*;
use pygpukit_core::cache::{CacheConfig, KernelCache, Source};
use pygpukit_core::clock::{Clock, VirtualClock};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CAPACITY: usize = 100;
const TTL_NS: u64 = 1000;

#[derive(Clone, Debug)]
enum Op {
    Put { key: u8, bytes: usize },
    Get { key: u8 },
    GetStored { key: u8 },
    Remove { key: u8 },
    Clear,
    Wait { ns: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = 0u8..8;
    let op = prop_oneof![
        6 => (key.clone(), 0..CAPACITY * 5 / 4).prop_map(|(key, bytes)| Op::Put { key, bytes }),
        8 => key.clone().prop_map(|key| Op::Get { key }),
        2 => key.clone().prop_map(|key| Op::GetStored { key }),
        2 => key.prop_map(|key| Op::Remove { key }),
        1 => Just(Op::Clear),
        3 => (0..TTL_NS).prop_map(|ns| Op::Wait { ns }),
    ];
    prop::collection::vec(op, 1..60)
}

/// An entry in memory: key, contents, and when it is to be read from the disk again.
type Kept = (u8, Vec<u8>, u64);

#[derive(Default)]
struct Model {
    /// Least recently used first.
    memory: Vec<Kept>,
    /// None: there is no disk.
    disk: Option<BTreeMap<u8, Vec<u8>>>,
    /// Found in memory, found on disk, not found, stored.
    figures: [u64; 4],
}

impl Model {
    fn take(&mut self, key: u8) -> Option<Kept> {
        let at = self.memory.iter().position(|kept| kept.0 == key)?;
        Some(self.memory.remove(at))
    }

    fn keep(&mut self, key: u8, contents: &[u8], now: u64) {
        self.take(key);
        if contents.len() > CAPACITY {
            return;
        }
        while self.bytes() + contents.len() > CAPACITY {
            self.memory.remove(0);
        }
        self.memory.push((key, contents.to_vec(), now + TTL_NS));
    }

    fn bytes(&self) -> usize {
        self.memory.iter().map(|kept| kept.1.len()).sum()
    }

    fn get(&mut self, key: u8, now: u64) -> Option<(Vec<u8>, Source)> {
        if let Some(kept) = self.take(key).filter(|kept| kept.2 > now) {
            self.memory.push(kept.clone());
            self.figures[0] += 1;
            return Some((kept.1, Source::Memory));
        }
        let Some(contents) = self.disk.as_ref().and_then(|disk| disk.get(&key).cloned()) else {
            self.figures[2] += 1;
            return None;
        };
        self.keep(key, &contents, now);
        self.figures[1] += 1;
        Some((contents, Source::Disk))
    }
}

fn run(ops: Vec<Op>, directory: Option<&Path>) {
    let clock = Arc::new(VirtualClock::default());
    let config = CacheConfig {
        directory: directory.map(Path::to_path_buf),
        memory_bytes: CAPACITY as u64,
        disk_bytes: u64::MAX,
        ttl: Some(Duration::from_nanos(TTL_NS)),
        disk_ttl: None,
    };
    let cache = KernelCache::new(config, clock.clone());
    assert_eq!(cache.problem(), None);
    let mut model = Model {
        disk: directory.map(|_| BTreeMap::new()),
        ..Model::default()
    };
    let of = |key: u8| digest([[key]]);
    for (number, op) in ops.into_iter().enumerate() {
        let now = clock.now_ns();
        let plain = |got: Option<(Arc<[u8]>, Source)>| got.map(|(contents, source)| (contents.to_vec(), source));
        match op {
            Op::Put { key, bytes } => {
                let contents = vec![number as u8; bytes];
                cache.put(of(key), &contents);
                model.keep(key, &contents, now);
                model.figures[3] += 1;
                if let Some(disk) = &mut model.disk {
                    disk.insert(key, contents);
                }
            }
            Op::Get { key } => assert_eq!(plain(cache.get(&of(key))), model.get(key, now), "entry {key}"),
            Op::GetStored { key } => {
                if model.disk.is_some() {
                    model.take(key);
                }
                assert_eq!(plain(cache.get_stored(&of(key))), model.get(key, now), "entry {key}");
            }
            Op::Remove { key } => {
                let on_disk = model.disk.as_mut().is_some_and(|disk| disk.remove(&key).is_some());
                let in_memory = model.take(key).is_some();
                assert_eq!(cache.remove(&of(key)), in_memory || on_disk);
            }
            Op::Clear => {
                cache.clear();
                model.memory.clear();
                model.disk.as_mut().into_iter().for_each(BTreeMap::clear);
            }
            Op::Wait { ns } => clock.advance_ns(ns),
        }
        let mut keys = cache.keys();
        let mut expected: Vec<_> = match &model.disk {
            Some(disk) => disk.keys().map(|&key| of(key)).collect(),
            None => model.memory.iter().map(|kept| of(kept.0)).collect(),
        };
        if model.disk.is_some() {
            keys.sort();
            expected.sort();
        }
        assert_eq!(keys, expected);
        let figures = ["memory_hits", "disk_hits", "misses", "puts"].map(|name| figure(&cache, name));
        assert_eq!(figures, model.figures);
        let held = ["memory_entries", "memory_bytes"].map(|name| figure(&cache, name));
        assert_eq!(held, [model.memory.len() as u64, model.bytes() as u64]);
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn memory_follows_the_model(ops in ops()) {
        run(ops, None);
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn memory_and_disk_follow_the_model(ops in ops()) {
        let directory = tempfile::tempdir().unwrap();
        run(ops, Some(directory.path()));
    }
}
