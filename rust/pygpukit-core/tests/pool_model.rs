//! The pool against a simple model, with random calls on random streams and failing device calls.

mod cases;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::driver::Driver;
use pygpukit_core::pool::{class_of, Allocation, Moved, Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::{kind, Ring};
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver, SimUsage};

const MIB: u64 = 1 << 20;

#[derive(Clone, Debug)]
enum Step {
    Alloc { bytes: u64, stream: u64, work_ns: u64 },
    Free(usize),
    Shorten(usize, u64),
    Launch { block: usize, stream: u64, work_ns: u64 },
    Read(usize),
    Write(usize),
    Touch(usize),
    Evict(usize),
    Restore(usize),
    Pin(usize),
    Unpin(usize),
    Advance(u64),
    Trim,
    SetLimit(u64),
    Retire(u64),
    Fail(Call, u64, i32),
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1u64..5000, 3 => 5000u64..MIB, 3 => MIB..8 * MIB, 1 => 16 * MIB..20 * MIB]
}

fn failing() -> impl Strategy<Value = Step> {
    let call = prop::sample::select(vec![
        Call::AddressReserve,
        Call::AddressFree,
        Call::PhysicalCreate,
        Call::PhysicalRelease,
        Call::Map,
        Call::Unmap,
        Call::HostAlloc,
        Call::CopyToHost,
        Call::CopyToDevice,
        Call::CopyOnDevice,
        Call::StreamWait,
        Call::EventCreate,
        Call::EventRecord,
        Call::EventDone,
        Call::EventWait,
        Call::StreamWaitEvent,
        Call::MemoryInfo,
    ]);
    (call, 1u64..4, prop::sample::select(vec![2, 700])).prop_map(|(call, nth, code)| Step::Fail(call, nth, code))
}

fn steps(failures: bool) -> impl Strategy<Value = Vec<Step>> {
    let any = 0usize..1000;
    let stream = 0u64..4;
    let work = prop::sample::select(vec![0u64, 100, 10_000, 1_000_000]);
    let step = prop_oneof![
        12 => (sizes(), stream.clone(), work.clone()).prop_map(|(bytes, stream, work_ns)| Step::Alloc { bytes, stream, work_ns }),
        8 => any.clone().prop_map(Step::Free),
        3 => (any.clone(), 0u64..120).prop_map(|(block, percent)| Step::Shorten(block, percent)),
        5 => (any.clone(), stream, work).prop_map(|(block, stream, work_ns)| Step::Launch { block, stream, work_ns }),
        3 => any.clone().prop_map(Step::Read),
        2 => any.clone().prop_map(Step::Write),
        1 => any.clone().prop_map(Step::Touch),
        3 => any.clone().prop_map(Step::Evict),
        3 => any.clone().prop_map(Step::Restore),
        2 => any.clone().prop_map(Step::Pin),
        3 => any.prop_map(Step::Unpin),
        2 => (0u64..2_000_000).prop_map(Step::Advance),
        1 => Just(Step::Trim),
        1 => (4u64..64).prop_map(|m| Step::SetLimit(m * MIB + 12_345)),
        1 => (1u64..4).prop_map(Step::Retire),
        3 => if failures { failing().boxed() } else { Just(Step::Trim).boxed() },
    ];
    prop::collection::vec(step, 1..90)
}

struct Block {
    allocation: Allocation,
    stream: u64,
    streams: Vec<u64>,
    value: u8,
    pinned: bool,
}

/// Where the pool's room ends, and what goes wrong.
#[derive(Clone, Copy, Debug)]
struct Setting {
    limit_bytes: u64,
    memory_bytes: u64,
    eviction: bool,
    failures: bool,
    spare_bytes: u64,
    /// Bytes are kept and compared, which takes most of the time.
    contents: bool,
}

struct World {
    sim: Arc<SimDriver>,
    ring: Arc<Ring>,
    pool: Pool,
    blocks: Vec<Block>,
    next_value: u8,
    setting: Setting,
}

const STAGING: u64 = 2 * MIB;

impl World {
    fn new(setting: Setting) -> World {
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

    fn step(&mut self, step: &Step) {
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
                let wanted = class_of(before * percent / 100).expect("a class").bytes;
                let now = self.pool.shorten(block.allocation.block, wanted).expect("a live block");
                // SAFETY: the block is not freed and the pool lives.
                let resident = unsafe { &*block.allocation.state }.resident.load(Ordering::SeqCst) == 1;
                assert_eq!(now, if resident { wanted.min(before) } else { before });
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

    /// Bytes of segments with memory behind them.
    fn mapped(&self) -> u64 {
        self.pool.segments().iter().filter(|s| s.mapped).map(|s| s.bytes).sum()
    }

    fn check(&self) {
        let violations = self.sim.violations();
        assert!(violations.is_empty(), "{violations:?}");
        if let Err(difference) = self.pool.audit() {
            panic!("{difference}");
        }
        let (stats, usage) = (self.pool.stats(), self.sim.usage());
        assert_eq!(stats.reserved, usage.physical_bytes);
        assert_eq!(stats.segment_count, usage.address_ranges as u64);
        let kept = stats.reserved - self.mapped();
        assert!(stats.spare <= self.setting.spare_bytes && stats.spare <= kept);
        assert!(
            self.setting.failures || [0, STAGING].contains(&(kept - stats.spare)),
            "{kept} bytes are kept unmapped, {} of them spares",
            stats.spare
        );
        assert_eq!(stats.active_blocks, self.blocks.len() as u64);
        let infos: HashMap<u64, _> = self.pool.blocks().into_iter().map(|b| (b.block, b)).collect();
        let mut used = 0;
        for block in &self.blocks {
            let info = infos[&block.allocation.block];
            assert_eq!(info.address, block.allocation.address, "a block never moves");
            assert!(info.resident || !block.pinned, "a pinned block was evicted");
            used += if info.resident { info.bytes } else { 0 };
        }
        assert_eq!(stats.used, used);
    }

    /// The log alone gives the same books.
    fn replay(&self) {
        let (records, _, lost) = self.ring.read(1, usize::MAX);
        assert_eq!(lost, 0);
        let (mut resident, mut evicted, mut reserved) = (HashMap::new(), HashMap::new(), 0);
        let mut traffic: HashMap<u32, (u64, u64)> = HashMap::new();
        for event in records.into_iter().map(|r| r.event) {
            match event.kind {
                kind::EVICT => traffic.entry(event.tenant).or_default().0 += event.b,
                kind::RESTORE => traffic.entry(event.tenant).or_default().1 += event.b,
                _ => {}
            }
            match event.kind {
                kind::ALLOC => assert!(resident.insert(event.c, event.b).is_none()),
                kind::FREE => assert!(resident.remove(&event.c).or_else(|| evicted.remove(&event.c)) == Some(event.b)),
                kind::EVICT => assert!(evicted
                    .insert(event.c, resident.remove(&event.c).expect("resident"))
                    .is_none()),
                kind::RESTORE => assert!(resident
                    .insert(event.c, evicted.remove(&event.c).expect("evicted"))
                    .is_none()),
                kind::SEGMENT_MAP | kind::SEGMENT_UNMAP => reserved = event.c,
                _ => assert_eq!(event.kind, kind::OUT_OF_MEMORY),
            }
        }
        let (by_tenant, others) = self.pool.traffic();
        let by_tenant: HashMap<_, _> = by_tenant
            .into_iter()
            .map(|(t, m)| (t, (m.evicted, m.restored)))
            .collect();
        assert_eq!((by_tenant, others), (traffic, Moved::default()));
        let stats = self.pool.stats();
        assert_eq!(
            (resident.values().sum(), evicted.values().sum(), reserved),
            (stats.used, stats.evicted, stats.reserved)
        );
    }

    fn finish(mut self) {
        self.sim.heal();
        for i in 0..self.blocks.len() {
            self.step(&Step::Unpin(i));
            self.step(&Step::Read(i));
        }
        self.replay();
        while !self.blocks.is_empty() {
            self.step(&Step::Free(0));
            self.check();
        }
        self.pool.clear().expect("nothing is pinned");
        self.check();
        self.replay();
        let stats = self.pool.stats();
        assert_eq!(
            (
                stats.used,
                stats.cached,
                stats.reserved,
                stats.evicted,
                stats.segment_count
            ),
            (0, 0, 0, 0, 0)
        );
        assert_eq!((stats.active_blocks, stats.free_blocks), (0, 0));
        let World { sim, pool, .. } = self;
        drop(pool);
        assert_eq!(sim.usage(), SimUsage::default(), "everything was given back");
        assert_eq!(sim.violations(), Vec::<String>::new());
    }
}

/// What may be kept: nothing, some of the blocks' sizes, all of them.
fn spares() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 3 * MIB, 10 * MIB, u64::MAX])
}

fn run(mut world: World, steps: &[Step]) {
    for step in steps {
        world.step(step);
        world.check();
    }
    world.finish();
}

/// A limit, a device smaller than the limit, or no eviction.
fn settings(failures: bool, contents: bool) -> impl Strategy<Value = Setting> {
    let setting = move |limit_bytes, memory_bytes, eviction, spare_bytes| Setting {
        limit_bytes,
        memory_bytes,
        eviction,
        failures,
        spare_bytes,
        contents,
    };
    prop_oneof![
        2 => (8u64..48, spares()).prop_map(move |(limit, spare)| setting(limit * MIB + 777, 64 * MIB, true, spare)),
        1 => (8u64..48).prop_map(move |limit| setting(limit * MIB, 64 * MIB, false, 4 * MIB)),
        1 => (4u64..20, spares()).prop_map(move |(memory, spare)| setting(u64::MAX, memory * 2 * MIB, true, spare)),
    ]
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_books_follow_the_model(steps in steps(false), setting in settings(false, false)) {
        run(World::new(setting), &steps);
    }

    #[test]
    fn the_books_follow_the_model_while_device_calls_fail(steps in steps(true), setting in settings(true, false)) {
        run(World::new(setting), &steps);
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn contents_follow_the_model(steps in steps(false), setting in settings(false, true)) {
        run(World::new(setting), &steps);
    }

    #[test]
    fn contents_follow_the_model_while_device_calls_fail(steps in steps(true), setting in settings(true, true)) {
        run(World::new(setting), &steps);
    }
}
