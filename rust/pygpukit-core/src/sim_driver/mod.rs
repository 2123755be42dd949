//! A deterministic device for the core's own tests: virtual time, real bytes, checks of its user, failures on request.
//!
//! Time moves only by `advance_ns` and by waits. Misuse (a range mapped twice, access to unmapped memory, unmapping or reusing memory
//! that work is not known to have left, a host buffer freed under a copy) is collected in `violations`, which tests expect empty.

mod calls;
mod memory;
mod work;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::driver::{DriverError, DriverResult};
use memory::{Checked, Memory};
use work::{Effect, Work};

/// The calls of `Driver`, for counting and failing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    MemoryInfo,
    AddressReserve,
    AddressFree,
    PhysicalCreate,
    PhysicalRelease,
    Map,
    Unmap,
    PhysicalExport,
    HostAlloc,
    HostFree,
    CopyToHost,
    CopyToDevice,
    CopyOnDevice,
    CopyToPeer,
    StreamCreate,
    StreamDestroy,
    StreamWait,
    DeviceWait,
    EventCreate,
    EventDestroy,
    EventRecord,
    EventDone,
    EventWait,
    EventElapsed,
    StreamWaitEvent,
    StreamDone,
    SmGroups,
    SmPartitionCreate,
    SmPartitionDestroy,
}

#[derive(Clone, Copy, Debug)]
pub struct SimConfig {
    pub device: i32,
    pub memory_bytes: u64,
    pub granularity: u64,
    /// Speed of host copies.
    pub copy_bytes_per_ns: u64,
    /// Keep contents. Without, only the books are kept.
    pub store: bool,
    pub sms: u32,
    /// Multiprocessors of a group; the last one may have fewer.
    pub group_sms: u32,
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig {
            device: 0,
            memory_bytes: 64 << 20,
            granularity: 2 << 20,
            copy_bytes_per_ns: 50,
            store: true,
            sms: 132,
            group_sms: 2,
        }
    }
}

/// What is held on the device and in pinned host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimUsage {
    pub address_ranges: usize,
    pub mappings: usize,
    pub physical_bytes: u64,
    pub host_buffers: usize,
    pub events: usize,
    /// Those made by `stream_create`.
    pub streams: usize,
    pub sm_partitions: usize,
}

struct Sim {
    config: SimConfig,
    memory: Memory,
    work: Work,
    hosts: HashMap<u64, Box<[u8]>>,
    /// Groups of multiprocessors by partition, and how many partitions there ever were.
    partitions: HashMap<u64, Vec<u32>>,
    partitions_created: u64,
    violations: Vec<String>,
    counts: HashMap<Call, u64>,
    /// Calls that will fail: kind, how many of that kind succeed before, code.
    failures: Vec<(Call, u64, i32)>,
}

/// A simulated device.
pub struct SimDriver(Mutex<Sim>);

const INVALID_VALUE: i32 = 1;

impl SimDriver {
    pub fn new(config: SimConfig) -> SimDriver {
        SimDriver(Mutex::new(Sim {
            config,
            memory: Memory::new(config.memory_bytes, config.granularity, config.store),
            work: Work::default(),
            hosts: HashMap::new(),
            partitions: HashMap::new(),
            partitions_created: 0,
            violations: Vec::new(),
            counts: HashMap::new(),
            failures: Vec::new(),
        }))
    }

    fn sim(&self) -> MutexGuard<'_, Sim> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues a kernel that reads the range, or fills it with `fill` when it ends.
    pub fn launch(&self, stream: u64, address: u64, bytes: u64, fill: Option<u8>, duration_ns: u64) {
        self.sim().enqueue(
            stream,
            address,
            bytes,
            fill.map_or(Effect::Read, Effect::Fill),
            duration_ns,
        );
    }

    /// Enqueues work that touches no memory.
    pub fn work(&self, stream: u64, duration_ns: u64) {
        let mut sim = self.sim();
        let ordered = sim.work.enqueue(stream, 0, 0, Effect::Read, duration_ns);
        let _ = sim.checked(ordered);
    }

    pub fn advance_ns(&self, ns: u64) {
        let mut sim = self.sim();
        sim.work.now += ns;
        sim.settle();
    }

    /// The `nth` call of this kind from now on (1 = the next) fails with `code`, once, without effect.
    pub fn fail(&self, call: Call, nth: u64, code: i32) {
        self.sim().failures.push((call, nth - 1, code));
    }

    /// Forgets failures that have not happened.
    pub fn heal(&self) {
        self.sim().failures.clear();
    }

    /// Calls of this kind so far, failed ones included.
    pub fn calls(&self, call: Call) -> u64 {
        self.sim().counts.get(&call).copied().unwrap_or(0)
    }

    /// Misuse so far, one sentence each.
    pub fn violations(&self) -> Vec<String> {
        self.sim().violations.clone()
    }

    pub fn usage(&self) -> SimUsage {
        let sim = self.sim();
        SimUsage {
            address_ranges: sim.memory.reservations(),
            mappings: sim.memory.mappings(),
            physical_bytes: sim.memory.physical_bytes,
            host_buffers: sim.hosts.len(),
            events: sim.work.events(),
            streams: sim.work.created_streams(),
            sm_partitions: sim.partitions.len(),
        }
    }

    /// The groups of every partition of the multiprocessors that exists.
    pub fn sm_partitions(&self) -> Vec<Vec<u32>> {
        self.sim().partitions.values().cloned().collect()
    }

    /// Bytes on the device as they are now.
    pub fn peek(&self, address: u64, bytes: u64) -> Vec<u8> {
        let mut sim = self.sim();
        let read = sim.memory.bytes_mut(address, bytes).map(|b| b.to_vec());
        sim.checked(read).unwrap_or_default()
    }

    /// Counts a call, fails it when that was asked for, and runs it.
    fn call<T>(&self, call: Call, run: impl FnOnce(&mut Sim) -> DriverResult<T>) -> DriverResult<T> {
        let mut sim = self.sim();
        *sim.counts.entry(call).or_default() += 1;
        if let Some(at) = sim.failures.iter().position(|f| f.0 == call) {
            if sim.failures[at].1 == 0 {
                let (_, _, code) = sim.failures.remove(at);
                return Err(DriverError {
                    code,
                    text: format!("{call:?} failed on request"),
                });
            }
            sim.failures[at].1 -= 1;
        }
        run(&mut sim)
    }
}

impl Sim {
    fn checked<T>(&mut self, result: Checked<T>) -> DriverResult<T> {
        result.map_err(|text| {
            self.violations.push(text.clone());
            DriverError {
                code: INVALID_VALUE,
                text,
            }
        })
    }

    fn known(&mut self, ok: bool, what: &str) -> DriverResult<()> {
        self.checked(if ok { Ok(()) } else { Err(what.to_string()) })
    }

    fn enqueue(&mut self, stream: u64, address: u64, bytes: u64, effect: Effect, duration: u64) {
        let mapped = self.memory.check(address, bytes);
        let _ = self.checked(mapped);
        let ordered = self.work.enqueue(stream, address, bytes, effect, duration);
        let _ = self.checked(ordered);
        self.settle();
    }

    /// Applies what is over by now.
    fn settle(&mut self) {
        while let Some(op) = self.work.next_due() {
            if op.bytes == 0 {
                continue;
            }
            let source = match op.effect {
                Effect::FromDevice(from) => self.memory.bytes_mut(from, op.bytes).map(|device| device.to_vec()),
                _ => Ok(Vec::new()),
            };
            let source = self.checked(source).unwrap_or_default();
            let applied = self
                .memory
                .bytes_mut(op.address, op.bytes)
                .map(|device| match op.effect {
                    Effect::Read => {}
                    Effect::FromDevice(_) => device.copy_from_slice(&source),
                    Effect::Fill(value) => device.fill(value),
                    // SAFETY: `Driver` asks the caller to keep host memory valid until the stream has passed the copy.
                    Effect::ToHost(host) => unsafe {
                        std::ptr::copy_nonoverlapping(device.as_ptr(), host as *mut u8, device.len());
                    },
                    // SAFETY: as above.
                    Effect::FromHost(host) => unsafe {
                        std::ptr::copy_nonoverlapping(host as *const u8, device.as_mut_ptr(), device.len());
                    },
                });
            let _ = self.checked(applied);
        }
    }

    fn copy(&mut self, device: u64, bytes: u64, effect: Effect, stream: u64) {
        let duration = bytes.div_ceil(self.config.copy_bytes_per_ns.max(1));
        self.enqueue(stream, device, bytes, effect, duration);
    }
}

impl Clock for SimDriver {
    fn now_ns(&self) -> u64 {
        self.sim().work.now
    }
}
