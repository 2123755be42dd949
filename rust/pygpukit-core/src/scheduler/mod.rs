//! Which task runs when: phases, reasons, QoS, admission, preemption, the task table and its blocking front.

mod admission;
mod audit;
mod blocking;
mod check;
mod context;
mod error;
mod estimate;
mod fair;
mod phase;
mod preempt;
mod qos;
mod queue;
mod reason;
mod record;
mod retry;
mod spec;
mod table;
mod task;
mod transition;
mod waiting;

pub use crate::partition::SpecError;
pub use blocking::Scheduler;
pub use check::{AdmissionCheck, Verdict};
pub use context::TaskContext;
pub use error::{Outcome, TaskError};
pub use phase::{edge, edges_as_markdown, Edge, Phase, EDGES};
pub use qos::Demand;
pub use reason::{Reason, ReasonGroup};
pub use record::{Detail, Observer, Stats, TaskRecord, Transition};
pub use retry::{Backoff, Retry};
pub use spec::{Config, Policy, TaskSpec};
pub use table::TaskTable;
