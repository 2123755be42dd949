//! Which devices a submission asks for.

use pygpukit_core::scheduler as core;
use pyo3::prelude::*;

/// The devices of a submission, as Python says them.
#[derive(FromPyObject)]
pub enum AskedDevices {
    Count(u32),
    Numbers(Vec<u32>),
}

impl From<AskedDevices> for core::Devices {
    fn from(asked: AskedDevices) -> core::Devices {
        match asked {
            AskedDevices::Count(count) => core::Devices::Any(count),
            AskedDevices::Numbers(numbers) => core::Devices::All(numbers),
        }
    }
}
