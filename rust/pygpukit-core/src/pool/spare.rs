//! Spares: physical memory that eviction took from behind a segment, kept unmapped for the next segment of that size. New memory has to
//! be made first, and the first copy into it is slow: bringing a block back into it takes a tenth longer than a plain copy.

use std::collections::VecDeque;

use super::{Pool, PoolResult};
use crate::ring::kind;

/// What a pool keeps unless it is told otherwise: one block of the largest size that evicting and restoring are measured with. To swap
/// blocks takes no more, and more would be missed by other pools and processes, for which an explicit `evict` may be meant.
pub(super) const DEFAULT_BYTES: u64 = 1 << 30;

#[derive(Clone, Copy)]
struct Spare {
    bytes: u64,
    physical: u64,
}

/// Oldest first. Touched by holders of the slow lock alone; counted in `reserved`.
#[derive(Default)]
pub(super) struct Spares(VecDeque<Spare>);

impl Spares {
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|spare| spare.bytes).sum()
    }

    pub fn has(&self, bytes: u64) -> bool {
        self.0.iter().any(|spare| spare.bytes == bytes)
    }

    pub fn put(&mut self, bytes: u64, physical: u64) {
        self.0.push_back(Spare { bytes, physical });
    }

    /// The newest of exactly `bytes`.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let at = self.0.iter().rposition(|spare| spare.bytes == bytes)?;
        self.0.remove(at).map(|spare| spare.physical)
    }
}

impl Pool {
    /// Gives spares back to the device, the oldest first, until `want` bytes are released or none is left; returns the bytes.
    pub(super) fn release_spares(&self, want: u64) -> PoolResult<u64> {
        let mut released = 0;
        while released < want {
            let oldest = self.lock().spares.0.front().copied();
            let Some(Spare { bytes, physical }) = oldest else { break };
            self.driver.physical_release(physical)?;
            let mut st = self.lock();
            st.spares.0.pop_front();
            st.counts.reserved -= bytes;
            self.record(kind::SEGMENT_UNMAP, 0, bytes, st.counts.reserved);
            released += bytes;
        }
        Ok(released)
    }
}
