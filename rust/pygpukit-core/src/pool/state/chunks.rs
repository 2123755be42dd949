//! Chunks: the best fit, cut to size, and merged with its neighbours when it is free again.

use super::State;
use crate::pool::slab::{Status, NIL};

impl State {
    /// Best fit for a stream, cut to size and in no list. With `any`, memory that needs ordering after other streams is taken as well.
    pub fn take_fit(&mut self, bytes: u64, small: bool, stream: u32, any: bool) -> Option<u32> {
        let (slab, streams) = (&self.slab, &self.streams);
        let own = |slot: u32| slab[slot].streams.iter().all(|&s| s == stream || streams[s].retired);
        let slot = self.index.best_fit(bytes, small, |slot| any || own(slot))?;
        self.index.remove(&self.slab, slot);
        if self.slab[slot].bytes > bytes {
            let after = self.slab[slot].streams.clone();
            let rest = self.cut(slot, bytes, after);
            self.index.insert(&self.slab, rest);
        }
        Some(slot)
    }

    /// Makes what lies behind the first `bytes` of a chunk one of its own, free and in no list, to be ordered after these streams.
    pub fn cut(&mut self, slot: u32, bytes: u64, after: Vec<u32>) -> u32 {
        let s = &mut self.slab[slot];
        let (address, rest, right, small) = (s.address + bytes, s.bytes - bytes, s.right, s.small);
        s.bytes = bytes;
        let cut = self.slab.take(address, rest, small, Status::Free);
        self.slab[slot].right = cut;
        let c = &mut self.slab[cut];
        (c.left, c.right, c.streams) = (slot, right, after);
        if right != NIL {
            self.slab[right].left = cut;
        }
        self.counts.free_chunks += 1;
        cut
    }

    /// Puts a chunk that is in no list among the free ones, merged with neighbours of the same streams (of any with `any`).
    pub fn insert_free(&mut self, slot: u32, status: Status, any: bool) {
        let mut at = slot;
        let left = self.slab[at].left;
        if self.may_join(left, at, status, any) {
            self.join(left, at, status);
            at = left;
        }
        let right = self.slab[at].right;
        if self.may_join(right, at, status, any) {
            if status == Status::Free {
                self.index.remove(&self.slab, right);
            }
            self.slab[at].status = status;
            self.absorb_right(at);
        }
        self.slab[at].status = status;
        if status == Status::Free {
            self.index.insert(&self.slab, at);
        }
    }

    fn may_join(&self, other: u32, slot: u32, status: Status, any: bool) -> bool {
        if other == NIL || self.slab[other].status != status {
            return false;
        }
        let (a, b) = (&self.slab[other].streams, &self.slab[slot].streams);
        any || a.is_empty() || b.is_empty() || a == b
    }

    fn join(&mut self, left: u32, right: u32, status: Status) {
        if status == Status::Free {
            self.index.remove(&self.slab, left);
        }
        debug_assert_eq!(self.slab[left].right, right);
        self.absorb_right(left);
    }

    /// The chunk takes over its right neighbour; both are in no list.
    fn absorb_right(&mut self, at: u32) {
        let gone = self.slab[at].right;
        let (bytes, right) = (self.slab[gone].bytes, self.slab[gone].right);
        let streams = std::mem::take(&mut self.slab[gone].streams);
        let s = &mut self.slab[at];
        s.bytes += bytes;
        s.right = right;
        s.streams.extend(streams);
        s.streams.sort_unstable();
        s.streams.dedup();
        if right != NIL {
            self.slab[right].left = at;
        }
        self.slab.give_back(gone);
        self.counts.free_chunks -= 1;
    }
}
