//! Pins by block number, for those that have no pointer to the block's state.

use std::sync::atomic::Ordering;

use super::{Pool, PoolResult};

impl Pool {
    /// Brings a block back if it was evicted and keeps it on the device until as many `unpin`. Errors: as `restore`.
    pub fn pin(&self, block: u64) -> PoolResult<()> {
        loop {
            {
                let st = self.lock();
                let slot = st.find(block)?;
                let state = st.slab.state(slot);
                state.pins.fetch_add(1, Ordering::SeqCst);
                if state.resident.load(Ordering::SeqCst) == 1 {
                    return Ok(());
                }
                state.pins.fetch_sub(1, Ordering::SeqCst);
            }
            self.restore(block)?;
        }
    }

    /// Ends one `pin`. Without effect on a block that is not live.
    pub fn unpin(&self, block: u64) {
        let st = self.lock();
        if let Ok(slot) = st.find(block) {
            st.slab.state(slot).pins.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
