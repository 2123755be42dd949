//! Limits that hold and sleep that saves nothing up, in every window of what the device did.

mod cases;
mod pacing_support;

use cases::cases;
use pacing_support::{longest_batch_ns, slowest_request_ns, Ran, Tenant, World};
use proptest::prelude::*;
use pygpukit_core::pacing::{FairQueue, Settings, WHOLE_PPM};
use std::ops::Range;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// Until then costs are guessed.
const WARM_NS: u64 = 50 * MS;

fn length_ns(r: &Ran) -> f64 {
    (r.to_ns - r.from_ns) as f64
}

/// Turns under way at the end of a window: what the device had of its tenant, and had not ended, once it was given the kernel `last`.
fn under_way_ns(ran: &[Ran], last: usize) -> f64 {
    let granted = ran[..=last].iter().rev().take_while(|r| r.to_ns > ran[last].granted_ns);
    granted.filter(|r| r.tenant == ran[last].tenant).map(length_ns).sum()
}

/// Turns under way at the beginning: what the device had been given of its tenant before the kernel `first` began.
fn granted_before_ns(ran: &[Ran], first: usize) -> f64 {
    let granted = ran[first..].iter().take_while(|r| r.granted_ns < ran[first].from_ns);
    granted.filter(|r| r.tenant == ran[first].tenant).map(length_ns).sum()
}

/// By how much estimates of two turns under way may be wrong.
fn doubt_ns(t: &Tenant, settings: &Settings) -> f64 {
    (4 * t.spread * settings.span_ns.max(t.kernel_ns) / 100) as f64
}

/// What a tenant may have before its limit counts: a promise goes before it, as far back as a round of everybody's turns and a quarter.
fn promised_ns(ran: &[Ran], tenants: &[Tenant], tenant: &Tenant, settings: &Settings) -> f64 {
    let longest = |i: usize| ran.iter().filter(|r| r.tenant == i).map(|r| r.to_ns - r.from_ns).max();
    let turn = |ns: u64| {
        if ns < settings.span_ns {
            settings.span_ns + ns
        } else {
            ns
        }
    };
    let round: u64 = (0..tenants.len()).filter_map(longest).map(turn).sum();
    1.25 * round as f64 * f64::from(tenant.share_ppm.min(tenant.limit_ppm)) / 1e6
}

/// Device time above limit x window + turns under way, in the worst of all windows of any length. Those are the worst that go from the
/// start of one of its kernels to the end of another.
fn over_limit_ns(ran: &[Ran], tenant: usize, limit: f64, since_ns: u64) -> f64 {
    let (mut had, mut begin, mut worst) = (0.0, f64::MAX, 0f64);
    let mine = |(_, r): &(usize, &Ran)| r.tenant == tenant && r.from_ns >= since_ns;
    for (i, r) in ran.iter().enumerate().filter(mine) {
        begin = begin.min(had - limit * r.from_ns as f64 + granted_before_ns(ran, i));
        had += length_ns(r);
        worst = worst.max(had - limit * r.to_ns as f64 - under_way_ns(ran, i) - begin);
    }
    worst
}

/// Device time above what another tenant had by its share, which always had work waiting, and the turns of both under way, in the worst
/// of all windows.
fn over_share_ns(ran: &[Ran], tenant: usize, other: usize, ratio: f64) -> f64 {
    let ran: Vec<Ran> = ran
        .iter()
        .filter(|r| [tenant, other].contains(&r.tenant))
        .copied()
        .collect();
    let (mut apart, mut begin, mut worst) = (0.0, f64::MAX, 0f64);
    for (i, r) in ran.iter().enumerate() {
        if r.tenant == other {
            apart -= ratio * length_ns(r);
            continue;
        }
        let first = |n: &Ran| n.tenant == tenant && n.granted_ns >= r.from_ns;
        let first = ran[i..].iter().position(first).filter(|_| r.from_ns >= WARM_NS);
        if let Some(first) = first {
            // The other's last turn before the first one of the window is charged before it.
            let before = ran[..i + first].iter().rposition(|r| r.tenant == other);
            let charged = before.map_or(0.0, |last| under_way_ns(&ran, last));
            begin = begin.min(apart + granted_before_ns(&ran, i) + ratio * charged);
        }
        apart += length_ns(r);
        worst = worst.max(apart - under_way_ns(&ran, i) - begin);
    }
    worst
}

/// The default settings, with a tenant alone soon or late.
fn settings() -> impl Strategy<Value = Settings> {
    prop::sample::select(vec![5 * MS, 100 * MS]).prop_map(|alone_ns| Settings {
        alone_ns,
        ..Settings::default()
    })
}

/// Tenants of any length of kernels, with so many launches between two pauses.
fn tenant(kernel_ns: Range<u64>, host_ns: Range<u64>, burst: Range<u64>) -> impl Strategy<Value = Tenant> {
    let parts = (1u32..200, prop_oneof![Just(0u64), 1u64..40]);
    let pause = prop_oneof![0..50 * US, 0..30 * MS];
    let short = kernel_ns.start..60 * US;
    let kernel = prop_oneof![short, kernel_ns];
    let spread = prop_oneof![Just(0u64), 0u64..30];
    let share = 10_000u32..1_000_000;
    (share, kernel, spread, host_ns, burst, pause, parts).prop_map(
        |(share_ppm, kernel_ns, spread, host_ns, burst, pause_ns, (blocks, wave))| Tenant {
            share_ppm,
            limit_ppm: 1_000_000,
            kernel_ns,
            spread,
            host_ns,
            burst,
            pause_ns,
            blocks,
            wave,
        },
    )
}

fn limited() -> impl Strategy<Value = Tenant> {
    let limit = prop_oneof![1 => Just(1_000_000u32), 4 => 20_000u32..1_000_000];
    (tenant(US..1_500 * US, 2 * US..200 * US, 0..40), limit).prop_map(|(t, limit_ppm)| Tenant { limit_ppm, ..t })
}

/// Tenants that always have work waiting.
fn worker() -> impl Strategy<Value = Tenant> {
    tenant(20 * US..1_000 * US, 2 * US..10 * US, 0..1)
}

fn sleeper() -> impl Strategy<Value = Tenant> {
    tenant(20 * US..1_000 * US, 2 * US..10 * US, 1..100)
}

proptest! {
    #![proptest_config(cases(200))]

    /// In no window, of whatever length, has a tenant more than its limit of it, but for its burst, or what it was promised and did not
    /// have in the round before, and its turns under way.
    #[test]
    fn limits_of_any_tenants_hold_in_every_window(
        tenants in prop::collection::vec(limited(), 1..5), settings in settings(), seed in any::<u64>(),
    ) {
        let mut world = World::new(&tenants, settings, seed);
        world.run(150 * MS);
        let ran = &world.books.lock().unwrap().ran;
        for (i, t) in tenants.iter().enumerate().filter(|(_, t)| t.limit_ppm < WHOLE_PPM) {
            let guessed_ns = settings.flying as u64 * settings.guess_ns;
            for (since_ns, guessed_ns) in [(0, guessed_ns), (WARM_NS, 0)] {
                let over = over_limit_ns(ran, i, f64::from(t.limit_ppm) / 1e6, since_ns);
                let burst = promised_ns(ran, &tenants, t, &settings).max(settings.burst_ns as f64);
                let may = burst + guessed_ns as f64 + doubt_ns(t, &settings) + 1.0;
                prop_assert!(over <= may, "{} ns over its limit since {}, not {}: {:?}", over, since_ns, may, t);
            }
        }
    }

    /// Against one that always waits nobody has more than by its share in any window, but for the lag that it may keep and the turns
    /// under way, however it slept before: so the others are not starved for its sake.
    #[test]
    fn sleep_of_any_tenants_saves_nothing_up(
        workers in prop::collection::vec(worker(), 1..3),
        sleepers in prop::collection::vec(sleeper(), 1..3),
        settings in settings(),
        seed in any::<u64>(),
    ) {
        let tenants = [workers.clone(), sleepers].concat();
        let mut world = World::new(&tenants, settings, seed);
        world.run(150 * MS);
        let ran = &world.books.lock().unwrap().ran;
        let pairs = (0..workers.len()).flat_map(|other| (0..tenants.len()).map(move |i| (i, other)));
        for (i, other) in pairs.filter(|(i, other)| i != other) {
            let (t, o) = (&tenants[i], &tenants[other]);
            let ratio = f64::from(t.share_ppm) / f64::from(o.share_ppm);
            let over = over_share_ns(ran, i, other, ratio);
            let may = settings.lag_ns as f64 + doubt_ns(t, &settings) + ratio * doubt_ns(o, &settings) + 1.0;
            prop_assert!(over <= may, "{} ns over its share, not {}: {:?} beside {:?}", over, may, t, o);
        }
    }
}

/// A promise as large as the limit, beside turns so long that a round makes up for more than a burst does.
#[test]
fn a_promise_that_was_missed_goes_before_a_limit() {
    let settings = Settings::default();
    let tenant = |share_ppm, limit_ppm, kernel_ns, spread, host_ns, burst, pause_ns, blocks, wave| Tenant {
        share_ppm,
        limit_ppm,
        kernel_ns,
        spread,
        host_ns,
        burst,
        pause_ns,
        blocks,
        wave,
    };
    let tenants = [
        tenant(641_287, 38_954, 1_066_234, 3, 61_094, 9, 0, 1, 0),
        tenant(107_872, 369_786, 1_087_500, 16, 158_456, 19, 25_045_922, 1, 0),
        tenant(746_779, 732_693, 572_131, 1, 124_550, 12, 0, 42, 15),
    ];
    let mut world = World::new(&tenants, settings, 14_945_682_950_561_853_219);
    world.run(150 * MS);
    let ran = &world.books.lock().unwrap().ran;
    let over = over_limit_ns(ran, 2, 0.732_693, WARM_NS);
    let promised = promised_ns(ran, &tenants, &tenants[2], &settings);
    assert!(
        promised > settings.burst_ns as f64,
        "a round makes up for {promised} ns, a burst for more"
    );
    assert!(
        over > settings.burst_ns as f64 + doubt_ns(&tenants[2], &settings),
        "{over} ns over its limit"
    );
    assert!(
        over <= promised + doubt_ns(&tenants[2], &settings),
        "{over} ns over its limit"
    );
}

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
