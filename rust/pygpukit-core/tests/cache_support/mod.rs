//! Helpers of the cache's tests: caches over a directory, short looks, and this test binary as another process.
#![allow(dead_code)] // each test binary uses its own part

pub use pygpukit_core::cache::{digest, CacheConfig, KernelCache, Key};
use pygpukit_core::clock::MonotonicClock;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

pub fn config(directory: &Path) -> CacheConfig {
    CacheConfig {
        directory: Some(directory.into()),
        memory_bytes: 1 << 20,
        disk_bytes: 1 << 30,
        ttl: None,
        disk_ttl: None,
    }
}

pub fn of(config: CacheConfig) -> KernelCache {
    KernelCache::new(config, Arc::new(MonotonicClock))
}

/// A new cache with an empty memory, as a new process would have.
pub fn open(directory: &Path) -> KernelCache {
    of(config(directory))
}

pub fn memory_only() -> KernelCache {
    of(CacheConfig {
        directory: None,
        ..config(Path::new(""))
    })
}

pub fn payload(cache: &KernelCache, key: &Key) -> Option<Vec<u8>> {
    cache.get(key).map(|(payload, _)| payload.to_vec())
}

pub fn figure(cache: &KernelCache, name: &str) -> u64 {
    cache
        .stats()
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("a known figure")
        .1
}

/// The documented place of an entry.
pub fn entry_path(directory: &Path, key: &Key) -> PathBuf {
    let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    directory.join(&name[..2]).join(name)
}

/// One test of this binary in a process of its own.
pub fn myself(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]);
    command
}
