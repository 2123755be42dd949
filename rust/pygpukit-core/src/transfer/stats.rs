//! What an engine did so far, by direction.

use super::{Direction, Info, State};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    pub submitted: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    /// Of pieces that landed, those of failed and cancelled transfers included.
    pub bytes: u64,
    /// Device time in which they did.
    pub busy_ns: u64,
    /// From submission to the first piece, of the transfers that got so far.
    pub waited_ns: u64,
    pub longest_wait_ns: u64,
    /// The most bytes that were in flight at a time.
    pub peak_in_flight_bytes: u64,
}

impl DirectionStats {
    /// Bytes a second over the time in which the direction was busy; 0.0 before the first.
    pub fn bytes_per_s(&self) -> f64 {
        if self.busy_ns == 0 {
            return 0.0;
        }
        self.bytes as f64 * 1e9 / self.busy_ns as f64
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub directions: [DirectionStats; 4],
    /// Now.
    pub queued: u64,
    pub in_progress: u64,
}

impl Stats {
    pub fn of(&self, direction: Direction) -> &DirectionStats {
        &self.directions[direction as usize]
    }

    pub fn sum(&self, what: impl Fn(&DirectionStats) -> u64) -> u64 {
        self.directions.iter().map(what).sum()
    }

    pub(super) fn begun(&mut self, direction: Direction, waited_ns: u64) {
        let stats = &mut self.directions[direction as usize];
        stats.waited_ns += waited_ns;
        stats.longest_wait_ns = stats.longest_wait_ns.max(waited_ns);
    }

    pub(super) fn ended(&mut self, info: &Info) {
        let stats = &mut self.directions[info.direction as usize];
        match info.state {
            State::Completed => stats.completed += 1,
            State::Failed => stats.failed += 1,
            State::Cancelled => stats.cancelled += 1,
            State::Queued | State::InProgress => {}
        }
    }
}
