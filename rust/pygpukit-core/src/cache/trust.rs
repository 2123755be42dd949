//! Which directories and files the cache trusts: the one place that knows about owners, modes and links.
//!
//! A planted entry would be code that runs with access to all of the device's memory.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

#[cfg(unix)]
mod os {
    use super::*;
    use std::fs::{DirBuilder, OpenOptions};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};

    const WRITABLE_BY_ALL: u32 = 0o002;
    const STICKY: u32 = 0o1000;

    pub fn ours(metadata: &Metadata) -> bool {
        // SAFETY: geteuid has no arguments, no preconditions and cannot fail.
        metadata.uid() == unsafe { libc::geteuid() }
    }

    pub fn create_directory(path: &Path, parents: bool) -> io::Result<()> {
        DirBuilder::new().mode(0o700).recursive(parents).create(path)
    }

    pub fn create_file(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    /// Neither follows a link nor waits for the other end of a pipe.
    pub fn open_file(path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path)
    }

    pub fn check(path: &Path) -> Result<(), String> {
        for (depth, folder) in path.ancestors().enumerate() {
            let metadata = fs::metadata(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            if depth == 0 && !ours(&metadata) {
                return Err(format!(
                    "{} belongs to user {}, not to this one",
                    folder.display(),
                    metadata.uid()
                ));
            }
            let shared = metadata.mode() & WRITABLE_BY_ALL != 0;
            // In a sticky folder such as /tmp nobody can replace what is not theirs.
            if shared && (depth == 0 || metadata.mode() & STICKY == 0) {
                return Err(format!(
                    "{} can be written by every user; run chmod o-w on it",
                    folder.display()
                ));
            }
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod os {
    use super::*;

    pub fn ours(_: &Metadata) -> bool {
        true
    }

    pub fn create_directory(path: &Path, parents: bool) -> io::Result<()> {
        fs::DirBuilder::new().recursive(parents).create(path)
    }

    pub fn create_file(path: &Path) -> io::Result<File> {
        File::create_new(path)
    }

    pub fn open_file(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub fn check(_: &Path) -> Result<(), String> {
        Ok(())
    }
}

pub use os::create_file;

/// Creates a folder for this user alone; one that is there already must be a folder and no link.
pub fn create_folder(path: &Path) -> io::Result<()> {
    match os::create_directory(path, false) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(path) => Ok(()),
        result => result,
    }
}

pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Creates the cache directory if it is missing and says why it cannot be trusted, if so. Links on the way to it are resolved first:
/// the directory itself may be a link of the user's own.
pub fn open_directory(path: &Path) -> Result<std::path::PathBuf, String> {
    os::create_directory(path, true).map_err(|e| format!("{}: {e}", path.display()))?;
    let path = fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    os::check(&path).map(|()| path)
}

/// What is at an entry's place.
pub enum Opened {
    Nothing,
    File(File, u64),
    /// A link, a folder, a pipe, or another user's file.
    Foreign,
}

pub fn open_entry(path: &Path) -> io::Result<Opened> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Opened::Nothing),
        result => result?,
    };
    if !metadata.is_file() {
        return Ok(Opened::Foreign);
    }
    let file = match os::open_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Opened::Nothing),
        result => result?,
    };
    // Asked again of the open file: the name may mean another one by now.
    let metadata = file.metadata()?;
    if metadata.is_file() && os::ours(&metadata) {
        Ok(Opened::File(file, metadata.len()))
    } else {
        Ok(Opened::Foreign)
    }
}
