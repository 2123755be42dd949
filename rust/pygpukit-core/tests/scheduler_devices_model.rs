//! Random tasks on many devices: after every operation, every promise that the table makes is checked on its records.

mod cases;
mod scheduler_devices_support;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::scheduler::{
    admission_named, Config, Devices, Outcome, Phase, Placement, Policy, Reason, TaskSpec, TaskTable, Transition,
};
use scheduler_devices_support::devices;
use scheduler_devices_support::promises::{Promises, Seen};

#[derive(Clone, Debug)]
enum Op {
    Submit {
        memory: u64,
        share_ppm: u32,
        devices: Devices,
        priority: i32,
        after: u8,
    },
    Next,
    Finish {
        who: u8,
        ok: bool,
    },
    Cancel {
        who: u8,
    },
    Pause {
        who: u8,
    },
    Resume {
        who: u8,
    },
    Requeue {
        who: u8,
    },
    Adjust {
        who: u8,
        priority: i32,
    },
    Wait,
}

const DEVICES: usize = 5;

fn asked() -> impl Strategy<Value = Devices> {
    prop_oneof![
        2 => Just(Devices::OfPartition),
        3 => (0..DEVICES as u32).prop_map(|device| Devices::All(vec![device])),
        3 => prop::collection::vec(0..DEVICES as u32, 1..4).prop_map(Devices::All),
        5 => (1..=DEVICES as u32).prop_map(Devices::Any),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let submit = (0u64..130, 0u32..1_100_000, 0u8..9, asked(), -1i32..3, 0u8..12);
    let submit = submit.prop_map(|(memory, share_ppm, kind, devices, priority, after)| {
        let (memory, share_ppm) = match kind {
            0 => (0, 0),
            1..=4 => (memory / 3, share_ppm / 4),
            5 | 6 => (memory / 2, 0),
            _ => (memory, share_ppm),
        };
        Op::Submit {
            memory,
            share_ppm,
            devices,
            priority,
            after,
        }
    });
    prop_oneof![
        8 => submit,
        7 => Just(Op::Next),
        6 => (0u8..12, prop::bool::weighted(0.8)).prop_map(|(who, ok)| Op::Finish { who, ok }),
        1 => (0u8..20).prop_map(|who| Op::Cancel { who }),
        1 => (0u8..20).prop_map(|who| Op::Pause { who }),
        1 => (0u8..20).prop_map(|who| Op::Resume { who }),
        1 => (0u8..20).prop_map(|who| Op::Requeue { who }),
        1 => (0u8..20, -1i32..3).prop_map(|(who, priority)| Op::Adjust { who, priority }),
        1 => Just(Op::Wait),
    ]
}

struct Run {
    table: TaskTable,
    promises: Promises,
    specs: Vec<TaskSpec>,
    occupied: Vec<bool>,
    now: u64,
}

impl Run {
    fn new(admission: &str, placement: Placement) -> Run {
        let memory: Vec<u64> = (0..DEVICES as u64).map(|device| 100 + 10 * (device % 3)).collect();
        let config = Config {
            max_finished: 1 << 20,
            ..devices(&memory)
        };
        let mut table = TaskTable::new(config, Box::new(|_: &Transition<'_>| {}));
        table.set_order("fifo").unwrap();
        table.set_admission(admission_named(admission).unwrap());
        table.set_placement(placement);
        let promises = Promises {
            memory,
            share_ppm: 1_000_000,
            passes: admission == "first-fit",
        };
        Run {
            table,
            promises,
            specs: Vec::new(),
            occupied: Vec::new(),
            now: 1,
        }
    }

    fn pick(&self, who: u8, inside: bool) -> Option<String> {
        let mut from = (0..self.specs.len()).rev().filter(|&i| !inside || self.occupied[i]);
        from.nth(who.into()).map(|i| i.to_string())
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        match op {
            Op::Submit {
                memory,
                share_ppm,
                devices,
                priority,
                after,
            } => {
                let number = self.specs.len();
                let mut devices = devices.clone();
                if let Devices::All(list) = &mut devices {
                    list.sort_unstable();
                    list.dedup();
                }
                let before = number.checked_sub(usize::from(*after) + 1).filter(|_| *after < 3);
                let mut spec = TaskSpec {
                    memory_bytes: *memory,
                    share_ppm: *share_ppm,
                    devices,
                    priority: *priority,
                    idempotent: true,
                    depends_on: before.iter().map(|before| before.to_string().into()).collect(),
                    ..TaskSpec::new(number.to_string())
                };
                spec.policy = if spec.reservation().is_empty() {
                    Policy::BestEffort
                } else {
                    Policy::Burstable
                };
                self.table.submit(spec.clone(), now).unwrap();
                self.specs.push(spec);
                self.occupied.push(false);
            }
            Op::Next => {
                let Some(start) = self.table.next(now) else { return };
                let number: usize = start.context.id.parse().unwrap();
                assert_eq!(self.table.get(&start.context.id, now).unwrap().devices, start.devices);
                self.occupied[number] = true;
            }
            Op::Finish { who, ok } => {
                let Some(id) = self.pick(*who, true) else { return };
                let failed = Outcome::Failed {
                    reason: Reason::UserError,
                    error: "e".into(),
                };
                let outcome = if *ok { Outcome::Succeeded } else { failed };
                self.table.finish(&id, outcome, now).unwrap();
                self.occupied[id.parse::<usize>().unwrap()] = false;
            }
            Op::Cancel { who } => _ = self.pick(*who, false).map(|id| self.table.cancel(&id, now)),
            Op::Pause { who } => _ = self.pick(*who, false).map(|id| self.table.pause(&id, now)),
            Op::Resume { who } => _ = self.pick(*who, false).map(|id| self.table.resume(&id, now)),
            Op::Requeue { who } => {
                let Some(id) = self.pick(*who, false) else { return };
                if self.table.requeue(&id, Reason::WaitingForDevice, now).is_ok() {
                    self.occupied[id.parse::<usize>().unwrap()] = false;
                }
            }
            Op::Adjust { who, priority } => {
                let Some(id) = self.pick(*who, false) else { return };
                let change = pygpukit_core::scheduler::Change {
                    priority: Some(*priority),
                    ..Default::default()
                };
                if self.table.adjust(&id, change, now).is_ok() {
                    self.specs[id.parse::<usize>().unwrap()].priority = *priority;
                }
            }
            Op::Wait => {
                self.now += 2_000_000_000;
                self.table.advance(self.now);
            }
        }
    }

    fn check(&mut self) {
        self.table.audit().unwrap();
        let records = self.table.snapshot(self.now);
        let seen = records
            .iter()
            .zip(&self.specs)
            .zip(&self.occupied)
            .map(|((record, spec), &occupied)| {
                // Its place in line is in the record of a task that only the ledgers are in the way of.
                let waits_in_line = record.phase == Phase::Queued && record.detail.position.is_some();
                Seen {
                    spec,
                    record,
                    occupied,
                    waits_in_line,
                }
            });
        self.promises.check(&seen.collect::<Vec<_>>());
    }

    /// Every task ends, and everything is given back.
    fn drain(mut self) {
        for number in 0..self.specs.len() {
            let _ = self.table.resume(&number.to_string(), self.now);
        }
        for _ in 0..10 * self.specs.len() + 10 {
            self.apply(&Op::Wait);
            while self.pick(0, true).is_some() {
                self.apply(&Op::Finish { who: 0, ok: true });
            }
            self.apply(&Op::Next);
        }
        self.check();
        let stats = self.table.stats(self.now);
        assert_eq!(
            (stats.queued, stats.admitted, stats.running, stats.reserved_memory),
            (0, 0, 0, 0)
        );
    }
}

fn run(ops: &[Op], admission: &str, placement: Placement, every: usize) {
    let mut run = Run::new(admission, placement);
    for (i, op) in ops.iter().enumerate() {
        run.apply(op);
        if i % every == 0 {
            run.check();
        }
    }
    run.drain();
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn promises_hold_after_every_operation(ops in prop::collection::vec(op(), 1..150), pack: bool) {
        let placement = if pack { Placement::Pack } else { Placement::Spread };
        run(&ops, "in-order", placement, 1);
    }

    #[test]
    fn promises_hold_where_those_that_fit_pass(ops in prop::collection::vec(op(), 1..100), pack: bool) {
        let placement = if pack { Placement::Pack } else { Placement::Spread };
        run(&ops, "first-fit", placement, 1);
    }
}
