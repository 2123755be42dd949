//! What the pool tells: statistics, blocks, segments, owners, and a check of its own books.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::error::OutOfMemory;
use super::slab::{Status, NIL};
use super::state::State;
use super::{class_of, AccountUse, Owner, Pool, PoolError};
use crate::ring::kind;

/// Bytes unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// The limit.
    pub quota: u64,
    /// Held by blocks on the device.
    pub used: u64,
    /// Free in mapped segments.
    pub cached: u64,
    /// quota - used.
    pub available: u64,
    /// Blocks handed out so far.
    pub allocation_count: u64,
    /// Of those, the ones that needed no new segment.
    pub reuse_count: u64,
    pub eviction_count: u64,
    /// Of those, the ones into pageable memory.
    pub pageable_eviction_count: u64,
    /// Segments created so far.
    pub cudamalloc_count: u64,
    /// Blocks now, evicted ones included.
    pub active_blocks: u64,
    /// Free pieces now.
    pub free_blocks: u64,
    /// Physical memory held.
    pub reserved: u64,
    /// Of that, what eviction left unmapped, for the next segment of its size or until `trim`.
    pub spare: u64,
    /// Held by evicted blocks in host memory.
    pub evicted: u64,
    /// Of that, in pageable memory, because the system pinned no more.
    pub pageable: u64,
    pub peak_used: u64,
    pub restore_count: u64,
    /// Segments now, those without physical memory included.
    pub segment_count: u64,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    pub block: u64,
    pub address: u64,
    pub bytes: u64,
    pub owner: Owner,
    /// Handle of the stream it belongs to.
    pub stream: u64,
    pub resident: bool,
    pub pins: u32,
    pub last_use: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub address: u64,
    pub bytes: u64,
    /// Physical memory is behind it.
    pub mapped: bool,
}

/// What one owner holds on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerUsage {
    pub owner: Owner,
    pub bytes: u64,
    pub blocks: u64,
}

fn block_info(st: &State, slot: u32) -> BlockInfo {
    let (s, state) = (&st.slab[slot], st.slab.state(slot));
    BlockInfo {
        block: st.slab.id(slot),
        address: s.address,
        bytes: s.bytes,
        owner: s.owner,
        stream: st.streams[s.stream].handle,
        resident: s.status == Status::Live,
        pins: state.pins.load(Ordering::Relaxed),
        last_use: state.last_use.load(Ordering::Relaxed),
    }
}

fn is_block(status: Status) -> bool {
    matches!(status, Status::Live | Status::Moving | Status::Host)
}

impl Pool {
    pub fn device(&self) -> i32 {
        self.driver.device()
    }

    pub fn limit(&self) -> u64 {
        self.lock().limit
    }

    pub fn stats(&self) -> PoolStats {
        let st = self.lock();
        let c = &st.counts;
        PoolStats {
            quota: st.limit,
            used: c.used,
            cached: c.cached,
            available: st.limit.saturating_sub(c.used),
            allocation_count: c.allocations,
            reuse_count: c.reuses,
            eviction_count: c.evictions,
            pageable_eviction_count: c.pageable_evictions,
            cudamalloc_count: c.segments_created,
            active_blocks: c.live,
            free_blocks: c.free_chunks,
            reserved: c.reserved,
            spare: st.spares.bytes(),
            evicted: c.evicted,
            pageable: c.pageable,
            peak_used: c.peak_used,
            restore_count: c.restores,
            segment_count: st.segments.len() as u64 + u64::from(st.staging.is_some()),
        }
    }

    /// One block. Errors: `BadBlock`.
    pub fn block(&self, block: u64) -> Result<BlockInfo, PoolError> {
        let st = self.lock();
        st.find(block).map(|slot| block_info(&st, slot))
    }

    /// Live blocks by address; those outside the segments have none (0) and come first.
    pub fn blocks(&self) -> Vec<BlockInfo> {
        let st = self.lock();
        let live = st.slab.iter().filter(|(_, s)| is_block(s.status));
        let mut blocks: Vec<BlockInfo> = live.map(|(slot, _)| block_info(&st, slot)).collect();
        blocks.extend(st.outside.infos());
        drop(st);
        blocks.sort_unstable_by_key(|b| b.address);
        blocks
    }

    /// Segments by address.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let st = self.lock();
        let all = st.segments.iter();
        all.map(|(&address, s)| SegmentInfo {
            address,
            bytes: s.bytes,
            mapped: s.mapped,
        })
        .collect()
    }

    /// The `n` owners that hold most device memory, largest first.
    pub fn largest_owners(&self, n: usize) -> Vec<OwnerUsage> {
        let mut held: HashMap<Owner, OwnerUsage> = HashMap::new();
        for block in self.blocks().into_iter().filter(|b| b.resident) {
            let empty = OwnerUsage {
                owner: block.owner,
                bytes: 0,
                blocks: 0,
            };
            let usage = held.entry(block.owner).or_insert(empty);
            usage.bytes += block.bytes;
            usage.blocks += 1;
        }
        let mut all: Vec<OwnerUsage> = held.into_values().collect();
        all.sort_unstable_by_key(|u| (std::cmp::Reverse(u.bytes), u.owner));
        all.truncate(n);
        all
    }

    /// The error for a request that found no room, with its record in the ring.
    pub(super) fn out_of_memory(&self, requested: u64) -> PoolError {
        let owners = self.largest_owners(3);
        let device_free = self.driver.memory_info().map_or(u64::MAX, |(free, _)| free);
        let (limit, free, used, reserved) = {
            let st = self.lock();
            let c = &st.counts;
            let on_device = device_free.saturating_add(c.cached + st.spares.bytes());
            let free = (st.limit.saturating_sub(c.used)).min(on_device);
            (st.limit, free, c.used, c.reserved)
        };
        self.record(kind::OUT_OF_MEMORY, requested, limit, free);
        let eviction = self.eviction;
        PoolError::OutOfMemory(Box::new(OutOfMemory {
            requested,
            limit,
            free,
            used,
            reserved,
            owners,
            eviction,
            account: None,
        }))
    }

    /// The error for a request beyond what its tenant may hold, with its record in the ring.
    pub(super) fn over_account(&self, requested: u64, account: AccountUse) -> PoolError {
        let free = account.limit.saturating_sub(account.used);
        self.record(kind::OUT_OF_MEMORY, requested, account.limit, free);
        PoolError::OutOfMemory(Box::new(OutOfMemory {
            requested,
            limit: account.limit,
            free,
            used: account.used,
            reserved: 0,
            owners: Vec::new(),
            eviction: self.eviction,
            account: Some(account),
        }))
    }

    /// Recomputes every sum from the chunks and checks that segments are tiled without gap or overlap. For tests and bug reports; waits for
    /// growing and eviction in progress. Errors: one sentence naming the first difference.
    pub fn audit(&self) -> Result<(), String> {
        let _slow = self.lock_slow();
        let st = self.lock();
        let (mut used, mut cached, mut evicted, mut live, mut free, mut mapped, mut reserved) = (0, 0, 0, 0, 0, 0, 0);
        let (mut stranded, mut chunks, mut end_of_last, mut pageable) = (0, 0, 0, 0);
        let mut accounts: HashMap<u64, (u64, u64)> = st.accounts.books().into_keys().map(|id| (id, (0, 0))).collect();
        for (&address, segment) in &st.segments {
            if address < end_of_last {
                return Err(format!("segment {address:#x} overlaps the one before it"));
            }
            end_of_last = address + segment.bytes;
            reserved += segment.physical.map_or(0, |_| segment.bytes);
            mapped += if segment.mapped { segment.bytes } else { 0 };
            let (mut at, mut left) = (address, NIL);
            for slot in st.chunks(address) {
                let s = &st.slab[slot];
                if s.address != at || s.left != left || s.bytes == 0 {
                    return Err(format!("chunk {slot} at {:#x} should be at {at:#x}", s.address));
                }
                (at, left, chunks) = (at + s.bytes, slot, chunks + 1);
                let resident = st.slab.state(slot).resident.load(Ordering::SeqCst) == 1;
                if resident != (s.status == Status::Live) {
                    return Err(format!("chunk {slot} is {:?} but resident is {resident}", s.status));
                }
                if s.status == Status::Live && class_of(s.bytes).map(|c| c.bytes) != Some(s.bytes) {
                    return Err(format!("block of {} bytes is of no class", s.bytes));
                }
                live += u64::from(is_block(s.status));
                if is_block(s.status) {
                    for id in st.accounts.above(s.owner.account) {
                        let (used, evicted) = accounts.entry(id).or_default();
                        *used += s.bytes;
                        *evicted += if s.status == Status::Host { s.bytes } else { 0 };
                    }
                }
                match s.status {
                    Status::Live => used += s.bytes,
                    Status::Host => {
                        evicted += s.bytes;
                        pageable += if s.host.pageable { s.bytes } else { 0 };
                        stranded += if segment.mapped { s.bytes } else { 0 };
                    }
                    Status::Free | Status::Quick | Status::Pending if segment.mapped => cached += s.bytes,
                    Status::Unbacked if !segment.mapped => {}
                    other => {
                        return Err(format!(
                            "chunk {slot} is {other:?} in a segment with mapped = {}",
                            segment.mapped
                        ))
                    }
                }
                free += u64::from(!is_block(s.status));
            }
            if at != end_of_last {
                return Err(format!(
                    "chunks of segment {address:#x} end at {at:#x}, not {end_of_last:#x}"
                ));
            }
        }
        mapped += st.outside.infos().map(|block| block.bytes).sum::<u64>();
        for block in st.outside.infos() {
            used += block.bytes;
            reserved += block.bytes;
            live += 1;
            for id in st.accounts.above(block.owner.account) {
                accounts.entry(id).or_default().0 += block.bytes;
            }
        }
        let staging = st.staging.and_then(|staging| staging.physical);
        reserved += staging.map_or(0, |_| self.staging_bytes) + st.spares.bytes();
        if st.spares.bytes() > self.spare_bytes {
            return Err(format!(
                "spares: {} bytes, at most {}",
                st.spares.bytes(),
                self.spare_bytes
            ));
        }
        if accounts != st.accounts.books() {
            return Err(format!(
                "accounts: the books say {:?}, the chunks {accounts:?}",
                st.accounts.books()
            ));
        }
        let c = &st.counts;
        let sums = [
            ("used", c.used, used),
            ("cached", c.cached, cached),
            ("evicted", c.evicted, evicted),
            ("pageable", c.pageable, pageable),
            ("reserved", c.reserved, reserved),
            ("live", c.live, live),
            ("free chunks", c.free_chunks, free),
            ("mapped", used + cached + stranded, mapped),
            ("chunks", chunks, st.slab.iter().count() as u64),
        ];
        for (name, book, counted) in sums {
            if book != counted {
                return Err(format!("{name}: the books say {book}, the chunks {counted}"));
            }
        }
        if c.used > st.limit || c.reserved > self.reserved_limit(&st) {
            return Err(format!(
                "used {} or reserved {} is over the limit {}",
                c.used, c.reserved, st.limit
            ));
        }
        Ok(())
    }
}
