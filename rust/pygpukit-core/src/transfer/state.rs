//! The life of a transfer: one table of transitions.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Queued,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

use State::{Cancelled, Completed, Failed, InProgress, Queued};

/// (from, to, when). There are no others.
pub const EDGES: [(State, State, &str); 6] = [
    (Queued, InProgress, "its first piece is about to be issued"),
    (Queued, Failed, "what it comes after cannot be awaited"),
    (Queued, Cancelled, "cancelled before any piece was issued"),
    (InProgress, Completed, "every piece has landed"),
    (
        InProgress,
        Failed,
        "a piece failed, and none is in flight any more; the rest is not issued",
    ),
    (
        InProgress,
        Cancelled,
        "cancelled with pieces left to issue, and none is in flight any more",
    ),
];

impl State {
    pub const ALL: [State; 5] = [Queued, InProgress, Completed, Failed, Cancelled];

    pub fn name(self) -> &'static str {
        ["Queued", "InProgress", "Completed", "Failed", "Cancelled"][self as usize]
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Completed | Failed | Cancelled)
    }

    pub fn allows(self, next: State) -> bool {
        EDGES.iter().any(|&(from, to, _)| (from, to) == (self, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_a_terminal_state_and_every_other_is_left() {
        for state in State::ALL {
            assert_eq!(EDGES.iter().any(|e| e.0 == state), !state.is_terminal(), "{state:?}");
            assert!(!state.allows(state));
        }
    }
}
