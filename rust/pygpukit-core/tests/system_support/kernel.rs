//! A kernel of a simulated task, which may be issued later than it was launched.

use pygpukit_core::driver::{DriverError, DriverResult};
use pygpukit_core::pacing::Command;
use pygpukit_core::pool::{Allocation, Pool};
use pygpukit_core::sim_driver::SimDriver;
use std::sync::Arc;

/// A kernel on a block, which stays on the device until it was issued or dropped.
pub(super) struct Kernel {
    pub(super) sim: Arc<SimDriver>,
    pub(super) pool: Arc<Pool>,
    pub(super) block: Allocation,
    pub(super) stream: u64,
    pub(super) ns: u64,
    pub(super) refused: bool,
}

impl Kernel {
    pub(super) fn kept(&self) -> Kernel {
        self.pool.pin(self.block.block, 0).expect("it is pinned already");
        Kernel {
            sim: self.sim.clone(),
            pool: self.pool.clone(),
            ..*self
        }
    }
}

impl Command for Kernel {
    fn issue(&self) -> DriverResult<()> {
        if self.refused {
            let text = "no such kernel".to_string();
            return Err(DriverError { code: 1, text });
        }
        self.sim
            .launch(self.stream, self.block.address, self.block.bytes, Some(1), self.ns);
        Ok(())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.pool.unpin(self.block.block);
    }
}
