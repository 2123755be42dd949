//! What becomes of the memory that eviction sets free: reused where the size is right, gone before anything else under pressure.

use std::sync::Arc;

use pygpukit_core::driver::OUT_OF_MEMORY;
use pygpukit_core::pool::{Allocation, Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::Ring;
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver, SimUsage};

const MIB: u64 = 1 << 20;
const DEVICE: u64 = 64 * MIB;

struct Rig {
    sim: Arc<SimDriver>,
    pool: Option<Pool>,
}

fn rig(limit_bytes: u64, spare_bytes: u64) -> Rig {
    let sim = Arc::new(SimDriver::new(SimConfig {
        memory_bytes: DEVICE,
        ..SimConfig::default()
    }));
    let services = Services {
        ring: Arc::new(Ring::new(1 << 10)),
        clock: sim.clone(),
    };
    let config = PoolConfig {
        limit_bytes,
        eviction: true,
        host_cache_bytes: 0,
        staging_bytes: 0,
        spare_bytes,
    };
    let pool = Pool::new(sim.clone(), config, services).expect("the simulated device answers");
    Rig { sim, pool: Some(pool) }
}

impl Rig {
    fn pool(&self) -> &Pool {
        self.pool.as_ref().expect("there until the end")
    }

    /// A block that is full of `value`.
    fn block(&self, bytes: u64, value: u8) -> Allocation {
        self.sim.advance_ns(1); // a later time for each, so that eviction order is known
        let block = self.pool().alloc(bytes, 1, Owner::default()).expect("there is room");
        self.sim.launch(1, block.address, block.bytes, Some(value), 1000);
        block
    }

    fn evicted(&self, bytes: u64, value: u8) -> Allocation {
        let block = self.block(bytes, value);
        self.pool().evict(block.block).expect("not pinned");
        block
    }

    fn holds(&self, block: &Allocation, value: u8) {
        self.pool().restore(block.block).expect("there is room");
        let bytes = self.sim.peek(block.address, block.bytes);
        assert!(bytes == vec![value; bytes.len()] && !bytes.is_empty());
    }

    fn resident(&self, block: &Allocation) -> bool {
        self.pool().block(block.block).expect("a live block").resident
    }

    fn reserved(&self) -> u64 {
        let reserved = self.pool().stats().reserved;
        assert_eq!(reserved, self.sim.usage().physical_bytes);
        self.pool().audit().expect("the books agree");
        reserved
    }

    fn spare(&self) -> u64 {
        self.pool().stats().spare
    }

    /// Requests for new memory, refused ones included.
    fn created(&self) -> u64 {
        self.sim.calls(Call::PhysicalCreate)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.reserved();
            self.pool = None;
            assert_eq!(self.sim.usage(), SimUsage::default(), "everything was given back");
            assert_eq!(self.sim.violations(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_block_comes_back_into_memory_that_was_there() {
    let r = rig(u64::MAX, u64::MAX);
    let block = r.evicted(20 * MIB, 7);
    assert_eq!(
        (r.reserved(), r.spare(), r.sim.usage().mappings),
        (20 * MIB, 20 * MIB, 0)
    );
    r.holds(&block, 7);
    assert_eq!((r.created(), r.reserved(), r.spare()), (1, 20 * MIB, 0));
}

#[test]
fn a_new_segment_takes_a_spare_of_its_size_and_no_other() {
    let r = rig(u64::MAX, u64::MAX);
    let first = r.evicted(20 * MIB, 7);
    let other = r.block(10 * MIB, 8);
    assert_eq!((r.created(), r.reserved()), (2, 30 * MIB));
    let same = r.block(20 * MIB, 9);
    assert_eq!((r.created(), r.reserved()), (2, 30 * MIB));
    for (block, value) in [(&first, 7), (&other, 8), (&same, 9)] {
        r.holds(block, value);
    }
    assert_eq!((r.created(), r.reserved()), (3, 50 * MIB));
}

#[test]
fn blocks_that_take_turns_under_pressure_need_no_new_memory() {
    for limit in [u64::MAX, 50 * MIB] {
        let r = rig(limit, u64::MAX);
        let blocks = [r.block(40 * MIB, 1), r.block(40 * MIB, 2)];
        for _ in 0..3 {
            r.sim.advance_ns(1);
            r.holds(&blocks[0], 1);
            r.sim.advance_ns(1);
            r.holds(&blocks[1], 2);
        }
        // Nothing was given to the device, so that nothing more can have come from there.
        assert_eq!(
            (r.sim.calls(Call::PhysicalRelease), r.reserved()),
            (0, 40 * MIB),
            "limit {limit}"
        );
        assert_eq!(r.pool().stats().eviction_count, 7);
    }
}

#[test]
fn spares_go_before_anything_is_evicted() {
    for limit in [u64::MAX, DEVICE] {
        let r = rig(limit, u64::MAX);
        let (used, spare) = (r.block(20 * MIB, 1), r.evicted(20 * MIB, 2));
        assert_eq!(r.reserved(), 40 * MIB);
        r.block(40 * MIB, 3);
        assert_eq!(r.reserved(), 60 * MIB);
        assert!(r.resident(&used) && !r.resident(&spare));
    }
    let r = rig(u64::MAX, u64::MAX);
    let (used, _spare) = (r.block(20 * MIB, 1), r.evicted(20 * MIB, 2));
    r.pool().set_limit(20 * MIB).expect("there is nothing else to give up");
    assert_eq!(r.reserved(), 20 * MIB);
    assert!(r.resident(&used));
}

#[test]
fn a_refusal_counts_spares_among_what_is_free() {
    let r = rig(u64::MAX, u64::MAX);
    let _spare = r.evicted(20 * MIB, 2);
    match r.pool().alloc(DEVICE + 1, 0, Owner::default()) {
        Err(PoolError::OutOfMemory(error)) => assert_eq!((error.free, error.reserved), (DEVICE, 20 * MIB)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_more_is_kept_than_may_be_and_the_oldest_goes_first() {
    for (max_spare, kept) in [(0, 0), (3 * MIB, 0), (4 * MIB, 4), (11 * MIB, 8), (12 * MIB, 12)] {
        let r = rig(u64::MAX, max_spare);
        let blocks = [r.block(4 * MIB, 1), r.block(4 * MIB, 2), r.block(4 * MIB, 3)];
        for block in &blocks {
            r.pool().evict(block.block).expect("not pinned");
        }
        assert_eq!(
            (r.reserved(), r.spare()),
            (kept * MIB, kept * MIB),
            "at most {max_spare}"
        );
    }
    let r = rig(u64::MAX, 8 * MIB);
    let (small, large) = (r.block(2 * MIB, 1), r.block(8 * MIB, 2));
    r.pool().evict(small.block).expect("not pinned");
    r.pool().evict(large.block).expect("not pinned");
    assert_eq!(r.reserved(), 8 * MIB);
    r.holds(&large, 2);
    assert_eq!(r.created(), 2);
    r.holds(&small, 1);
    assert_eq!(r.created(), 3, "the oldest made way");
}

#[test]
fn memory_that_another_process_may_have_is_not_used_again() {
    for exported in [false, true] {
        let r = rig(u64::MAX, u64::MAX);
        let (first, second) = (r.block(512 << 10, 1), r.block(512 << 10, 2));
        r.pool().evict(second.block).expect("not pinned");
        assert_eq!(r.pool().segments().len(), 1, "they share a segment, which stays");
        if exported {
            r.pool().segment_export(first.address).expect("mapped");
        }
        r.pool().free(first.block).expect("a live block");
        r.pool().evict(second.block).expect("on the host already");
        assert_eq!(r.reserved(), if exported { 0 } else { 2 * MIB });
        r.holds(&second, 2);
        assert_eq!(r.created(), if exported { 2 } else { 1 });
    }
}

#[test]
fn trim_and_clear_give_spares_back() {
    let r = rig(u64::MAX, u64::MAX);
    let block = r.evicted(20 * MIB, 7);
    assert_eq!((r.pool().trim(), r.spare()), (Ok(20 * MIB), 0));
    assert_eq!(r.reserved(), 0);
    r.holds(&block, 7);
    r.pool().evict(block.block).expect("not pinned");
    r.pool().clear().expect("nothing is pinned");
    assert_eq!((r.reserved(), r.sim.usage()), (0, SimUsage::default()));
}

#[test]
fn a_failed_device_call_loses_no_spare() {
    // Mapping it: it stays one, and is tried again.
    let r = rig(u64::MAX, u64::MAX);
    let block = r.evicted(20 * MIB, 7);
    r.sim.fail(Call::Map, 1, 700);
    assert!(matches!(r.pool().restore(block.block), Err(PoolError::Driver(e)) if e.code == 700));
    assert_eq!(r.reserved(), 20 * MIB);
    r.holds(&block, 7);
    assert_eq!(r.created(), 1);
    r.pool().evict(block.block).expect("not pinned");
    // Out of memory there: pressure, which takes it.
    r.sim.fail(Call::Map, 1, OUT_OF_MEMORY);
    r.holds(&block, 7);
    assert_eq!((r.created(), r.reserved()), (2, 20 * MIB));

    // Taking the memory, and making room for it among the spares: the next attempt goes on.
    for call in [Call::Unmap, Call::PhysicalRelease] {
        let r = rig(u64::MAX, 4 * MIB);
        r.evicted(4 * MIB, 1);
        let block = r.block(2 * MIB, 2);
        r.sim.fail(call, 1, 700);
        assert!(r.pool().evict(block.block).is_err(), "{call:?}");
        assert!(!r.resident(&block), "its contents are out all the same");
        assert_eq!(r.reserved(), 6 * MIB, "{call:?}");
        r.pool().evict(block.block).expect("on the host already");
        assert_eq!(r.reserved(), 2 * MIB, "{call:?}");
        r.holds(&block, 2);
    }

    // Giving it back: asked for again by the next trim.
    let r = rig(u64::MAX, u64::MAX);
    r.evicted(4 * MIB, 1);
    r.evicted(6 * MIB, 2);
    r.sim.fail(Call::PhysicalRelease, 2, 700);
    assert!(r.pool().trim().is_err());
    assert_eq!(r.reserved(), 6 * MIB);
    assert_eq!(r.pool().trim(), Ok(6 * MIB));
}
