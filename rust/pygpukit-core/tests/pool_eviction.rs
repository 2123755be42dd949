//! The pool by example: what is evicted under pressure and what stays, and that it comes back where it was.

mod pool_support;

use pool_support::*;
use pygpukit_core::pool::PoolError;
use pygpukit_core::ring::kind;

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
    let (_, start, bytes, first) = r.pool.segment_export(block.address + 100).expect("mapped");
    assert_eq!((start, bytes), (block.address, 4 * MIB));
    assert!(matches!(r.pool.evict(block.block), Err(PoolError::Busy { .. })));
    assert!(matches!(r.pool.alloc(MIB, 0, NOBODY), Err(PoolError::OutOfMemory(_))));
    assert_eq!(r.pool.segment_export(5), Err(PoolError::BadAddress(5)));
    let (.., second) = r.pool.segment_export(block.address).expect("mapped");
    assert!(r.pool.end_export(first) && !r.pool.end_export(first));
    assert!(
        matches!(r.pool.evict(block.block), Err(PoolError::Busy { .. })),
        "the other one still maps it"
    );
    assert!(r.pool.end_export(second));
    r.pool.evict(block.block).expect("nobody maps it");
}

#[test]
fn an_export_ends_with_the_memory_of_its_segment() {
    let r = rig(u64::MAX, true);
    let (first, second) = (r.alloc(512 * KIB, 0), r.alloc(512 * KIB, 0));
    r.pool.evict(second.block).expect("not pinned");
    let (_, start, _, old) = r.pool.segment_export(first.address).expect("mapped");
    r.free(&first);
    r.pool.trim().expect("no block is on the device");
    r.pool.restore(second.block).expect("memory is there");
    let (_, again, _, new) = r.pool.segment_export(second.address).expect("mapped");
    assert_eq!(again, start, "other memory at the same address");
    assert!(!r.pool.end_export(old));
    assert!(matches!(r.pool.evict(second.block), Err(PoolError::Busy { .. })));
    assert!(r.pool.end_export(new));
    r.pool.evict(second.block).expect("nobody maps it");
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
