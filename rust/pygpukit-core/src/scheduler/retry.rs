//! How often and after what pause a task goes back to the queue.

use super::reason::Reason;

/// Pauses double from `first_ns` to `longest_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first_ns: u64,
    pub longest_ns: u64,
}

impl Default for Backoff {
    /// 10 ms to 1 s.
    fn default() -> Backoff {
        Backoff {
            first_ns: 10_000_000,
            longest_ns: 1_000_000_000,
        }
    }
}

impl Backoff {
    /// The pause after `before` earlier ones.
    pub fn pause_ns(&self, before: u32) -> u64 {
        let factor = 1u64.checked_shl(before).unwrap_or(u64::MAX);
        self.first_ns.saturating_mul(factor).min(self.longest_ns)
    }
}

/// A task with retries left runs again when it fails; its function must bear being run more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// Runs after the first.
    pub retries: u32,
    pub backoff: Backoff,
}

impl Retry {
    /// Whether a failure may be gone at the next run. Source that does not compile, a device that answers nothing any more, and a
    /// kernel that takes too long stay as they are.
    pub fn applies_to(&self, reason: Reason) -> bool {
        !matches!(
            reason,
            Reason::CompileError | Reason::StickyDeviceError | Reason::WatchdogTimeout | Reason::DependencyFailed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let backoff = Backoff {
            first_ns: 3,
            longest_ns: 20,
        };
        assert_eq!(
            [0, 1, 2, 3, 63, 64, u32::MAX].map(|n| backoff.pause_ns(n)),
            [3, 6, 12, 20, 20, 20, 20]
        );
        let none = Backoff {
            first_ns: 0,
            longest_ns: 20,
        };
        assert_eq!(none.pause_ns(70), 0);
    }
}
