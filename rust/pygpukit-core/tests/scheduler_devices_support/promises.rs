//! What a table of several devices promises, said a second time: checked on nothing but its records.

use pygpukit_core::scheduler::{Devices, Phase, TaskRecord, TaskSpec};
use std::cmp::Reverse;
use std::collections::HashSet;

/// What the checks know beside the records: the specifications, by number of submission, and who may be inside after its end.
pub struct Promises {
    pub memory: Vec<u64>,
    pub share_ppm: u64,
    /// Those behind a waiting task that fit pass it.
    pub passes: bool,
}

/// A task as the checks see it.
pub struct Seen<'a> {
    pub spec: &'a TaskSpec,
    pub record: &'a TaskRecord,
    pub occupied: bool,
    pub waits_in_line: bool,
}

impl Seen<'_> {
    fn holds(&self) -> bool {
        let phase = self.record.phase;
        matches!(phase, Phase::Admitted | Phase::Running | Phase::Suspended) || self.occupied
    }

    /// How many devices, and which, where that is said.
    fn asked(&self) -> (usize, Option<Vec<u32>>) {
        match &self.spec.devices {
            Devices::OfPartition => (1, Some(vec![0])),
            Devices::All(devices) => {
                let mut devices = devices.clone();
                devices.sort_unstable();
                (devices.len(), Some(devices))
            }
            Devices::Any(count) => (*count as usize, None),
        }
    }
}

#[derive(Clone, Default)]
struct Device {
    memory: u64,
    share_ppm: u64,
    gang: bool,
    /// An earlier task waits for its memory or share, or for its seat.
    blocked: bool,
    awaited: bool,
}

impl Promises {
    /// All promises at one moment. Tasks in the order of submission.
    pub fn check(&self, tasks: &[Seen<'_>]) {
        let devices = self.check_books(tasks.iter().filter(|task| task.holds()));
        self.check_work_is_conserved(tasks, devices.clone());
        if !self.passes {
            self.check_priorities(tasks);
        }
    }

    /// Nothing is given twice, and what is held is what was asked for, on all devices or none.
    fn check_books<'a>(&self, holders: impl Iterator<Item = &'a Seen<'a>>) -> Vec<Device> {
        let mut devices = vec![Device::default(); self.memory.len()];
        for task in holders {
            let id = &task.record.id;
            let on: Vec<u32> = task.record.devices.iter().collect();
            let (count, named) = task.asked();
            assert_eq!(on.len(), count, "task {id} holds {on:?}");
            assert_eq!(on.iter().collect::<HashSet<_>>().len(), count, "task {id} holds {on:?}");
            assert!(named.map_or(true, |named| named == on), "task {id} is on {on:?}");
            for device in on {
                let books = &mut devices[device as usize];
                books.memory += task.spec.memory_bytes;
                books.share_ppm += u64::from(task.spec.share_ppm);
                assert!(
                    !(books.gang && count > 1),
                    "two tasks of several devices on device {device}"
                );
                books.gang |= count > 1;
            }
        }
        for (device, (books, memory)) in devices.iter().zip(&self.memory).enumerate() {
            assert!(
                books.memory <= *memory && books.share_ppm <= self.share_ppm,
                "device {device}"
            );
        }
        devices
    }

    /// No task waits that fits, once those before it have what they wait for.
    fn check_work_is_conserved(&self, tasks: &[Seen<'_>], mut devices: Vec<Device>) {
        let mut waiting: Vec<(usize, &Seen<'_>)> = tasks.iter().enumerate().filter(|(_, t)| t.waits_in_line).collect();
        waiting.sort_by_key(|(number, task)| (Reverse(task.spec.priority), *number));
        let mut lines = HashSet::new();
        for (_, task) in waiting {
            let (count, named) = task.asked();
            // Tasks for all devices and tasks for a number of them wait in one line.
            let line = named
                .clone()
                .map_or_else(|| format!("any {count}"), |named| format!("{named:?}"));
            let line = if count == self.memory.len() { "all".into() } else { line };
            if !lines.insert(line) && !self.passes {
                continue;
            }
            let gang = count > 1;
            // One that asks for no memory and no share passes those that wait for them.
            let asks = !task.spec.reservation().is_empty();
            let behind = |d: &Device| !self.passes && ((asks && d.blocked) || (gang && d.awaited));
            let lack = |i: usize| {
                let (device, memory) = (&devices[i], self.memory[i]);
                let short = (device.memory + task.spec.memory_bytes).saturating_sub(memory);
                let share = (device.share_ppm + u64::from(task.spec.share_ppm)).saturating_sub(self.share_ppm);
                let ppm = |short: u64, of: u64| (u128::from(short) * 1_000_000).div_ceil(u128::from(of)) as u64;
                ppm(if task.spec.memory_bytes == 0 { 0 } else { short }, memory)
                    .max(ppm(if task.spec.share_ppm == 0 { 0 } else { share }, 1_000_000))
            };
            let all: Vec<usize> = match &named {
                Some(named) => named.iter().map(|&d| d as usize).collect(),
                None => (0..devices.len()).collect(),
            };
            let open: Vec<usize> = all.iter().copied().filter(|&i| !behind(&devices[i])).collect();
            let fits = open
                .iter()
                .filter(|&&i| lack(i) == 0 && !(gang && devices[i].gang))
                .count();
            assert!(fits < count, "task {} waits and fits", task.record.id);
            if open.len() < count {
                continue; // behind an earlier one
            }
            // It waits for those that lack the least, or for all that it names.
            let mut claims = open;
            if named.is_none() {
                claims.sort_by_key(|&i| {
                    (
                        task.spec.memory_bytes > self.memory[i],
                        lack(i),
                        gang && devices[i].gang,
                        i,
                    )
                });
                claims.truncate(count);
            }
            let short = claims.iter().any(|&i| lack(i) > 0);
            for i in claims {
                devices[i].blocked |= short;
                devices[i].awaited |= !short;
            }
        }
    }

    /// The first task that waits at all would not fit in the place of what lower priorities hold and have not begun.
    fn check_priorities(&self, tasks: &[Seen<'_>]) {
        let waiting = tasks.iter().enumerate().filter(|(_, task)| task.waits_in_line);
        let Some((_, first)) = waiting.min_by_key(|(number, task)| (Reverse(task.spec.priority), *number)) else {
            return;
        };
        let stays = |task: &&Seen<'_>| {
            let gives_way = task.record.phase == Phase::Admitted && task.spec.priority < first.spec.priority;
            task.holds() && !gives_way
        };
        let devices = self.check_books(tasks.iter().filter(stays));
        let (count, named) = first.asked();
        let all = named.unwrap_or((0..devices.len() as u32).collect());
        let fits = |&&device: &&u32| {
            let (books, spec) = (&devices[device as usize], first.spec);
            let memory = spec.memory_bytes == 0 || books.memory + spec.memory_bytes <= self.memory[device as usize];
            let share = spec.share_ppm == 0 || books.share_ppm + u64::from(spec.share_ppm) <= self.share_ppm;
            memory && share && !(count > 1 && books.gang)
        };
        let room = all.iter().filter(fits).count();
        assert!(
            room < count,
            "task {} waits for lower priorities that have not begun",
            first.record.id
        );
    }
}
