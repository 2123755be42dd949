//! Micro-slicing: one launch as a row of smaller ones with the same results, so that other work gets in between.
//!
//! A kernel is rewritten in PTX: a sub-grid is launched, and the blocks read their place in the whole grid. What cannot
//! be rewritten safely is refused with a reason and a place. The plan says which sub-grids, and how large.

mod analysis;
mod parse;
mod plan;
mod queue;
mod reason;
mod rewrite;
mod size;
mod token;

pub use parse::Module;
pub use plan::{Plan, SubGrid};
pub use queue::{Handed, QueueConfig, QueueStats, Slice, SliceQueue};
pub use reason::{Reason, Unsliceable};
pub use rewrite::{rewrite, Options, PARAMETER_BYTES};
pub use size::{Device, Sizer, DEFAULT_QUANTUM_NS, MAX_QUANTUM_NS, MIN_QUANTUM_NS};
