//! Eviction to host memory, pinned where the system pins it, and back to the same address.

use std::sync::atomic::Ordering;

use super::host::HostCopy;
use super::slab::Status;
use super::state::State;
use super::victims::{in_turn, Resident, Turn};
use super::{Pool, PoolError, PoolResult, Slow, Unpinned};
use crate::counters::{Counter, Counters};
use crate::driver::{DriverError, DriverResult, OUT_OF_MEMORY};
use crate::ring::kind;

/// What a copy of a block needs.
struct Move {
    slot: u32,
    address: u64,
    bytes: u64,
    stream: u64,
    /// Other streams that may be working on the block.
    after: Vec<u32>,
    host: HostCopy,
}

impl Move {
    fn of(st: &State, slot: u32) -> Move {
        let s = &st.slab[slot];
        let (stream, after) = (st.streams.handle(s.stream), s.streams.clone());
        Move {
            slot,
            address: s.address,
            bytes: s.bytes,
            stream,
            after,
            host: s.host,
        }
    }
}

impl Pool {
    /// Moves a block to host memory once the device has finished with it: pinned memory, or pageable where the system pins no more. When
    /// no other block is in its segment, the segment's memory goes: to the spares of this pool (`PoolConfig::spare_bytes`), or back to the
    /// device. No-op for an evicted block. Errors: `BadBlock`; `Busy` when it is pinned, exported, or host memory is exhausted.
    pub fn evict(&self, block: u64) -> PoolResult<()> {
        let mut slow = self.lock_slow();
        let segment = {
            let st = self.lock();
            st.segment_of(st.slab[st.find(block)?].address)
        };
        let evicted = self
            .evict_block(&mut slow, block)
            .and_then(|_| self.unback_unused(segment, true));
        self.wait_for_leaving(&mut slow)?;
        evicted.map(drop)
    }

    /// Brings an evicted block back to its address; may evict others, as for nobody in particular, and waits for the copy. No-op for a
    /// block on the device, which counts as just used. Errors: `BadBlock`, `OutOfMemory`, `Driver`.
    pub fn restore(&self, block: u64) -> PoolResult<()> {
        self.bring_back(block, 0, 0)
    }

    /// As `restore`, for `account`, whoever owns the block: what is guaranteed to anybody gives way to that account's own use alone. It
    /// comes back with so many pins more.
    pub(super) fn bring_back(&self, block: u64, account: u64, pins: u32) -> PoolResult<()> {
        let mut slow = self.lock_slow();
        let mut sent = 0; // first bytes of the block that are in the staging buffer, or on their way there
        let back = loop {
            let mut st = self.lock();
            let slot = st.find(block)?;
            let bytes = st.slab[slot].bytes;
            if st.slab[slot].status == Status::Live {
                let state = st.slab.state(slot);
                state.last_use.store(self.services.clock.now_ns(), Ordering::Relaxed);
                state.pins.fetch_add(pins, Ordering::SeqCst);
                return Ok(());
            }
            let over = (st.counts.used + bytes).saturating_sub(st.limit);
            let segment = st.segment_of(st.slab[slot].address);
            let (segment_bytes, mapped) = (st.segments[&segment].bytes, st.segments[&segment].mapped);
            if over == 0 && mapped {
                st.slab[slot].status = Status::Moving;
                st.counts.used += bytes;
                st.counts.peak_used = st.counts.peak_used.max(st.counts.used);
                break Move::of(&st, slot);
            }
            let next = Move::of(&st, slot);
            drop(st);
            if sent > 0 {
                self.wait_for_copy(next.stream)?; // somebody took the room: the buffer may be needed to make some
                sent = 0;
            }
            let fits = if over > 0 {
                self.eviction && self.evict_used(&mut slow, over, account)?
            } else {
                match self.back_while_sending(segment, &next)? {
                    Some(bytes) => {
                        sent = bytes;
                        true
                    }
                    None => self.make_room(&mut slow, segment_bytes, account)?,
                }
            };
            if !fits {
                return Err(self.out_of_memory(bytes));
            }
        };
        let copied = self.copy_in(&back, sent);
        let mut st = self.lock();
        if let Err(error) = copied {
            st.slab[back.slot].status = Status::Host;
            st.counts.used -= back.bytes;
            return Err(error.into());
        }
        st.slab[back.slot].status = Status::Live;
        st.left_host(back.slot);
        st.counts.restores += 1;
        let (state, now) = (st.slab.state(back.slot), self.services.clock.now_ns());
        let owner = st.slab[back.slot].owner;
        state.last_use.store(now, Ordering::Relaxed);
        state.pins.fetch_add(pins, Ordering::SeqCst);
        state.resident.store(1, Ordering::SeqCst);
        st.accounts.restore(owner, back.bytes, now);
        st.traffic.of(owner.tenant).restored += back.bytes;
        self.record_block(&st, kind::RESTORE, back.slot, now);
        drop(st);
        slow.host.put(&*self.driver, back.host, back.bytes);
        Ok(())
    }

    /// Puts memory behind an evicted block's segment while its first bytes go to the staging buffer, if there is one. Returns how many
    /// those are; None, and nothing under way, under pressure.
    fn back_while_sending(&self, segment: u64, back: &Move) -> PoolResult<Option<u64>> {
        let sent = match self.staging_for(back.bytes) {
            Some(staging) => {
                let bytes = self.staging_bytes;
                self.driver
                    .copy_to_device(staging, back.host.address, bytes, back.stream)?;
                bytes
            }
            None => 0,
        };
        let backed = self.back_segment(segment);
        if sent > 0 && !matches!(backed, Ok(true)) {
            self.wait_for_copy(back.stream)?;
        }
        backed.map(|backed| backed.then_some(sent))
    }

    /// Copies a block from the host and waits. `sent`: so many of its first bytes are in the staging buffer.
    fn copy_in(&self, back: &Move, sent: u64) -> DriverResult<()> {
        let rest = back.bytes - sent;
        let copied = self
            .driver
            .copy_to_device(back.address + sent, back.host.address + sent, rest, back.stream);
        let copied = copied.and_then(|()| match self.staging_for(back.bytes) {
            Some(staging) if sent > 0 => self.driver.copy_on_device(back.address, staging, sent, back.stream),
            _ => Ok(()),
        });
        if copied.is_err() {
            let _ = self.driver.device_wait(); // the first failure is the one to tell
        }
        copied.and_then(|()| self.wait_for_copy(back.stream))
    }

    /// Evicts one block; 0 when it is on the host already. Its last bytes may be on their way then: see `wait_for_leaving`.
    fn evict_block(&self, slow: &mut Slow, block: u64) -> PoolResult<u64> {
        self.wait_for_leaving(slow)?;
        let mut out = {
            let mut st = self.lock();
            let slot = st.find(block)?;
            if st.slab[slot].status == Status::Host {
                return Ok(0);
            }
            if st.segments[&st.segment_of(st.slab[slot].address)].exports > 0 {
                return Err(PoolError::Busy {
                    block,
                    why: "another process shares its segment",
                });
            }
            let state = st.slab.state(slot);
            state.resident.store(0, Ordering::SeqCst);
            // By an exchange, not a load: one variable orders it against the pins of launchers, which loom can explore.
            if state.pins.fetch_add(0, Ordering::SeqCst) != 0 {
                state.resident.store(1, Ordering::SeqCst);
                return Err(PoolError::Busy {
                    block,
                    why: "a launch has it pinned",
                });
            }
            st.slab[slot].status = Status::Moving;
            Move::of(&st, slot)
        };
        let taken = slow.host.take(&*self.driver, out.bytes);
        let copied = taken.and_then(|(host, unpinned)| {
            out.host = host;
            let copied = self.copy_out(slow, &out).inspect_err(|_| {
                // The copy may still be running: without a wait that succeeds the buffer must not be used again.
                if self.driver.device_wait().is_ok() {
                    slow.host.put(&*self.driver, host, out.bytes);
                }
            });
            copied.map(|()| unpinned)
        });
        let mut st = self.lock();
        let unpinned = copied.map_err(|error| {
            st.slab[out.slot].status = Status::Live;
            st.slab.state(out.slot).resident.store(1, Ordering::SeqCst);
            match error.code {
                OUT_OF_MEMORY => PoolError::Busy {
                    block,
                    why: "host memory is exhausted",
                },
                _ => error.into(),
            }
        })?;
        if let Some(error) = unpinned {
            self.note_unpinned(&mut st, out.bytes, error);
        }
        st.slab[out.slot].status = Status::Host;
        st.slab[out.slot].host = out.host;
        st.counts.used -= out.bytes;
        st.counts.evicted += out.bytes;
        st.counts.evictions += 1;
        let (owner, now) = (st.slab[out.slot].owner, self.services.clock.now_ns());
        st.accounts.evict(owner, out.bytes, now);
        st.traffic.of(owner.tenant).evicted += out.bytes;
        self.record_block(&st, kind::EVICT, out.slot, now);
        Ok(out.bytes)
    }

    fn note_unpinned(&self, st: &mut State, bytes: u64, error: DriverError) {
        if st.counts.pageable_evictions == 0 {
            st.unpinned = Some(Unpinned { bytes, error });
        }
        st.counts.pageable_evictions += 1;
        st.counts.pageable += bytes;
        Counters::global().add(Counter::PageableBuffers, 1);
        Counters::global().add(Counter::PageableBytes, bytes);
    }

    /// The first eviction of this pool into pageable memory, to one who asks.
    pub fn take_unpinned(&self) -> Option<Unpinned> {
        self.lock().unpinned.take()
    }

    /// Copies a block to the host and waits. With a staging buffer, its last bytes go there first and on to the host at the end: they are
    /// not waited for here, so that the block's memory goes while they travel.
    fn copy_out(&self, slow: &mut Slow, out: &Move) -> DriverResult<()> {
        self.order(out.stream, &out.after)?;
        let Some(staging) = self.staging_or_new(out.bytes) else {
            self.driver
                .copy_to_host(out.host.address, out.address, out.bytes, out.stream)?;
            return self.driver.stream_wait(out.stream);
        };
        let (last, body) = (self.staging_bytes, out.bytes - self.staging_bytes);
        self.driver
            .copy_on_device(staging, out.address + body, last, out.stream)?;
        self.driver
            .copy_to_host(out.host.address, out.address, body, out.stream)?;
        let left = self.record_event(out.stream)?;
        let copied = self
            .driver
            .copy_to_host(out.host.address + body, staging, last, out.stream);
        let copied = copied.and_then(|()| self.driver.event_wait(left));
        self.recycle(vec![left]);
        copied.map(|()| slow.leaving = Some(out.stream))
    }

    /// Waits for the last bytes of an evicted block. Nobody gives up the slow lock before.
    fn wait_for_leaving(&self, slow: &mut Slow) -> DriverResult<()> {
        match slow.leaving.take() {
            Some(stream) => self.driver.stream_wait(stream).or_else(|_| self.driver.device_wait()),
            None => Ok(()),
        }
    }

    /// Takes a segment's memory when no block on the device is in it, see `unback`; returns the bytes.
    fn unback_unused(&self, segment: u64, keep: bool) -> PoolResult<u64> {
        let listed = {
            let st = self.lock();
            let statuses: Vec<Status> = st
                .chunks(segment)
                .into_iter()
                .map(|slot| st.slab[slot].status)
                .collect();
            if statuses.iter().any(|s| matches!(s, Status::Live | Status::Moving)) {
                return Ok(0);
            }
            statuses.iter().any(|s| matches!(s, Status::Quick | Status::Pending))
        };
        if listed {
            self.merge_everything();
        }
        self.unback(segment, keep)
    }

    /// Evicts for an account, by `victims`, until `over` bytes less are in use; false (and nothing moved) when that cannot be reached.
    pub(super) fn evict_used(&self, slow: &mut Slow, over: u64, account: u64) -> PoolResult<bool> {
        let evicted = self.evict_blocks(slow, over, account);
        self.wait_for_leaving(slow)?;
        evicted
    }

    fn evict_blocks(&self, slow: &mut Slow, over: u64, account: u64) -> PoolResult<bool> {
        let blocks = self.residents(account);
        let candidates = || blocks.iter().filter(|block| block.turn.is_some());
        if candidates().map(|block| block.bytes).sum::<u64>() < over {
            return Ok(false);
        }
        let (mut freed, mut touched) = (0, Vec::new());
        for block in in_turn(candidates()) {
            if freed >= over {
                break;
            }
            freed += self.try_evict(slow, block.block)?;
            touched.push(block.segment);
        }
        touched.sort_unstable();
        touched.dedup();
        touched
            .into_iter()
            .try_for_each(|segment| self.unback_unused(segment, true).map(drop))?;
        Ok(freed > 0)
    }

    /// Evicts whole segments for an account until `want` bytes are released; 0 (and nothing moved) when that cannot be reached. A
    /// segment's turn is that of its last block. Those of exactly `need` bytes, which the caller is about to map, leave a spare.
    pub(super) fn evict_segments(&self, slow: &mut Slow, want: u64, need: u64, account: u64) -> PoolResult<u64> {
        let released = self.evict_whole(slow, want, need, account);
        self.wait_for_leaving(slow)?;
        released
    }

    fn evict_whole(&self, slow: &mut Slow, want: u64, need: u64, account: u64) -> PoolResult<u64> {
        let blocks = self.residents(account);
        let whole = blocks.chunk_by(|a, b| a.segment == b.segment).filter_map(|blocks| {
            let turns = blocks.iter().map(|block| block.turn);
            let last = turns.reduce(|a, b| Some(a?.max(b?)))??;
            Some((last, blocks[0].segment, blocks))
        });
        let candidates: Vec<(Turn, u64, &[Resident])> = whole.collect();
        if candidates.iter().map(|c| c.2[0].segment_bytes).sum::<u64>() < want {
            return Ok(0);
        }
        let mut released = 0;
        for (_, _, blocks) in in_turn(candidates.into_iter()) {
            if released >= want {
                break;
            }
            released += self.evict_segment(slow, blocks, need)?;
        }
        Ok(released)
    }

    fn evict_segment(&self, slow: &mut Slow, blocks: &[Resident], need: u64) -> PoolResult<u64> {
        for block in blocks {
            self.try_evict(slow, block.block)?;
        }
        self.unback_unused(blocks[0].segment, blocks[0].segment_bytes == need)
    }

    /// Evicts a block unless it was freed or pinned meanwhile; returns the bytes moved.
    fn try_evict(&self, slow: &mut Slow, block: u64) -> PoolResult<u64> {
        match self.evict_block(slow, block) {
            Err(PoolError::BadBlock(_) | PoolError::Busy { .. }) => Ok(0),
            other => other,
        }
    }
}
