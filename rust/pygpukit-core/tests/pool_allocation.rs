//! The pool by example: blocks from the stream's cache, else from segments; their owners and contents, and calls that fail meanwhile.

mod pool_support;

use pool_support::*;
use pygpukit_core::pool::{Owner, PoolError};
use pygpukit_core::ring::kind;
use pygpukit_core::sim_driver::{Call, SimConfig};

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
fn an_address_range_that_the_device_keeps_is_asked_for_again() {
    let r = rig(u64::MAX, false);
    r.sim.fail(Call::AddressFree, 1, 700);
    let refused = r.pool.alloc(SimConfig::default().memory_bytes + 1, 0, NOBODY);
    assert!(matches!(refused, Err(PoolError::OutOfMemory(_))), "{refused:?}");
    assert_eq!(r.sim.usage().address_ranges, 1);
    r.pool.trim().expect("healthy");
    assert_eq!(r.sim.usage().address_ranges, 0);
}
