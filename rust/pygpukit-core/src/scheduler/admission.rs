//! Who gets memory and share, and what becomes of a task that there is no room for: the policies there are, by name.

use super::policy::{named, Named};
use super::reason::Reason;
use super::spec::TaskSpec;
use crate::partition::SpecError;

/// What becomes of a task that there is no room for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// It waits, and those behind it in service order wait for it, so that none starves.
    HoldsBack,
    /// It waits, and those behind it that fit pass it: one that asks for much may wait for as long as others come.
    IsPassed,
    /// It is rejected. One that was admitted before (it gave way, or runs again) waits as with `HoldsBack`.
    IsRejected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Not now: the reservation goes back and the task waits, longer each time. The reason is one of the Queue group.
    Later(Reason),
    /// Never: the task is rejected. The reason is one of the Reject group.
    Never(Reason),
}

/// Asked under the scheduler's lock: it must be quick and must not call the scheduler.
pub trait Admission: Send {
    fn no_room(&self) -> NoRoom {
        NoRoom::HoldsBack
    }

    /// Asked once memory and share are reserved, and before the task counts as admitted.
    fn check(&mut self, _spec: &TaskSpec, _now_ns: u64) -> Verdict {
        Verdict::Pass
    }
}

impl Admission for NoRoom {
    fn no_room(&self) -> NoRoom {
        *self
    }
}

impl<F: FnMut(&TaskSpec, u64) -> Verdict + Send> Admission for F {
    fn check(&mut self, spec: &TaskSpec, now_ns: u64) -> Verdict {
        self(spec, now_ns)
    }
}

/// The first is the default.
pub(super) const ADMISSIONS: &[Named<dyn Admission>] = &[
    ("in-order", || Box::new(NoRoom::HoldsBack)),
    ("first-fit", || Box::new(NoRoom::IsPassed)),
    ("at-once", || Box::new(NoRoom::IsRejected)),
];

/// Names for `admission_named`.
pub fn admission_names() -> Vec<&'static str> {
    ADMISSIONS.iter().map(|(name, _)| *name).collect()
}

/// An Err names those there are.
pub fn admission_named(name: &str) -> Result<Box<dyn Admission>, SpecError> {
    Ok(named("admission", name, ADMISSIONS)?.1())
}
