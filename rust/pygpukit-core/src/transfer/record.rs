//! What is asked of a transfer, and what is known of it.

use super::{Direction, State};
use crate::driver::DriverError;

/// A copy of `bytes` bytes. Host memory must stay where it is until the transfer has ended. `keep` is dropped just
/// before that can be seen, with the engine locked: its drop must not ask the engine.
pub struct Request {
    pub direction: Direction,
    /// Of `ToPeer`: the device that is copied to.
    pub peer: i32,
    pub to: u64,
    pub from: u64,
    pub bytes: u64,
    /// Higher goes first.
    pub priority: i32,
    /// Streams whose work so far comes first.
    pub after_streams: Vec<u64>,
    /// Events that come first, which their owner keeps.
    pub after_events: Vec<u64>,
    /// Transfers of this engine that come first, however they end.
    pub after: Vec<u64>,
    pub keep: Option<Box<dyn Send>>,
    /// Its end is told by `Engine::ended`.
    pub report: bool,
}

impl Request {
    pub fn new(direction: Direction, to: u64, from: u64, bytes: u64) -> Request {
        Request {
            direction,
            peer: -1,
            to,
            from,
            bytes,
            priority: 0,
            after_streams: Vec::new(),
            after_events: Vec::new(),
            after: Vec::new(),
            keep: None,
            report: false,
        }
    }
}

/// A transfer at one moment. Times on the engine's clock; 0 = not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub id: u64,
    pub direction: Direction,
    pub peer: i32,
    pub to: u64,
    pub from: u64,
    pub bytes: u64,
    pub priority: i32,
    pub state: State,
    /// Bytes of the pieces that landed.
    pub landed_bytes: u64,
    pub queued_ns: u64,
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Device time of its pieces.
    pub device_ns: u64,
    pub error: Option<DriverError>,
}

impl Info {
    /// Of the pieces' device time; None while nothing has landed.
    pub fn bytes_per_s(&self) -> Option<f64> {
        (self.device_ns > 0).then(|| self.landed_bytes as f64 * 1e9 / self.device_ns as f64)
    }
}
