//! The slow path: memory from the index, then new segments, then what pressure sets free.

use super::classes::{SHARED_LIMIT, SHARED_SEGMENT};
use super::slab::Status;
use super::state::State;
use super::{class_of, Allocation, Class, Owner, Pool, PoolResult};
use crate::driver::{DriverError, OUT_OF_MEMORY};
use crate::lock::Guard;
use crate::ring::kind;

/// Out of memory is pressure, which has remedies; anything else is an error.
fn pressure<T>(result: Result<T, DriverError>) -> PoolResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code == OUT_OF_MEMORY => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Pool {
    #[cold]
    pub(super) fn alloc_miss(&self, bytes: u64, handle: u64, owner: Owner) -> PoolResult<Allocation> {
        let Some(class) = class_of(bytes) else {
            return Err(self.out_of_memory(bytes));
        };
        let small = class.bytes <= SHARED_LIMIT;
        let mut st = self.lock();
        let stream = st.streams.index_of(handle);
        if let Some(account) = st.accounts.refusal(owner, class.bytes) {
            drop(st);
            return Err(self.over_account(bytes, account));
        }
        if st.admits(class.bytes) {
            let mut fit = st.take_fit(class.bytes, small, stream, false);
            if fit.is_none() && st.flush_stream(stream) {
                fit = st.take_fit(class.bytes, small, stream, false);
            }
            if let Some(slot) = fit {
                st.counts.reuses += 1;
                return self.hand_out(st, slot, stream, owner);
            }
        }
        drop(st);
        let mut slow = self.lock_slow();
        self.poll_pending()?;
        let (mut any_stream, mut grown) = (false, false);
        loop {
            let mut st = self.lock();
            let stream = st.streams.index_of(handle); // it may have been retired meanwhile, and its index another's
            if class.bytes > st.limit {
                drop(st);
                return Err(self.out_of_memory(bytes));
            }
            if let Some(account) = st.accounts.refusal(owner, class.bytes) {
                drop(st);
                return Err(self.over_account(bytes, account));
            }
            let over = (st.counts.used + class.bytes).saturating_sub(st.limit);
            if over == 0 {
                let now = self.services.clock.now_ns();
                if let Some(allocation) = self.take_cached(&mut st, class, stream, owner, now) {
                    return Ok(allocation);
                }
                if let Some(slot) = st.take_fit(class.bytes, small, stream, any_stream) {
                    st.counts.reuses += u64::from(!grown);
                    return self.hand_out(st, slot, stream, owner);
                }
            }
            drop(st);
            if over > 0 {
                if !self.eviction || !self.evict_used(&mut slow, over, owner.account)? {
                    return Err(self.out_of_memory(bytes));
                }
            } else if self.grow(class, small)? {
                grown = true;
            } else if !any_stream {
                self.merge_everything();
                any_stream = true;
            } else if !self.make_room(&mut slow, class.bytes.next_multiple_of(self.granularity), owner.account)? {
                return Err(self.out_of_memory(bytes));
            }
        }
    }

    /// Makes a chunk that is in no list a block of `stream`, ordered after the streams that used the memory before.
    fn hand_out(&self, mut st: Guard<'_, State>, slot: u32, stream: u32, owner: Owner) -> PoolResult<Allocation> {
        let before = std::mem::take(&mut st.slab[slot].streams);
        let after: Vec<u32> = before
            .iter()
            .copied()
            .filter(|&s| s != stream && !st.streams[s].retired)
            .collect();
        st.begin_live(slot, stream, owner, self.services.clock.now_ns());
        self.record_block(&st, kind::ALLOC, slot, self.services.clock.now_ns());
        let allocation = Self::allocation(&st, slot);
        let handle = st.streams[stream].handle;
        drop(st);
        if after.is_empty() {
            return Ok(allocation);
        }
        if let Err(error) = self.order(handle, &after) {
            let mut st = self.lock();
            self.record_block(&st, kind::FREE, slot, self.services.clock.now_ns());
            let slot = st.end_live(slot);
            st.slab[slot].streams = before;
            st.insert_free(slot, Status::Free, false);
            return Err(error.into());
        }
        Ok(allocation)
    }

    /// The limit on mapped bytes.
    pub(super) fn reserved_limit(&self, st: &State) -> u64 {
        st.limit.checked_next_multiple_of(self.granularity).unwrap_or(u64::MAX)
    }

    /// Maps a segment that holds the class; false under pressure (the limit, or the device is full).
    fn grow(&self, class: Class, small: bool) -> PoolResult<bool> {
        let exact = class.bytes.next_multiple_of(self.granularity);
        let shared = SHARED_SEGMENT.next_multiple_of(self.granularity);
        Ok(small && shared > exact && self.map_segment(shared, small)? || self.map_segment(exact, small)?)
    }

    fn map_segment(&self, bytes: u64, small: bool) -> PoolResult<bool> {
        if !self.may_back(bytes) {
            return Ok(false);
        }
        let Some(address) = pressure(self.driver.address_reserve(bytes))? else {
            return Ok(false);
        };
        match self.back(address, bytes) {
            Ok(Some(physical)) => {
                let mut st = self.lock();
                st.add_segment(address, bytes, small, physical);
                self.record(kind::SEGMENT_MAP, address, bytes, st.counts.reserved);
                Ok(true)
            }
            refused => {
                if self.driver.address_free(address, bytes).is_err() {
                    self.lock().add_address(address, bytes, small); // the first failure is the one to tell
                }
                refused.map(|_| false)
            }
        }
    }

    /// Whether there is a spare of so many bytes, or room for new memory under the limit.
    fn may_back(&self, bytes: u64) -> bool {
        let st = self.lock();
        st.spares.has(bytes) || st.counts.reserved.saturating_add(bytes) <= self.reserved_limit(&st)
    }

    /// Puts physical memory behind an address range and counts it: a spare if there is one of that size, else new memory. None under
    /// pressure.
    fn back(&self, address: u64, bytes: u64) -> PoolResult<Option<u64>> {
        let spare = self.lock().spares.take(bytes);
        if let Some(physical) = spare {
            let mapped = self.driver.map(address, bytes, physical).map(|()| physical);
            return pressure(mapped.inspect_err(|_| self.lock().spares.put(bytes, physical)));
        }
        let Some(physical) = pressure(self.driver.physical_create(bytes))? else {
            return Ok(None);
        };
        let mapped = self.driver.map(address, bytes, physical).map(|()| physical);
        match mapped {
            Ok(_) => self.lock().counts.reserved += bytes,
            Err(_) => drop(self.driver.physical_release(physical)), // the first failure is the one to tell
        }
        pressure(mapped)
    }

    /// Physical memory for a segment that lost it; false under pressure.
    pub(super) fn back_segment(&self, address: u64) -> PoolResult<bool> {
        let (bytes, kept) = {
            let st = self.lock();
            let segment = &st.segments[&address];
            if segment.mapped {
                return Ok(true);
            }
            (segment.bytes, segment.physical)
        };
        let backed = match kept {
            Some(physical) => self.driver.map(address, bytes, physical).map(|()| Some(physical))?,
            None if self.may_back(bytes) => self.back(address, bytes)?,
            None => None,
        };
        let Some(physical) = backed else { return Ok(false) };
        let mut st = self.lock();
        if let Some(segment) = st.segments.get_mut(&address) {
            (segment.physical, segment.mapped) = (Some(physical), true);
        }
        st.attach(address);
        self.record(kind::SEGMENT_MAP, address, bytes, st.counts.reserved);
        Ok(true)
    }
}
