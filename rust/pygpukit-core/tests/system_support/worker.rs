//! Dispatchers inside tasks: what they take from the pool, launch through the gate, and leave.

use super::kernel::Kernel;
use super::{System, MIB, US};
use pygpukit_core::clock::Clock;
use pygpukit_core::driver::Driver;
use pygpukit_core::pacing::{Command, Submitted, Work};
use pygpukit_core::pool::{Allocation, Owner, PoolError};
use pygpukit_core::scheduler::{Outcome, Reason, TaskContext};
use std::sync::Arc;

/// A dispatcher inside a task.
pub(super) struct Worker {
    pub(super) context: Arc<TaskContext>,
    pub(super) guaranteed: bool,
    pub(super) owner: Owner,
    pub(super) stream: u64,
    pub(super) blocks: Vec<Allocation>,
    /// Launches that are left.
    pub(super) left: u64,
    pub(super) at_ns: u64,
    /// How it ends, once the device has done its work.
    pub(super) outcome: Option<Outcome>,
}

impl System {
    pub(super) fn step_worker(&mut self, at: usize) {
        let now = self.now();
        let worker = &self.workers[at];
        if worker.outcome.is_none() && worker.context.stopped() {
            self.tally.cancelled_inside += 1;
            self.workers[at].outcome = Some(Outcome::Succeeded); // which it is not any more: the table knows better
        }
        if self.workers[at].outcome.is_some() {
            return self.leave(at);
        }
        let worker = &self.workers[at];
        let result = match self.random.below(8) {
            _ if worker.left == 0 => {
                let failed = |reason| Outcome::Failed {
                    reason,
                    error: "injected".into(),
                };
                self.workers[at].outcome = Some(match self.random.below(if self.open { 16 } else { 1 << 40 }) {
                    0 => failed(Reason::UserError),
                    1 => failed(Reason::CompileError),
                    _ => Outcome::Succeeded,
                });
                Ok(())
            }
            0..=2 => self.allocate(at),
            3 => self.release(at),
            _ => self.launch(at),
        };
        if let Err(error) = result {
            let reason = match error {
                PoolError::OutOfMemory(_) => {
                    self.tally.out_of_memory += 1;
                    Reason::OutOfMemory
                }
                PoolError::Driver(_) | PoolError::Busy { .. } => {
                    self.tally.device_faults += 1;
                    Reason::LaunchError
                }
                error => panic!("{error}"),
            };
            let error = error_text(reason);
            self.workers[at].outcome = Some(Outcome::Failed { reason, error });
        }
        let by = self.workers[at].owner.account;
        self.read_ring(Some(by));
        let worker = &mut self.workers[at];
        worker.at_ns = worker.at_ns.max(now) + 2 * US + self.random.below(60 * US);
    }

    fn allocate(&mut self, at: usize) -> Result<(), PoolError> {
        let bytes = match self.random.below(6) {
            0 | 1 => 1 + self.random.below(6 * MIB),
            2 | 3 => 1 + self.random.below(MIB),
            _ => 1 + self.random.below(20_000),
        };
        let worker = &mut self.workers[at];
        let block = self.pool.alloc(bytes, worker.stream, worker.owner)?;
        worker.blocks.push(block);
        Ok(())
    }

    /// Frees a block that no deferred launch uses.
    fn release(&mut self, at: usize) -> Result<(), PoolError> {
        let worker = &mut self.workers[at];
        if !worker.blocks.is_empty() && !self.gate.has_deferred(Some(worker.stream)) {
            let block = self.random.below(worker.blocks.len() as u64);
            self.pool.free(worker.blocks.swap_remove(block as usize).block)?;
        }
        Ok(())
    }

    fn launch(&mut self, at: usize) -> Result<(), PoolError> {
        let worker = &mut self.workers[at];
        let Some(&block) = worker
            .blocks
            .get(self.random.below(worker.blocks.len().max(1) as u64) as usize)
        else {
            return self.allocate(at);
        };
        self.pool.pin(block.block, worker.owner.account)?;
        let name = self.random.below(20);
        let kernel = Kernel {
            sim: self.sim.clone(),
            pool: self.pool.clone(),
            block,
            stream: worker.stream,
            ns: (2 + 8 * name) * US,
            refused: self.open && self.random.one_in(400),
        };
        let work = Work {
            stream: worker.stream,
            name: name as u32 + 1,
            size: 1,
            ..Work::default()
        };
        let submitted = self.gate.submit(
            &worker.context,
            work,
            || kernel.issue(),
            || Arc::new(kernel.kept()),
            || (),
        );
        self.digest.add(&[worker.context.number, code(&submitted)]);
        match submitted {
            Submitted::Issued | Submitted::Deferred => worker.left -= 1,
            Submitted::Full => worker.at_ns = self.sim.now_ns() + 50 * US,
            Submitted::Stopped => {}
            Submitted::Refused(_) => {
                self.tally.refused += 1;
                let (reason, error) = (Reason::LaunchError, "refused".to_string());
                worker.outcome = Some(Outcome::Failed { reason, error });
            }
        }
        self.wake_gate();
        Ok(())
    }

    fn wake_gate(&mut self) {
        if self.step_ns == u64::MAX && self.gate.has_deferred(None) {
            self.step_ns = self.now() + 5 * US + self.random.below(50 * US);
        }
    }

    /// Leaves a task once the device has done its work, however it ends.
    fn leave(&mut self, at: usize) {
        let (now, worker) = (self.now(), &mut self.workers[at]);
        if self.gate.has_deferred(Some(worker.stream)) || !self.sim.stream_done(worker.stream).unwrap_or(false) {
            worker.at_ns = now + 20 * US;
            return self.wake_gate();
        }
        if let Some(&block) = worker.blocks.last() {
            // Another step of its own for each: whatever happens between them.
            self.pool.free(block.block).expect("a live block");
            worker.blocks.pop();
            worker.at_ns = now + self.random.below(2 * US);
            let by = worker.owner.account;
            return self.read_ring(Some(by));
        }
        let worker = self.workers.swap_remove(at);
        if self.random.one_in(2) {
            _ = self.gate.take_refusal(worker.stream); // else it goes with the tenant
        }
        self.gate.leave(&worker.context);
        self.pool.close_account(worker.owner.account);
        assert_eq!(self.pool.account(worker.owner.account), None, "it holds nothing");
        self.free_streams.push(worker.stream);
        let outcome = worker.outcome.expect("it has ended");
        self.table
            .finish(&worker.context.id, outcome, now)
            .expect("it was inside");
        self.tally.throttled += u64::from(worker.context.throttled_ns() > 0);
        self.left.push_back(worker.context);
        self.read_ring(None);
    }
}

fn error_text(reason: Reason) -> String {
    format!("injected {reason:?}")
}

fn code(submitted: &Submitted) -> u64 {
    match submitted {
        Submitted::Issued => 0,
        Submitted::Deferred => 1,
        Submitted::Full => 2,
        Submitted::Stopped => 3,
        Submitted::Refused(_) => 4,
    }
}
