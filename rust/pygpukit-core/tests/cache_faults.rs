//! The kernel cache against damaged, foreign and hostile files: never loaded, never an error.
#![cfg(unix)] // links, pipes, owners and modes

mod cache_support;

use cache_support::*;
use std::fs;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::process::Command;

#[test]
fn every_flipped_byte_and_every_truncation_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    open(dir.path()).put(key, b"a small payload");
    let path = entry_path(dir.path(), &key);
    let sound = fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..sound.len())
        .map(|i| {
            let mut bytes = sound.clone();
            bytes[i] ^= 1 << (i % 8);
            bytes
        })
        .collect();
    damaged.extend((0..sound.len()).map(|n| sound[..n].to_vec()));
    damaged.push([sound.as_slice(), b"x"].concat());
    for bytes in &damaged {
        fs::write(&path, bytes).unwrap();
        let cache = open(dir.path());
        assert_eq!(cache.get(&key), None);
        assert_eq!(
            (
                figure(&cache, "quarantined"),
                figure(&cache, "misses"),
                figure(&cache, "disk_entries")
            ),
            (1, 1, 0)
        );
        assert!(!path.exists());
    }
    assert_eq!(
        fs::read_dir(dir.path().join("quarantine")).unwrap().count(),
        32,
        "the quarantine is bounded"
    );
    fs::write(&path, &sound).unwrap();
    assert_eq!(
        payload(&open(dir.path()), &key).as_deref(),
        Some(b"a small payload".as_slice())
    );
}

#[test]
fn a_sealed_entry_opens_only_as_it_was_sealed() {
    let cache = memory_only();
    let key = digest(["k"]);
    cache.put(key, &[7; 3000]);
    let sound = cache.sealed(&key).unwrap();
    assert_eq!(KernelCache::open_sealed(&sound).unwrap(), (key, [7; 3000].as_slice()));
    for i in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[i] ^= 1 << (i % 8);
        assert!(KernelCache::open_sealed(&bytes).is_err(), "byte {i}");
        assert!(KernelCache::open_sealed(&sound[..i]).is_err(), "{i} bytes");
    }
    assert!(KernelCache::open_sealed(&[sound.as_slice(), b"x"].concat()).is_err());
}

#[test]
fn a_huge_stated_length_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    open(dir.path()).put(key, b"payload");
    let path = entry_path(dir.path(), &key);
    let sound = fs::read(&path).unwrap();
    for length in [u64::MAX, u64::MAX - 84, 1 << 62, 1 << 40, 8, 6, 0] {
        let mut bytes = sound.clone();
        bytes[44..52].copy_from_slice(&length.to_le_bytes());
        fs::write(&path, &bytes).unwrap();
        assert_eq!(open(dir.path()).get(&key), None, "{length}");
    }
}

#[test]
fn garbage_of_any_length_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path());
    for length in 0..200u32 {
        let key = digest([length.to_le_bytes()]);
        let path = entry_path(dir.path(), &key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let noise: Vec<u8> = (0..length)
            .flat_map(|i| digest([[length, i].map(u32::to_le_bytes).concat()]))
            .collect();
        fs::write(&path, &noise[..length as usize]).unwrap();
        assert_eq!(cache.get(&key), None);
    }
    assert_eq!(
        (figure(&cache, "quarantined"), figure(&cache, "disk_entries")),
        (200, 0)
    );
}

#[test]
fn an_entry_under_another_key_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|k| digest([k]));
    open(dir.path()).put(a, b"of a");
    let path = entry_path(dir.path(), &b);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(entry_path(dir.path(), &a), &path).unwrap();
    let cache = open(dir.path());
    assert_eq!(
        (payload(&cache, &b), payload(&cache, &a).as_deref()),
        (None, Some(b"of a".as_slice()))
    );
}

#[test]
fn links_folders_and_pipes_in_an_entrys_place_are_refused_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    open(elsewhere.path()).put(key, b"planted");
    let path = entry_path(dir.path(), &key);
    let make: [&dyn Fn(); 4] = [
        &|| symlink(entry_path(elsewhere.path(), &key), &path).unwrap(),
        &|| symlink("/no/such/file", &path).unwrap(),
        &|| fs::create_dir_all(path.join("inner")).unwrap(),
        &|| assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
    ];
    for (kind, make) in make.into_iter().enumerate() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make();
        let reader = open(dir.path());
        assert_eq!(
            (reader.get(&key), figure(&reader, "quarantined")),
            (None, 1),
            "kind {kind}"
        );
        make();
        let writer = open(dir.path());
        writer.put(key, b"ours");
        assert_eq!(
            payload(&open(dir.path()), &key).as_deref(),
            Some(b"ours".as_slice()),
            "kind {kind}"
        );
        assert_eq!(figure(&writer, "disk_errors"), 0);
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(
        payload(&open(elsewhere.path()), &key).as_deref(),
        Some(b"planted".as_slice()),
        "the target is untouched"
    );
}

#[test]
fn a_linked_or_blocked_subfolder_is_refused_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    open(elsewhere.path()).put(key, b"planted");
    let folder = entry_path(dir.path(), &key).parent().unwrap().to_path_buf();
    symlink(entry_path(elsewhere.path(), &key).parent().unwrap(), &folder).unwrap();
    let cache = open(dir.path());
    assert_eq!(cache.get(&key), None);
    assert_eq!(figure(&cache, "disk_entries"), 0);
    cache.put(key, b"ours");
    assert!(fs::symlink_metadata(&folder).unwrap().is_dir());
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "in the way").unwrap();
    open(dir.path()).put(key, b"ours again");
    assert_eq!(
        payload(&open(dir.path()), &key).as_deref(),
        Some(b"ours again".as_slice())
    );
    assert_eq!(
        payload(&open(elsewhere.path()), &key).as_deref(),
        Some(b"planted".as_slice())
    );
}

#[test]
fn directories_that_others_can_write_are_not_used() {
    let parent = tempfile::tempdir().unwrap();
    let key = digest(["k"]);
    let of_mode = |name: &str, mode: u32| {
        let path = parent.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let shared = of_mode("shared", 0o777);
    let sticky = of_mode("sticky", 0o1777);
    for path in [&shared, &sticky, &shared.join("inside")] {
        let cache = open(path);
        assert!(
            cache.problem().unwrap().contains("can be written by every user"),
            "{:?}",
            cache.problem()
        );
        cache.put(key, b"payload");
        assert_eq!(
            (figure(&cache, "disk_writable"), figure(&cache, "disk_entries")),
            (0, 0)
        );
        assert_eq!(
            payload(&cache, &key).as_deref(),
            Some(b"payload".as_slice()),
            "memory still works"
        );
    }
    let inside = open(&sticky.join("inside"));
    assert_eq!(
        (inside.problem(), figure(&inside, "disk_writable")),
        (None, 1),
        "nobody can replace it in a sticky folder"
    );
    assert_eq!(fs::metadata(sticky.join("inside")).unwrap().mode() & 0o777, 0o700);
    let linked = parent.path().join("linked");
    symlink(sticky.join("inside"), &linked).unwrap();
    assert_eq!(
        open(&linked).problem(),
        None,
        "the user's own link to a sound directory"
    );
}

#[test]
fn a_directory_that_cannot_be_made_leaves_memory_only() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("file"), "").unwrap();
    let cache = open(&parent.path().join("file/cache"));
    let key = digest(["k"]);
    cache.put(key, b"payload");
    assert!(cache.problem().unwrap().contains("file/cache"), "{:?}", cache.problem());
    assert_eq!(
        (
            payload(&cache, &key).unwrap().as_slice(),
            figure(&cache, "disk_writable")
        ),
        (b"payload".as_slice(), 0)
    );
    let none = memory_only();
    assert_eq!((none.problem(), figure(&none, "disk_writable")), (None, 0));
}

/// Root may write anywhere, so the look is taken by another user where the test runs as root.
#[test]
fn a_read_only_directory_is_read_and_not_written() {
    const NOBODY: u32 = 65534;
    if let Ok(path) = std::env::var("PYGPUKIT_TEST_READ_ONLY") {
        let cache = open(path.as_ref());
        let key = digest(["k"]);
        assert_eq!((cache.problem(), figure(&cache, "disk_writable")), (None, 0));
        assert_eq!(payload(&cache, &key).as_deref(), Some(b"payload".as_slice()));
        let other = digest(["other"]);
        cache.put(other, b"kept in memory");
        assert_eq!(payload(&cache, &other).as_deref(), Some(b"kept in memory".as_slice()));
        assert_eq!((figure(&cache, "disk_entries"), figure(&cache, "disk_errors")), (1, 0));
        println!("looked at the read-only directory");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("cache");
    let key = digest(["k"]);
    open(&root).put(key, b"payload");
    let as_root = fs::metadata(&root).unwrap().uid() == 0;
    let folder = entry_path(&root, &key).parent().unwrap().to_path_buf();
    for path in [dir.path(), &root, &folder, &entry_path(&root, &key)] {
        if as_root {
            std::os::unix::fs::chown(path, Some(NOBODY), None).unwrap();
        }
        let mode = if path == dir.path() { 0o700 } else { 0o500 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut child = myself("a_read_only_directory_is_read_and_not_written");
    child.env("PYGPUKIT_TEST_READ_ONLY", &root);
    if as_root {
        std::os::unix::process::CommandExt::uid(&mut child, NOBODY);
        let path = std::env::current_exe().unwrap();
        assert!(
            path.ancestors()
                .skip(1)
                .all(|p| fs::metadata(p).unwrap().mode() & 0o001 != 0),
            "{path:?} must be reachable by all"
        );
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("looked at the read-only directory"),
        "{text}"
    );
    for path in [&root, &folder] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
