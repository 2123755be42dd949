//! The lock under every order in which loads and stores of its threads can take effect, as loom explores them.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p pygpukit-core --test lock_loom`.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use pygpukit_core::lock::Lock;

/// Adds one, in two steps that nobody may come between. loom's cell fails where two threads are at it, or one does not see the other.
fn count(lock: &Lock<UnsafeCell<u32>>) {
    let held = lock.lock();
    // SAFETY: the lock is held, which is what loom looks at.
    let before = held.with(|value| unsafe { *value });
    // SAFETY: as above.
    held.with_mut(|value| unsafe { *value = before + 1 });
}

/// A thread counts so often alone and so often beside another, which counts as often as it says.
fn explore(alone: u32, beside: u32, other: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let lock = Arc::new(Lock::new(UnsafeCell::new(0)));
        (0..alone).for_each(|_| count(&lock));
        let second = {
            let lock = lock.clone();
            thread::spawn(move || (0..other).for_each(|_| count(&lock)))
        };
        (0..beside).for_each(|_| count(&lock));
        second.join().unwrap();
        // SAFETY: as above.
        assert_eq!(lock.lock().with(|value| unsafe { *value }), alone + beside + other);
    });
}

#[test]
fn one_thread_at_a_time_and_it_sees_the_last_one() {
    explore(0, 1, 1);
}

/// The second time in a row a thread is favoured, and from then on it goes in by a plain store. The other one comes so often that it would
/// be favoured, too, while the first is about to go in as what it is no more.
#[test]
fn a_favoured_thread_and_who_unseats_it_take_turns() {
    explore(2, 2, 3);
}

/// The other one may be there already when it becomes favoured.
#[test]
fn who_becomes_favoured_and_who_comes_then_take_turns() {
    explore(1, 2, 2);
}
