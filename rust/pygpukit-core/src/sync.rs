//! What threads share: the standard library's; under `--cfg loom` types whose threads take turns in every order (`tests/*_loom.rs`), and
//! under `--cfg shuttle` in many random ones (`tests/*_shuttle.rs`).

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::{atomic, Mutex, MutexGuard},
    thread::{current, yield_now},
};
#[cfg(shuttle)]
pub use shuttle::{
    hint::spin_loop,
    sync::{atomic, Mutex, MutexGuard},
    thread::{current, yield_now},
};
#[cfg(not(any(loom, shuttle)))]
pub use std::{
    hint::spin_loop,
    sync::{atomic, Mutex, MutexGuard},
    thread::yield_now,
};

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
