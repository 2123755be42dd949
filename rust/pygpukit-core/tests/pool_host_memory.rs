//! The pool by example: how evicted bytes get to the host and back, through the staging buffer, into pinned memory or pageable.

mod pool_support;

use pool_support::*;
use pygpukit_core::pool::PoolError;
use pygpukit_core::sim_driver::Call;

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
            let mut contents_now = vec![0; contents.len()];
            r.pool.read_block(block.block, 0, &mut contents_now).expect("in range");
            contents_now
        };
        for round in 1..=2 {
            r.sim.fail(Call::HostAlloc, 1, code);
            r.pool.evict(block.block).expect("there is pageable memory");
            let stats = r.pool.stats();
            assert_eq!((stats.pageable, stats.evicted), (block.bytes, block.bytes));
            assert_eq!((stats.pageable_eviction_count, stats.eviction_count), (round, round));
            let unpinned = r.pool.take_unpinned();
            assert_eq!(
                unpinned.map(|unpinned| (unpinned.bytes, unpinned.error.code)),
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
