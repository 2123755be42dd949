//! A schedule of random tasks over many devices in virtual time, which keeps books of its own and stops at the first broken promise.

use pygpukit_core::scheduler::{
    Config, DeviceList, Devices, Outcome, Phase, Policy, Reason, TaskSpec, TaskTable, Transition,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

const MEMORY: u64 = 80 << 30;
const SHARE_PPM: u32 = 1_000_000;
/// Tasks that wait at a time.
const BACKLOG: usize = 4000;

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcomes {
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
    /// Tasks of several devices among them, and how often a task was on each device.
    pub wide: u64,
    pub by_device: Vec<u64>,
    /// The part of the devices' memory that running tasks had reserved, in per cent, over virtual time.
    pub memory_percent: f64,
    pub audits: u64,
}

struct Running {
    spec: TaskSpec,
    devices: DeviceList,
}

/// xorshift: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

#[derive(Clone, Default)]
struct Device {
    memory: u64,
    share_ppm: u32,
    wide: bool,
}

/// audit_every: finished tasks between two recounts of all that the table keeps.
pub fn run(devices: usize, tasks: usize, seed: u64, audit_every: u64) -> Outcomes {
    let config = Config {
        further_memory: vec![MEMORY; devices - 1],
        max_queue: 2 * BACKLOG,
        ..Config::new(MEMORY)
    };
    let mut table = TaskTable::new(config, Box::new(|_: &Transition<'_>| {}));
    let mut random = Random(seed | 1);
    let mut books = vec![Device::default(); devices];
    let mut running: HashMap<String, Running> = HashMap::new();
    let mut specs: HashMap<String, TaskSpec> = HashMap::new();
    let mut ends: BinaryHeap<Reverse<(u64, String)>> = BinaryHeap::new();
    let mut out = Outcomes {
        by_device: vec![0; devices],
        ..Outcomes::default()
    };
    let (mut now, mut next, mut reserved, mut used) = (1, 0, 0u64, 0u128);
    while next < tasks || !specs.is_empty() || !running.is_empty() {
        while next < tasks && specs.len() < BACKLOG {
            let spec = random_spec(next, devices, &mut random);
            let phase = table.submit_new(spec.clone(), now).expect("a new id");
            assert_ne!(phase, Phase::Rejected, "{spec:?}");
            specs.insert(spec.id.to_string(), spec);
            next += 1;
            if random.below(50) == 0 {
                let id = (next as u64 - 1 - random.below((next as u64).min(100))).to_string();
                if specs.contains_key(&id) && table.cancel(&id, now).expect("it is known") {
                    specs.remove(&id);
                    out.cancelled += 1;
                }
            }
        }
        while let Some(start) = table.next(now) {
            let id = start.context.id.to_string();
            let spec = specs.remove(&id).expect("it started once");
            let wide = start.devices.iter().count() > 1;
            out.wide += u64::from(wide);
            for device in start.devices.iter() {
                let there = &mut books[device as usize];
                there.memory += spec.memory_bytes;
                there.share_ppm += spec.share_ppm;
                assert!(
                    there.memory <= MEMORY && there.share_ppm <= SHARE_PPM,
                    "device {device} is promised twice"
                );
                assert!(!(wide && there.wide), "two tasks of several devices on device {device}");
                there.wide |= wide;
                out.by_device[device as usize] += 1;
                reserved += spec.memory_bytes;
            }
            let asked = match &spec.devices {
                Devices::OfPartition => 1,
                Devices::All(asked) => asked.len(),
                Devices::Any(count) => *count as usize,
            };
            assert_eq!(start.devices.iter().count(), asked, "all or nothing");
            ends.push(Reverse((now + 1 + random.below(1000), id.clone())));
            running.insert(
                id,
                Running {
                    spec,
                    devices: start.devices.clone(),
                },
            );
        }
        let Some(Reverse((end, id))) = ends.pop() else {
            assert!(specs.is_empty(), "{} tasks wait for nothing", specs.len());
            continue;
        };
        used += u128::from(reserved) * u128::from(end - now);
        now = end;
        let Running { spec, devices: on } = running.remove(&id).expect("it runs");
        for device in on.iter() {
            let there = &mut books[device as usize];
            there.memory -= spec.memory_bytes;
            there.share_ppm -= spec.share_ppm;
            there.wide &= on.iter().count() == 1;
            reserved -= spec.memory_bytes;
        }
        let fails = random.below(100) == 0;
        let failed = Outcome::Failed {
            reason: Reason::UserError,
            error: "e".into(),
        };
        table
            .finish(&id, if fails { failed } else { Outcome::Succeeded }, now)
            .expect("it runs");
        *(if fails { &mut out.failed } else { &mut out.succeeded }) += 1;
        if (out.failed + out.succeeded) % audit_every == 0 {
            table.audit().unwrap();
            out.audits += 1;
        }
    }
    table.audit().unwrap();
    let stats = table.stats(now);
    assert_eq!(
        (stats.reserved_memory, stats.reserved_share_ppm, stats.submitted),
        (0, 0, tasks as u64)
    );
    out.memory_percent = 100.0 * used as f64 / (MEMORY as f64 * devices as f64 * (now - 1) as f64);
    out
}

/// Most ask for one device, whichever; some for one of their own, and every tenth for several.
fn random_spec(number: usize, devices: usize, random: &mut Random) -> TaskSpec {
    let count = (2u64 << random.below(3)).min(devices as u64);
    let first = random.below(devices as u64 - count + 1) as u32;
    let devices = match random.below(20) {
        0 => Devices::All((first..first + count as u32).collect()),
        1 => Devices::Any(count as u32),
        2..=5 => Devices::All(vec![random.below(devices as u64) as u32]),
        _ => Devices::Any(1),
    };
    let mut spec = TaskSpec {
        memory_bytes: random.below(30 << 30),
        share_ppm: random.below(400_000) as u32,
        priority: random.below(3) as i32,
        devices,
        name: "task".into(),
        ..TaskSpec::new(number.to_string())
    };
    spec.policy = if spec.reservation().is_empty() {
        Policy::BestEffort
    } else {
        Policy::Burstable
    };
    spec
}
