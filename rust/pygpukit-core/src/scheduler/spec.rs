//! What a caller asks for: the task specification, its policy, and the limits of a scheduler.

use super::name::Name;
use super::retry::{Backoff, Retry};
use crate::partition::{Devices, Reservation, SpecError, MAX_TEXT_BYTES, WHOLE_SHARE_PPM};

/// The QoS class of a task, derived from its requests and limits as in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Request = limit, for memory and share, both set.
    Guaranteed,
    /// At least what it requests; more where there is more.
    Burstable,
    /// No request: what others leave over.
    BestEffort,
}

impl Policy {
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Guaranteed => "Guaranteed",
            Policy::Burstable => "Burstable",
            Policy::BestEffort => "BestEffort",
        }
    }

    pub fn from_name(name: &str) -> Option<Policy> {
        [Policy::Guaranteed, Policy::Burstable, Policy::BestEffort]
            .into_iter()
            .find(|p| p.name() == name)
    }
}

/// One task as submitted. Two submissions with the same id and equal specifications are one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    pub id: Name,
    pub name: Name,
    /// Requests; 0 = none.
    pub memory_bytes: u64,
    pub share_ppm: u32,
    /// Limits; None = whatever the policy implies.
    pub memory_limit: Option<u64>,
    pub share_limit_ppm: Option<u32>,
    /// Fills in the limits that the class needs; one that requests and limits contradict is refused.
    pub policy: Policy,
    /// Higher runs first.
    pub priority: i32,
    /// Empty = the default partition.
    pub partition: Name,
    /// It has what it requests on each of them, or waits.
    pub devices: Devices,
    /// Ids of tasks submitted before; all must succeed first.
    pub depends_on: Vec<Name>,
    /// On the scheduler's clock; 0 = none.
    pub deadline_ns: u64,
    /// How long it is expected to run; 0 = as long as tasks of its name did so far.
    pub run_ns: u64,
    /// May be started again after its worker was lost.
    pub idempotent: bool,
    pub retry: Retry,
}

impl TaskSpec {
    /// A best-effort task without requests.
    pub fn new(id: impl Into<Name>) -> TaskSpec {
        let id = id.into();
        TaskSpec {
            name: id.clone(),
            id,
            memory_bytes: 0,
            share_ppm: 0,
            memory_limit: None,
            share_limit_ppm: None,
            policy: Policy::BestEffort,
            priority: 0,
            partition: Name::default(),
            devices: Devices::OfPartition,
            depends_on: Vec::new(),
            deadline_ns: 0,
            run_ns: 0,
            idempotent: false,
            retry: Retry::default(),
        }
    }

    /// What admission takes out of the ledger: the requests.
    pub fn reservation(&self) -> Reservation {
        Reservation {
            memory_bytes: self.memory_bytes,
            share_ppm: self.share_ppm,
        }
    }

    /// The most of the device's time that it may have; for a guaranteed task the policy fills in what it asked for.
    pub(super) fn limit_ppm(&self) -> u32 {
        self.share_limit_ppm.unwrap_or(WHOLE_SHARE_PPM)
    }

    /// Checks what needs no knowledge of other tasks, apart from the id, and fills in what the policy implies. An Err leaves it as it is.
    pub(super) fn complete(&mut self) -> Result<(), SpecError> {
        if self.name.len() > MAX_TEXT_BYTES {
            return Err(SpecError::new(
                "name",
                format!("{} bytes; at most {MAX_TEXT_BYTES}", self.name.len()),
            ));
        }
        let Backoff { first_ns, longest_ns } = self.retry.backoff;
        if first_ns > longest_ns {
            let message = format!("the first pause, {first_ns} ns, is longer than the longest, {longest_ns} ns");
            return Err(SpecError::new("retry", message));
        }
        self.fill()
    }

    /// field: what the caller calls the id.
    pub(super) fn check_id(&self, field: &'static str) -> Result<(), SpecError> {
        match self.id.len() {
            0 => Err(SpecError::new(field, "empty; give every task a name of its own".into())),
            n if n > MAX_TEXT_BYTES => Err(SpecError::new(field, format!("{n} bytes; at most {MAX_TEXT_BYTES}"))),
            _ => Ok(()),
        }
    }
}

/// Limits of one scheduler.
#[derive(Clone, Debug)]
pub struct Config {
    /// Of device 0.
    pub total_memory: u64,
    /// Of devices 1, 2 and so on.
    pub further_memory: Vec<u64>,
    /// Of each device.
    pub total_share_ppm: u32,
    /// Tasks that can run at a time, as far as deadlines go: the wait for one of these places counts. 0 = any number.
    pub workers: usize,
    /// Most tasks that may wait (Queued or Admitted) at a time.
    pub max_queue: usize,
    /// Finished tasks remembered; older ones are forgotten by id.
    pub max_finished: usize,
    /// Number of this scheduler in the process: task numbers are `ordinal << 32 | count`.
    pub ordinal: u32,
}

impl Config {
    pub fn new(total_memory: u64) -> Config {
        Config {
            total_memory,
            further_memory: Vec::new(),
            total_share_ppm: WHOLE_SHARE_PPM,
            workers: 0,
            max_queue: 1000,
            max_finished: 4096,
            ordinal: 0,
        }
    }
}
