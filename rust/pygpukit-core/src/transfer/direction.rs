//! Which way a transfer goes.

use crate::counters::Counter;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    ToDevice,
    ToHost,
    OnDevice,
}

impl Direction {
    pub const ALL: [Direction; 3] = [Direction::ToDevice, Direction::ToHost, Direction::OnDevice];

    pub fn name(self) -> &'static str {
        ["H2D", "D2H", "D2D"][self as usize]
    }

    /// The process's counter of bytes that went this way.
    pub(super) fn counter(self) -> Counter {
        [Counter::H2dBytes, Counter::D2hBytes, Counter::D2dBytes][self as usize]
    }
}
