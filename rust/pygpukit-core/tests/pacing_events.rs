//! How many events the measuring takes: one or two a turn of work, and not two a launch.

mod pacing_support;

use pacing_support::{Tenant, World};
use pygpukit_core::clock::Clock;
use pygpukit_core::driver::Driver;
use pygpukit_core::pacing::{CostTable, Line, Settings};
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver};
use std::collections::BTreeSet;
use std::sync::Arc;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Times at which the device was given work: turns, where a dispatcher gives it.
fn turns(world: &World) -> u64 {
    let books = world.books.lock().unwrap();
    books.ran.iter().map(|r| r.granted_ns).collect::<BTreeSet<_>>().len() as u64
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
fn a_turn_behind_another_of_its_stream_takes_one_event() {
    let rare = Tenant {
        burst: 1,
        pause_ns: 3 * MS,
        ..Tenant::backlogged(500_000, 100 * US)
    };
    let storm = Tenant::backlogged(0, 15 * US);
    let (launches, records, world) = recorded(&[rare, storm], 500 * MS);
    let turns = turns(&world);
    println!("{launches} launches, {turns} turns, {records} records");
    assert!(turns > 4_500, "short turns beside one who may come: {turns}");
    // A change of streams takes a second one, and so does a turn that comes late.
    assert!(records <= turns + turns / 4, "{records} events for {turns} turns");
    let had: u64 = world.had_ns(0, 500 * MS).iter().sum();
    assert!(had > 495 * MS, "{had}");
}

#[test]
fn a_turn_that_comes_when_its_stream_is_empty_is_not_charged_for_that() {
    for idle_ns in [0, 10 * US, MS] {
        let device = Arc::new(SimDriver::new(SimConfig::default()));
        let mut line = Line::new(device.clone(), device.clone());
        let cost = CostTable::default().estimate(1, 1, 100 * US);
        let mut charged = Vec::new();
        for _ in 0..2 {
            line.open(0, 1, device.now_ns()).unwrap();
            device.work(1, 100 * US);
            line.add(cost, device.now_ns());
            line.close(true).unwrap();
            if idle_ns > 0 {
                device.advance_ns(110 * US + idle_ns); // nobody looks before the next is opened
            }
        }
        device.advance_ns(MS);
        assert!(device.stream_done(1).unwrap());
        while let Some(retired) = line.poll(device.now_ns()).unwrap() {
            charged.push(retired.actual_ns);
        }
        assert_eq!(device.calls(Call::EventRecord), 3 + u64::from(idle_ns > 0));
        assert_eq!(charged.len(), 2);
        assert!(charged.iter().all(|ns| ns.abs_diff(100 * US) <= 2 * US), "{charged:?}");
        assert!(line.is_empty());
        drop(line);
        assert_eq!(device.violations(), Vec::<String>::new());
    }
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
