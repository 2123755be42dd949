//! The part of a device that memory management needs, as a trait: the C table in production, `SimDriver` in tests.

use std::fmt;

/// A failed device call: the CUresult number and one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    pub code: i32,
    pub text: String,
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.text, self.code)
    }
}

impl std::error::Error for DriverError {}

impl DriverError {
    /// Of a failed `Driver::host_alloc`: the system pins no more memory, or no memory for this process, and the device is well.
    pub fn refuses_to_pin(&self) -> bool {
        [OUT_OF_MEMORY, OPERATING_SYSTEM].contains(&self.code)
    }
}

pub type DriverResult<T> = Result<T, DriverError>;

/// CUresult numbers that the core itself looks at.
pub const OUT_OF_MEMORY: i32 = 2;
pub const OPERATING_SYSTEM: i32 = 304;

/// One device. Implementations make that device current for the calling thread themselves.
///
/// Addresses, handles and streams are opaque integers; stream 0 is the default stream.
pub trait Driver: Send + Sync {
    fn device(&self) -> i32;
    /// (free, total) bytes.
    fn memory_info(&self) -> DriverResult<(u64, u64)>;
    /// Bytes that sizes and addresses of mappings must be multiples of.
    fn granularity(&self) -> DriverResult<u64>;
    fn address_reserve(&self, bytes: u64) -> DriverResult<u64>;
    fn address_free(&self, address: u64, bytes: u64) -> DriverResult<()>;
    fn physical_create(&self, bytes: u64) -> DriverResult<u64>;
    fn physical_release(&self, physical: u64) -> DriverResult<()>;
    fn map(&self, address: u64, bytes: u64, physical: u64) -> DriverResult<()>;
    /// The caller has made sure that no work on the range is unfinished.
    fn unmap(&self, address: u64, bytes: u64) -> DriverResult<()>;
    /// A file descriptor for another process; the caller closes it.
    fn physical_export(&self, physical: u64) -> DriverResult<i32>;
    /// Pinned host memory, as an address.
    fn host_alloc(&self, bytes: u64) -> DriverResult<u64>;
    fn host_free(&self, host: u64) -> DriverResult<()>;
    /// Copies in stream order; each needs a later `stream_wait`, or an event that was passed.
    fn copy_to_host(&self, host: u64, device: u64, bytes: u64, stream: u64) -> DriverResult<()>;
    fn copy_to_device(&self, device: u64, host: u64, bytes: u64, stream: u64) -> DriverResult<()>;
    /// Copies inside the device in stream order; the ranges do not overlap.
    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()>;
    /// Copies to another device in stream order.
    fn copy_to_peer(&self, peer: i32, to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()>;
    /// A new stream; priority 0 is the least urgent, -5 the most.
    fn stream_create(&self, priority: i32) -> DriverResult<u64>;
    fn stream_destroy(&self, stream: u64) -> DriverResult<()>;
    fn stream_wait(&self, stream: u64) -> DriverResult<()>;
    /// Waits for all work of the device.
    fn device_wait(&self) -> DriverResult<()>;
    fn event_create(&self) -> DriverResult<u64>;
    /// An event that notes the time at which it is passed.
    fn event_create_timed(&self) -> DriverResult<u64>;
    fn event_destroy(&self, event: u64) -> DriverResult<()>;
    fn event_record(&self, event: u64, stream: u64) -> DriverResult<()>;
    /// True once all work before the record has finished.
    fn event_done(&self, event: u64) -> DriverResult<bool>;
    /// Waits for all work before the record.
    fn event_wait(&self, event: u64) -> DriverResult<()>;
    /// Nanoseconds between two timed events, both passed.
    fn event_elapsed_ns(&self, start: u64, end: u64) -> DriverResult<u64>;
    fn stream_wait_event(&self, stream: u64, event: u64) -> DriverResult<()>;
    /// The same for a stream of any device and an event of this one.
    fn stream_of_wait_event(&self, device: i32, stream: u64, event: u64) -> DriverResult<()>;
    /// The multiprocessors of each of the groups that the device is split into.
    fn sm_groups(&self) -> DriverResult<Vec<u32>>;
    /// A partition of some groups, and how many multiprocessors it has.
    fn sm_partition_create(&self, groups: &[u32]) -> DriverResult<(u64, u32)>;
    /// Its streams are gone.
    fn sm_partition_destroy(&self, partition: u64) -> DriverResult<()>;
    /// True once the stream has no unfinished work.
    fn stream_done(&self, stream: u64) -> DriverResult<bool>;
}
