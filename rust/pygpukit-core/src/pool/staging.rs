//! The staging buffer: memory through which one end of a large block passes, so that the block's own memory comes or goes while that
//! end is copied. Mapping and releasing cost a tenth of the copy of 64 MiB.

use super::{Pool, PoolResult};
use crate::driver::DriverResult;
use crate::ring::kind;

/// Touched by holders of the slow lock alone. Each device call that succeeds is in the books at once.
#[derive(Clone, Copy)]
pub(super) struct Staging {
    pub address: u64,
    pub physical: Option<u64>,
    pub mapped: bool,
}

impl Pool {
    /// The buffer's address, when there is one and a block of `bytes` is large enough to gain by it.
    pub(super) fn staging_for(&self, bytes: u64) -> Option<u64> {
        let staging = self.lock().staging.filter(|staging| staging.mapped)?;
        (bytes >= 2 * self.staging_bytes).then_some(staging.address)
    }

    /// The same, making the buffer if need be. None also where there is no room for it: the copy then goes without.
    pub(super) fn staging_or_new(&self, bytes: u64) -> Option<u64> {
        if self.staging_bytes > 0 && bytes >= 2 * self.staging_bytes {
            let _ = self.make_staging(); // a broken device shows in the copy that follows
        }
        self.staging_for(bytes)
    }

    fn make_staging(&self) -> DriverResult<()> {
        let bytes = self.staging_bytes;
        let (before, room) = {
            let st = self.lock();
            let room = st.counts.reserved.saturating_add(bytes) <= self.reserved_limit(&st);
            (st.staging, room)
        };
        let known = before.and_then(|staging| staging.physical);
        if known.is_none() && !room {
            return Ok(());
        }
        let put = |address, physical, mapped| {
            self.lock().staging = Some(Staging {
                address,
                physical,
                mapped,
            });
        };
        let address = match before {
            Some(staging) => staging.address,
            None => self.driver.address_reserve(bytes)?,
        };
        put(address, known, before.is_some_and(|staging| staging.mapped));
        let physical = match known {
            Some(physical) => physical,
            None => self.driver.physical_create(bytes)?,
        };
        if known.is_none() {
            put(address, Some(physical), false);
            let mut st = self.lock();
            st.counts.reserved += bytes;
            self.record(kind::SEGMENT_MAP, address, bytes, st.counts.reserved);
        }
        if !before.is_some_and(|staging| staging.mapped) {
            self.driver.map(address, bytes, physical)?;
            put(address, Some(physical), true);
        }
        Ok(())
    }

    /// Gives the buffer back; returns the bytes released.
    pub(super) fn release_staging(&self) -> PoolResult<u64> {
        let Some(mut staging) = self.lock().staging else {
            return Ok(0);
        };
        let mut released = 0;
        if staging.mapped {
            self.driver.unmap(staging.address, self.staging_bytes)?;
            staging.mapped = false;
            self.lock().staging = Some(staging);
        }
        if let Some(physical) = staging.physical {
            self.driver.physical_release(physical)?;
            staging.physical = None;
            released = self.staging_bytes;
            let mut st = self.lock();
            st.staging = Some(staging);
            st.counts.reserved -= released;
            self.record(kind::SEGMENT_UNMAP, staging.address, released, st.counts.reserved);
        }
        // A refused range is asked for again by the next call.
        if self.driver.address_free(staging.address, self.staging_bytes).is_ok() {
            self.lock().staging = None;
        }
        Ok(released)
    }
}
