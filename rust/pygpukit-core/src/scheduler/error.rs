//! How a dispatcher leaves a task, and what is said of calls that do not fit it.

use super::phase::Phase;
use super::reason::Reason;
use crate::partition::SpecError;
use std::fmt;

/// How a dispatcher left a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    Failed {
        reason: Reason,
        error: String,
    },
    /// The worker process that it ran in is gone, or its device context: a fresh one may run it again.
    Lost {
        reason: Reason,
        error: String,
    },
}

/// A call that does not fit the task it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskError {
    Unknown {
        id: String,
    },
    NoEdge {
        id: String,
        from: Phase,
        to: Phase,
    },
    NotIdempotent {
        id: String,
    },
    WrongReason {
        reason: Reason,
    },
    Ended {
        id: String,
        phase: Phase,
    },
    /// It runs in the worker process of its partition.
    Elsewhere {
        id: String,
        partition: String,
    },
    Invalid(SpecError),
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Unknown { id } => write!(f, "no task '{id}': never submitted here, or finished and forgotten"),
            TaskError::NoEdge { id, from, to } => {
                write!(f, "task '{id}' is {}: it cannot become {}", from.name(), to.name())
            }
            TaskError::NotIdempotent { id } => {
                write!(
                    f,
                    "task '{id}' has started and is not marked idempotent: it cannot go back to the queue"
                )
            }
            TaskError::Ended { id, phase } => write!(f, "task '{id}' is {}: it has ended", phase.name()),
            TaskError::Elsewhere { id, partition } => write!(
                f,
                "task '{id}' runs in the worker process of partition '{partition}' and cannot be paused there: pause it before it \
                 starts, or cancel it"
            ),
            TaskError::Invalid(error) => error.fmt(f),
            TaskError::WrongReason { reason } => write!(f, "'{}' is no reason for this transition", reason.name()),
        }
    }
}

impl std::error::Error for TaskError {}
