//! Giving memory back: idle segments, pressure, trim, clear and lower limits.

use super::slab::Status;
use super::state::State;
use super::{Pool, PoolError, PoolResult, Slow};
use crate::ring::kind;

impl Pool {
    /// Takes the physical memory of a segment without blocks on the device; returns its bytes, 0 when it is in use. `keep`: it becomes a
    /// spare, unless another process may have it mapped or it is larger than all that may be kept; older spares make way for it.
    ///
    /// Each device call that succeeds is in the books at once, so a failure leaves a state from which the next attempt goes on.
    pub(super) fn unback(&self, address: u64, keep: bool) -> PoolResult<u64> {
        let (bytes, physical, mapped, keep, streams) = {
            let mut st = self.lock();
            let chunks = st.chunks(address);
            let idle = |s: Status| matches!(s, Status::Free | Status::Unbacked | Status::Host);
            if !chunks.iter().all(|&slot| idle(st.slab[slot].status)) {
                return Ok(0);
            }
            let segment = &st.segments[&address];
            let Some(physical) = segment.physical else { return Ok(0) };
            let (bytes, mapped) = (segment.bytes, segment.mapped);
            let keep = keep && segment.exports == 0 && bytes <= self.spare_bytes;
            st.detach(address);
            let free = chunks.iter().filter(|&&slot| st.slab[slot].status == Status::Unbacked);
            let mut streams: Vec<u32> = free.flat_map(|&slot| st.slab[slot].streams.iter().copied()).collect();
            streams.sort_unstable();
            streams.dedup();
            streams.retain(|&s| !st.streams[s].retired);
            let streams: Vec<u64> = streams.into_iter().map(|s| st.streams[s].handle).collect();
            (bytes, physical, mapped, keep, streams)
        };
        if mapped {
            let unmapped = streams.iter().try_for_each(|&stream| self.driver.stream_wait(stream));
            if let Err(error) = unmapped.and_then(|()| self.driver.unmap(address, bytes)) {
                self.lock().attach(address);
                return Err(error.into());
            }
            let mut st = self.lock();
            for slot in st.chunks(address) {
                if st.slab[slot].status == Status::Unbacked {
                    st.slab[slot].streams.clear();
                }
            }
            if let Some(segment) = st.segments.get_mut(&address) {
                segment.mapped = false;
            }
        }
        if keep {
            let over = (self.lock().spares.bytes() + bytes).saturating_sub(self.spare_bytes);
            self.release_spares(over)?;
        } else {
            self.driver.physical_release(physical)?;
        }
        let mut st = self.lock();
        if keep {
            st.spares.put(bytes, physical);
        } else {
            st.counts.reserved -= bytes;
        }
        if let Some(segment) = st.segments.get_mut(&address) {
            segment.physical = None;
        }
        st.end_exports_of(address);
        self.record(kind::SEGMENT_UNMAP, address, bytes, st.counts.reserved);
        drop(st);
        self.drop_address(address);
        Ok(bytes)
    }

    /// Gives back the address range of a segment that has neither memory nor blocks. A refused one is asked for again by `trim`.
    pub(super) fn drop_address(&self, address: u64) {
        let bytes = {
            let st = self.lock();
            let Some(segment) = st.segments.get(&address).filter(|s| s.physical.is_none()) else {
                return;
            };
            let mut chunks = st.chunks(address).into_iter();
            if chunks.any(|slot| st.slab[slot].status != Status::Unbacked) {
                return;
            }
            segment.bytes
        };
        if self.driver.address_free(address, bytes).is_ok() {
            self.lock().remove_segment(address);
        }
    }

    /// Releases segments without blocks on the device until `want` bytes are released or none is left.
    fn release_idle(&self, want: u64) -> PoolResult<u64> {
        let mut idle: Vec<(u64, u64)> = {
            let st = self.lock();
            let used = |slot: u32| !matches!(st.slab[slot].status, Status::Free | Status::Unbacked | Status::Host);
            let backed = st.segments.iter().filter(|(_, s)| s.physical.is_some());
            let unused = backed.filter(|(_, s)| !st.chunks_of(s).any(used));
            unused.map(|(&address, s)| (s.bytes, address)).collect()
        };
        idle.sort_unstable();
        if let Some(enough) = idle.iter().position(|s| s.0 >= want) {
            idle = vec![idle[enough]];
        }
        let mut released = 0;
        while released < want {
            let Some((_, address)) = idle.pop() else { break };
            released += self.unback(address, false)?;
        }
        Ok(released)
    }

    /// Pressure: releases spares, then idle segments, then evicts for an account, so that `need` more bytes can be mapped; false when
    /// nothing helped.
    pub(super) fn make_room(&self, slow: &mut Slow, need: u64, account: u64) -> PoolResult<bool> {
        let (device_free, device_total) = self.driver.memory_info()?;
        if need > device_total {
            return Ok(false);
        }
        let room = {
            let st = self.lock();
            self.reserved_limit(&st)
                .saturating_sub(st.counts.reserved)
                .min(device_free)
        };
        // Refused in spite of enough room: another process took it meanwhile.
        let want = if room >= need { need } else { need - room };
        if self.release_spares(want)? > 0 {
            return Ok(true);
        }
        self.merge_everything();
        let released = self.release_idle(want)?;
        if released > 0 || (self.eviction && self.evict_segments(slow, want, need, account)? > 0) {
            return Ok(true);
        }
        Ok(self.release_staging()? > 0)
    }

    /// Releases all cached memory to the device, waiting for the streams that used it; returns the bytes released.
    pub fn trim(&self) -> PoolResult<u64> {
        let mut slow = self.lock_slow();
        self.trim_locked(&mut slow)
    }

    fn trim_locked(&self, slow: &mut Slow) -> PoolResult<u64> {
        self.merge_everything();
        let released = self.release_spares(u64::MAX)? + self.release_idle(u64::MAX)? + self.release_staging()?;
        slow.host.clear(&*self.driver);
        let unbacked: Vec<u64> = self.lock().segments.keys().copied().collect();
        for address in unbacked {
            self.drop_address(address);
        }
        Ok(released)
    }

    /// Waits for the device, frees every block, evicted ones too, and releases all memory. Errors: `Busy` when a block is pinned.
    pub fn clear(&self) -> PoolResult<()> {
        let mut slow = self.lock_slow();
        self.driver.device_wait()?;
        self.merge_everything();
        let mut st = self.lock();
        let pinned = st
            .slab
            .iter()
            .find(|(slot, s)| s.status == Status::Live && st.slab.pins(*slot) != 0);
        if let Some((slot, _)) = pinned {
            return Err(PoolError::Busy {
                block: st.slab.id(slot),
                why: "a launch has it pinned",
            });
        }
        let all: Vec<(u32, Status)> = st.slab.iter().map(|(slot, s)| (slot, s.status)).collect();
        let mut hosts = Vec::new();
        for &(slot, status) in &all {
            match status {
                Status::Free => st.slab[slot].streams.clear(), // the device is idle
                Status::Live | Status::Host => {
                    self.record_block(&st, kind::FREE, slot, self.services.clock.now_ns());
                    if status == Status::Live {
                        let slot = st.end_live(slot);
                        st.slab[slot].streams.clear();
                        st.insert_free(slot, Status::Free, false);
                    } else {
                        hosts.push((st.slab[slot].host, st.slab[slot].bytes));
                        st.end_host(slot, self.services.clock.now_ns());
                    }
                }
                _ => {}
            }
        }
        drop(st);
        for (host, bytes) in hosts {
            slow.host.put(&*self.driver, host, bytes);
        }
        self.trim_locked(&mut slow).map(|_| ())
    }

    /// A new hard limit in bytes. Memory above it is released, then evicted. Errors: `OutOfMemory` when blocks in use do not fit
    /// (the limit stays as it was).
    pub fn set_limit(&self, limit_bytes: u64) -> PoolResult<()> {
        let mut slow = self.lock_slow();
        let old = std::mem::replace(&mut self.lock().limit, limit_bytes);
        let shrunk = self.shrink(&mut slow);
        if !matches!(shrunk, Ok(true)) {
            let error = self.out_of_memory(0);
            self.lock().limit = old;
            return Err(shrunk.err().unwrap_or(error));
        }
        Ok(())
    }

    /// Brings used and mapped bytes under the limit; false when blocks in use do not allow it.
    fn shrink(&self, slow: &mut Slow) -> PoolResult<bool> {
        let over_used = |st: &State| st.counts.used.saturating_sub(st.limit);
        let over_reserved = |st: &State| st.counts.reserved.saturating_sub(self.reserved_limit(st));
        let over = over_used(&self.lock());
        if over > 0 && (!self.eviction || !self.evict_used(slow, over, 0)?) {
            return Ok(false);
        }
        let over = over_reserved(&self.lock());
        if over > 0 {
            let mut released = self.release_spares(over)?;
            self.merge_everything();
            released += self.release_idle(over.saturating_sub(released))?;
            if released < over && self.eviction {
                released += self.evict_segments(slow, over - released, 0, 0)?;
            }
            if released < over {
                self.release_staging()?;
            }
        }
        let st = self.lock();
        Ok(over_used(&st) == 0 && over_reserved(&st) == 0)
    }
}
