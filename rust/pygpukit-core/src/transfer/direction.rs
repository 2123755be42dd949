//! Which way a transfer goes.

use crate::counters::Counter;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    ToDevice,
    ToHost,
    OnDevice,
    /// To another device, whose number is with the transfer.
    ToPeer,
}

impl Direction {
    pub const ALL: [Direction; 4] = [
        Direction::ToDevice,
        Direction::ToHost,
        Direction::OnDevice,
        Direction::ToPeer,
    ];

    pub fn name(self) -> &'static str {
        ["H2D", "D2H", "D2D", "P2P"][self as usize]
    }

    /// The process's counter of bytes that went this way.
    pub(super) fn counter(self) -> Counter {
        [
            Counter::H2dBytes,
            Counter::D2hBytes,
            Counter::D2dBytes,
            Counter::D2dBytes,
        ][self as usize]
    }

    /// As COPY records have it, where fills are 3.
    pub(super) fn record_number(self) -> u64 {
        [0, 1, 2, 4][self as usize]
    }
}
