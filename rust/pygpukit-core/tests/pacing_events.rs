//! How many events the measuring takes: two a turn of work, and not two a launch.

mod pacing_support;

use pacing_support::{Tenant, World};
use pygpukit_core::pacing::Settings;
use pygpukit_core::sim_driver::Call;
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Times at which the device was given work: turns, where a dispatcher gives it.
fn turns(world: &World) -> u64 {
    let books = world.books.lock().unwrap();
    books.ran.iter().map(|r| r.given_ns).collect::<BTreeSet<_>>().len() as u64
}

/// Launches, and events recorded for them, of tenants that run so long.
fn recorded(tenants: &[Tenant], ns: u64) -> (u64, u64, World) {
    let mut world = World::new(tenants, Settings::default(), 3);
    world.run(ns);
    let launches = world.books.lock().unwrap().ran.len() as u64;
    (launches, world.driver.calls(Call::EventRecord), world)
}

#[test]
fn a_batch_takes_two_events_however_many_launches_it_has() {
    let tenant = Tenant::backlogged(500_000, 20 * US);
    let (launches, records, world) = recorded(&[tenant, tenant], 500 * MS);
    let turns = turns(&world);
    println!("{launches} launches, {turns} turns, {records} records");
    assert!(records <= 2 * turns, "{records} events for {turns} turns");
    assert!(
        launches >= 8 * turns,
        "200 us hold ten launches: {launches} in {turns} turns"
    );
    assert!(launches > 24_000, "{launches}");
}

#[test]
fn who_is_alone_takes_two_events_for_800_us() {
    let (launches, records, _) = recorded(&[Tenant::backlogged(500_000, 20 * US)], 500 * MS);
    println!("{launches} launches, {records} records");
    assert!(launches > 24_000, "{launches}");
    // Forty launches a batch, as far as their lengths are known.
    assert!(
        records <= 2 * (launches / 36 + 4),
        "{records} events for {launches} launches"
    );
}

#[test]
fn a_limit_takes_one_event_a_launch_only_while_its_tenant_is_alone_and_below_it() {
    let request = Tenant {
        limit_ppm: 500_000,
        burst: 20,
        pause_ns: 2 * MS,
        ..Tenant::backlogged(500_000, 20 * US)
    };
    let (launches, records, world) = recorded(&[request], 500 * MS);
    println!("{launches} launches, {records} records");
    assert_eq!(world.contexts[0].throttled_ns(), 0);
    let requests = launches.div_ceil(20);
    // One more for the start of each batch: the first launch of a request, which finds the device idle, and the others.
    assert!(
        (launches..=launches + 2 * requests).contains(&records),
        "{records} events for {launches} launches"
    );
    let always = Tenant { burst: 0, ..request };
    let (launches, records, world) = recorded(&[always], 500 * MS);
    println!("{launches} launches, {records} records");
    let turns = turns(&world);
    assert!(records <= 2 * turns, "{records} events for {turns} turns");
    assert!(launches >= 8 * turns, "{launches} launches in {turns} turns");
}
