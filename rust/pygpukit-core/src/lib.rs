//! What decides: memory, scheduling, caching and the record of it all. Pure Rust over the traits `Driver` and `Clock`; no FFI, no Python.

pub mod cache;
pub mod clock;
pub mod counters;
pub mod driver;
pub mod hash;
pub mod intern;
pub mod lock;
pub mod pacing;
pub mod partition;
pub mod pinned;
pub mod pool;
pub mod ring;
pub mod scheduler;
pub mod sim_driver;
pub mod slicing;
mod sync;
pub mod transfer;
