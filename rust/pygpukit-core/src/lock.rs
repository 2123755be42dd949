//! A lock for what is held as long as a few words take to change, like the books of the pool, and never while anything is waited for:
//! parking_lot's, or under loom and shuttle one whose threads they put in order.

#[cfg(not(any(loom, shuttle)))]
pub use parking_lot::{Mutex as Lock, MutexGuard as Guard};

#[cfg(any(loom, shuttle))]
pub use explored::{Guard, Lock};

#[cfg(any(loom, shuttle))]
mod explored {
    use crate::sync::{Mutex, MutexGuard};

    pub type Guard<'a, T> = MutexGuard<'a, T>;

    pub struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub fn new(value: T) -> Lock<T> {
            Lock(Mutex::new(value))
        }

        pub fn lock(&self) -> Guard<'_, T> {
            self.0.lock().expect("a thread that held the lock has panicked")
        }
    }
}
