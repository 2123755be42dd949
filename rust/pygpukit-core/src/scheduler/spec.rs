//! What a caller asks for: the task specification, its policy, and the limits of a scheduler.

use super::ledger::Reservation;
use std::fmt;

/// One whole device, in parts per million.
pub const WHOLE_SHARE_PPM: u32 = 1_000_000;
/// Longest id and name, in bytes.
pub const MAX_TEXT_BYTES: usize = 256;

/// How a request is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Request = limit, for memory and share.
    Guaranteed,
    /// At least the request; more when idle.
    Burstable,
    /// The memory it asks for, and whatever share is left over.
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
    pub id: String,
    pub name: String,
    pub memory_bytes: u64,
    pub share_ppm: u32,
    pub policy: Policy,
    /// Higher runs first.
    pub priority: i32,
    /// Ids of tasks submitted before; all must succeed first.
    pub depends_on: Vec<String>,
    /// On the scheduler's clock; 0 = none.
    pub deadline_ns: u64,
    /// May be started again after its worker was lost.
    pub idempotent: bool,
}

impl TaskSpec {
    /// A best-effort task without requests.
    pub fn new(id: impl Into<String>) -> TaskSpec {
        let id = id.into();
        TaskSpec {
            name: id.clone(),
            id,
            memory_bytes: 0,
            share_ppm: 0,
            policy: Policy::BestEffort,
            priority: 0,
            depends_on: Vec::new(),
            deadline_ns: 0,
            idempotent: false,
        }
    }

    /// What admission takes out of the ledger.
    pub fn reservation(&self) -> Reservation {
        let share_ppm = if self.policy == Policy::BestEffort {
            0
        } else {
            self.share_ppm
        };
        Reservation {
            memory_bytes: self.memory_bytes,
            share_ppm,
        }
    }

    /// The most of the device's time that it may have: of a guaranteed task what it asked for.
    pub(super) fn limit_ppm(&self) -> u32 {
        match self.policy {
            Policy::Guaranteed if self.share_ppm > 0 => self.share_ppm,
            _ => WHOLE_SHARE_PPM,
        }
    }

    /// Checks that need no knowledge of other tasks, apart from the id.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.name.len() > MAX_TEXT_BYTES {
            return Err(SpecError::new(
                "name",
                format!("{} bytes; at most {MAX_TEXT_BYTES}", self.name.len()),
            ));
        }
        if self.policy == Policy::Guaranteed && self.memory_bytes == 0 && self.share_ppm == 0 {
            return Err(SpecError::new(
                "policy",
                "Guaranteed without a memory or share request; ask for one".into(),
            ));
        }
        Ok(())
    }

    pub(super) fn check_id(&self) -> Result<(), SpecError> {
        match self.id.len() {
            0 => Err(SpecError::new("id", "empty; give every task a name of its own".into())),
            n if n > MAX_TEXT_BYTES => Err(SpecError::new("id", format!("{n} bytes; at most {MAX_TEXT_BYTES}"))),
            _ => Ok(()),
        }
    }
}

/// A specification that no scheduler could accept: the field and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    pub field: &'static str,
    pub message: String,
}

impl SpecError {
    pub(super) fn new(field: &'static str, message: String) -> SpecError {
        SpecError { field, message }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for SpecError {}

/// Limits of one scheduler.
#[derive(Clone, Debug)]
pub struct Config {
    pub total_memory: u64,
    pub total_share_ppm: u32,
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
            total_share_ppm: WHOLE_SHARE_PPM,
            max_queue: 1000,
            max_finished: 4096,
            ordinal: 0,
        }
    }
}
