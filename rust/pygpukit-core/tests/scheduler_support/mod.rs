//! Helpers of the task table's tests: a table with its log, short specifications, short looks.
#![allow(dead_code)] // each test binary uses its own part

use pygpukit_core::partition::{Limits, Reservation};
use pygpukit_core::scheduler::{Config, Outcome, Phase, Policy, Reason, TaskRecord, TaskSpec, TaskTable, Transition};
use std::sync::{Arc, Mutex};

pub type Log = Arc<Mutex<Vec<(u64, Phase, Phase, Reason)>>>;

pub fn table(config: Config) -> (TaskTable, Log) {
    let log = Log::default();
    let sink = log.clone();
    let observer = move |t: &Transition<'_>| sink.lock().unwrap().push((t.number, t.from, t.to, t.reason));
    (TaskTable::new(config, Box::new(observer)), log)
}

pub fn small() -> (TaskTable, Log) {
    table(Config::new(100))
}

pub fn asks(id: &str, memory_bytes: u64, share_ppm: u32) -> TaskSpec {
    let policy = if (memory_bytes, share_ppm) == (0, 0) {
        Policy::BestEffort
    } else {
        Policy::Burstable
    };
    TaskSpec {
        memory_bytes,
        share_ppm,
        policy,
        ..TaskSpec::new(id)
    }
}

pub fn urgent(id: &str, memory: u64, priority: i32) -> TaskSpec {
    TaskSpec {
        priority,
        ..asks(id, memory, 0)
    }
}

pub fn within(partition: &str, spec: TaskSpec) -> TaskSpec {
    TaskSpec {
        partition: partition.into(),
        ..spec
    }
}

pub fn after(id: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec {
        depends_on: depends_on.iter().map(|d| (*d).into()).collect(),
        ..TaskSpec::new(id)
    }
}

pub fn create(table: &mut TaskTable, id: &str, limits: Limits) {
    table
        .with_partitions(0, |partitions| partitions.create(id, id, limits))
        .unwrap();
}

pub fn bytes(memory_bytes: u64) -> Reservation {
    Reservation {
        memory_bytes,
        share_ppm: 0,
    }
}

pub fn failed(error: &str) -> Outcome {
    Outcome::Failed {
        reason: Reason::UserError,
        error: error.into(),
    }
}

pub fn phase(table: &mut TaskTable, id: &str) -> Phase {
    table.get(id, 0).unwrap().phase
}

pub fn next(table: &mut TaskTable, now: u64) -> Option<String> {
    table.next(now).map(|start| start.context.id.to_string())
}

pub fn detail(record: &TaskRecord) -> Vec<(&'static str, u64)> {
    record.detail.fields().collect()
}
