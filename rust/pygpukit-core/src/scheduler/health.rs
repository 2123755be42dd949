//! Whether the device of this process has failed: its schedulers look before they take a task in or let one begin.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// One for all schedulers of a process. While nothing has failed, a look costs one read of memory.
pub struct DeviceHealth {
    failed: AtomicBool,
    why: Mutex<String>,
    lasts: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Default for DeviceHealth {
    /// Of a device that never recovers.
    fn default() -> DeviceHealth {
        DeviceHealth::new(|| true)
    }
}

impl DeviceHealth {
    /// lasts: whether a failure that was seen still stands. It is asked under locks: it must be quick and call nothing here.
    pub fn new(lasts: impl Fn() -> bool + Send + Sync + 'static) -> DeviceHealth {
        DeviceHealth {
            failed: AtomicBool::new(false),
            why: Mutex::default(),
            lasts: Box::new(lasts),
        }
    }

    /// The device answers nothing any more. why: what failed, and the remedy.
    pub fn fail(&self, why: &str) {
        let mut known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        *known = why.to_string();
        self.failed.store(true, Ordering::Relaxed);
    }

    /// What failed, and the remedy; None while the device works.
    #[inline]
    pub fn fault(&self) -> Option<String> {
        if self.failed.load(Ordering::Relaxed) {
            self.standing()
        } else {
            None
        }
    }

    #[cold]
    fn standing(&self) -> Option<String> {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner); // a failure told meanwhile is not forgotten
        let stands = (self.lasts)();
        self.failed.store(stands, Ordering::Relaxed);
        stands.then(|| why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_failure_stands_until_the_device_works_again() {
        let broken = Arc::new(AtomicBool::new(true));
        let asked = broken.clone();
        let health = DeviceHealth::new(move || asked.load(Ordering::Relaxed));
        assert_eq!(health.fault(), None, "nobody has seen it fail");
        health.fail("first");
        assert_eq!(health.fault().as_deref(), Some("first"));
        health.fail("second");
        assert_eq!(health.fault().as_deref(), Some("second"));
        broken.store(false, Ordering::Relaxed);
        assert_eq!(health.fault(), None);
        broken.store(true, Ordering::Relaxed);
        assert_eq!(health.fault(), None, "nobody has seen it fail again");
    }

    #[test]
    fn a_device_that_never_recovers_stays_failed() {
        let health = DeviceHealth::default();
        health.fail("gone");
        assert_eq!(
            (health.fault(), health.fault()),
            (Some("gone".into()), Some("gone".into()))
        );
    }
}
