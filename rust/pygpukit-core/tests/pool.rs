//! The pool's promises one by one.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use pygpukit_core::driver::Driver;
use pygpukit_core::intern::Interner;
use pygpukit_core::pool::{Allocation, Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::{kind, Ring};
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const NOBODY: Owner = Owner {
    tenant: 0,
    name: 0,
    cell: 0,
    line: 0,
    account: 0,
};

struct Rig {
    sim: Arc<SimDriver>,
    ring: Arc<Ring>,
    pool: Pool,
}

fn rig(limit_bytes: u64, eviction: bool) -> Rig {
    let sim = Arc::new(SimDriver::new(SimConfig::default()));
    let ring = Arc::new(Ring::new(1 << 12));
    let services = Services {
        ring: ring.clone(),
        clock: sim.clone(),
    };
    let config = PoolConfig {
        limit_bytes,
        eviction,
        ..PoolConfig::default()
    };
    let pool = Pool::new(sim.clone(), config, services).expect("the simulated device answers");
    Rig { sim, ring, pool }
}

impl Rig {
    fn alloc(&self, bytes: u64, stream: u64) -> Allocation {
        self.sim.advance_ns(1); // a later time for each, so that eviction order is known
        self.pool.alloc(bytes, stream, NOBODY).expect("there is room")
    }

    fn free(&self, allocation: &Allocation) {
        self.pool.free(allocation.block).expect("a live block");
    }

    fn resident(&self, allocation: &Allocation) -> bool {
        self.pool.block(allocation.block).expect("a live block").resident
    }

    fn kinds(&self) -> Vec<u16> {
        self.ring.read(1, 1000).0.iter().map(|r| r.event.kind).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.sim.violations(), Vec::<String>::new());
            self.pool.audit().expect("the books agree");
        }
    }
}

fn pin(allocation: &Allocation, by: i32) {
    // SAFETY: the tests keep pool and block alive.
    let pins = &unsafe { &*allocation.state }.pins;
    if by > 0 {
        pins.fetch_add(1, Ordering::SeqCst);
    } else {
        pins.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_hit_makes_no_device_call() {
    let r = rig(u64::MAX, false);
    let first = r.alloc(5000, 7);
    assert_eq!(first.bytes, 5120);
    r.free(&first);
    assert!(r.pool.try_alloc(5000, 8, NOBODY).is_none(), "another stream");
    assert!(r.pool.try_alloc(6000, 7, NOBODY).is_none(), "another class");
    let calls = [Call::PhysicalCreate, Call::EventRecord, Call::StreamWait].map(|call| r.sim.calls(call));
    let again = r.pool.try_alloc(5100, 7, NOBODY).expect("a hit");
    assert_eq!(again.address, first.address);
    assert_ne!(again.block, first.block, "ids are not reused");
    assert_eq!(r.pool.free(first.block), Err(PoolError::BadBlock(first.block)));
    assert_eq!(
        calls,
        [Call::PhysicalCreate, Call::EventRecord, Call::StreamWait].map(|call| r.sim.calls(call))
    );
    let stats = r.pool.stats();
    assert_eq!(
        (stats.allocation_count, stats.reuse_count, stats.cudamalloc_count),
        (2, 1, 1)
    );
    assert_eq!(
        (stats.used, stats.cached, stats.reserved),
        (5120, 2 * MIB - 5120, 2 * MIB)
    );
}

#[test]
fn small_blocks_share_a_segment_and_large_ones_do_not() {
    let r = rig(u64::MAX, false);
    let blocks: Vec<_> = (0..8).map(|_| r.alloc(256 * KIB, 0)).collect();
    assert_eq!(r.pool.stats().segment_count, 1);
    blocks.iter().for_each(|b| r.free(b));
    assert_eq!(
        r.alloc(MIB, 0).address,
        blocks[0].address,
        "freed neighbours merge at the first miss"
    );
    r.alloc(MIB, 0);
    assert_eq!(r.pool.stats().segment_count, 1);
    r.alloc(256, 0);
    r.alloc(3 * MIB, 0);
    assert_eq!((r.pool.stats().segment_count, r.pool.stats().reserved), (3, 8 * MIB));
}

#[test]
fn zero_bytes_are_a_block_too() {
    let r = rig(u64::MAX, false);
    assert_eq!(r.alloc(0, 0).bytes, 256);
    assert_eq!(r.pool.trim(), Ok(0));
}

#[test]
fn memory_used_on_another_stream_waits_for_it() {
    let r = rig(u64::MAX, false);
    let block = r.alloc(2 * MIB, 1);
    r.pool.record_use(block.block, 2).expect("a live block");
    r.sim.launch(2, block.address, block.bytes, Some(1), 1000);
    r.free(&block);
    assert!(r.pool.try_alloc(2 * MIB, 1, NOBODY).is_none());
    let other = r.alloc(2 * MIB, 1);
    assert_ne!(other.address, block.address, "stream 2 is not done");
    r.sim.advance_ns(2000);
    let again = r.alloc(2 * MIB, 1);
    assert_eq!(again.address, block.address);
    r.sim.launch(1, again.address, again.bytes, Some(2), 10);
}

#[test]
fn memory_freed_on_another_stream_is_taken_behind_an_event() {
    let r = rig(4 * MIB, false);
    let block = r.alloc(4 * MIB, 1);
    r.sim.launch(1, block.address, block.bytes, Some(1), 1000);
    r.free(&block);
    let again = r.alloc(4 * MIB, 2);
    assert_eq!(again.address, block.address);
    assert_eq!(r.sim.calls(Call::StreamWaitEvent), 1);
    r.sim.launch(2, again.address, again.bytes, Some(2), 10); // the simulated device checks the order
    r.sim.device_wait().expect("healthy");
    assert_eq!(r.sim.peek(again.address, 1), [2]);
}

#[test]
fn streams_are_not_serialised_while_there_is_room() {
    let r = rig(16 * MIB, false);
    let block = r.alloc(4 * MIB, 1);
    r.free(&block);
    r.alloc(6 * MIB, 1); // a miss: the freed block leaves the stream's lists
    assert_ne!(r.alloc(4 * MIB, 2).address, block.address);
    assert_eq!(r.sim.calls(Call::EventRecord), 0);
    assert_eq!(r.alloc(4 * MIB, 1).address, block.address);
}

#[test]
fn a_retired_stream_leaves_its_memory_to_all() {
    let r = rig(u64::MAX, false);
    let (freed, live) = (r.alloc(3 * MIB, 1), r.alloc(3 * MIB, 1));
    r.sim.launch(1, freed.address, freed.bytes, Some(1), 1000);
    r.free(&freed);
    r.pool.retire_stream(1).expect("healthy");
    let taken = r.alloc(3 * MIB, 2);
    assert_eq!(taken.address, freed.address);
    assert_eq!(r.sim.calls(Call::EventRecord), 0, "nothing is left to order");
    r.free(&live);
    assert_eq!(r.alloc(3 * MIB, 3).address, live.address);
}

#[test]
fn without_a_limit_the_error_names_none() {
    let r = rig(u64::MAX, false);
    let error = r.pool.alloc(1 << 50, 0, NOBODY).expect_err("more than the device has");
    let text = error.to_string();
    assert!(
        text.starts_with("out of device memory: asked for 1 PiB, ") && !text.contains("limit"),
        "{text}"
    );
    assert!(text.ends_with("; free arrays or enable eviction"), "{text}");
}

#[test]
fn the_limit_is_hard_and_the_error_says_who_holds_memory() {
    let r = rig(8 * MIB, false);
    let names = Interner::global();
    let owner = Owner {
        tenant: 0,
        name: names.intern("weights"),
        cell: names.intern("In[3]"),
        line: 4,
        account: 0,
    };
    let held = r.pool.alloc(6 * MIB, 0, owner).expect("there is room");
    let error = r.pool.alloc(4 * MIB, 0, NOBODY).expect_err("over the limit");
    let PoolError::OutOfMemory(detail) = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (detail.requested, detail.limit, detail.free, detail.used),
        (4 * MIB, 8 * MIB, 2 * MIB, 6 * MIB)
    );
    assert_eq!((detail.owners[0].owner, detail.owners[0].bytes), (owner, 6 * MIB));
    assert_eq!(
        error.to_string(),
        "out of device memory: asked for 4 MiB, limit 8 MiB, 2 MiB free (6 MiB in use, 6 MiB reserved); \
         largest: 'weights' (cell In[3], line 4) 6 MiB; free arrays, raise the limit or enable eviction"
    );
    assert_eq!(r.kinds().last(), Some(&kind::OUT_OF_MEMORY));
    r.alloc(2 * MIB, 0);
    r.free(&held);
    r.alloc(4 * MIB, 0);
    assert!(matches!(
        r.pool.alloc(u64::MAX, 0, NOBODY),
        Err(PoolError::OutOfMemory(_))
    ));
    assert!(matches!(
        r.pool.alloc(1 << 40, 0, NOBODY),
        Err(PoolError::OutOfMemory(_))
    ));
}

#[test]
fn a_limit_below_one_granule_counts_used_bytes() {
    let r = rig(1000, false);
    let held: Vec<_> = (0..3).map(|_| r.alloc(256, 0)).collect();
    assert!(matches!(r.pool.alloc(256, 0, NOBODY), Err(PoolError::OutOfMemory(_))));
    r.free(&held[0]);
    r.alloc(256, 0);
    assert_eq!((r.pool.stats().used, r.pool.stats().available), (768, 232));
}

#[test]
fn pressure_evicts_the_least_recently_used() {
    let r = rig(12 * MIB, true);
    let blocks: Vec<_> = (0..3).map(|_| r.alloc(4 * MIB, 0)).collect();
    for (block, value) in blocks.iter().zip(1u8..) {
        r.sim.launch(0, block.address, block.bytes, Some(value), 100);
    }
    r.sim.advance_ns(1);
    r.pool.touch(blocks[0].block).expect("a live block");
    let fourth = r.alloc(4 * MIB, 0);
    assert_eq!(
        blocks.iter().map(|b| r.resident(b)).collect::<Vec<_>>(),
        [true, false, true]
    );
    let mut bytes = vec![0; 16];
    r.pool.read_block(blocks[1].block, 8, &mut bytes).expect("in range");
    assert_eq!(bytes, [2; 16], "contents of an evicted block");
    r.free(&fourth);
    r.pool.restore(blocks[1].block).expect("there is room");
    assert_eq!(
        r.sim.peek(blocks[1].address, blocks[1].bytes),
        vec![2; 4 << 20],
        "back at its address"
    );
    let stats = r.pool.stats();
    assert_eq!(
        (stats.eviction_count, stats.restore_count, stats.evicted, stats.used),
        (1, 1, 0, 12 * MIB)
    );
    assert_eq!(stats.reserved, 12 * MIB);
}

#[test]
fn a_block_that_could_never_fit_evicts_nothing() {
    let r = rig(u64::MAX, true);
    let held = r.alloc(30 * MIB, 0);
    assert!(matches!(
        r.pool.alloc(65 * MIB, 0, NOBODY),
        Err(PoolError::OutOfMemory(_))
    ));
    pin(&held, 1);
    let other = r.alloc(20 * MIB, 0);
    assert!(matches!(
        r.pool.alloc(60 * MIB, 0, NOBODY),
        Err(PoolError::OutOfMemory(_))
    ));
    assert!(
        r.resident(&held) && r.resident(&other),
        "evicting the unpinned one would not have helped"
    );
    pin(&held, -1);
    r.alloc(60 * MIB, 0);
    assert!(!r.resident(&held) && !r.resident(&other));
}

#[test]
fn pinned_blocks_stay() {
    let r = rig(8 * MIB, true);
    let (a, b) = (r.alloc(4 * MIB, 0), r.alloc(4 * MIB, 0));
    pin(&a, 1);
    assert!(matches!(r.pool.evict(a.block), Err(PoolError::Busy { .. })));
    r.alloc(4 * MIB, 0);
    assert!(r.resident(&a) && !r.resident(&b));
    assert!(matches!(r.pool.clear(), Err(PoolError::Busy { .. })));
    assert!(r.pool.restore(b.block).is_ok(), "the third one can go");
    pin(&b, 1);
    assert!(matches!(r.pool.alloc(MIB, 0, NOBODY), Err(PoolError::OutOfMemory(_))));
    pin(&a, -1);
    pin(&b, -1);
    r.pool.clear().expect("nothing is pinned");
    assert_eq!(r.sim.usage().physical_bytes, 0);
}

#[test]
fn eviction_waits_for_every_stream_that_uses_the_block() {
    let r = rig(u64::MAX, true);
    let block = r.alloc(2 * MIB, 1);
    r.pool.record_use(block.block, 2).expect("a live block");
    r.sim.launch(2, block.address, block.bytes, Some(9), 5000);
    r.pool.evict(block.block).expect("not pinned");
    assert!(!r.pool.segments()[0].mapped, "the segment's memory is a spare");
    assert_eq!((r.pool.stats().reserved, r.sim.usage().mappings), (2 * MIB, 0));
    assert_eq!(r.pool.trim(), Ok(2 * MIB));
    assert_eq!(r.pool.stats().reserved, 0);
    r.pool.restore(block.block).expect("there is room");
    assert_eq!(r.sim.peek(block.address, 4), [9; 4]);
    assert!(r.kinds().ends_with(&[
        kind::EVICT,
        kind::SEGMENT_UNMAP,
        kind::SEGMENT_UNMAP,
        kind::SEGMENT_MAP,
        kind::RESTORE
    ]));
}

#[test]
fn freeing_an_evicted_block_gives_its_address_back() {
    let r = rig(u64::MAX, true);
    let block = r.alloc(2 * MIB, 0);
    r.pool.evict(block.block).expect("not pinned");
    r.pool.evict(block.block).expect("evicting twice changes nothing");
    r.free(&block);
    assert_eq!((r.sim.usage().address_ranges, r.pool.stats().segment_count), (0, 0));
    assert_eq!(r.pool.restore(block.block), Err(PoolError::BadBlock(block.block)));
}

#[test]
fn exported_segments_are_not_evicted() {
    let r = rig(4 * MIB, true);
    let block = r.alloc(4 * MIB, 0);
    let (_, start, bytes) = r.pool.segment_export(block.address + 100).expect("mapped");
    assert_eq!((start, bytes), (block.address, 4 * MIB));
    assert!(matches!(r.pool.evict(block.block), Err(PoolError::Busy { .. })));
    assert!(matches!(r.pool.alloc(MIB, 0, NOBODY), Err(PoolError::OutOfMemory(_))));
    assert_eq!(r.pool.segment_export(5), Err(PoolError::BadAddress(5)));
}

#[test]
fn contents_are_read_and_written_in_range_only() {
    let r = rig(u64::MAX, true);
    let block = r.alloc(1000, 0);
    for evicted in [false, true] {
        if evicted {
            r.pool.evict(block.block).expect("not pinned");
        }
        r.pool.write_block(block.block, 3, &[5, 6, 7]).expect("in range");
        let mut bytes = [0; 2];
        r.pool.read_block(block.block, 4, &mut bytes).expect("in range");
        assert_eq!(bytes, [6, 7]);
        let beyond = r.pool.read_block(block.block, 1023, &mut bytes);
        assert!(matches!(beyond, Err(PoolError::OutOfRange { block_bytes: 1024, .. })));
        let overflow = r.pool.write_block(block.block, u64::MAX, &bytes);
        assert!(matches!(overflow, Err(PoolError::OutOfRange { .. })));
    }
}

#[test]
fn a_lower_limit_takes_effect_or_changes_nothing() {
    let r = rig(16 * MIB, true);
    let (a, b) = (r.alloc(4 * MIB, 0), r.alloc(4 * MIB, 0));
    r.free(&r.alloc(4 * MIB, 0));
    r.pool.set_limit(4 * MIB).expect("one block can go");
    assert!(!r.resident(&a) && r.resident(&b));
    assert_eq!(r.pool.stats().reserved, 4 * MIB);
    pin(&b, 1);
    assert!(matches!(r.pool.set_limit(2 * MIB), Err(PoolError::OutOfMemory(_))));
    assert_eq!(r.pool.limit(), 4 * MIB);
}

#[test]
fn a_full_device_is_pressure_too() {
    let r = rig(u64::MAX, false);
    let hog = r.sim.physical_create(40 * MIB).expect("there is room");
    let block = r.alloc(20 * MIB, 0);
    r.free(&block);
    r.alloc(10 * MIB, 1); // behind an event, out of the cached segment
    let error = r.pool.alloc(20 * MIB, 0, NOBODY).expect_err("the device is full");
    let PoolError::OutOfMemory(detail) = &error else {
        panic!("{error}")
    };
    assert_eq!(detail.free, 14 * MIB);
    r.sim.physical_release(hog).expect("exists");
    r.alloc(20 * MIB, 0);
}

/// A checkerboard: half of the memory is free, and no two neighbours are.
#[test]
fn fragments_that_fit_nothing_are_told_and_eviction_joins_them() {
    for eviction in [false, true] {
        let r = rig(8 * MIB, eviction);
        let blocks: Vec<_> = (0..16).map(|_| r.alloc(512 * KIB, 0)).collect();
        for (block, value) in blocks.iter().zip(1u8..) {
            r.sim.launch(0, block.address, block.bytes, Some(value), 100);
        }
        r.sim.advance_ns(10_000);
        blocks.iter().step_by(2).for_each(|block| r.free(block));
        let before = r.pool.stats();
        assert_eq!((before.used, before.segment_count), (4 * MIB, 4));
        let large = r.pool.alloc(3 * MIB, 0, NOBODY);
        if eviction {
            assert_eq!(large.expect("there is room once blocks have moved").bytes, 3 * MIB);
            assert!(r.pool.stats().eviction_count > 0);
        } else {
            assert!(matches!(large, Err(PoolError::OutOfMemory(_))), "{large:?}");
            let after = r.pool.stats();
            assert_eq!((after.used, after.reserved), (before.used, before.reserved));
            for _ in 0..8 {
                r.alloc(512 * KIB, 0); // the pool is usable, and every hole is found
            }
        }
        for (block, value) in blocks.iter().zip(1u8..).skip(1).step_by(2) {
            let mut bytes = vec![0; 512 << 10];
            r.pool.read_block(block.block, 0, &mut bytes).expect("in range");
            assert!(bytes.iter().all(|byte| *byte == value), "a neighbour of what was freed");
        }
    }
}

#[test]
fn failed_device_calls_leave_nothing_behind() {
    for call in [Call::AddressReserve, Call::PhysicalCreate, Call::Map] {
        let r = rig(u64::MAX, false);
        r.sim.fail(call, 1, 700);
        assert!(matches!(r.pool.alloc(MIB, 0, NOBODY), Err(PoolError::Driver(e)) if e.code == 700));
        assert_eq!(r.sim.usage(), Default::default(), "{call:?}");
        assert_eq!(r.pool.stats().reserved, 0);
        r.alloc(MIB, 0);
    }
    for call in [Call::Unmap, Call::PhysicalRelease, Call::AddressFree] {
        let r = rig(u64::MAX, false);
        r.free(&r.alloc(MIB, 0));
        r.sim.fail(call, 1, 700);
        let first = r.pool.trim();
        assert!(call == Call::AddressFree || first.is_err(), "{call:?}");
        r.pool.audit().expect("the books agree");
        assert_eq!(r.pool.stats().reserved, r.sim.usage().physical_bytes);
        r.pool.trim().expect("the next attempt goes on");
        assert_eq!(r.sim.usage(), Default::default(), "{call:?}");
    }
}

#[test]
fn records_name_stream_owner_and_block() {
    let r = rig(u64::MAX, false);
    r.pool.register_stream(0xabc, 5);
    let owner = Owner {
        tenant: 1,
        name: 2,
        cell: 3,
        line: 4,
        account: 0,
    };
    let block = r.pool.alloc(100, 0xabc, owner).expect("there is room");
    let event = r.ring.read(1, 10).0[1].event;
    assert_eq!(
        (event.kind, event.stream, event.tenant, event.name),
        (kind::ALLOC, 5, 1, 2)
    );
    assert_eq!(
        (event.a, event.b, event.c, event.cell, event.line),
        (block.address, 256, block.block, 3, 4)
    );
    assert_eq!(r.pool.blocks()[0].owner, owner);
}

#[test]
fn one_end_of_a_large_block_passes_through_the_staging_buffer() {
    for (limit, staged) in [(u64::MAX, 1), (50 * MIB, 0)] {
        let rig = rig(limit, true);
        let big = rig.alloc(40 * MIB, 1);
        rig.sim.launch(1, big.address, big.bytes, Some(7), 1_000_000);
        rig.pool.write_block(big.block, big.bytes - 1, &[9]).expect("in range");
        rig.pool.evict(big.block).expect("not pinned");
        assert_eq!(
            rig.sim.calls(Call::CopyOnDevice),
            staged,
            "a limit without room does without"
        );
        assert_eq!(rig.pool.stats().reserved, (40 + staged * 16) * MIB, "spare and buffer");
        rig.pool.write_block(big.block, 0, &[8]).expect("in range");
        rig.pool.restore(big.block).expect("there is room");
        assert_eq!(rig.sim.calls(Call::CopyOnDevice), 2 * staged);
        let mut bytes = rig.sim.peek(big.address, big.bytes);
        assert_eq!((bytes[0], bytes.pop()), (8, Some(9)));
        assert!(bytes[1..].iter().all(|&byte| byte == 7));
        rig.free(&big);
        rig.pool.trim().expect("nothing is in use");
        assert_eq!((rig.pool.stats().reserved, rig.sim.usage().address_ranges), (0, 0));
    }
}

#[test]
fn the_staging_buffer_goes_before_a_request_is_refused() {
    let rig = rig(u64::MAX, true);
    let first = rig.alloc(40 * MIB, 0);
    rig.pool.evict(first.block).expect("not pinned");
    rig.pool.free(first.block).expect("a live block");
    assert_eq!(rig.pool.stats().reserved, 56 * MIB, "spare and buffer");
    let all = rig.alloc(64 * MIB, 0);
    assert_eq!((all.bytes, rig.pool.stats().reserved), (64 * MIB, 64 * MIB));
}

#[test]
fn an_eviction_goes_to_pageable_memory_where_the_system_pins_no_more() {
    for (bytes, code) in [(3 * MIB, 2), (34 * MIB, 304)] {
        let r = rig(u64::MAX, true);
        let block = r.alloc(bytes, 3);
        let contents: Vec<u8> = (0..block.bytes).map(|i| (i % 251) as u8).collect();
        r.pool.write_block(block.block, 0, &contents).expect("in range");
        let read = || {
            let mut found = vec![0; contents.len()];
            r.pool.read_block(block.block, 0, &mut found).expect("in range");
            found
        };
        for round in 1..=2 {
            r.sim.fail(Call::HostAlloc, 1, code);
            r.pool.evict(block.block).expect("there is pageable memory");
            let stats = r.pool.stats();
            assert_eq!((stats.pageable, stats.evicted), (block.bytes, block.bytes));
            assert_eq!((stats.pageable_eviction_count, stats.eviction_count), (round, round));
            let told = r.pool.take_unpinned();
            assert_eq!(
                told.map(|told| (told.bytes, told.error.code)),
                (round == 1).then_some((block.bytes, code))
            );
            assert!(read() == contents, "on the host");
            r.pool.restore(block.block).expect("there is room");
            assert_eq!(r.pool.stats().pageable, 0);
            assert!(read() == contents, "back on the device");
        }
        r.pool.evict(block.block).expect("pinned memory again");
        let stats = r.pool.stats();
        assert_eq!(
            (stats.pageable, stats.pageable_eviction_count, stats.eviction_count),
            (0, 2, 3)
        );
        r.pool.restore(block.block).expect("there is room");
        // What is kept pinned is given back first; a block that is freed while it is on the host leaves nothing behind.
        r.sim.fail(Call::HostAlloc, 1, code);
        let other = r.alloc(MIB, 3);
        r.sim.fail(Call::HostAlloc, 1, code);
        r.pool.evict(other.block).expect("there is pageable memory");
        assert_eq!((r.pool.stats().pageable, r.sim.usage().host_buffers), (other.bytes, 0));
        r.free(&other);
        assert_eq!(r.pool.stats().pageable, 0);
    }
}

#[test]
fn what_is_no_shortage_of_host_memory_is_told() {
    let r = rig(u64::MAX, true);
    let block = r.alloc(MIB, 0);
    r.sim.fail(Call::HostAlloc, 1, 700);
    assert!(matches!(r.pool.evict(block.block), Err(PoolError::Driver(error)) if error.code == 700));
    assert!(r.resident(&block));
    assert_eq!(
        (r.pool.stats().pageable_eviction_count, r.pool.take_unpinned()),
        (0, None)
    );
}

#[test]
fn an_address_range_that_the_device_keeps_is_asked_for_again() {
    let r = rig(u64::MAX, false);
    r.sim.fail(Call::AddressFree, 1, 700);
    let refused = r.pool.alloc(SimConfig::default().memory_bytes + 1, 0, NOBODY);
    assert!(matches!(refused, Err(PoolError::OutOfMemory(_))), "{refused:?}");
    assert_eq!(r.sim.usage().address_ranges, 1);
    r.pool.trim().expect("healthy");
    assert_eq!(r.sim.usage().address_ranges, 0);
}
