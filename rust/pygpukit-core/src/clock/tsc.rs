//! The processor's time stamp counter as nanoseconds: a third of the cost of a system clock reading. x86-64 Linux only.
//!
//! Used only where the kernel itself keeps time by it, which vouches for one rate on all cores, or where a sandbox hides what the kernel
//! does and the processor promises that rate. It is measured between the first reading and one at least 20 ms later, without waiting;
//! until then, and everywhere else, the answer is None.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::Instant;

const WINDOW_NS: u64 = 20_000_000;
/// Two counter readings around a clock reading that are further apart were interrupted.
const TIGHT_TICKS: u64 = 4000;

static ORIGIN: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds a tick, times 2^32; 0 until measured.
static RATE: AtomicU64 = AtomicU64::new(0);

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn ticks() -> u64 {
    0
}

fn trusted() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return false;
    }
    match std::fs::read_to_string(SOURCE) {
        Ok(source) => source.trim() == "tsc",
        Err(error) => error.kind() == std::io::ErrorKind::NotFound && invariant(),
    }
}

/// Whether the counter runs at one rate in all states of the processor, as it says of itself (CPUID 8000_0007h, EDX bit 8).
#[cfg(target_arch = "x86_64")]
fn invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const EXTENDED: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    #[allow(unused_unsafe)] // newer compilers call the instruction safe
    // SAFETY: every x86-64 processor has it; whether it has the leaf is asked first.
    unsafe {
        __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant() -> bool {
    false
}

/// Nanoseconds since the process's first reading, once the rate is known.
#[inline]
pub(super) fn now_ns() -> Option<u64> {
    let rate = RATE.load(Ordering::Acquire);
    (rate != 0).then(|| {
        let elapsed = ticks().wrapping_sub(ORIGIN.load(Ordering::Relaxed));
        ((u128::from(elapsed) * u128::from(rate)) >> 32) as u64
    })
}

/// The same through the system clock; learns the rate when it can.
#[cold]
pub(super) fn now_ns_slow() -> u64 {
    static START: OnceLock<(Instant, u64)> = OnceLock::new();
    // The counter is read before the clock, here and below, so that the measured time never runs behind what was told before.
    let &(start, origin) = START.get_or_init(|| {
        let mut readings = (0..if trusted() { 8 } else { 0 }).map(|_| {
            let origin = ticks();
            (Instant::now(), origin, ticks().wrapping_sub(origin))
        });
        let tight = readings.find(|&(_, _, apart)| apart < TIGHT_TICKS);
        tight.map_or_else(|| (Instant::now(), 0), |(start, origin, _)| (start, origin))
    });
    let before = ticks();
    let elapsed = start.elapsed().as_nanos() as u64;
    if origin != 0 && elapsed >= WINDOW_NS && before > origin && ticks().wrapping_sub(before) < TIGHT_TICKS {
        let rate = (u128::from(elapsed) << 32).div_ceil(u128::from(before - origin));
        if let Ok(rate) = u64::try_from(rate) {
            ORIGIN.store(origin, Ordering::Relaxed);
            let _ = RATE.compare_exchange(0, rate, Ordering::Release, Ordering::Relaxed);
        }
    }
    elapsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn agrees_with_the_system_clock_and_never_goes_back() {
        let start = Instant::now();
        let first = now_ns().unwrap_or_else(now_ns_slow);
        let begun = start.elapsed();
        let mut last = first;
        while start.elapsed() < Duration::from_millis(120) {
            let now = now_ns().unwrap_or_else(now_ns_slow);
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        // The thread may be interrupted anywhere: only these bounds are certain.
        let min_ns = (start.elapsed() - begun).as_nanos() as f64;
        let ours = (now_ns().unwrap_or_else(now_ns_slow) - first) as f64;
        let max_ns = start.elapsed().as_nanos() as f64;
        assert!(
            ours > min_ns * 0.999 && ours < max_ns * 1.001,
            "{ours} ns, not in {min_ns}..{max_ns}"
        );
        assert!(
            !trusted() || RATE.load(Ordering::Relaxed) != 0,
            "the rate is known after the window"
        );
    }
}
