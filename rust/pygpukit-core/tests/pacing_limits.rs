//! Limits that hold, and sleep that saves nothing up.

mod pacing_support;

use pacing_support::{longest_batch_ns, slowest_request_ns, Tenant, World};
use pygpukit_core::pacing::{FairQueue, Settings, WHOLE_PPM};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Who waits for its work's end each time had nothing waiting while others were picked, also where nobody saw that end yet.
#[test]
fn who_comes_back_before_its_end_was_seen_saves_nothing_up() {
    let asking = Tenant {
        burst: 5,
        spread: 0,
        ..Tenant::backlogged(900_000, 100 * US)
    };
    let other = Tenant {
        spread: 0,
        ..Tenant::backlogged(100_000, 150 * US)
    };
    let mut world = World::new(&[asking, other], Settings::default(), 3);
    world.run(1_000 * MS);
    let asked = world.had_ns(500 * MS, 1_000 * MS)[0];
    assert!(asked < 400 * MS, "it cannot use its share of 500 ms: {asked}");
    world.tenants[0].burst = 0;
    world.run(200 * MS);
    let had = world.had_ns(1_000 * MS, 1_200 * MS);
    assert!(had[1] >= 19 * MS, "{had:?} of 200 ms");
}

#[test]
fn a_limit_holds_in_every_window_and_is_used_up() {
    let settings = Settings::default();
    let limited = Tenant {
        limit_ppm: 200_000,
        ..Tenant::backlogged(200_000, 30 * US)
    };
    for other in [None, Some(Tenant::backlogged(300_000, 90 * US))] {
        let tenants: Vec<Tenant> = std::iter::once(limited).chain(other).collect();
        let mut world = World::new(&tenants, settings, 5);
        world.run(2_000 * MS);
        // One turn more than the limit, one that was in flight, and what it may be ahead.
        for window in [2 * MS, 10 * MS, 100 * MS, 1_000 * MS] {
            let mut begin = 20 * MS;
            while begin + window < 1_990 * MS {
                let had = world.had_ns(begin, begin + window)[0];
                let slack = 2 * longest_batch_ns(&limited, &settings) + settings.burst_ns + settings.span_ns;
                assert!(had <= window / 5 + slack, "{had} of {window}");
                begin += window / 7;
            }
        }
        let had = world.had_ns(500 * MS, 1_500 * MS)[0];
        assert!(had >= 195 * MS, "it may have 200 ms of a second and got {had} ns");
        assert!(world.contexts[0].throttled_ns() > 1_000 * MS);
        let throttles = world.gate.view().throttles;
        assert!(!throttles.is_empty() && throttles.iter().all(|t| t.number == 1 && t.from_ns < t.until_ns));
        if other.is_some() {
            let other = world.had_ns(500 * MS, 1_500 * MS)[1];
            assert!(other >= 780 * MS, "the rest is free for others, who got {other} ns");
        }
    }
}

/// A limit is no pace: who stays below it has its requests done as soon as without one.
#[test]
fn a_request_below_its_limit_is_not_held() {
    let request = Tenant {
        burst: 10,
        pause_ns: 3 * MS,
        spread: 0,
        ..Tenant::backlogged(500_000, 100 * US)
    };
    let slowest_ns = |limit_ppm: u32| {
        let tenants = [Tenant { limit_ppm, ..request }, Tenant::backlogged(1_000, 50 * US)];
        let mut world = World::new(&tenants, Settings::default(), 5);
        world.run(2_000 * MS);
        (slowest_request_ns(&world, 0), world.contexts[0].throttled_ns())
    };
    let (free, _) = slowest_ns(1_000_000);
    let (limited, throttled) = slowest_ns(500_000);
    assert_eq!(throttled, 0);
    assert!(
        limited * 100 <= free * 105,
        "{limited} ns under a limit, {free} without"
    );
}

#[test]
fn who_is_alone_and_below_its_limit_defers_only_what_nobody_has_measured() {
    let request = Tenant {
        limit_ppm: 500_000,
        burst: 10,
        pause_ns: 3 * MS,
        ..Tenant::backlogged(500_000, 100 * US)
    };
    let mut world = World::new(&[request], Settings::default(), 5);
    world.run(100 * MS);
    let deferred = world.contexts[0].paced();
    assert!((1..=10).contains(&deferred), "{deferred} of the first request");
    world.run(1_000 * MS);
    assert_eq!(
        (world.contexts[0].paced(), world.contexts[0].throttled_ns()),
        (deferred, 0)
    );
    assert!(world.contexts[0].launches() > 2000);
}

#[test]
fn a_limit_saves_nothing_up_while_its_tenant_sleeps() {
    let settings = Settings::default();
    let limited = Tenant {
        limit_ppm: 200_000,
        burst: 400,
        pause_ns: 100 * MS,
        ..Tenant::backlogged(200_000, 30 * US)
    };
    let mut world = World::new(&[limited], settings, 5);
    world.run(1_000 * MS);
    let (mut begin, window) = (0, 10 * MS);
    while begin + window < 990 * MS {
        let had = world.had_ns(begin, begin + window)[0];
        let slack = 2 * longest_batch_ns(&limited, &settings) + settings.burst_ns + settings.span_ns;
        assert!(had <= window / 5 + slack, "{had} of {window} from {begin} on");
        begin += MS;
    }
}

#[test]
fn sleeping_saves_nothing_up() {
    let sleeper = Tenant {
        burst: 400,
        pause_ns: 100 * MS,
        ..Tenant::backlogged(500_000, 50 * US)
    };
    let mut world = World::new(
        &[Tenant::backlogged(500_000, 150 * US), sleeper],
        Settings::default(),
        3,
    );
    world.run(2_000 * MS);
    // Whenever both want the device, the one that slept gets no more than its half.
    let ran = world.books.lock().unwrap().ran.clone();
    let wakes: Vec<u64> = ran
        .windows(2)
        .filter(|pair| pair[1].tenant == 1)
        .map(|pair| pair[1].from_ns)
        .collect();
    assert!(wakes.len() > 100);
    for from in wakes.iter().step_by(50) {
        let had = world.had_ns(*from, from + 5 * MS);
        assert!(had[1] <= 2_500 * US + 800 * US, "{had:?} of 5 ms");
    }
}

#[test]
fn what_a_tenant_took_alone_is_not_held_against_it() {
    // One that leaves the device idle at times, so that nothing of it was ever deferred when the other comes.
    let calm = Tenant {
        host_ns: 30 * US,
        ..Tenant::backlogged(500_000, 20 * US)
    };
    let mut world = World::new(&[calm, Tenant::backlogged(500_000, 150 * US)], Settings::default(), 3);
    world.begin_at(1, 300 * MS);
    world.run(300 * MS);
    assert_eq!(world.contexts[0].paced(), 0);
    world.run(60 * MS);
    let had = world.had_ns(310 * MS, 350 * MS);
    assert!(had[0] >= 17 * MS && had[1] >= 17 * MS, "{had:?} of 40 ms");
}

#[test]
fn who_works_alone_after_another_did_makes_up_for_nothing() {
    let mut queue = FairQueue::new(200 * US, 200 * US);
    (0..2).for_each(|id| queue.add(id, 500_000, WHOLE_PPM));
    for (id, commands) in [(0, 50), (1, 800), (0, 50)] {
        (0..commands).for_each(|_| queue.charge_alone(id, MS, 0));
    }
    queue.enqueue(0, 0, true);
    queue.enqueue(1, 0, false);
    let mut turns = [0u32; 2];
    for _ in 0..100 {
        let id = queue.pick().unwrap();
        turns[id as usize] += 1;
        queue.charge(id, 100 * US, 0);
        queue.enqueue(id, 0, true);
    }
    assert!(turns[0].abs_diff(turns[1]) <= 12, "{turns:?}");
}
