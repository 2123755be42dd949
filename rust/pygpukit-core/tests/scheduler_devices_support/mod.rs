//! Helpers of the tests of tasks on several devices.
#![allow(dead_code)] // each test binary uses its own part

pub mod promises;
pub mod schedule;

use pygpukit_core::scheduler::{Config, Devices, TaskSpec};

/// Devices of these bytes.
pub fn devices(memory: &[u64]) -> Config {
    Config {
        further_memory: memory[1..].to_vec(),
        max_queue: 1 << 20,
        ..Config::new(memory[0])
    }
}

pub fn on(devices: &[u32], spec: TaskSpec) -> TaskSpec {
    TaskSpec {
        devices: Devices::All(devices.to_vec()),
        ..spec
    }
}

pub fn anywhere(count: u32, spec: TaskSpec) -> TaskSpec {
    TaskSpec {
        devices: Devices::Any(count),
        ..spec
    }
}
