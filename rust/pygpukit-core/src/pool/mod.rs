//! The memory pool: owns every device byte of its device, over segments of virtual memory that it maps itself.
//!
//! * A segment is one address reservation with one physical handle. Small requests share segments, larger ones get their own.
//! * A freed block goes to the list of its stream and size class; taking it from there is the fast path: no device call, no wait.
//! * A miss cuts memory from the best-fit index, maps a segment, or under pressure merges, releases and evicts, in that order.
//! * An evicted block's physical memory stays with the pool as a spare, up to a bound, and is the first to go under pressure.
//! * Locks. `state` guards the books and is only ever held for book-keeping, so the fast path never waits for the device. `slow` is
//!   held across device calls and makes growing, evicting and restoring one at a time. `events` holds unused events, and is held while
//!   some are recorded. Order: `slow`, `events`, `state`.
//! * Memory freed on a stream is reused there at once, elsewhere only behind an event.

mod account;
mod classes;
mod contents;
mod error;
mod evict;
mod grow;
mod host;
mod lists;
mod order;
mod outside;
mod pinning;
mod release;
mod report;
mod shorten;
mod slab;
mod spare;
pub mod speed;
mod staging;
mod state;
mod traffic;
mod victims;

use std::sync::{Arc, PoisonError};

use crate::clock::{Clock, MonotonicClock};
use crate::driver::{Driver, DriverError};
use crate::lock::{Guard, Lock};
use crate::ring::{kind, Event, Ring};
use crate::sync::{Mutex, MutexGuard};

pub use account::AccountUse;
pub use classes::{class_of, Class};
pub use error::{OutOfMemory, PoolError, PoolResult};
pub use report::{BlockInfo, OwnerUsage, PoolStats, SegmentInfo};
pub use slab::BlockState;
pub use traffic::{Moved, MAX_TENANTS};
pub use victims::Promise;

use host::HostCache;
use slab::Status;
use state::{Pending, State};

/// Who owns a block: interned ids, 0 = unknown. `line` counts from 1 in the notebook cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct Owner {
    pub tenant: u32,
    pub name: u32,
    pub cell: u32,
    pub line: u32,
    /// What it holds counts for this account (`Pool::open_account`); 0 = none.
    pub account: u64,
}

/// A block of device memory.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub address: u64,
    /// Rounded up to the size class.
    pub bytes: u64,
    /// Id inside its pool, never given out twice, never 0.
    pub block: u64,
    /// Shared with launchers (see `BlockState`). Means this block until it is freed; readable as long as the pool lives.
    pub state: *const BlockState,
}

// SAFETY: the pointer is to atomics that live as long as the pool.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

#[derive(Clone, Copy, Debug)]
pub struct PoolConfig {
    /// Hard limit of bytes in use, and, rounded up to the driver's granularity, of bytes mapped. u64::MAX leaves it to the device.
    pub limit_bytes: u64,
    /// Under pressure, move blocks that nothing uses to host memory, in the order of `victims`.
    pub eviction: bool,
    /// Pinned host buffers kept for the next eviction, in bytes.
    pub host_cache_bytes: u64,
    /// Device memory that makes evicting and restoring blocks of twice its size quicker, taken at the first such eviction; 0 = none.
    pub staging_bytes: u64,
    /// Device memory that eviction set free and that is kept for the next segment of the same size, in bytes; under pressure, and to
    /// `trim`, it goes first. 0 = none is kept.
    pub spare_bytes: u64,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig {
            limit_bytes: u64::MAX,
            eviction: false,
            host_cache_bytes: host::cache_bytes(),
            staging_bytes: 16 << 20,
            spare_bytes: spare::DEFAULT_BYTES,
        }
    }
}

/// A block was evicted into pageable host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpinned {
    pub bytes: u64,
    /// Why it could not be pinned memory.
    pub error: DriverError,
}

/// Where a pool writes its records and reads the time.
#[derive(Clone)]
pub struct Services {
    pub ring: Arc<Ring>,
    pub clock: Arc<dyn Clock>,
}

impl Default for Services {
    /// The ring and the clock of this process.
    fn default() -> Self {
        Services {
            ring: Ring::global().clone(),
            clock: Arc::new(MonotonicClock),
        }
    }
}

/// The pool of one device. All methods may be called from any thread.
pub struct Pool {
    driver: Arc<dyn Driver>,
    services: Services,
    device: u16,
    granularity: u64,
    eviction: bool,
    staging_bytes: u64,
    spare_bytes: u64,
    state: Lock<State>,
    slow: Mutex<Slow>,
    events: Mutex<Vec<u64>>,
}

/// What only the holder of the slow lock touches.
struct Slow {
    host: HostCache,
    /// The stream on which the last part of an evicted block is on its way from the staging buffer to the host.
    leaving: Option<u64>,
}

impl Pool {
    /// A pool over a device. Maps nothing yet. Fails when the driver cannot tell its granularity.
    pub fn new(driver: Arc<dyn Driver>, config: PoolConfig, services: Services) -> PoolResult<Pool> {
        let granularity = driver.granularity()?.max(classes::UNIT);
        Ok(Pool {
            device: driver.device() as u16,
            driver,
            services,
            granularity,
            eviction: config.eviction,
            staging_bytes: config.staging_bytes.next_multiple_of(granularity),
            spare_bytes: config.spare_bytes,
            state: Lock::new(State::new(config.limit_bytes)),
            slow: Mutex::new(Slow {
                host: HostCache::new(config.host_cache_bytes),
                leaving: None,
            }),
            events: Mutex::new(Vec::new()),
        })
    }

    #[inline]
    fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    fn lock_events(&self) -> MutexGuard<'_, Vec<u64>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_slow(&self) -> MutexGuard<'_, Slow> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fast path: a cached block of the same size class and stream, or None. Makes no device call and waits for none.
    #[inline]
    pub fn try_alloc(&self, bytes: u64, stream: u64, owner: Owner) -> Option<Allocation> {
        let class = class_of(bytes)?;
        let now = self.services.clock.now_ns();
        let mut st = self.lock();
        let stream = st.streams.index_of(stream);
        self.take_cached(&mut st, class, stream, owner, now)
    }

    #[inline(always)]
    fn take_cached(&self, st: &mut State, class: Class, stream: u32, owner: Owner, now: u64) -> Option<Allocation> {
        if !st.admits(class.bytes) || st.accounts.refusal(owner, class.bytes).is_some() {
            return None;
        }
        let slot = st.pop_quick(class, stream)?;
        // Recorded first: claiming a record waits for all that was stored before it, and for what is read back from the books.
        self.record_for(st, kind::ALLOC, slot, stream, owner, now);
        st.begin_live(slot, stream, owner, now);
        st.counts.reuses += 1;
        Some(Self::allocation(st, slot))
    }

    /// A block of at least `bytes` for work in the order of `stream`. May map segments, wait for streams and evict.
    ///
    /// Errors: `OutOfMemory` when the limit or the device leaves no room; `Driver` when a device call failed.
    #[inline]
    pub fn alloc(&self, bytes: u64, stream: u64, owner: Owner) -> PoolResult<Allocation> {
        match self.try_alloc(bytes, stream, owner) {
            Some(allocation) => Ok(allocation),
            None => self.alloc_miss(bytes, stream, owner),
        }
    }

    /// Gives a block back. Its stream may reuse the memory at once; streams named by `record_use` are waited for by events first.
    ///
    /// Waits only for a block that is being evicted or restored at this moment. Errors: `BadBlock`.
    #[inline]
    pub fn free(&self, block: u64) -> PoolResult<()> {
        let now = self.services.clock.now_ns();
        let mut st = self.lock();
        let slot = st.find(block)?;
        if st.slab[slot].status == Status::Live && st.slab[slot].streams.is_empty() {
            self.record_block(&st, kind::FREE, slot, now);
            let class = class_of(st.slab[slot].bytes).expect("a block's size is a class");
            let slot = st.end_live(slot);
            st.put_quick(slot, class);
            return Ok(());
        }
        drop(st);
        self.free_elsewhere(block)
    }

    /// A block that other streams used, or that is in host memory or on its way.
    #[cold]
    fn free_elsewhere(&self, block: u64) -> PoolResult<()> {
        let mut st = self.lock();
        let mut slot = st.find(block)?;
        if st.slab[slot].status != Status::Live {
            drop(st);
            let mut slow = self.lock_slow();
            st = self.lock();
            slot = st.find(block)?;
            if st.slab[slot].status == Status::Host {
                let now = self.services.clock.now_ns();
                self.record_block(&st, kind::FREE, slot, now);
                let (address, bytes, host) = (st.slab[slot].address, st.slab[slot].bytes, st.slab[slot].host);
                st.end_host(slot, now);
                let segment = st.segment_of(address);
                drop(st);
                slow.host.put(&*self.driver, host, bytes);
                self.drop_address(segment);
                return Ok(());
            }
        }
        self.record_block(&st, kind::FREE, slot, self.services.clock.now_ns());
        let slot = st.end_live(slot);
        st.slab[slot].status = Status::Pending;
        let streams = st.slab[slot].streams.clone();
        drop(st);
        let events = self.record_events(&streams);
        let mut st = self.lock();
        match events {
            Ok(events) => st.pending.push(Pending { slot, events }),
            Err(_) => st.insert_pending(slot), // ordered when it is taken; a broken device shows in the next call that needs it
        }
        Ok(())
    }

    /// The block is used on another stream than its own: its memory is not reused before that stream has passed what is enqueued there
    /// when the block is freed. Errors: `BadBlock`.
    pub fn record_use(&self, block: u64, stream: u64) -> PoolResult<()> {
        let mut st = self.lock();
        let slot = st.find(block)?;
        let stream = st.streams.index_of(stream);
        if st.slab[slot].stream != stream && !st.slab[slot].streams.contains(&stream) {
            st.slab[slot].streams.push(stream);
        }
        Ok(())
    }

    /// Says what the block is called from now on: an interned name, for reports and records. Errors: `BadBlock`.
    pub fn set_name(&self, block: u64, name: u32) -> PoolResult<()> {
        let mut st = self.lock();
        let slot = st.find(block)?;
        st.slab[slot].owner.name = name;
        Ok(())
    }

    /// Marks a block as just used, for the order of eviction. Errors: `BadBlock`.
    pub fn touch(&self, block: u64) -> PoolResult<()> {
        let now = self.services.clock.now_ns();
        let st = self.lock();
        let slot = st.find(block)?;
        st.slab
            .state(slot)
            .last_use
            .store(now, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Says that a stream was created, and the short id by which records name it. A stream never registered gets a number of its own.
    pub fn register_stream(&self, stream: u64, id: u32) {
        let mut st = self.lock();
        let index = st.streams.index_of(stream);
        st.streams[index].id = id;
    }

    fn allocation(st: &State, slot: u32) -> Allocation {
        let s = &st.slab[slot];
        Allocation {
            address: s.address,
            bytes: s.bytes,
            block: st.slab.id(slot),
            state: st.slab.state(slot),
        }
    }

    #[inline(always)]
    fn record_block(&self, st: &State, kind: u16, slot: u32, now: u64) {
        let s = &st.slab[slot];
        self.record_for(st, kind, slot, s.stream, s.owner, now);
    }

    /// As `record_block`, whatever the books say of the block's stream and owner.
    #[inline(always)]
    fn record_for(&self, st: &State, kind: u16, slot: u32, stream: u32, owner: Owner, now: u64) {
        let s = &st.slab[slot];
        let event = Event {
            kind,
            device: self.device,
            stream: st.streams[stream].id,
            tenant: owner.tenant,
            name: owner.name,
            a: s.address,
            b: s.bytes,
            c: st.slab.id(slot),
            cell: owner.cell,
            line: owner.line,
        };
        self.services.ring.push(now, &event);
    }

    fn record(&self, kind: u16, a: u64, b: u64, c: u64) {
        let event = Event {
            kind,
            device: self.device,
            a,
            b,
            c,
            ..Event::default()
        };
        self.services.ring.push(self.services.clock.now_ns(), &event);
    }
}

impl Drop for Pool {
    /// Gives everything back to the device; what a broken device refuses is lost with its context.
    fn drop(&mut self) {
        let _ = self.clear();
        for event in std::mem::take(&mut *self.lock_events()) {
            let _ = self.driver.event_destroy(event);
        }
    }
}
