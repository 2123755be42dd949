//! Task phases and the one table of transitions between them: code, documentation, tests and legends all read it.

use super::reason::ReasonGroup;

/// The phase of a task; the number is the one in TASK event records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Phase {
    Submitted = 0,
    Rejected = 1,
    Queued = 2,
    Admitted = 3,
    Running = 4,
    Suspended = 5,
    Succeeded = 6,
    Failed = 7,
    Cancelled = 8,
    Expired = 9,
}

impl Phase {
    pub const COUNT: usize = 10;
    pub const ALL: [Phase; Phase::COUNT] = [
        Phase::Submitted,
        Phase::Rejected,
        Phase::Queued,
        Phase::Admitted,
        Phase::Running,
        Phase::Suspended,
        Phase::Succeeded,
        Phase::Failed,
        Phase::Cancelled,
        Phase::Expired,
    ];

    pub const fn code(self) -> u64 {
        self as u64
    }

    pub const fn name(self) -> &'static str {
        match self {
            Phase::Submitted => "Submitted",
            Phase::Rejected => "Rejected",
            Phase::Queued => "Queued",
            Phase::Admitted => "Admitted",
            Phase::Running => "Running",
            Phase::Suspended => "Suspended",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
            Phase::Cancelled => "Cancelled",
            Phase::Expired => "Expired",
        }
    }

    /// No edge leaves a terminal phase.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Phase::Rejected | Phase::Succeeded | Phase::Failed | Phase::Cancelled | Phase::Expired
        )
    }
}

/// One permitted transition, the group its reason comes from, and when it is taken.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub from: Phase,
    pub to: Phase,
    pub reasons: ReasonGroup,
    pub when: &'static str,
}

const fn e(from: Phase, to: Phase, reasons: ReasonGroup, when: &'static str) -> Edge {
    Edge {
        from,
        to,
        reasons,
        when,
    }
}

const AGAIN: &str = "it failed with retries left, or its worker was lost (idempotent tasks only)";

/// Every permitted transition. There is no other.
pub const EDGES: &[Edge] = {
    use Phase::*;
    use ReasonGroup as R;
    &[
        e(Submitted, Rejected, R::Reject, "it can never be admitted"),
        e(Submitted, Queued, R::Queue, "it has to wait"),
        e(Submitted, Admitted, R::None, "memory and share are reserved at once"),
        e(Queued, Admitted, R::None, "memory and share are reserved"),
        e(Queued, Rejected, R::Reject, "a permanent check failed"),
        e(Queued, Failed, R::Fail, "a dependency did not succeed"),
        e(Queued, Cancelled, R::None, "cancelled"),
        e(Queued, Expired, R::None, "deadline passed"),
        e(Admitted, Running, R::None, "a dispatcher took it"),
        e(Admitted, Queued, R::Queue, "preempted or paused before its start"),
        e(Admitted, Failed, R::Fail, "it could not be started"),
        e(Admitted, Cancelled, R::None, "cancelled"),
        e(Admitted, Expired, R::None, "deadline passed"),
        e(Running, Succeeded, R::None, "it returned and its stream is idle"),
        e(Running, Failed, R::Fail, "it raised, or its device or worker failed"),
        e(Running, Cancelled, R::None, "cancelled"),
        e(Running, Expired, R::None, "deadline passed"),
        e(Running, Suspended, R::None, "paused"),
        e(Running, Queued, R::Queue, AGAIN),
        e(Suspended, Running, R::None, "resumed"),
        e(Suspended, Failed, R::Fail, "it raised, or its device or worker failed"),
        e(Suspended, Cancelled, R::None, "cancelled"),
        e(Suspended, Expired, R::None, "deadline passed"),
        e(Suspended, Queued, R::Queue, AGAIN),
    ]
};

/// Index into `EDGES` plus one by [from][to]; 0 = no edge.
const INDEX: [[u8; Phase::COUNT]; Phase::COUNT] = {
    let mut index = [[0; Phase::COUNT]; Phase::COUNT];
    let mut i = 0;
    while i < EDGES.len() {
        let (from, to) = (EDGES[i].from as usize, EDGES[i].to as usize);
        assert!(index[from][to] == 0, "two edges between the same phases");
        assert!(!EDGES[i].from.is_terminal(), "an edge leaves a terminal phase");
        index[from][to] = i as u8 + 1;
        i += 1;
    }
    index
};

/// The edge between two phases, if there is one.
pub fn edge(from: Phase, to: Phase) -> Option<&'static Edge> {
    match INDEX[from as usize][to as usize] {
        0 => None,
        i => EDGES.get(i as usize - 1),
    }
}

/// The table as a Markdown table, for the documentation.
pub fn edges_as_markdown() -> String {
    let mut text = String::from("| from | to | reason | when |\n| --- | --- | --- | --- |\n");
    for edge in EDGES {
        let (from, to, reasons) = (edge.from.name(), edge.to.name(), edge.reasons.name());
        text.push_str(&format!("| {from} | {to} | {reasons} | {} |\n", edge.when));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_table_agree() {
        for from in Phase::ALL {
            for to in Phase::ALL {
                let listed = EDGES.iter().find(|e| e.from == from && e.to == to);
                assert_eq!(edge(from, to).map(|e| e.when), listed.map(|e| e.when));
            }
        }
    }

    #[test]
    fn every_phase_is_reached_and_every_terminal_one_ends() {
        for phase in Phase::ALL {
            assert_eq!(Phase::ALL[phase as usize], phase);
            let leaves = EDGES.iter().any(|e| e.from == phase);
            let reached = EDGES.iter().any(|e| e.to == phase);
            assert_eq!(leaves, !phase.is_terminal(), "{phase:?}");
            assert_eq!(reached, phase != Phase::Submitted, "{phase:?}");
        }
    }

    #[test]
    fn markdown_has_one_row_an_edge() {
        assert_eq!(edges_as_markdown().lines().count(), EDGES.len() + 2);
    }
}
