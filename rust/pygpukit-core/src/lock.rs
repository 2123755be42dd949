//! A lock for what is nearly always held for as long as a few words take to change, like the books of the pool, and never while anything
//! is waited for. A thread that finds it taken looks again, lets others run, and in the end naps and looks: nobody wakes it. What that
//! buys is the unlocking: a plain store, where a lock that may have to wake somebody needs an atomic exchange, a tenth of a pool hit.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{spin_loop, yield_now};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Time means nothing: threads take turns.
const EXPLORED: bool = cfg!(any(loom, shuttle));
/// Looks before each time that others are let run.
const LOOKS: u32 = if EXPLORED { 1 } else { 100 };
/// Times of that before the first nap.
const YIELDS: u32 = if EXPLORED { u32::MAX } else { 100 };
/// For a holder that the kernel has put aside in favour of those that wait.
const NAP: Duration = Duration::from_micros(50);

pub struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: whoever gets at the value holds the lock, so that it is with one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub fn new(value: T) -> Lock<T> {
        Lock {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if !self.take() {
            self.wait();
        }
        Guard { lock: self }
    }

    #[inline]
    fn take(&self) -> bool {
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut yields = 0;
        loop {
            for _ in 0..LOOKS {
                if !self.held.load(Ordering::Relaxed) && self.take() {
                    return;
                }
                spin_loop();
            }
            if yields < YIELDS {
                yields += 1;
                yield_now();
            } else {
                std::thread::sleep(NAP);
            }
        }
    }
}

/// Holds the lock. A panic that unwinds past it lets go of it like any other end.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

// SAFETY: it stands for a reference to the value.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard's thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed for writing.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_whoever_sleeps_inside() {
        let lock = Lock::new([0u64; 2]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..20_000 {
                        let mut value = lock.lock();
                        value[0] += 1;
                        if round % 5_000 == 0 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        value[1] += 1;
                        assert_eq!(value[0], value[1]);
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), [80_000; 2]);
    }

    #[test]
    fn a_panic_leaves_it_open() {
        let lock = Lock::new(1);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("inside");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 1);
    }
}
