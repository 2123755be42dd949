//! The on-disk part of the cache: one file an entry, published by rename, verified on every read, bounded by size.

use super::entry::{payload_bytes, seal, verify, Damage, Key, DIGEST_BYTES, HEADER_BYTES};
use super::trust::{self, Opened};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const QUARANTINE: &str = "quarantine";
const TEMPORARY: &str = ".tmp-";
const QUARANTINE_ENTRIES: usize = 32;
const QUARANTINE_BYTES: u64 = 64 << 20;
/// A hit renews the file's time only if it is older than this.
const TOUCH_AFTER: Duration = Duration::from_secs(60);
/// A temporary file of this age was left by a process that died.
const TEMPORARY_AGE: Duration = Duration::from_secs(3600);
/// `held_bytes` before the first look.
const UNKNOWN: u64 = u64::MAX;

pub struct Disk {
    root: PathBuf,
    capacity_bytes: u64,
    /// An entry that nobody used for so long is a miss, and removed.
    ttl: Duration,
    writable: AtomicBool,
    /// Bytes of all entries as of the last look plus what this process wrote since; other processes' writes show at the next look.
    held_bytes: AtomicU64,
    evicting: Mutex<()>,
    pub quarantined: AtomicU64,
    pub evicted: AtomicU64,
    pub expired: AtomicU64,
    pub errors: AtomicU64,
    /// Why the latest entry that could not be written was not.
    refusal: Mutex<Option<String>>,
}

/// A file of the store: a finished entry, or a temporary one.
struct Stored {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
    temporary: bool,
}

impl Disk {
    /// Opens or creates the directory; Err is one sentence why it is not used.
    pub fn open(directory: &Path, capacity_bytes: u64, ttl: Duration) -> Result<Disk, String> {
        let root = trust::open_directory(directory)?;
        let disk = Disk {
            root,
            capacity_bytes,
            ttl,
            writable: AtomicBool::new(true),
            held_bytes: AtomicU64::new(UNKNOWN),
            evicting: Mutex::new(()),
            quarantined: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            refusal: Mutex::new(None),
        };
        disk.probe();
        Ok(disk)
    }

    /// Finds out, and remembers, whether files can be created at all.
    fn probe(&self) {
        let probe = self.root.join(new_name(TEMPORARY));
        self.writable.store(trust::create_file(&probe).is_ok(), Relaxed);
        _ = fs::remove_file(&probe);
    }

    pub fn writable(&self) -> bool {
        self.writable.load(Relaxed)
    }

    /// The payload, verified. Anything else at the entry's place is moved to quarantine and is a miss.
    pub fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        if !path.parent().is_some_and(trust::is_folder) {
            return None;
        }
        match trust::open_entry(&path) {
            Ok(Opened::Nothing) => None,
            Ok(Opened::Foreign) => {
                self.quarantine(&path);
                None
            }
            Ok(Opened::File(file, _)) if age(&file) > self.ttl => {
                self.expire(&path);
                None
            }
            Ok(Opened::File(mut file, bytes)) => match read(&mut file, bytes, key) {
                Ok(Ok(payload)) => {
                    self.touch(&file);
                    Some(payload)
                }
                Ok(Err(_damage)) => {
                    self.quarantine(&path);
                    None
                }
                Err(_) => self.count_error(),
            },
            Err(_) => self.count_error(),
        }
    }

    /// Publishes an entry: others see all of it or none. Failure is counted, never raised: the payload is only not kept.
    pub fn store(&self, key: &Key, payload: &[u8]) {
        let bytes = (HEADER_BYTES + payload.len() + DIGEST_BYTES) as u64;
        if !self.writable() || bytes > self.capacity_bytes {
            return;
        }
        let path = self.path(key);
        match self.publish(&path, key, payload) {
            Ok(()) => {
                let held = self.held_bytes.load(Relaxed);
                if held != UNKNOWN {
                    self.held_bytes.fetch_add(bytes, Relaxed);
                }
                if held == UNKNOWN || held + bytes > self.capacity_bytes {
                    self.evict(&path);
                }
            }
            Err(error) => {
                self.errors.fetch_add(1, Relaxed);
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                self.probe();
            }
        }
    }

    /// Why the latest entry that could not be written was not, once.
    pub fn take_refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn remove(&self, key: &Key) -> bool {
        fs::remove_file(self.path(key)).is_ok()
    }

    /// Removes every entry, temporary file and quarantined file.
    pub fn clear(&self) {
        for stored in self.stored() {
            self.delete(&stored.path);
        }
        let quarantine = self.root.join(QUARANTINE);
        for entry in list(&quarantine) {
            remove_any(&quarantine.join(entry.file_name()));
        }
        self.held_bytes.store(0, Relaxed);
    }

    /// (entries, bytes), counted now.
    pub fn usage(&self) -> (u64, u64) {
        let entries = self.stored().into_iter().filter(|stored| !stored.temporary);
        entries.fold((0, 0), |(count, bytes), stored| (count + 1, bytes + stored.bytes))
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        self.root.join(&name[..2]).join(name)
    }

    fn publish(&self, path: &Path, key: &Key, payload: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.root);
        if let Err(error) = trust::create_folder(folder) {
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(error);
            }
            self.quarantine(folder);
            trust::create_folder(folder)?;
        }
        let temporary = folder.join(new_name(TEMPORARY));
        let mut file = trust::create_file(&temporary)?;
        let (header, digest) = seal(key, payload);
        let written = file
            .write_all(&header)
            .and_then(|()| file.write_all(payload))
            .and_then(|()| file.write_all(&digest))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&temporary, path));
        // A folder where the entry should be is in the way of the rename.
        let written = match written {
            Err(error) if path.is_dir() => {
                self.quarantine(path);
                fs::rename(&temporary, path).map_err(|_| error)
            }
            written => written,
        };
        if written.is_err() {
            _ = fs::remove_file(&temporary);
        }
        written
    }

    /// The keys of all entries that lie there now, not yet verified.
    pub fn keys(&self) -> Vec<Key> {
        let entries = self.stored().into_iter().filter(|stored| !stored.temporary);
        entries.filter_map(|stored| key_of(&stored.path)).collect()
    }

    fn touch(&self, file: &File) {
        if self.writable() && age(file) > TOUCH_AFTER.min(self.ttl / 4) {
            // Only the order of eviction and the time to live depend on it.
            _ = file.set_modified(SystemTime::now());
        }
    }

    fn expire(&self, path: &Path) {
        self.expired.fetch_add(1, Relaxed);
        if self.writable() {
            self.delete(path);
        }
    }

    /// Removes the least recently used entries down to nine tenths of the capacity, never `keep`; what nobody used for the time to
    /// live; and what dead writers left.
    fn evict(&self, keep: &Path) {
        let Ok(_one_at_a_time) = self.evicting.try_lock() else {
            return;
        };
        let mut stored = self.stored();
        let now = SystemTime::now();
        stored.retain(|stored| {
            let age = now.duration_since(stored.modified).unwrap_or_default();
            if stored.temporary && age > TEMPORARY_AGE {
                self.delete(&stored.path);
            }
            let expired = !stored.temporary && age > self.ttl;
            if expired {
                self.expire(&stored.path);
            }
            !stored.temporary && !expired
        });
        stored.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        let mut held: u64 = stored.iter().map(|stored| stored.bytes).sum();
        if held > self.capacity_bytes {
            for stored in stored.iter().filter(|stored| stored.path != keep) {
                if held <= self.capacity_bytes / 10 * 9 {
                    break;
                }
                self.delete(&stored.path);
                self.evicted.fetch_add(1, Relaxed);
                held -= stored.bytes;
            }
        }
        self.held_bytes.store(held, Relaxed);
    }

    /// Moves what is at a path out of the way; the folder for it stays bounded.
    fn quarantine(&self, path: &Path) {
        self.quarantined.fetch_add(1, Relaxed);
        if !self.writable() {
            return;
        }
        let folder = self.root.join(QUARANTINE);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let target = folder.join(new_name(&format!("{name}-")));
        if trust::create_folder(&folder)
            .and_then(|()| fs::rename(path, target))
            .is_err()
        {
            remove_any(path);
            return;
        }
        let mut kept: Vec<_> = list(&folder)
            .into_iter()
            .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
            .collect();
        kept.sort_by_key(|(path, metadata)| (metadata.modified().ok(), path.clone()));
        let mut bytes: u64 = kept.iter().map(|(_, metadata)| metadata.len()).sum();
        let mut count = kept.len();
        for (path, metadata) in kept {
            if count <= QUARANTINE_ENTRIES && bytes <= QUARANTINE_BYTES {
                break;
            }
            remove_any(&path);
            (count, bytes) = (count - 1, bytes - metadata.len());
        }
    }

    /// Every file that this cache wrote, in no order.
    fn stored(&self) -> Vec<Stored> {
        let mut entries = Vec::new();
        for folder in list(&self.root) {
            let name = folder.file_name();
            let name = name.to_string_lossy();
            if name.len() != 2 || !is_hex(&name) || !trust::is_folder(&folder.path()) {
                continue;
            }
            for entry in list(&folder.path()) {
                let file_name = entry.file_name();
                let file_name = file_name.to_string_lossy();
                let temporary = file_name.starts_with(TEMPORARY);
                let Ok(metadata) = entry.metadata() else { continue };
                if !metadata.is_file() || !(temporary || file_name.len() == 64 && is_hex(&file_name)) {
                    continue;
                }
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push(Stored {
                    path: entry.path(),
                    bytes: metadata.len(),
                    modified,
                    temporary,
                });
            }
        }
        entries
    }

    fn delete(&self, path: &Path) {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => _ = self.errors.fetch_add(1, Relaxed),
            _ => {}
        }
    }

    fn count_error<T>(&self) -> Option<T> {
        self.errors.fetch_add(1, Relaxed);
        None
    }
}

/// The outer error is the system's, the inner one the file's.
fn read(file: &mut File, file_bytes: u64, key: &Key) -> io::Result<Result<Vec<u8>, Damage>> {
    let mut header = [0; HEADER_BYTES];
    if file_bytes < (HEADER_BYTES + DIGEST_BYTES) as u64 {
        return Ok(Err(Damage::Length));
    }
    file.read_exact(&mut header)?;
    let payload_bytes = match payload_bytes(&header, key, file_bytes) {
        Ok(bytes) => bytes,
        Err(damage) => return Ok(Err(damage)),
    };
    let mut payload = vec![0; payload_bytes];
    let mut digest = [0; DIGEST_BYTES];
    file.read_exact(&mut payload)?;
    file.read_exact(&mut digest)?;
    Ok(verify(&header, &payload, &digest).map(|()| payload))
}

/// A file name that no other call gives, in this process, in another, or in a dead one whose process id came round again.
fn new_name(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Relaxed));
    format!("{prefix}{process}-{:x}-{count}", since_epoch.as_nanos())
}

/// How long ago the open file was last written or touched; 0 when the system does not say.
fn age(file: &File) -> Duration {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.map_or(Duration::ZERO, |modified| modified.elapsed().unwrap_or_default())
}

/// The key that an entry's file name stands for.
fn key_of(path: &Path) -> Option<Key> {
    let name = path.file_name()?.to_str()?;
    let mut key = [0; 32];
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(name.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(key)
}

fn is_hex(name: &str) -> bool {
    name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The entries of a folder; none when it cannot be read.
fn list(folder: &Path) -> Vec<fs::DirEntry> {
    fs::read_dir(folder)
        .map(|entries| entries.flatten().collect())
        .unwrap_or_default()
}

fn remove_any(path: &Path) {
    if trust::is_folder(path) {
        _ = fs::remove_dir_all(path);
    } else {
        _ = fs::remove_file(path);
    }
}
