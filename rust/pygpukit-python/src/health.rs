//! The health of this process's device: told by the error of a failed call, asked by every scheduler.

use std::sync::{Arc, OnceLock};

use crate::text::Text;
use pygpukit_core::scheduler::DeviceHealth;
use pyo3::prelude::*;

extern "C" {
    /// core.h: whether a fault that was seen still stands.
    fn pk_fault_stands() -> i32;
}

/// One for all schedulers: submissions name no device, and a fault of a CUDA context is the process's.
pub fn of_process() -> Arc<DeviceHealth> {
    static HEALTH: OnceLock<Arc<DeviceHealth>> = OnceLock::new();
    // SAFETY: it reads flags.
    let new_health = || Arc::new(DeviceHealth::new(|| unsafe { pk_fault_stands() } != 0));
    HEALTH.get_or_init(new_health).clone()
}

/// The device of this process answers nothing any more: schedulers reject tasks with these words while that lasts.
#[pyfunction]
pub fn device_failed(why: Text<'_>) {
    of_process().fail(&why);
}
