//! What is asked once memory and share are reserved and before a task counts as admitted: the second phase of admission.

use super::reason::Reason;
use super::spec::TaskSpec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Not now: the reservation goes back and the task waits, longer each time. The reason is one of the Queue group.
    Later(Reason),
    /// Never: the task is rejected. The reason is one of the Reject group.
    Never(Reason),
}

/// Asked under the scheduler's lock: it must be quick and must not call the scheduler.
pub trait AdmissionCheck: Send {
    fn check(&mut self, spec: &TaskSpec, now_ns: u64) -> Verdict;
}

impl<F: FnMut(&TaskSpec, u64) -> Verdict + Send> AdmissionCheck for F {
    fn check(&mut self, spec: &TaskSpec, now_ns: u64) -> Verdict {
        self(spec, now_ns)
    }
}
