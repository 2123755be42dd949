//! A pool on a simulated device beside what a user knows of his blocks: each step is done to both.

use super::strategies::{Setting, Step};
use super::MIB;
use pygpukit_core::driver::Driver;
use pygpukit_core::pool::{class_of, Allocation, Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::Ring;
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use std::sync::atomic::Ordering;
use std::sync::Arc;

pub(super) const STAGING: u64 = 2 * MIB;

pub(super) struct Block {
    pub(super) allocation: Allocation,
    pub(super) stream: u64,
    pub(super) streams: Vec<u64>,
    pub(super) value: u8,
    pub(super) pinned: bool,
}

pub struct World {
    pub(super) sim: Arc<SimDriver>,
    pub(super) ring: Arc<Ring>,
    pub(super) pool: Pool,
    pub(super) blocks: Vec<Block>,
    pub(super) next_value: u8,
    pub(super) setting: Setting,
}

impl World {
    pub fn new(setting: Setting) -> World {
        let sim = Arc::new(SimDriver::new(SimConfig {
            memory_bytes: setting.memory_bytes,
            store: setting.contents,
            ..SimConfig::default()
        }));
        let ring = Arc::new(Ring::new(1 << 14));
        let services = Services {
            ring: ring.clone(),
            clock: sim.clone(),
        };
        let config = PoolConfig {
            limit_bytes: setting.limit_bytes,
            eviction: setting.eviction,
            host_cache_bytes: 8 * MIB,
            staging_bytes: STAGING,
            spare_bytes: setting.spare_bytes,
        };
        let pool = Pool::new(sim.clone(), config, services).expect("the simulated device answers");
        World {
            sim,
            ring,
            pool,
            blocks: Vec::new(),
            next_value: 0,
            setting,
        }
    }

    /// What a launcher does: pin, restore if need be, order after the block's other streams, record the use, enqueue, unpin.
    fn launch(&mut self, at: usize, stream: u64, fill: bool, work_ns: u64) {
        let block = &mut self.blocks[at];
        // SAFETY: the block is not freed and the pool lives.
        let state = unsafe { &*block.allocation.state };
        loop {
            state.pins.fetch_add(1, Ordering::SeqCst);
            if state.resident.load(Ordering::SeqCst) == 1 {
                break;
            }
            state.pins.fetch_sub(1, Ordering::SeqCst);
            if let Err(error) = self.pool.restore(block.allocation.block) {
                assert!(
                    self.setting.failures || matches!(error, PoolError::OutOfMemory(_)),
                    "{error}"
                );
                return;
            }
        }
        self.sim.heal(); // what follows is the user's own
        for &other in block.streams.iter().filter(|&&other| other != stream) {
            let event = self.sim.event_create().expect("healthy");
            self.sim.event_record(event, other).expect("healthy");
            self.sim.stream_wait_event(stream, event).expect("healthy");
            self.sim.event_destroy(event).expect("healthy");
        }
        if stream != block.stream {
            self.pool
                .record_use(block.allocation.block, stream)
                .expect("a live block");
        }
        if !block.streams.contains(&stream) {
            block.streams.push(stream);
        }
        if fill {
            self.next_value = self.next_value.wrapping_add(1);
            block.value = self.next_value;
        }
        self.sim.launch(
            stream,
            block.allocation.address,
            block.allocation.bytes,
            fill.then_some(block.value),
            work_ns,
        );
        state.last_use.fetch_add(1, Ordering::Relaxed);
        state.pins.fetch_sub(1, Ordering::SeqCst);
    }

    fn expect(&self, result: Result<(), PoolError>, allowed: impl Fn(&PoolError) -> bool) {
        if let Err(error) = result {
            let injected = self.setting.failures && matches!(error, PoolError::Driver(_) | PoolError::Busy { .. });
            assert!(injected || allowed(&error), "{error}");
        }
    }

    pub(super) fn step(&mut self, step: &Step) {
        let count = self.blocks.len();
        let at = |i: &usize| (count > 0).then(|| i % count.max(1));
        match step {
            Step::Read(_) | Step::Write(_) if !self.setting.contents => {}
            Step::Alloc { bytes, stream, work_ns } => match self.pool.alloc(*bytes, *stream, Owner::default()) {
                Ok(allocation) => {
                    assert_eq!(Some(allocation.bytes), class_of(*bytes).map(|c| c.bytes));
                    let clash = |b: &Block| {
                        let (a, b) = (allocation, b.allocation);
                        a.address < b.address + b.bytes && b.address < a.address + a.bytes
                    };
                    assert!(!self.blocks.iter().any(clash), "blocks overlap");
                    assert!(!self.blocks.iter().any(|b| b.allocation.block == allocation.block));
                    let (stream, streams) = (*stream, vec![*stream]);
                    self.blocks.push(Block {
                        allocation,
                        stream,
                        streams,
                        value: 0,
                        pinned: false,
                    });
                    self.launch(self.blocks.len() - 1, stream, true, *work_ns);
                }
                Err(error) => self.expect(Err(error), |e| matches!(e, PoolError::OutOfMemory(_))),
            },
            Step::Free(i) => {
                let Some(at) = at(i).filter(|&at| !self.blocks[at].pinned) else {
                    return;
                };
                let block = self.blocks.swap_remove(at).allocation.block;
                self.pool.free(block).expect("a live block");
                assert_eq!(self.pool.free(block), Err(PoolError::BadBlock(block)));
            }
            Step::Shorten(i, percent) => {
                let Some(block) = at(i).map(|at| &mut self.blocks[at]) else {
                    return;
                };
                let before = block.allocation.bytes;
                let target = class_of(before * percent / 100).expect("a class").bytes;
                let now = self.pool.shorten(block.allocation.block, target).expect("a live block");
                // SAFETY: the block is not freed and the pool lives.
                let resident = unsafe { &*block.allocation.state }.resident.load(Ordering::SeqCst) == 1;
                assert_eq!(now, if resident { target.min(before) } else { before });
                block.allocation.bytes = now;
            }
            Step::Launch { block, stream, work_ns } => {
                let Some(at) = at(block) else { return };
                self.launch(at, *stream, work_ns % 3 != 0, *work_ns);
            }
            Step::Read(i) => {
                let Some(block) = at(i).map(|at| &self.blocks[at]) else {
                    return;
                };
                let mut bytes = vec![0; block.allocation.bytes as usize];
                let read = self.pool.read_block(block.allocation.block, 0, &mut bytes);
                if read.is_ok() {
                    assert!(bytes == vec![block.value; bytes.len()], "contents");
                }
                self.expect(read, |_| false);
            }
            Step::Write(i) => {
                let Some(at) = at(i) else { return };
                self.next_value = self.next_value.wrapping_add(1);
                let block = &mut self.blocks[at];
                let data = vec![self.next_value; block.allocation.bytes as usize];
                let written = self.pool.write_block(block.allocation.block, 0, &data);
                match written {
                    Ok(()) => block.value = self.next_value,
                    Err(_) => {
                        // Whether the bytes arrived is open: start afresh.
                        self.sim.heal();
                        let value = block.value;
                        let data = vec![value; block.allocation.bytes as usize];
                        self.pool
                            .write_block(block.allocation.block, 0, &data)
                            .expect("healthy");
                    }
                }
                self.expect(written, |_| false);
            }
            Step::Touch(i) => {
                let Some(at) = at(i) else { return };
                self.pool.touch(self.blocks[at].allocation.block).expect("a live block");
            }
            Step::Evict(i) => {
                let Some(at) = at(i) else { return };
                let pinned = self.blocks[at].pinned;
                let evicted = self.pool.evict(self.blocks[at].allocation.block);
                assert!(!pinned || evicted.is_err(), "a pinned block was evicted");
                self.expect(evicted, |e| pinned && matches!(e, PoolError::Busy { .. }));
            }
            Step::Restore(i) => {
                let Some(at) = at(i) else { return };
                let restored = self.pool.restore(self.blocks[at].allocation.block);
                self.expect(restored, |e| matches!(e, PoolError::OutOfMemory(_)));
            }
            Step::Pin(i) => {
                let Some(block) = at(i).map(|at| &mut self.blocks[at]) else {
                    return;
                };
                // SAFETY: the block is not freed and the pool lives.
                let state = unsafe { &*block.allocation.state };
                if !block.pinned && state.resident.load(Ordering::SeqCst) == 1 {
                    state.pins.fetch_add(1, Ordering::SeqCst);
                    block.pinned = true;
                }
            }
            Step::Unpin(i) => {
                let Some(block) = at(i).map(|at| &mut self.blocks[at]) else {
                    return;
                };
                if std::mem::take(&mut block.pinned) {
                    // SAFETY: as above.
                    unsafe { &*block.allocation.state }.pins.fetch_sub(1, Ordering::SeqCst);
                }
            }
            Step::Advance(ns) => self.sim.advance_ns(*ns),
            Step::Trim => {
                let before = self.pool.stats().reserved;
                match self.pool.trim() {
                    Ok(released) => {
                        let reserved = self.pool.stats().reserved;
                        assert_eq!((before - released, self.mapped()), (reserved, reserved));
                    }
                    Err(error) => self.expect(Err(error), |_| false),
                }
            }
            Step::SetLimit(limit) => {
                let before = self.pool.limit();
                let set = self.pool.set_limit(*limit);
                assert_eq!(self.pool.limit(), if set.is_ok() { *limit } else { before });
                self.expect(set, |e| matches!(e, PoolError::OutOfMemory(_)));
            }
            Step::Retire(stream) => {
                // A stream is gone for good in the model only when none of its blocks is launched on it again.
                if self.blocks.iter().all(|b| !b.streams.contains(stream)) {
                    let retired = self.pool.retire_stream(*stream);
                    self.pool.register_stream(*stream, *stream as u32); // the handle comes back as a new stream
                    self.expect(retired, |_| false);
                }
            }
            Step::Fail(call, nth, code) => {
                self.sim.heal();
                self.sim.fail(*call, *nth, *code);
            }
        }
    }
}

pub fn run(mut world: World, steps: &[Step]) {
    for step in steps {
        world.step(step);
        world.check();
    }
    world.finish();
}
