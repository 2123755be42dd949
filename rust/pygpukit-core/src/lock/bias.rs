//! What favouring a thread takes: its name, and a fence whose cost lies with those who come seldom (asymmetric fences, as in hazard
//! pointers and biased locks: Dice, Moir and Scherer, "Quickly Reacquirable Locks", 2003). x86-64 Linux only; elsewhere nobody is favoured.
//!
//! `light` and `heavy` together order as two sequentially consistent fences do: what a thread stored before the one is seen by whoever
//! loads after the other, or the other way round. The light one is none but for the compiler; in the heavy one the kernel lets every
//! running thread of the process pass a fence (membarrier(2)), which takes a microsecond.

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(loom, shuttle))))]
mod imp {
    use std::sync::atomic::{compiler_fence, Ordering};
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    // linux/membarrier.h
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes three integers and touches no memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    #[inline]
    pub fn token() -> usize {
        let base: usize;
        // SAFETY: the first word of a thread's control block is its own address (System V ABI, thread-local storage).
        unsafe {
            core::arch::asm!("mov {}, fs:[0]", out(reg) base, options(pure, readonly, nostack, preserves_flags));
        }
        base
    }

    pub fn available() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED))
    }

    #[inline]
    pub fn light() {
        compiler_fence(Ordering::SeqCst);
    }

    pub fn heavy() -> Option<Duration> {
        let start = Instant::now();
        let done =
            membarrier(PRIVATE_EXPEDITED) || membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED);
        done.then(|| start.elapsed())
    }
}

#[cfg(any(loom, shuttle))]
mod imp {
    use crate::sync::atomic::{fence, Ordering};
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::time::Duration;

    pub fn token() -> usize {
        let mut hasher = DefaultHasher::new();
        crate::sync::current().id().hash(&mut hasher);
        hasher.finish() as usize | 1
    }

    pub fn available() -> bool {
        true
    }

    pub fn light() {
        fence(Ordering::SeqCst);
    }

    pub fn heavy() -> Option<Duration> {
        fence(Ordering::SeqCst);
        Some(Duration::ZERO)
    }
}

#[cfg(not(any(all(target_arch = "x86_64", target_os = "linux"), loom, shuttle)))]
mod imp {
    use std::time::Duration;

    pub fn token() -> usize {
        1
    }

    pub fn available() -> bool {
        false
    }

    pub fn light() {}

    pub fn heavy() -> Option<Duration> {
        None
    }
}

/// Names the calling thread among those that run; never 0. A later thread may have the name of one that ended, and its favour with it: the
/// system orders the end of the one before the beginning of the other.
pub(super) use imp::token;

/// Whether threads can be favoured here.
pub(super) use imp::available;

/// The fence of a favoured thread.
pub(super) use imp::light;

/// The fence of all others, and how long it took. None when the system refuses it.
pub(super) use imp::heavy;
