//! A simulated device that writes down every copy, with memory laid out for transfers.
#![allow(dead_code)] // each test uses a part

use std::sync::{Arc, Mutex};

use pygpukit_core::clock::Clock;
use pygpukit_core::driver::{Driver, DriverResult};
use pygpukit_core::pool::Services;
use pygpukit_core::ring::Ring;
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use pygpukit_core::transfer::{Direction, Engine, LaneSettings, Request, Settings};

pub const KIB: u64 = 1 << 10;
pub const CHUNK: u64 = 16 * KIB;
pub const IN_FLIGHT: u64 = 40 * KIB;
/// Of each transfer, on either side.
pub const SLOT: u64 = 256 * KIB;
pub const SLOTS: u64 = 48;

/// Where the other device has its memory, of which nothing is simulated.
const PEER_MEMORY: u64 = 1 << 50;

/// The directions whose targets are simulated.
pub const STORED: [Direction; 3] = [Direction::ToDevice, Direction::ToHost, Direction::OnDevice];

/// A copy as it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    pub direction: Direction,
    pub to: u64,
    pub from: u64,
    pub bytes: u64,
    pub at_ns: u64,
}

#[derive(Default)]
struct Log {
    issues: Vec<Issue>,
    /// By event: the copies issued on its stream so far, as (stream, how many).
    marks: std::collections::HashMap<u64, (u64, usize)>,
    /// By stream: sizes of the copies issued, and how many are known to have landed.
    lanes: std::collections::HashMap<u64, (Vec<u64>, usize)>,
    peak: u64,
}

pub struct Spy {
    pub sim: Arc<SimDriver>,
    log: Mutex<Log>,
}

impl Spy {
    pub fn issues(&self) -> Vec<Issue> {
        self.log.lock().expect("no panic").issues.clone()
    }

    /// The most bytes that were issued to one stream and not known to have landed.
    pub fn peak(&self) -> u64 {
        self.log.lock().expect("no panic").peak
    }

    fn note(&self, direction: Direction, to: u64, from: u64, bytes: u64, stream: u64) {
        let at_ns = self.sim.now_ns();
        let mut log = self.log.lock().expect("no panic");
        log.issues.push(Issue {
            direction,
            to,
            from,
            bytes,
            at_ns,
        });
        let (sizes, landed) = log.lanes.entry(stream).or_default();
        sizes.push(bytes);
        let flying = sizes[*landed..].iter().sum::<u64>();
        log.peak = log.peak.max(flying);
    }
}

macro_rules! pass {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> DriverResult<$result> { self.sim.$name($($arg),*) })*
    };
}

impl Driver for Spy {
    fn device(&self) -> i32 {
        self.sim.device()
    }

    fn copy_to_host(&self, host: u64, device: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.sim.copy_to_host(host, device, bytes, stream)?;
        self.note(Direction::ToHost, host, device, bytes, stream);
        Ok(())
    }

    fn copy_to_device(&self, device: u64, host: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.sim.copy_to_device(device, host, bytes, stream)?;
        self.note(Direction::ToDevice, device, host, bytes, stream);
        Ok(())
    }

    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.sim.copy_on_device(to, from, bytes, stream)?;
        self.note(Direction::OnDevice, to, from, bytes, stream);
        Ok(())
    }

    fn copy_to_peer(&self, peer: i32, to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.sim.copy_to_peer(peer, to, from, bytes, stream)?;
        self.note(Direction::ToPeer, to, from, bytes, stream);
        Ok(())
    }

    fn event_record(&self, event: u64, stream: u64) -> DriverResult<()> {
        self.sim.event_record(event, stream)?;
        let mut log = self.log.lock().expect("no panic");
        let issued = log.lanes.get(&stream).map_or(0, |lane| lane.0.len());
        log.marks.insert(event, (stream, issued));
        Ok(())
    }

    fn event_done(&self, event: u64) -> DriverResult<bool> {
        let done = self.sim.event_done(event)?;
        let mut log = self.log.lock().expect("no panic");
        if let (true, Some(&(stream, issued))) = (done, log.marks.get(&event)) {
            if let Some(lane) = log.lanes.get_mut(&stream) {
                lane.1 = lane.1.max(issued);
            }
        }
        Ok(done)
    }

    fn stream_wait(&self, stream: u64) -> DriverResult<()> {
        self.sim.stream_wait(stream)?;
        let mut log = self.log.lock().expect("no panic");
        if let Some(lane) = log.lanes.get_mut(&stream) {
            lane.1 = lane.0.len();
        }
        Ok(())
    }

    pass! {
        memory_info() -> (u64, u64);
        granularity() -> u64;
        address_reserve(bytes: u64) -> u64;
        address_free(address: u64, bytes: u64) -> ();
        physical_create(bytes: u64) -> u64;
        physical_release(physical: u64) -> ();
        map(address: u64, bytes: u64, physical: u64) -> ();
        unmap(address: u64, bytes: u64) -> ();
        physical_export(physical: u64) -> i32;
        host_alloc(bytes: u64) -> u64;
        host_free(host: u64) -> ();
        stream_create(priority: i32) -> u64;
        stream_destroy(stream: u64) -> ();
        device_wait() -> ();
        event_create() -> u64;
        event_create_timed() -> u64;
        event_destroy(event: u64) -> ();
        event_wait(event: u64) -> ();
        event_elapsed_ns(start: u64, end: u64) -> u64;
        stream_wait_event(stream: u64, event: u64) -> ();
        stream_of_wait_event(device: i32, stream: u64, event: u64) -> ();
        stream_done(stream: u64) -> bool;
        sm_groups() -> Vec<u32>;
        sm_partition_create(groups: &[u32]) -> (u64, u32);
        sm_partition_destroy(partition: u64) -> ();
    }
}

/// An engine over it, with a slot of device memory and one of host memory for each transfer to come.
pub struct World {
    pub sim: Arc<SimDriver>,
    pub spy: Arc<Spy>,
    pub engine: Engine,
    device: u64,
    host: u64,
}

impl World {
    pub fn new(settings: Settings) -> World {
        let sim = Arc::new(SimDriver::new(SimConfig {
            copy_bytes_per_ns: 1,
            ..SimConfig::default()
        }));
        let bytes = 2 * SLOT * SLOTS; // the second half: sources of copies on the device
        let device = sim.address_reserve(bytes).expect("there is room");
        let physical = sim.physical_create(bytes).expect("there is room");
        sim.map(device, bytes, physical).expect("the range is reserved");
        let host = sim.host_alloc(SLOT * SLOTS).expect("there is room");
        let spy = Arc::new(Spy {
            sim: sim.clone(),
            log: Mutex::default(),
        });
        let services = Services {
            ring: Arc::new(Ring::new(1 << 10)),
            clock: sim.clone(),
        };
        let engine = Engine::new(spy.clone(), services, settings).expect("the settings are good");
        World {
            sim,
            spy,
            engine,
            device,
            host,
        }
    }

    /// Where a slot's bytes come from and go to.
    pub fn ends(&self, slot: u64, direction: Direction) -> (u64, u64) {
        let (device, host) = (self.device + slot * SLOT, self.host + slot * SLOT);
        match direction {
            Direction::ToDevice => (host, device),
            Direction::ToHost => (device, host),
            Direction::OnDevice => (device + SLOTS * SLOT, device),
            Direction::ToPeer => (device, PEER_MEMORY + slot * SLOT),
        }
    }

    /// A transfer of a slot's bytes, whose source is filled.
    pub fn request(&self, slot: u64, direction: Direction, bytes: u64) -> Request {
        let (from, to) = self.ends(slot, direction);
        let value = slot as u8 + 1;
        if direction == Direction::ToDevice {
            // SAFETY: the range is inside the host buffer, and no copy touches this slot yet.
            unsafe { std::ptr::write_bytes(from as *mut u8, value, SLOT as usize) };
        } else {
            let stream = 1000 + slot;
            self.sim.launch(stream, from, SLOT, Some(value), 0);
            self.sim.stream_wait(stream).expect("the simulated stream works");
        }
        Request::new(direction, to, from, bytes)
    }

    /// The bytes at a transfer's target, a slot's worth.
    pub fn target(&self, slot: u64, direction: Direction) -> Vec<u8> {
        let (_, to) = self.ends(slot, direction);
        if direction == Direction::ToHost {
            // SAFETY: as above; the test looks when nothing is in flight.
            return unsafe { std::slice::from_raw_parts(to as *const u8, SLOT as usize) }.to_vec();
        }
        self.sim.peek(to, SLOT)
    }

    /// Pumps until nothing moves any more.
    pub fn drain(&self) {
        for _ in 0..100_000 {
            if !self.engine.pump() {
                return;
            }
            self.sim.advance_ns(5_000);
        }
        panic!("transfers do not end: {:?}", self.engine.transfers());
    }
}

pub fn settings() -> Settings {
    let lane = LaneSettings {
        chunk_bytes: CHUNK,
        in_flight_bytes: IN_FLIGHT,
    };
    Settings {
        host: lane,
        device: lane,
        peer: lane,
        ..Settings::default()
    }
}
