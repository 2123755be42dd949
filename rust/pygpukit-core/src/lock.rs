//! A lock for what is nearly always held for as long as a few words take to change, like the books of the pool, and never while anything
//! is waited for. A thread that finds it taken looks again, lets others run, and in the end naps and looks: nobody wakes it. What that
//! buys is the unlocking: a plain store, where a lock that may have to wake somebody needs an atomic exchange, a tenth of a pool hit.
//!
//! The first thread that comes alone for long enough is favoured: it takes the lock by a plain store, too, until another one comes, which
//! takes the lock in the ordinary way and unseats it. It is favoured again when it came alone for as long again; no other one ever is,
//! since a thread that is unseated may yet store that it goes in, and take that back, when it has slept through all that came after.

mod bias;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{spin_loop, yield_now};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
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
/// Times that a thread comes in a row before it is favoured: what it saves then, a few nanoseconds each time, pays for unseating it.
const LONG_ENOUGH: u64 = if EXPLORED { 1 } else { 4096 };
/// The most that it pays for. A system's own barrier takes a microsecond; one that a sandbox has by way of its host may wait for every
/// processor there, milliseconds.
const PROMPT: Duration = Duration::from_micros(20);
/// Slow ones in a row that end it: one may have met an interrupt.
const SLOW_ENOUGH: u32 = 4;

pub struct Lock<T> {
    /// Somebody has it who took it in the ordinary way.
    held: AtomicBool,
    /// The favoured thread has it, or is about to see that it is favoured no more.
    inside: AtomicBool,
    /// The favoured thread, 0 = none. Whoever changes it has `held`.
    favoured: AtomicUsize,
    comers: UnsafeCell<Comers>,
    value: UnsafeCell<T>,
}

/// Who takes the lock in the ordinary way. Touched by whoever has it so.
#[derive(Default)]
struct Comers {
    last: usize,
    /// How often the last one came since another did.
    again: u64,
    /// The only one that is ever favoured, 0 = not known yet.
    first: usize,
    /// How often in a row unseating it took too long.
    slow: u32,
}

impl Comers {
    /// Where barriers are slow nobody is favoured any more.
    fn note_barrier(&mut self, took: Duration) {
        self.slow = if took > PROMPT { self.slow + 1 } else { 0 };
    }
}

// SAFETY: whoever gets at the value holds the lock, so that it is with one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub fn new(value: T) -> Lock<T> {
        bias::available(); // the first time it takes a system call of milliseconds: not while somebody waits
        Lock {
            held: AtomicBool::new(false),
            inside: AtomicBool::new(false),
            favoured: AtomicUsize::new(0),
            comers: UnsafeCell::default(),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let me = bias::token();
        let favoured = self.favoured.load(Ordering::Relaxed) == me && self.enter(me) || self.take_ordinarily(me);
        Guard {
            lock: self,
            favoured,
            thread: PhantomData,
        }
    }

    /// As the favoured thread. False when it is that no more, or is inside already: then it waits for itself, as with any lock.
    #[inline]
    fn enter(&self, me: usize) -> bool {
        if self.inside.load(Ordering::Relaxed) {
            return false;
        }
        self.inside.store(true, Ordering::Relaxed);
        bias::light(); // whoever unseats this thread sees it inside, or is seen to have unseated it
        if self.favoured.load(Ordering::Relaxed) == me {
            return true;
        }
        self.inside.store(false, Ordering::Relaxed);
        false
    }

    /// True: this thread is favoured from now on, and has it so.
    #[inline]
    fn take_ordinarily(&self, me: usize) -> bool {
        if !self.take() {
            self.wait(|| !self.held.load(Ordering::Relaxed) && self.take());
        }
        let favoured = self.favoured.load(Ordering::Relaxed);
        if favoured != 0 {
            self.unseat(favoured);
        }
        // SAFETY: this thread has `held`.
        let comers = unsafe { &mut *self.comers.get() };
        if comers.last != me {
            (comers.last, comers.again) = (me, 0);
            return false;
        }
        comers.again += 1;
        let may = comers.first == 0 || comers.first == me;
        if comers.again != LONG_ENOUGH || !may || comers.slow >= SLOW_ENOUGH || !bias::available() {
            return false;
        }
        comers.first = me;
        self.inside.store(true, Ordering::Relaxed);
        self.favoured.store(me, Ordering::Relaxed);
        self.held.store(false, Ordering::Release); // whoever takes it sees both, and waits
        true
    }

    #[inline]
    fn take(&self) -> bool {
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Whoever was favoured is so no more, and not inside. The caller has `held`.
    #[cold]
    fn unseat(&self, favoured: usize) {
        self.favoured.store(0, Ordering::Relaxed);
        let Some(took) = bias::heavy() else {
            self.favoured.store(favoured, Ordering::Relaxed);
            self.held.store(false, Ordering::Release);
            panic!("the system refuses a memory barrier (membarrier) that it granted before: allow the call in this process's sandbox");
        };
        self.wait(|| !self.inside.load(Ordering::Acquire));
        // SAFETY: this thread has `held`.
        unsafe { &mut *self.comers.get() }.note_barrier(took);
    }

    #[cold]
    fn wait(&self, until: impl Fn() -> bool) {
        let mut yields = 0;
        loop {
            for _ in 0..LOOKS {
                if until() {
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
    favoured: bool,
    /// Stays with its thread.
    thread: PhantomData<*const ()>,
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
        let taken = if self.favoured {
            &self.lock.inside
        } else {
            &self.lock.held
        };
        taken.store(false, Ordering::Release);
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
    fn who_comes_alone_is_favoured_until_another_comes() {
        let lock = Lock::new(0);
        let favoured = || lock.favoured.load(Ordering::Relaxed);
        for _ in 0..LONG_ENOUGH {
            drop(lock.lock());
        }
        assert_eq!(favoured(), 0);
        let me = if bias::available() { bias::token() } else { 0 };
        let as_favoured = |held: &Guard<'_, _>| {
            assert_eq!((held.favoured, lock.inside.load(Ordering::Relaxed)), (me != 0, me != 0));
            assert_eq!(
                lock.held.load(Ordering::Relaxed),
                me == 0,
                "it has the lock in one way only"
            );
        };
        let held = lock.lock();
        as_favoured(&held); // the one that makes it favoured, too, or another in the same thread would go in
        assert_eq!(favoured(), me);
        drop(held);
        let held = lock.lock();
        as_favoured(&held);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                assert_ne!(bias::token(), me);
                *lock.lock() += 1;
            });
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(*held, 0, "the other one waits");
            drop(held);
            other.join().expect("no panic");
        });
        assert_eq!(favoured(), 0);
        assert!(!lock.lock().favoured && *lock.lock() == 1);
        std::thread::scope(|scope| _ = scope.spawn(|| (0..2 * LONG_ENOUGH).for_each(|_| drop(lock.lock()))));
        assert_eq!(favoured(), 0, "no other one ever is");
        for _ in 0..=LONG_ENOUGH {
            drop(lock.lock());
        }
        assert_eq!(favoured(), me);
    }

    /// The system gives an ended thread's control block to a later one, which has the favour with it.
    #[test]
    fn a_later_thread_with_the_name_of_an_ended_one_goes_on_where_that_left_off() {
        const EACH: u64 = 2 * LONG_ENOUGH;
        let lock = Lock::new(0);
        let (mut threads, mut favoured) = (0, 0);
        while favoured < 3 && threads < 1000 {
            std::thread::scope(|scope| _ = scope.spawn(|| (0..EACH).for_each(|_| *lock.lock() += 1)));
            threads += 1;
            favoured += u64::from(lock.favoured.load(Ordering::Relaxed) != 0);
            assert_eq!(*lock.lock(), threads * EACH); // and unseats it
        }
        assert!(!bias::available() || favoured == 3, "{favoured} of {threads}");
    }

    #[test]
    fn where_barriers_are_slow_nobody_is_favoured_any_more() {
        let lock = Lock::new(0);
        let another = || std::thread::scope(|scope| _ = scope.spawn(|| *lock.lock() += 1));
        let alone = || {
            (0..2 * LONG_ENOUGH).for_each(|_| *lock.lock() += 1);
            lock.favoured.load(Ordering::Relaxed) != 0
        };
        // SAFETY: no other thread is here.
        let note = |took| unsafe { &mut *lock.comers.get() }.note_barrier(took);
        (1..SLOW_ENOUGH).for_each(|_| note(2 * PROMPT));
        assert_eq!(alone(), bias::available());
        another();
        note(PROMPT);
        (1..SLOW_ENOUGH).for_each(|_| note(2 * PROMPT));
        assert_eq!(alone(), bias::available(), "those before do not count");
        another();
        (0..SLOW_ENOUGH).for_each(|_| note(2 * PROMPT));
        assert!(!alone());
    }

    /// Whoever is favoured goes in and out while others keep unseating it: the two steps of each would be seen apart.
    #[test]
    fn a_favoured_thread_and_those_that_unseat_it_are_never_in_together() {
        let lock = Lock::new([0u64; 2]);
        let count = |times: u64| {
            for _ in 0..times {
                let mut value = lock.lock();
                value[0] += 1;
                std::hint::black_box(&mut *value);
                value[1] += 1;
                assert_eq!(value[0], value[1]);
            }
        };
        let unseated = std::thread::scope(|scope| {
            let often = scope.spawn(|| count(4_000_000));
            let mut unseated = 0u64;
            while !often.is_finished() {
                std::thread::sleep(Duration::from_micros(200));
                unseated += u64::from(lock.favoured.load(Ordering::Relaxed) != 0);
                count(1);
            }
            often.join().expect("no panic");
            unseated
        });
        assert!(!bias::available() || unseated > 0, "nobody was ever unseated");
        let value = lock.lock();
        assert!(value[0] > 4_000_000 && value[0] == value[1]);
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
