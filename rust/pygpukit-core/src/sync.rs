//! What threads share: the standard library's; under `--cfg loom` types whose threads take turns in every order (`tests/*_loom.rs`), and
//! under `--cfg shuttle` in many random ones (`tests/*_shuttle.rs`).

#[cfg(loom)]
pub use loom::sync::{atomic, Mutex, MutexGuard};
#[cfg(shuttle)]
pub use shuttle::sync::{atomic, Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub use std::sync::{atomic, Mutex, MutexGuard};

/// For modules whose threads wait for each other: loom has no timed waits.
pub mod waits {
    #[cfg(shuttle)]
    pub use shuttle::{
        sync::{atomic, Condvar, Mutex, MutexGuard},
        thread::{sleep, yield_now},
    };
    #[cfg(not(shuttle))]
    pub use std::{
        sync::{atomic, Condvar, Mutex, MutexGuard},
        thread::{sleep, yield_now},
    };
}
