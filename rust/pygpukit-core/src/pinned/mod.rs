//! Pinned host memory for transfers: blocks of size classes that are used again, up to a limit.
//!
//! Pinning costs far more than copying (about 0.3 s a GiB), so a freed block is kept for the next request of its class.

mod books;
mod config;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::driver::{Driver, DriverError};

use books::Books;
pub use books::{PinnedBlock, PinnedStats};
pub use config::{ConfigError, PinnedConfig};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinnedError {
    /// The limit leaves no room, whatever is kept.
    OutOfMemory {
        requested: u64,
        used: u64,
        limit: u64,
    },
    /// The system pins no more, whatever is kept.
    Refused {
        requested: u64,
        error: DriverError,
    },
    /// No block has this number: freed, or never allocated.
    BadBlock(u64),
    Driver(DriverError),
}

impl fmt::Display for PinnedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinnedError::OutOfMemory { requested, used, limit } => write!(
                f,
                "{requested} bytes of pinned memory do not fit: {used} of {limit} are in use; free some, or raise the limit"
            ),
            PinnedError::Refused { requested, error } => write!(
                f,
                "the system refuses to pin {requested} bytes of host memory: {error}; raise the limit of locked memory (ulimit -l), free \
                 pinned memory, or use ordinary memory, which is copied more slowly"
            ),
            PinnedError::BadBlock(id) => write!(f, "there is no pinned block {id}: freed, or never allocated"),
            PinnedError::Driver(error) => write!(f, "{error}"),
        }
    }
}

pub type PinnedResult<T> = Result<T, PinnedError>;

/// A pool of pinned host memory. All methods may be called from any thread.
pub struct PinnedPool {
    driver: Arc<dyn Driver>,
    clock: Arc<dyn Clock>,
    config: PinnedConfig,
    books: Mutex<Books>,
}

impl PinnedPool {
    /// Errors: a configuration that cannot be.
    pub fn new(
        driver: Arc<dyn Driver>,
        clock: Arc<dyn Clock>,
        config: PinnedConfig,
    ) -> Result<PinnedPool, ConfigError> {
        config.check()?;
        Ok(PinnedPool {
            driver,
            clock,
            config,
            books: Mutex::default(),
        })
    }

    pub fn config(&self) -> &PinnedConfig {
        &self.config
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, hosts: Vec<u64>) {
        for host in hosts {
            let _ = self.driver.host_free(host); // a refusal comes from a broken device, which shows elsewhere
        }
    }

    /// A block with room for `bytes`, and whether its memory was used before. Errors: `OutOfMemory`, `Refused`, `Driver`.
    pub fn allocate(&self, bytes: u64) -> PinnedResult<(PinnedBlock, bool)> {
        let full = |used| PinnedError::OutOfMemory {
            requested: bytes,
            used,
            limit: self.config.limit_bytes,
        };
        let class = self.config.class_of(bytes).ok_or_else(|| full(self.stats().used))?;
        let kept = {
            let mut books = self.lock();
            if let Some(host) = books.take_kept(class) {
                return Ok((books.add(host, bytes, class, self.clock.now_ns()), true));
            }
            let kept = books.make_room(class, self.config.limit_bytes).map_err(full)?;
            books.promised += class; // others see it while the lock is not held
            kept
        };
        self.release(kept);
        let host = self.pin(class);
        let mut books = self.lock();
        books.promised -= class;
        let host = host.map_err(|error| match error.refuses_to_pin() {
            true => PinnedError::Refused {
                requested: bytes,
                error,
            },
            false => PinnedError::Driver(error),
        })?;
        Ok((books.add(host, bytes, class, self.clock.now_ns()), false))
    }

    /// Where the system refuses, what is kept is given back and it is asked once more.
    fn pin(&self, class: u64) -> Result<u64, DriverError> {
        self.driver.host_alloc(class).or_else(|error| {
            if self.clear_kept() == 0 {
                return Err(error);
            }
            self.driver.host_alloc(class)
        })
    }

    /// Gives a block back. One that a transfer uses is kept until that has ended. Errors: `BadBlock`.
    pub fn free(&self, id: u64) -> PinnedResult<()> {
        let freed = self.lock().free(id, &self.config)?;
        self.release(freed.into_iter().collect());
        Ok(())
    }

    /// Keeps memory where it is as long as the result lives. None unless one block holds the whole range.
    pub fn hold(self: &Arc<Self>, address: u64, bytes: u64) -> Option<Hold> {
        let id = self.lock().hold(address, bytes)?;
        Some(Hold { pool: self.clone(), id })
    }

    /// Says which task a block is for. Errors: `BadBlock`.
    pub fn associate(&self, id: u64, task: &str) -> PinnedResult<()> {
        self.lock().get_mut(id)?.task = Some(task.to_string());
        Ok(())
    }

    /// Marks a block as used now. Errors: `BadBlock`.
    pub fn touch(&self, id: u64) -> PinnedResult<()> {
        self.lock().get_mut(id)?.last_use_ns = self.clock.now_ns();
        Ok(())
    }

    pub fn get(&self, id: u64) -> Option<PinnedBlock> {
        self.lock().get_mut(id).ok().map(|block| block.clone())
    }

    /// By number; of one task, or of all.
    pub fn blocks(&self, task: Option<&str>) -> Vec<PinnedBlock> {
        self.lock().blocks(task)
    }

    pub fn can_allocate(&self, bytes: u64) -> bool {
        let books = self.lock();
        let class = self.config.class_of(bytes);
        class.is_some_and(|class| books.in_use() + class <= self.config.limit_bytes)
    }

    pub fn stats(&self) -> PinnedStats {
        self.lock().stats()
    }

    /// Unpins what is kept for reuse; how many blocks.
    pub fn clear_kept(&self) -> usize {
        let kept = self.lock().take_all_kept();
        let count = kept.len();
        self.release(kept);
        count
    }
}

impl Drop for PinnedPool {
    fn drop(&mut self) {
        let all = self.lock().take_everything();
        self.release(all);
    }
}

/// A block that stays where it is.
pub struct Hold {
    pool: Arc<PinnedPool>,
    id: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let freed = self.pool.lock().let_go(self.id, &self.pool.config);
        self.pool.release(freed.into_iter().collect());
    }
}
