//! The pool's books: segments cut into chunks, which are split, merged and handed out. No device call is made here.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::account::Accounts;
use super::classes::Class;
use super::lists::{FreeIndex, Streams};
use super::outside::Outside;
use super::slab::{Slab, Status, NIL};
use super::spare::Spares;
use super::staging::Staging;
use super::traffic::Traffic;
use super::{Owner, PoolError, PoolResult, Unpinned};

/// One address reservation with at most one physical handle.
pub(super) struct Segment {
    pub bytes: u64,
    pub first: u32,
    pub physical: Option<u64>,
    pub mapped: bool,
    /// Another process may have it mapped: its physical memory must stay the same one while blocks are in it.
    pub exported: bool,
}

/// A freed block that other streams have yet to pass.
pub(super) struct Pending {
    pub slot: u32,
    pub events: Vec<u64>,
}

/// Sums that hold at every step: used + cached + bytes of evicted blocks in mapped segments = mapped bytes and those outside; reserved
/// counts a segment, and the staging buffer, as long as it has physical memory, spares, and what lies outside.
#[derive(Default)]
pub(super) struct Counts {
    pub used: u64,
    pub cached: u64,
    pub reserved: u64,
    pub evicted: u64,
    /// Of that, in pageable host memory.
    pub pageable: u64,
    pub peak_used: u64,
    pub live: u64,
    pub free_chunks: u64,
    pub allocations: u64,
    pub reuses: u64,
    pub evictions: u64,
    /// Of those, into pageable host memory.
    pub pageable_evictions: u64,
    pub restores: u64,
    pub segments_created: u64,
}

pub(super) struct State {
    pub slab: Slab,
    pub streams: Streams,
    pub index: FreeIndex,
    pub segments: BTreeMap<u64, Segment>,
    pub pending: Vec<Pending>,
    pub staging: Option<Staging>,
    pub spares: Spares,
    pub outside: Outside,
    pub limit: u64,
    pub counts: Counts,
    pub accounts: Accounts,
    pub traffic: Traffic,
    /// The first eviction into pageable memory, until somebody asks; nobody is told of a second one.
    pub unpinned: Option<Unpinned>,
}

impl State {
    pub fn new(limit: u64) -> State {
        State {
            slab: Slab::new(),
            streams: Streams::new(),
            index: FreeIndex::default(),
            segments: BTreeMap::new(),
            pending: Vec::new(),
            staging: None,
            spares: Spares::default(),
            outside: Outside::default(),
            limit,
            counts: Counts::default(),
            accounts: Accounts::default(),
            traffic: Traffic::default(),
            unpinned: None,
        }
    }

    #[inline]
    pub fn find(&self, block: u64) -> PoolResult<u32> {
        self.slab.find(block).ok_or(PoolError::BadBlock(block))
    }

    /// Whether `bytes` more may be used.
    #[inline]
    pub fn admits(&self, bytes: u64) -> bool {
        self.counts.used.saturating_add(bytes) <= self.limit
    }

    /// A free chunk becomes a block. The chunk is in no list any more.
    #[inline]
    pub fn begin_live(&mut self, slot: u32, stream: u32, owner: Owner, now: u64) {
        let s = &mut self.slab[slot];
        (s.status, s.stream, s.owner) = (Status::Live, stream, owner);
        let c = &mut self.counts;
        c.cached -= s.bytes;
        c.used += s.bytes;
        c.peak_used = c.peak_used.max(c.used);
        c.live += 1;
        c.free_chunks -= 1;
        c.allocations += 1;
        self.accounts.add(owner, s.bytes);
        let state = self.slab.state(slot);
        state.pins.store(0, Ordering::Relaxed);
        state.last_use.store(now, Ordering::Relaxed);
        state.resident.store(1, Ordering::Release);
    }

    /// A block on the device stops being one: its id dies and its bytes count as free. The caller puts the returned slot, which is still
    /// in no list, where it belongs.
    #[inline]
    pub fn end_live(&mut self, slot: u32) -> u32 {
        self.slab.state(slot).resident.store(0, Ordering::Release);
        let (bytes, owner) = (self.slab[slot].bytes, self.slab[slot].owner);
        self.accounts.remove(owner, bytes);
        let c = &mut self.counts;
        c.used -= bytes;
        c.cached += bytes;
        c.live -= 1;
        c.free_chunks += 1;
        self.retire_id(slot)
    }

    #[inline]
    fn retire_id(&mut self, slot: u32) -> u32 {
        let now = self.slab.retire_id(slot);
        if now != slot && self.slab[now].left == NIL {
            let address = self.slab[now].address;
            self.segments
                .get_mut(&address)
                .expect("a chunk without a left neighbour starts a segment")
                .first = now;
        }
        now
    }

    /// An evicted block stops being one; its place stays where it is. The host copy is the caller's to free.
    pub fn end_host(&mut self, slot: u32, now: u64) -> u32 {
        let (address, bytes) = (self.slab[slot].address, self.slab[slot].bytes);
        self.accounts.restore(self.slab[slot].owner, bytes, now);
        self.accounts.remove(self.slab[slot].owner, bytes);
        self.left_host(slot);
        self.counts.live -= 1;
        self.counts.free_chunks += 1;
        let slot = self.retire_id(slot);
        self.slab[slot].streams.clear(); // the copy out waited for all of them
        let mapped = self.segments[&self.segment_of(address)].mapped;
        if mapped {
            self.counts.cached += bytes;
        }
        self.insert_free(slot, if mapped { Status::Free } else { Status::Unbacked }, false);
        slot
    }

    /// The bytes of an evicted block are not on the host any more.
    pub fn left_host(&mut self, slot: u32) {
        let (bytes, pageable) = (self.slab[slot].bytes, self.slab[slot].host.pageable);
        self.counts.evicted -= bytes;
        self.counts.pageable -= if pageable { bytes } else { 0 };
    }

    /// Address of the segment that holds a chunk's address.
    pub fn segment_of(&self, address: u64) -> u64 {
        self.segment_holding(address).expect("every chunk lies in a segment")
    }

    pub fn segment_holding(&self, address: u64) -> Option<u64> {
        let (&start, segment) = self.segments.range(..=address).next_back()?;
        (address < start + segment.bytes).then_some(start)
    }

    /// Slots of a segment's chunks in address order.
    pub fn chunks_of(&self, segment: &Segment) -> impl Iterator<Item = u32> + '_ {
        let there = |slot: u32| (slot != NIL).then_some(slot);
        std::iter::successors(there(segment.first), move |&slot| there(self.slab[slot].right))
    }

    /// As `chunks_of`, for who changes them.
    pub fn chunks(&self, segment: u64) -> Vec<u32> {
        let found = self.segments.get(&segment);
        found.map_or_else(Vec::new, |segment| self.chunks_of(segment).collect())
    }

    /// A new mapped segment: one Free chunk. Its memory is counted already.
    pub fn add_segment(&mut self, address: u64, bytes: u64, small: bool, physical: u64) {
        let first = self.slab.take(address, bytes, small, Status::Free);
        self.index.insert(&self.slab, first);
        let segment = Segment {
            bytes,
            first,
            physical: Some(physical),
            mapped: true,
            exported: false,
        };
        self.segments.insert(address, segment);
        self.counts.cached += bytes;
        self.counts.free_chunks += 1;
        self.counts.segments_created += 1;
    }

    /// An address range that never got memory and that the device does not take back yet.
    pub fn add_address(&mut self, address: u64, bytes: u64, small: bool) {
        let first = self.slab.take(address, bytes, small, Status::Unbacked);
        let segment = Segment {
            bytes,
            first,
            physical: None,
            mapped: false,
            exported: false,
        };
        self.segments.insert(address, segment);
        self.counts.free_chunks += 1;
    }

    /// Takes a segment without blocks and without physical memory out of the books.
    pub fn remove_segment(&mut self, address: u64) {
        for slot in self.chunks(address) {
            self.slab.give_back(slot);
            self.counts.free_chunks -= 1;
        }
        self.segments.remove(&address);
    }

    /// The segment's free memory can no longer be handed out.
    pub fn detach(&mut self, segment: u64) {
        for slot in self.chunks(segment) {
            if self.slab[slot].status == Status::Free {
                self.index.remove(&self.slab, slot);
                self.slab[slot].status = Status::Unbacked;
                self.counts.cached -= self.slab[slot].bytes;
            }
        }
    }

    /// Undoes `detach`.
    pub fn attach(&mut self, segment: u64) {
        for slot in self.chunks(segment) {
            if self.slab[slot].status == Status::Unbacked {
                self.slab[slot].status = Status::Free;
                self.counts.cached += self.slab[slot].bytes;
                self.index.insert(&self.slab, slot);
            }
        }
    }

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

    #[inline]
    pub fn pop_quick(&mut self, class: Class, stream: u32) -> Option<u32> {
        self.streams[stream].pop(&self.slab, class)
    }

    /// A chunk whose work is ordered by its own stream alone: to that stream's lists, or to everyone when the stream is gone.
    #[inline]
    pub fn put_quick(&mut self, slot: u32, class: Class) {
        let stream = self.slab[slot].stream;
        if self.streams[stream].retired {
            self.slab[slot].streams.clear();
            self.insert_free(slot, Status::Free, false);
        } else {
            self.slab[slot].status = Status::Quick;
            self.streams[stream].push(&mut self.slab, class, slot);
        }
    }

    /// A stream's lists go back to the index; true when there was anything.
    pub fn flush_stream(&mut self, stream: u32) -> bool {
        let slots = self.streams[stream].drain(&self.slab);
        let after: &[u32] = if self.streams[stream].retired { &[] } else { &[stream] };
        for &slot in &slots {
            self.slab[slot].streams.clear();
            self.slab[slot].streams.extend_from_slice(after);
            self.insert_free(slot, Status::Free, false);
        }
        !slots.is_empty()
    }

    /// The stream is idle and about to go: its memory needs no order. No other call may be at work with indices of streams.
    pub fn retire_stream(&mut self, handle: u64) {
        let stream = self.streams.index_of(handle);
        if stream != 0 {
            self.streams.retire(stream);
            self.flush_stream(stream);
        }
        if self.streams.crowded() {
            self.streams.forget_unnamed(self.slab.named_streams());
        }
    }

    /// A pending chunk that nobody waits for any more: free, to be ordered after all its streams.
    pub fn insert_pending(&mut self, slot: u32) {
        let own = self.slab[slot].stream;
        let streams = &mut self.slab[slot].streams;
        streams.push(own);
        streams.sort_unstable();
        streams.dedup();
        self.insert_free(slot, Status::Free, false);
    }

    /// Everything free becomes as few chunks as there can be, whatever streams it was used on.
    pub fn merge_all(&mut self) {
        for stream in 0..self.streams.len() {
            self.flush_stream(stream);
        }
        let segments: Vec<u64> = self
            .segments
            .iter()
            .filter(|(_, s)| s.mapped)
            .map(|(&address, _)| address)
            .collect();
        for segment in segments {
            for slot in self.chunks(segment) {
                if self.slab[slot].status == Status::Free {
                    self.index.remove(&self.slab, slot);
                    self.insert_free(slot, Status::Free, true);
                }
            }
        }
    }
}
