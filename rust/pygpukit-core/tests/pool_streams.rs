//! The pool by example: memory that goes from one stream to another, in order and only where there is need.

mod pool_support;

use pool_support::*;
use pygpukit_core::driver::Driver;
use pygpukit_core::sim_driver::Call;

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
