//! Observer: who is told what the gate makes of its tasks.

use super::stretch::Stretch;

/// Told under the queue's lock: it must be quick and must not call the gate.
pub trait Observer: Send {
    /// A limit held the task back through this stretch, which is over.
    fn throttled(&self, _number: u64, _stretch: &Stretch) {}

    /// What the task got in the last 10 ms, 100 ms and 1 s, in parts per million of the time on the gate's multiprocessors. At most
    /// once in `SHARES_NS` while it gets anything, and once when it is gone.
    fn shares(&self, _number: u64, _t_ns: u64, _shares_ppm: [u32; 3]) {}
}
