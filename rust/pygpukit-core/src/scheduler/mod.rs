//! Which task runs when: phases, reasons, the reservation ledger, the task table and its blocking front.

mod admission;
mod blocking;
mod context;
mod error;
mod ledger;
mod phase;
mod queue;
mod reason;
mod record;
mod spec;
mod table;
mod task;
mod transition;

pub use blocking::Scheduler;
pub use context::TaskContext;
pub use error::{Outcome, TaskError};
pub use ledger::{Ledger, Reservation, Resource, Shortage};
pub use phase::{edge, edges_as_markdown, Edge, Phase, EDGES};
pub use reason::{Reason, ReasonGroup};
pub use record::{Detail, Observer, Stats, TaskRecord, Transition};
pub use spec::{Config, Policy, SpecError, TaskSpec};
pub use table::TaskTable;
