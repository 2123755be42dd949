//! Pins: what keeps a block on the device.

use std::sync::atomic::Ordering;

use super::slab::Status;
use super::{Pool, PoolResult};

impl Pool {
    /// Keeps a block on the device until as many `unpin`, and brings it back for `account`, who uses it, if it was evicted: one step, so
    /// that nobody evicts it in between. Errors: as `restore`.
    pub fn pin(&self, block: u64, account: u64) -> PoolResult<()> {
        {
            let st = self.lock();
            let slot = st.find(block)?;
            if st.slab[slot].status == Status::Live {
                st.slab.state(slot).pins.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
        }
        self.bring_back(block, account, 1)
    }

    /// Ends one `pin`. Without effect on a block that is not live.
    pub fn unpin(&self, block: u64) {
        let st = self.lock();
        if let Ok(slot) = st.find(block) {
            st.slab.state(slot).pins.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
