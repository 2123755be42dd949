//! Command: a piece of work that waits for its turn, what the queue knows of it, and what a batch issues of it.

use super::cost::Cost;
use crate::driver::{DriverError, DriverResult};
use crate::partition::WorkKind;
use crate::slicing::SubGrid;
use std::sync::Arc;

/// CUDA_ERROR_NOT_SUPPORTED
const PARTS_REFUSED: i32 = 801;

/// A piece of work that can be given to the device later, from another thread. Dropped once it was issued, or instead.
pub trait Command: Send + Sync {
    fn issue(&self) -> DriverResult<()>;

    /// Issues a part of a kernel's grid; called only for work with a wave.
    fn issue_part(&self, _part: SubGrid) -> DriverResult<()> {
        Err(DriverError {
            code: PARTS_REFUSED,
            text: "this command has no parts".into(),
        })
    }

    /// The gate would issue the work in parts if it could.
    fn want_parts(&self) {}
}

/// What the queue knows of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub stream: u64,
    /// Name and size tell which works cost the same.
    pub name: u32,
    pub size: u64,
    /// Of a kernel that can be launched in parts: its grid, whose blocks `size` counts, and how many of them the device runs at
    /// once. A wave of 0: the work is issued whole.
    pub grid: [u32; 3],
    pub wave: u64,
    pub kind: WorkKind,
}

/// What a batch issues: a command, or a part of one.
pub struct Item {
    pub work: Work,
    pub cost: Cost,
    pub command: Arc<dyn Command>,
    pub part: Option<SubGrid>,
    /// Nothing of the command is left after it.
    pub ends: bool,
}

/// One tenant's commands for one stream, to be issued one after the other.
pub struct Batch {
    pub tenant: u32,
    pub items: Vec<Item>,
}

/// A deferred command that the driver refused. What came after it in its tenant's line was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub stream: u64,
    pub name: u32,
    pub error: DriverError,
}
