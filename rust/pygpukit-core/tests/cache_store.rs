//! The kernel cache in use: two levels, time to live, size limits, and many writers at once.

mod cache_support;

use cache_support::*;
use pygpukit_core::cache::Source;
use pygpukit_core::clock::VirtualClock;
use std::fs::{self, File};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

#[test]
fn entries_come_from_memory_then_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path());
    let key = digest([b"source".as_slice(), b"options"]);
    assert_eq!(cache.get(&key), None);
    cache.put(key, b"image");
    assert_eq!(cache.get(&key), Some((b"image".as_slice().into(), Source::Memory)));
    let later = open(dir.path());
    assert_eq!(later.get(&key), Some((b"image".as_slice().into(), Source::Disk)));
    assert_eq!(later.get(&key), Some((b"image".as_slice().into(), Source::Memory)));
    let names = [
        "memory_hits",
        "disk_hits",
        "misses",
        "puts",
        "disk_entries",
        "disk_bytes",
        "disk_writable",
    ];
    assert_eq!(names.map(|name| figure(&later, name)), [1, 1, 0, 0, 1, 52 + 5 + 32, 1]);
    assert_eq!(names.map(|name| figure(&cache, name)), [1, 0, 1, 1, 1, 52 + 5 + 32, 1]);
    assert!(later.remove(&key) && !later.remove(&key));
    assert_eq!((later.get(&key), open(dir.path()).get(&key)), (None, None));
}

#[test]
fn any_payload_survives() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in [0usize, 1, 1 << 21] {
        let key = digest([bytes.to_le_bytes()]);
        let image: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
        open(dir.path()).put(key, &image);
        assert!(payload(&open(dir.path()), &key).unwrap() == image, "{bytes} bytes");
    }
}

#[test]
fn clear_removes_everything_that_is_the_caches() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path());
    fs::write(dir.path().join("README"), "the user's own").unwrap();
    for i in 0..20u8 {
        cache.put(digest([[i]]), &[i; 100]);
    }
    fs::write(entry_path(dir.path(), &digest([[0u8]])), "damaged").unwrap();
    assert_eq!(open(dir.path()).get(&digest([[0u8]])), None);
    cache.clear();
    let figures = ["memory_entries", "memory_bytes", "disk_entries", "disk_bytes"].map(|name| figure(&cache, name));
    assert_eq!(figures, [0; 4]);
    assert_eq!(fs::read_dir(dir.path().join("quarantine")).unwrap().count(), 0);
    assert!(dir.path().join("README").exists());
    cache.put(digest(["new"]), b"new");
    assert_eq!(figure(&cache, "disk_entries"), 1);
}

#[test]
fn memory_forgets_after_the_time_to_live_and_disk_answers() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(VirtualClock::default());
    let cache = KernelCache::new(
        CacheConfig {
            ttl: Some(Duration::from_secs(10)),
            ..config(dir.path())
        },
        clock.clone(),
    );
    let key = digest(["k"]);
    cache.put(key, b"image");
    let source = |seconds: u64| {
        clock.advance_ns(seconds * 1_000_000_000);
        cache.get(&key).map(|(_, source)| source.name())
    };
    assert_eq!(
        [source(0), source(9), source(1), source(9)].map(Option::unwrap),
        ["memory", "memory", "disk", "memory"]
    );
}

#[test]
fn files_that_nobody_used_for_the_time_to_live_are_misses_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        of(CacheConfig {
            disk_ttl: Some(Duration::from_secs(1000)),
            ..config(dir.path())
        })
    };
    let keys: Vec<Key> = (0..4u8).map(|i| digest([[i]])).collect();
    let aged = |key: &Key, age_s: u64| {
        let file = File::options().write(true).open(entry_path(dir.path(), key)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age_s))
            .unwrap();
    };
    for (key, age_s) in keys.iter().zip([2000, 900, 2000]) {
        of(config(dir.path())).put(*key, b"image");
        aged(key, age_s);
    }
    let cache = open();
    assert_eq!((cache.get(&keys[0]), figure(&cache, "expired")), (None, 1));
    assert!(cache.get(&keys[1]).is_some(), "and its use is written down");
    cache.put(keys[3], b"image"); // the first write of a process looks at all files
    assert_eq!((figure(&cache, "expired"), figure(&cache, "quarantined")), (2, 0));
    assert!(!entry_path(dir.path(), &keys[2]).exists());
    aged(&keys[3], 900);
    assert!(open().get(&keys[1]).is_some() && open().get(&keys[3]).is_some());
}

#[test]
fn sealed_entries_travel_to_another_cache() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path());
    let mut keys: Vec<Key> = (0..5u8).map(|i| digest([[i]])).collect();
    for key in &keys {
        cache.put(*key, key);
    }
    keys.sort_unstable();
    let mut listed = open(dir.path()).keys();
    listed.sort_unstable();
    assert_eq!(listed, keys);
    let other = memory_only();
    for key in &listed {
        let sealed = cache.sealed(key).unwrap();
        assert_eq!(sealed, fs::read(entry_path(dir.path(), key)).unwrap());
        let (key, payload) = KernelCache::open_sealed(&sealed).unwrap();
        other.put(key, payload);
    }
    assert_eq!(
        (other.keys().len(), payload(&other, &keys[2]).unwrap()),
        (5, keys[2].to_vec())
    );
    assert_eq!(cache.sealed(&digest(["absent"])), None);
}

#[test]
fn what_another_process_wrote_over_an_entry_is_seen_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    let cache = open(dir.path());
    cache.put(key, b"old");
    open(dir.path()).put(key, b"new");
    assert_eq!(payload(&cache, &key).as_deref(), Some(b"old".as_slice()));
    let stored = cache.get_stored(&key).unwrap();
    assert_eq!((&stored.0[..], stored.1), (b"new".as_slice(), Source::Disk));
    assert_eq!(payload(&cache, &key).as_deref(), Some(b"new".as_slice()));
    let alone = memory_only();
    alone.put(key, b"kept");
    assert!(alone.get_stored(&key).is_some());
}

#[test]
fn the_least_recently_used_files_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let entry_bytes = 84 + 1000;
    let small = || {
        of(CacheConfig {
            disk_bytes: 10 * entry_bytes,
            memory_bytes: 0,
            ..config(dir.path())
        })
    };
    let cache = small();
    let keys: Vec<Key> = (0..10u8).map(|i| digest([[i]])).collect();
    for (i, key) in keys.iter().enumerate() {
        cache.put(*key, &[i as u8; 1000]);
        let file = File::options().write(true).open(entry_path(dir.path(), key)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600 - i as u64))
            .unwrap();
    }
    assert_eq!((figure(&cache, "disk_entries"), figure(&cache, "evicted")), (10, 0));
    assert!(cache.get(&keys[0]).is_some(), "a hit makes it young again");
    cache.put(digest(["new"]), &[9; 1000]);
    let left: Vec<usize> = (0..10).filter(|&i| entry_path(dir.path(), &keys[i]).exists()).collect();
    assert_eq!(left, [0, 3, 4, 5, 6, 7, 8, 9], "down to nine tenths of the limit");
    assert_eq!(figure(&cache, "evicted"), 2);
    assert!(small().get(&digest(["new"])).is_some());
    cache.put(digest(["large"]), &vec![0; 11 * entry_bytes as usize]);
    assert_eq!(
        (cache.get(&digest(["large"])), figure(&cache, "evicted")),
        (None, 2),
        "larger than the limit: not kept"
    );
    cache.put(digest(["nearly"]), &vec![0; 10 * entry_bytes as usize - 84]);
    assert_eq!(
        (figure(&cache, "disk_entries"), cache.get(&digest(["nearly"])).is_some()),
        (1, true)
    );
}

#[test]
fn a_limit_left_full_by_another_process_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..50u8 {
        open(dir.path()).put(digest([[i]]), &[i; 1000]);
    }
    let cache = of(CacheConfig {
        disk_bytes: 20_000,
        ..config(dir.path())
    });
    cache.put(digest(["new"]), b"new");
    assert!(figure(&cache, "disk_bytes") <= 20_000, "{:?}", cache.stats());
    assert_eq!(figure(&cache, "disk_entries") + figure(&cache, "evicted"), 51);
}

#[test]
fn what_a_dead_writer_left_is_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    open(dir.path()).put(key, b"image");
    let folder = entry_path(dir.path(), &key).parent().unwrap().to_path_buf();
    let left = |name: &str, age_s: u64| {
        let path = folder.join(name);
        File::create(&path)
            .unwrap()
            .set_modified(SystemTime::now() - Duration::from_secs(age_s))
            .unwrap();
        path
    };
    let (old, young) = (left(".tmp-1-1", 7200), left(".tmp-1-2", 60));
    let cache = open(dir.path());
    assert_eq!(figure(&cache, "disk_entries"), 1);
    cache.put(digest(["other"]), b"image");
    assert!(!old.exists() && young.exists());
}

#[test]
fn eviction_does_not_disturb_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    let cache = of(CacheConfig {
        disk_bytes: 3000,
        memory_bytes: 0,
        ..config(dir.path())
    });
    cache.put(key, &[5; 1000]);
    let mut file = File::open(entry_path(dir.path(), &key)).unwrap();
    for i in 0..20u8 {
        cache.put(digest([[i]]), &[i; 1000]);
    }
    assert!(!entry_path(dir.path(), &key).exists());
    let mut read = Vec::new();
    assert_eq!(file.read_to_end(&mut read).unwrap(), 1084);

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (writer_cache, done) = (
            of(CacheConfig {
                disk_bytes: 4000,
                memory_bytes: 0,
                ..config(dir.path())
            }),
            &done,
        );
        scope.spawn(move || {
            for round in 0..300u32 {
                let i = (round % 8) as u8;
                writer_cache.put(digest([[i]]), &[i; 1000]);
            }
            done.store(true, Ordering::SeqCst);
        });
        let reader = of(CacheConfig {
            memory_bytes: 0,
            ..config(dir.path())
        });
        let mut hits = 0;
        while !done.load(Ordering::SeqCst) {
            for i in 0..8u8 {
                if let Some(read) = payload(&reader, &digest([[i]])) {
                    assert_eq!(read, [i; 1000]);
                    hits += 1;
                }
            }
        }
        assert!(hits > 0);
        assert_eq!((figure(&reader, "quarantined"), figure(&reader, "disk_errors")), (0, 0));
    });
}

/// Writers of one key may write different payloads (two compiles need not agree byte for byte): readers see one of them, whole.
fn is_whole(read: &[u8]) -> bool {
    read.len() == 20_000 + usize::from(read[0]) && read.iter().all(|&byte| byte == read[0])
}

fn write_and_read(directory: &std::path::Path, writer: u8, rounds: usize) {
    let keys = [digest(["one"]), digest(["two"])];
    for round in 0..rounds {
        let cache = open(directory);
        cache.put(keys[round % 2], &vec![writer; 20_000 + usize::from(writer)]);
        for key in &keys {
            if let Some(read) = payload(&open(directory), key) {
                assert!(is_whole(&read));
            }
        }
        assert_eq!((figure(&cache, "disk_errors"), figure(&cache, "quarantined")), (0, 0));
    }
}

#[test]
fn threads_write_and_read_the_same_keys() {
    let dir = tempfile::tempdir().unwrap();
    let shared = open(dir.path());
    thread::scope(|scope| {
        for writer in 1..=4 {
            let (path, shared) = (dir.path(), &shared);
            scope.spawn(move || write_and_read(path, writer, 25));
            scope.spawn(move || {
                for _ in 0..50 {
                    shared.put(digest(["one"]), &vec![writer; 20_000 + usize::from(writer)]);
                    assert!(is_whole(&payload(shared, &digest(["one"])).unwrap()));
                }
            });
        }
    });
    assert_eq!(figure(&shared, "disk_entries"), 2);
}

#[test]
fn processes_write_and_read_the_same_keys_and_may_be_killed() {
    if let Ok(path) = std::env::var("PYGPUKIT_TEST_WRITER") {
        let (writer, path) = path.split_once(' ').unwrap();
        write_and_read(path.as_ref(), writer.parse().unwrap(), 40);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut writers: Vec<_> = (1..=6u8)
        .map(|writer| {
            let mut child = myself("processes_write_and_read_the_same_keys_and_may_be_killed");
            child.env("PYGPUKIT_TEST_WRITER", format!("{writer} {}", dir.path().display()));
            child.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    thread::sleep(Duration::from_millis(30));
    writers[0].kill().unwrap();
    writers[1].kill().unwrap();
    for (i, writer) in writers.iter_mut().enumerate() {
        let status = writer.wait().unwrap();
        assert!(i < 2 || status.success(), "writer {i}: {status}");
    }
    let cache = open(dir.path());
    for key in ["one", "two"] {
        assert!(is_whole(&payload(&cache, &digest([key])).unwrap()));
    }
    assert_eq!((figure(&cache, "disk_entries"), figure(&cache, "quarantined")), (2, 0));
}
