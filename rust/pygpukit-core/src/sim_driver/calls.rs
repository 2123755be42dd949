//! The simulated device as the core sees it: each call of `Driver`, counted, and failed on request.

use super::work::Effect;
use super::{Call, SimConfig, SimDriver};
use crate::driver::{Driver, DriverError, DriverResult, OUT_OF_MEMORY};

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

    /// The peer's memory is not simulated: this device's is read.
    fn copy_to_peer(&self, _peer: i32, _to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.call(Call::CopyToPeer, |sim| {
            sim.copy(from, bytes, Effect::Read, stream);
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

    /// Streams of other devices are not simulated.
    fn stream_of_wait_event(&self, device: i32, stream: u64, event: u64) -> DriverResult<()> {
        if device == self.device() {
            return self.stream_wait_event(stream, event);
        }
        self.call(Call::StreamWaitEvent, |_| Ok(()))
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
            sim.partitions_created += 1;
            sim.partitions.insert(sim.partitions_created, sorted);
            let sms = groups.iter().map(|&group| sizes[group as usize]).sum();
            Ok((sim.partitions_created, sms))
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
