//! The kernel cache: content-addressed payloads, a memory LRU in front of a disk directory. A damaged file is a miss, never an error.

mod disk;
mod entry;
mod memory;
mod trust;

pub use entry::{digest, Damage, Key};

use crate::clock::Clock;
use disk::Disk;
use memory::Memory;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// None = memory only.
    pub directory: Option<PathBuf>,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
    /// How long an entry stays in memory; it is read and verified again from disk afterwards. None = for ever.
    pub ttl: Option<Duration>,
    /// How long an entry stays on disk after it was last used. None = for ever.
    pub disk_ttl: Option<Duration>,
}

/// Where a payload came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Memory,
    Disk,
}

impl Source {
    pub const fn name(self) -> &'static str {
        match self {
            Source::Memory => "memory",
            Source::Disk => "disk",
        }
    }
}

/// Shared by threads; several processes may use one directory.
pub struct KernelCache {
    memory: Mutex<Memory>,
    disk: Result<Disk, String>,
    clock: Arc<dyn Clock>,
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    misses: AtomicU64,
    puts: AtomicU64,
}

impl KernelCache {
    /// A directory that cannot be used leaves a memory-only cache; `problem` says why.
    pub fn new(config: CacheConfig, clock: Arc<dyn Clock>) -> KernelCache {
        let ttl_ns = config
            .ttl
            .map_or(u64::MAX, |ttl| u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX));
        KernelCache {
            memory: Mutex::new(Memory::new(config.memory_bytes, ttl_ns)),
            disk: match &config.directory {
                Some(directory) => Disk::open(directory, config.disk_bytes, config.disk_ttl.unwrap_or(Duration::MAX)),
                None => Err(String::new()),
            },
            clock,
            memory_hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            puts: AtomicU64::new(0),
        }
    }

    /// Why the directory asked for is not used; None when it is, or when none was asked for.
    pub fn problem(&self) -> Option<&str> {
        self.disk
            .as_ref()
            .err()
            .filter(|problem| !problem.is_empty())
            .map(String::as_str)
    }

    /// Why an entry could not be written to the disk, of the latest one, once: it is in memory only.
    pub fn take_refusal(&self) -> Option<String> {
        self.disk.as_ref().ok().and_then(Disk::take_refusal)
    }

    pub fn get(&self, key: &Key) -> Option<(Arc<[u8]>, Source)> {
        if let Some(payload) = self.memory().get(key, self.clock.now_ns()) {
            self.memory_hits.fetch_add(1, Relaxed);
            return Some((payload, Source::Memory));
        }
        // Not under the lock: other keys need not wait for the disk.
        let Some(payload) = self.disk.as_ref().ok().and_then(|disk| disk.load(key)) else {
            self.misses.fetch_add(1, Relaxed);
            return None;
        };
        let payload: Arc<[u8]> = payload.into();
        self.memory().put(*key, payload.clone(), self.clock.now_ns());
        self.disk_hits.fetch_add(1, Relaxed);
        Some((payload, Source::Disk))
    }

    /// As get(), but past this process's memory where there is a disk: what another process stored a moment ago.
    pub fn get_stored(&self, key: &Key) -> Option<(Arc<[u8]>, Source)> {
        if self.disk.is_ok() {
            self.memory().remove(key);
        }
        self.get(key)
    }

    /// The keys on disk; those in memory where there is no disk. Entries may be damaged or gone by the time they are read.
    pub fn keys(&self) -> Vec<Key> {
        match &self.disk {
            Ok(disk) => disk.keys(),
            Err(_) => self.memory().keys(),
        }
    }

    /// An entry in the form that it has on disk, which verifies itself: for archives.
    pub fn sealed(&self, key: &Key) -> Option<Vec<u8>> {
        let (payload, _) = self.get(key)?;
        let (header, digest) = entry::seal(key, &payload);
        Some([header.as_slice(), &payload[..], digest.as_slice()].concat())
    }

    /// Key and payload of a sealed entry, verified.
    pub fn open_sealed(sealed: &[u8]) -> Result<(Key, &[u8]), Damage> {
        entry::open(sealed)
    }

    pub fn put(&self, key: Key, payload: &[u8]) {
        self.puts.fetch_add(1, Relaxed);
        self.memory().put(key, payload.into(), self.clock.now_ns());
        if let Ok(disk) = &self.disk {
            disk.store(&key, payload);
        }
    }

    /// True when there was such an entry, in memory or on disk.
    pub fn remove(&self, key: &Key) -> bool {
        let in_memory = self.memory().remove(key);
        let on_disk = self.disk.as_ref().is_ok_and(|disk| disk.remove(key));
        in_memory || on_disk
    }

    pub fn clear(&self) {
        self.memory().clear();
        if let Ok(disk) = &self.disk {
            disk.clear();
        }
    }

    /// Named figures. The disk is counted by a look at the directory.
    pub fn stats(&self) -> [(&'static str, u64); 13] {
        let (memory_entries, memory_bytes) = self.memory().usage();
        let disk = self.disk.as_ref().ok();
        let (disk_entries, disk_bytes) = disk.map_or((0, 0), Disk::usage);
        let of_disk = |figure: fn(&Disk) -> u64| disk.map_or(0, figure);
        [
            ("memory_hits", self.memory_hits.load(Relaxed)),
            ("disk_hits", self.disk_hits.load(Relaxed)),
            ("misses", self.misses.load(Relaxed)),
            ("puts", self.puts.load(Relaxed)),
            ("evicted", of_disk(|disk| disk.evicted.load(Relaxed))),
            ("expired", of_disk(|disk| disk.expired.load(Relaxed))),
            ("quarantined", of_disk(|disk| disk.quarantined.load(Relaxed))),
            ("memory_entries", memory_entries),
            ("memory_bytes", memory_bytes),
            ("disk_entries", disk_entries),
            ("disk_bytes", disk_bytes),
            ("disk_writable", of_disk(|disk| disk.writable().into())),
            ("disk_errors", of_disk(|disk| disk.errors.load(Relaxed))),
        ]
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("the cache panicked in another thread")
    }
}
