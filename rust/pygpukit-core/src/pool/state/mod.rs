//! The pool's books: segments cut into chunks, which are split, merged and handed out. No device call is made here.

mod chunks;
mod segments;
mod streams;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::account::Accounts;
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
    /// Exports that have not ended: another process may have it mapped, so its physical memory must stay the same one.
    pub exports: u32,
}

/// Exports of segments, by numbers that are not used again: the end of one says nothing about a later segment at its address.
#[derive(Default)]
pub(super) struct Exports {
    last: u64,
    segments: BTreeMap<u64, u64>,
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
    pub exports: Exports,
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
            exports: Exports::default(),
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
}
