//! The pool by example: where its room ends, and what the error says.

mod pool_support;

use pool_support::*;
use pygpukit_core::driver::Driver;
use pygpukit_core::intern::Interner;
use pygpukit_core::pool::{Owner, PoolError};
use pygpukit_core::ring::kind;

#[test]
fn without_a_limit_the_error_names_none() {
    let r = rig(u64::MAX, false);
    let error = r.pool.alloc(1 << 50, 0, NOBODY).expect_err("more than the device has");
    let text = error.to_string();
    assert!(
        text.starts_with("out of GPU memory: asked for 1 PiB, and ") && !text.contains("limit"),
        "{text}"
    );
    assert!(
        text.ends_with("(del x), or let unused ones move to the host (enable_eviction=True)"),
        "{text}"
    );
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
        "out of GPU memory: asked for 4 MiB, and 2 MiB are free; arrays hold 6 MiB, the limit is 8 MiB; most of it: \
         'weights' (cell In[3], line 4) 6 MiB; delete arrays that you no longer need (del x), raise the limit, or let \
         unused ones move to the host (enable_eviction=True)"
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
