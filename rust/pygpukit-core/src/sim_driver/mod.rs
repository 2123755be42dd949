//! A deterministic device for the core's own tests: virtual time, real bytes, checks of its user, failures on request.
//!
//! Time moves only by `advance_ns` and by waits. Misuse (a range mapped twice, access to unmapped memory, unmapping or reusing memory
//! that work is not known to have left, a host buffer freed under a copy) is collected in `violations`, which tests expect empty.

mod memory;
mod work;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::driver::{Driver, DriverError, DriverResult, OUT_OF_MEMORY};
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
    partitions_made: u64,
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
            partitions_made: 0,
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

impl Driver for SimDriver {
    fn device(&self) -> i32 {
        self.sim().config.device
    }

    fn memory_info(&self) -> DriverResult<(u64, u64)> {
        self.call(Call::MemoryInfo, |sim| {
            Ok((
                sim.config.memory_bytes - sim.memory.physical_bytes,
                sim.config.memory_bytes,
            ))
        })
    }

    fn granularity(&self) -> DriverResult<u64> {
        Ok(self.sim().config.granularity)
    }

    fn address_reserve(&self, bytes: u64) -> DriverResult<u64> {
        self.call(Call::AddressReserve, |sim| {
            let reserved = sim.memory.reserve(bytes);
            sim.checked(reserved)
        })
    }

    fn address_free(&self, address: u64, bytes: u64) -> DriverResult<()> {
        self.call(Call::AddressFree, |sim| {
            let freed = sim.memory.unreserve(address, bytes);
            sim.checked(freed)
        })
    }

    fn physical_create(&self, bytes: u64) -> DriverResult<u64> {
        self.call(Call::PhysicalCreate, |sim| {
            let created = sim.memory.create(bytes);
            let full = || DriverError {
                code: OUT_OF_MEMORY,
                text: "the simulated device is full".to_string(),
            };
            sim.checked(created)?.ok_or_else(full)
        })
    }

    fn physical_release(&self, physical: u64) -> DriverResult<()> {
        self.call(Call::PhysicalRelease, |sim| {
            let released = sim.memory.release(physical);
            sim.checked(released)
        })
    }

    fn map(&self, address: u64, bytes: u64, physical: u64) -> DriverResult<()> {
        self.call(Call::Map, |sim| {
            let mapped = sim.memory.map(address, bytes, physical);
            sim.checked(mapped)
        })
    }

    fn unmap(&self, address: u64, bytes: u64) -> DriverResult<()> {
        self.call(Call::Unmap, |sim| {
            let idle = !sim.work.unfinished(address, bytes);
            sim.known(idle, "unmapped a range that work may not have left")?;
            let unmapped = sim.memory.unmap(address, bytes);
            sim.checked(unmapped)
        })
    }

    fn physical_export(&self, physical: u64) -> DriverResult<i32> {
        self.call(Call::PhysicalExport, |sim| {
            let exists = sim.memory.exists(physical);
            sim.known(exists, "exported physical memory does not exist")?;
            Ok(physical as i32 & 0xffff)
        })
    }

    fn host_alloc(&self, bytes: u64) -> DriverResult<u64> {
        self.call(Call::HostAlloc, |sim| {
            let stored = if sim.config.store { bytes as usize } else { 1 };
            let mut buffer = vec![0xee; stored].into_boxed_slice();
            let host = buffer.as_mut_ptr() as u64;
            sim.hosts.insert(host, buffer);
            Ok(host)
        })
    }

    fn host_free(&self, host: u64) -> DriverResult<()> {
        self.call(Call::HostFree, |sim| {
            let idle = !sim.work.unfinished_host(host);
            sim.known(idle, "freed a host buffer that a copy may not have left")?;
            let known = sim.hosts.remove(&host).is_some();
            sim.known(known, "freed host buffer does not exist")
        })
    }

    fn copy_to_host(&self, host: u64, device: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.call(Call::CopyToHost, |sim| {
            sim.copy(device, bytes, Effect::ToHost(host), stream);
            Ok(())
        })
    }

    fn copy_to_device(&self, device: u64, host: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.call(Call::CopyToDevice, |sim| {
            sim.copy(device, bytes, Effect::FromHost(host), stream);
            Ok(())
        })
    }

    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.call(Call::CopyOnDevice, |sim| {
            sim.enqueue(stream, from, bytes, Effect::Read, 0);
            sim.copy(to, bytes, Effect::FromDevice(from), stream);
            Ok(())
        })
    }

    fn stream_create(&self, _priority: i32) -> DriverResult<u64> {
        self.call(Call::StreamCreate, |sim| Ok(sim.work.create_stream()))
    }

    fn stream_destroy(&self, stream: u64) -> DriverResult<()> {
        self.call(Call::StreamDestroy, |sim| {
            let known = sim.work.destroy_stream(stream);
            sim.known(known, "destroyed stream does not exist")
        })
    }

    fn stream_wait(&self, stream: u64) -> DriverResult<()> {
        self.call(Call::StreamWait, |sim| {
            sim.work.wait(stream);
            sim.settle();
            Ok(())
        })
    }

    fn device_wait(&self) -> DriverResult<()> {
        self.call(Call::DeviceWait, |sim| {
            sim.work.wait_all();
            sim.settle();
            Ok(())
        })
    }

    fn event_create(&self) -> DriverResult<u64> {
        self.call(Call::EventCreate, |sim| Ok(sim.work.create_event()))
    }

    fn event_create_timed(&self) -> DriverResult<u64> {
        self.event_create()
    }

    fn event_destroy(&self, event: u64) -> DriverResult<()> {
        self.call(Call::EventDestroy, |sim| {
            let known = sim.work.destroy_event(event);
            sim.known(known, "destroyed event does not exist")
        })
    }

    fn event_record(&self, event: u64, stream: u64) -> DriverResult<()> {
        self.call(Call::EventRecord, |sim| {
            let known = sim.work.record(event, stream);
            sim.known(known, "recorded event does not exist")
        })
    }

    fn event_done(&self, event: u64) -> DriverResult<bool> {
        self.call(Call::EventDone, |sim| {
            let done = sim.work.done(event);
            sim.settle();
            sim.known(done.is_some(), "queried event does not exist")?;
            Ok(done.unwrap_or(false))
        })
    }

    fn event_wait(&self, event: u64) -> DriverResult<()> {
        self.call(Call::EventWait, |sim| {
            let known = sim.work.wait_event(event);
            sim.known(known, "waited for an event that does not exist")?;
            sim.settle();
            Ok(())
        })
    }

    fn event_elapsed_ns(&self, start: u64, end: u64) -> DriverResult<u64> {
        self.call(Call::EventElapsed, |sim| {
            let passed = sim.work.passed_ns(start).zip(sim.work.passed_ns(end));
            sim.known(passed.is_some(), "elapsed time of events that were not passed")?;
            Ok(passed.map_or(0, |(start, end)| end.saturating_sub(start)))
        })
    }

    fn stream_wait_event(&self, stream: u64, event: u64) -> DriverResult<()> {
        self.call(Call::StreamWaitEvent, |sim| {
            let known = sim.work.stream_wait(stream, event);
            sim.known(known, "awaited event does not exist")
        })
    }

    fn sm_groups(&self) -> DriverResult<Vec<u32>> {
        self.call(Call::SmGroups, |sim| {
            let SimConfig { sms, group_sms, .. } = sim.config;
            let starts = (0..sms).step_by(group_sms as usize);
            Ok(starts.map(|first| group_sms.min(sms - first)).collect())
        })
    }

    fn sm_partition_create(&self, groups: &[u32]) -> DriverResult<(u64, u32)> {
        let sizes = self.sm_groups()?;
        self.call(Call::SmPartitionCreate, |sim| {
            let mut sorted = groups.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let known = !groups.is_empty() && sorted.len() == groups.len();
            let known = known && groups.iter().all(|&group| (group as usize) < sizes.len());
            sim.known(known, "groups of a partition do not exist, are named twice or are none")?;
            sim.partitions_made += 1;
            sim.partitions.insert(sim.partitions_made, sorted);
            let sms = groups.iter().map(|&group| sizes[group as usize]).sum();
            Ok((sim.partitions_made, sms))
        })
    }

    fn sm_partition_destroy(&self, partition: u64) -> DriverResult<()> {
        self.call(Call::SmPartitionDestroy, |sim| {
            let known = sim.partitions.remove(&partition).is_some();
            sim.known(known, "destroyed partition does not exist")
        })
    }

    fn stream_done(&self, stream: u64) -> DriverResult<bool> {
        self.call(Call::StreamDone, |sim| Ok(sim.work.idle(stream)))
    }
}
