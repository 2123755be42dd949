//! A seeded simulation of everything together: tasks in partitions allocate from the pool on accounts of their own and launch through
//! the gate, while device calls fail, workers are lost, and tasks are cancelled, paused, expired, resized and out of memory.
//!
//! None is lost, duplicated or stuck; the ledger, the pool, its accounts and the gate are back to nothing; guaranteed memory stays; sums
//! over tasks are the totals, and these only grow; the same seed gives the same log. 10^6 tasks: `-- --ignored`.

mod simulation_support;
mod system_support;

use std::sync::{Mutex, PoisonError};
use system_support::{Report, System};

/// One at a time: they compare with the process's counters.
static ONE: Mutex<()> = Mutex::new(());

fn run(seed: u64, tasks: u64) -> Report {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    println!("seed {seed}");
    System::new(seed).run(tasks)
}

#[test]
fn faults_anywhere_leave_nothing_behind() {
    let Report { tally, watch, .. } = run(1, 20_000);
    println!("{tally:?}, {:?}", watch.taken);
    let happened = [
        tally.lost,
        tally.out_of_memory,
        tally.device_faults,
        tally.refused,
        tally.cancelled_inside,
        tally.paused,
        tally.evictions,
        tally.throttled,
    ];
    assert!(happened.iter().all(|&times| times > 20), "{tally:?}");
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let digests = [3, 3, 4].map(|seed| run(seed, 3_000).digest);
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2]);
}

#[test]
#[ignore = "minutes"]
fn a_million_tasks_in_many_worlds() {
    for seed in 100..200 {
        let Report {
            watch,
            digest,
            tally,
            virtual_ns,
        } = run(seed, 10_000);
        println!(
            "{} transitions in {virtual_ns} ns, digest {digest:016x}, {tally:?}",
            watch.transitions
        );
    }
}
