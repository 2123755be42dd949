//! Giving back the end of a block.

use super::slab::Status;
use super::state::State;
use super::{class_of, Pool, PoolResult};
use crate::ring::kind;

impl Pool {
    /// Cuts a block to the class of `bytes`; its address, id and first bytes stay. Work on other streams than those that used the block
    /// is ordered after them before it gets the memory behind. Returns the block's bytes: as before when it is of that class or smaller, or
    /// not on the device at this moment. Errors: `BadBlock`.
    pub fn shorten(&self, block: u64, bytes: u64) -> PoolResult<u64> {
        let mut st = self.lock();
        let slot = st.find(block)?;
        let now = st.slab[slot].bytes;
        let target = class_of(bytes).map_or(now, |class| class.bytes);
        if st.slab[slot].status != Status::Live || target >= now {
            return Ok(now);
        }
        let time = self.services.clock.now_ns();
        self.record_block(&st, kind::FREE, slot, time);
        st.cut_live(slot, target);
        self.record_block(&st, kind::ALLOC, slot, time);
        Ok(target)
    }
}

impl State {
    /// What lies behind the first `bytes` of a block becomes a free chunk.
    fn cut_live(&mut self, slot: u32, bytes: u64) {
        let s = &self.slab[slot];
        let rest = s.bytes - bytes;
        let mut after = s.streams.clone();
        after.push(s.stream);
        after.sort_unstable();
        after.dedup();
        let cut = self.cut(slot, bytes, after);
        self.accounts.shrink(self.slab[slot].owner, rest);
        self.counts.used -= rest;
        self.counts.cached += rest;
        self.insert_free(cut, Status::Free, false);
    }
}
