//! Contents of blocks for the host, wherever they are, and segments for other processes.

use super::slab::Status;
use super::{Pool, PoolError, PoolResult};
use crate::driver::DriverResult;

/// Where a block's bytes are.
enum Place {
    /// Address and stream, ordered after every use of the block.
    Device(u64, u64),
    Host(*mut u8),
}

impl Pool {
    /// Copies `out.len()` bytes from `offset` of a block, evicted or not, and waits. Errors: `BadBlock`, `OutOfRange`, `Driver`.
    pub fn read_block(&self, block: u64, offset: u64, out: &mut [u8]) -> PoolResult<()> {
        let _slow = self.lock_slow(); // keeps the block where it is
        match self.place(block, offset, out.len() as u64)? {
            Place::Device(address, stream) => {
                self.driver
                    .copy_to_host(out.as_mut_ptr() as u64, address, out.len() as u64, stream)?;
                self.wait_for_copy(stream)?;
            }
            // SAFETY: the host copy has the block's size, the range was checked, and only a holder of the slow lock frees it.
            Place::Host(host) => unsafe { std::ptr::copy_nonoverlapping(host, out.as_mut_ptr(), out.len()) },
        }
        Ok(())
    }

    /// Copies `data` to `offset` of a block, evicted or not, and waits. Errors: `BadBlock`, `OutOfRange`, `Driver`.
    pub fn write_block(&self, block: u64, offset: u64, data: &[u8]) -> PoolResult<()> {
        let _slow = self.lock_slow(); // keeps the block where it is
        match self.place(block, offset, data.len() as u64)? {
            Place::Device(address, stream) => {
                self.driver
                    .copy_to_device(address, data.as_ptr() as u64, data.len() as u64, stream)?;
                self.wait_for_copy(stream)?;
            }
            // SAFETY: as in read_block.
            Place::Host(host) => unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), host, data.len()) },
        }
        Ok(())
    }

    /// Host memory must not be under a copy when its owner gets it back, even when waiting for the stream fails.
    pub(super) fn wait_for_copy(&self, stream: u64) -> DriverResult<()> {
        self.driver
            .stream_wait(stream)
            .inspect_err(|_| drop(self.driver.device_wait()))
    }

    fn place(&self, block: u64, offset: u64, bytes: u64) -> PoolResult<Place> {
        let st = self.lock();
        let slot = st.find(block)?;
        let s = &st.slab[slot];
        if offset.checked_add(bytes).map_or(true, |end| end > s.bytes) {
            return Err(PoolError::OutOfRange {
                block,
                offset,
                bytes,
                block_bytes: s.bytes,
            });
        }
        if s.status == Status::Host {
            return Ok(Place::Host((s.host.address + offset) as *mut u8));
        }
        let stream = st.streams.handle(s.stream);
        let after = s.streams.clone();
        let address = s.address + offset;
        drop(st);
        self.order(stream, &after)?;
        Ok(Place::Device(address, stream))
    }

    /// The segment that holds `address`, for another process: (file descriptor, segment address, segment bytes, number of the export).
    /// The caller closes the descriptor. Until `end_export` blocks of that segment are not evicted. Errors: `BadAddress` (unknown, or
    /// evicted), `Driver`.
    pub fn segment_export(&self, address: u64) -> PoolResult<(i32, u64, u64, u64)> {
        let _slow = self.lock_slow();
        let (start, bytes, physical) = {
            let st = self.lock();
            let start = st.segment_holding(address).ok_or(PoolError::BadAddress(address))?;
            let segment = &st.segments[&start];
            let physical = segment
                .physical
                .filter(|_| segment.mapped)
                .ok_or(PoolError::BadAddress(address))?;
            (start, segment.bytes, physical)
        };
        let descriptor = self.driver.physical_export(physical)?;
        let number = self.lock().begin_export(start);
        Ok((descriptor, start, bytes, number))
    }

    /// The process that an export was for no longer maps the segment, or has ended: its blocks can leave the device again. False if the
    /// segment is gone, and the export with it.
    pub fn end_export(&self, number: u64) -> bool {
        let _slow = self.lock_slow();
        self.lock().end_export(number)
    }
}
