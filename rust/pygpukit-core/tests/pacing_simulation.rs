//! The gate in virtual time: shares that are kept, a device that does not idle, and the same log from the same seed.

mod pacing_support;

use pacing_support::{longest_batch_ns, slowest_request_ns, Ran, Tenant, World, GUESSED};
use pygpukit_core::pacing::{Observer, Settings, Stretch};
use std::sync::{Arc, Mutex};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Worst difference between a tenant's part of the time and its share, in percentage points, over windows that move by a tenth.
fn worst_error_pp(world: &World, from_ns: u64, until_ns: u64, window_ns: u64) -> f64 {
    let mut worst = 0f64;
    let mut begin = from_ns;
    while begin + window_ns <= until_ns {
        for (had, t) in world.had_ns(begin, begin + window_ns).iter().zip(&world.tenants) {
            let got = *had as f64 / window_ns as f64;
            worst = worst.max((got * 100.0 - f64::from(t.share_ppm) / 1e4).abs());
        }
        begin += window_ns / 10;
    }
    worst
}

fn four() -> [Tenant; 4] {
    [
        Tenant::backlogged(200_000, 20 * US),
        Tenant::backlogged(500_000, 150 * US),
        Tenant::backlogged(200_000, 400 * US),
        Tenant::backlogged(100_000, 1000 * US),
    ]
}

#[test]
fn four_tenants_get_their_shares() {
    let settings = Settings::default();
    for seed in 0..3 {
        let mut world = World::new(&four(), settings, seed);
        world.run(4_000 * MS);
        let (from, until) = (100 * MS, 3_990 * MS);
        let (s1, ms100, ms10) = (
            worst_error_pp(&world, from, until, 1_000 * MS),
            worst_error_pp(&world, from, until, 100 * MS),
            worst_error_pp(&world, from, until, 10 * MS),
        );
        let busy: u64 = world.had_ns(from, until).iter().sum();
        let busy = busy as f64 / (until - from) as f64 * 100.0;
        println!("seed {seed}: worst share error {s1:.3} pp over 1 s, {ms100:.3} over 100 ms, {ms10:.3} over 10 ms; device {busy:.2} % busy");
        assert!(s1 <= 0.5 && ms100 <= 3.0, "what the device must reach");
        assert!(busy > 99.0, "nothing to do for {:.2} % of the time", 100.0 - busy);
    }
}

#[test]
fn a_long_kernel_that_can_be_cut_lets_others_in() {
    // A request now and then beside kernels of 2 ms that are always there.
    let storm = Tenant {
        blocks: 8000,
        ..Tenant::backlogged(1_000, 2_000 * US)
    };
    let asking = Tenant {
        burst: 10,
        pause_ns: 3 * MS,
        spread: 0,
        ..Tenant::backlogged(900_000, 100 * US)
    };
    let slowest_ns = |wave: u64| {
        let mut world = World::new(&[Tenant { wave, ..storm }, asking], Settings::default(), 5);
        world.run(1_000 * MS);
        let ran = world.books.lock().unwrap().ran.clone();
        let asked: Vec<_> = ran.iter().filter(|r| r.tenant == 1).collect();
        let first = asked.windows(2).skip(GUESSED * 10).filter(|w| w[1].number % 10 == 0);
        (
            slowest_request_ns(&world, 1),
            first.map(|w| w[1].from_ns - w[0].to_ns).max().unwrap(),
            world.contexts[0].slices(),
        )
    };
    let (whole, whole_first, none) = slowest_ns(0);
    let (cut, cut_first, slices) = slowest_ns(400);
    assert_eq!(none, 0);
    assert!(slices > 1000, "{slices}");
    assert!(
        whole_first > 4_500 * US && cut_first < 3_500 * US,
        "{whole_first} {cut_first} from one request to the next"
    );
    assert!(cut < 1_400 * US, "{cut} {whole}");
}

/// What lies between two launches of a tenant that has the device to itself is charged to nobody.
#[test]
fn who_pauses_alone_is_charged_for_what_ran() {
    for burst in [1, 2, 3, 10, 40] {
        for pause_ns in [500 * US, 2 * MS, 10 * MS] {
            let tenant = Tenant {
                burst,
                pause_ns,
                ..Tenant::backlogged(500_000, 100 * US)
            };
            let mut world = World::new(&[tenant], Settings::default(), 7);
            world.run(1_000 * MS);
            let had = world.had_ns(0, world.now())[0];
            let measured = world.gate.view().tenants[0].gpu_ns;
            // The first batch of all is guessed, and that in flight is not measured yet.
            assert!(
                measured.abs_diff(had) <= had / 20 + 2 * MS,
                "{measured} ns measured of {had}, {burst} launches and {pause_ns} ns of pause"
            );
        }
    }
}

#[test]
fn the_meter_agrees_with_what_ran() {
    let mut world = World::new(&four(), Settings::default(), 11);
    for _ in 0..20 {
        world.run(53 * MS);
        let view = world.gate.view();
        let had = world.had_ns(0, view.now_ns);
        for (tenant, had) in view.tenants.iter().zip(&had) {
            // What is in flight is not measured yet.
            let difference = tenant.gpu_ns.abs_diff(*had);
            assert!(difference <= 2 * MS, "{tenant:?}, {had} had");
        }
        let total: u64 = view.tenants.iter().map(|t| t.gpu_ns).sum();
        assert!(total <= view.now_ns, "{total} ns measured in {}", view.now_ns);
    }
    let view = world.gate.view();
    for (tenant, t) in view.tenants.iter().zip(&world.tenants) {
        assert!(tenant.shares_ppm[2].abs_diff(t.share_ppm) < 10_000, "{tenant:?}");
        assert!(tenant.shares_ppm[1].abs_diff(t.share_ppm) < 30_000, "{tenant:?}");
    }
    assert!(world.driver.violations().is_empty(), "{:?}", world.driver.violations());
}

/// Start-time fair queueing: between two tenants that always wait, normalised service differs by at most their longest turns.
#[test]
fn normalised_service_of_backlogged_tenants_stays_together() {
    let settings = Settings::default();
    for seed in 0..4 {
        let mut random = pacing_support::Random(seed + 100);
        let mut tenants = Vec::new();
        let mut left = 1_000_000;
        for i in 0..5 {
            let share = if i == 4 {
                left
            } else {
                20_000 + random.below(u64::from(left) / 3) as u32
            };
            left -= share;
            tenants.push(Tenant::backlogged(share, (20 + random.below(980)) * US));
        }
        let mut world = World::new(&tenants, settings, seed);
        world.run(1_500 * MS);
        let mut begin = 50 * MS;
        while begin < 1_000 * MS {
            for length in [5 * MS, 50 * MS, 400 * MS] {
                let had = world.had_ns(begin, begin + length);
                for (f, had_f) in tenants.iter().zip(&had) {
                    for (m, had_m) in tenants.iter().zip(&had) {
                        let normal = |ns: u64, t: &Tenant| ns as f64 * 1e6 / f64::from(t.share_ppm);
                        let apart = (normal(*had_f, f) - normal(*had_m, m)).abs();
                        let turn = |t: &Tenant| normal(2 * longest_batch_ns(t, &settings), t);
                        assert!(
                            apart <= turn(f) + turn(m),
                            "{apart} ns apart after {length} ns: {f:?} {m:?}"
                        );
                    }
                }
            }
            begin += 7 * MS;
        }
    }
}

#[test]
fn latency_of_a_newcomer_is_bounded_by_what_is_in_flight() {
    let rare = Tenant {
        burst: 1,
        pause_ns: 3 * MS,
        ..Tenant::backlogged(500_000, 100 * US)
    };
    let mut world = World::new(&[rare, Tenant::backlogged(0, 50 * US)], Settings::default(), 9);
    world.run(1_000 * MS);
    let mut ends = 0;
    let mut longest = 0;
    let ran = world.books.lock().unwrap().ran.clone();
    for r in ran.iter().filter(|r| r.tenant == 0) {
        longest = longest.max(r.from_ns.saturating_sub(ends + 3 * MS));
        ends = r.to_ns;
    }
    println!("a newcomer waited {} us at most", longest / US);
    assert!(longest <= 700 * US, "{longest}");
}

/// How long the first tenant, which pauses for 3 ms after each kernel, waited for the device: at most, and on average, in ns. And how
/// busy that was, in percent.
fn waited(world: &World) -> (u64, u64, f64) {
    let ran = world.books.lock().unwrap().ran.clone();
    let asked: Vec<_> = ran.iter().filter(|r| r.tenant == 0).collect();
    let wait = |pair: &[&Ran]| pair[1].from_ns - pair[0].to_ns - 3 * MS;
    let waits: Vec<u64> = asked.windows(2).skip(GUESSED).map(wait).collect();
    let (longest, mean) = (
        *waits.iter().max().unwrap(),
        waits.iter().sum::<u64>() / waits.len() as u64,
    );
    let busy = world.had_ns(100 * MS, 3_900 * MS).iter().sum::<u64>() as f64 / 38e6;
    println!(
        "waited {} us at most, {} on average; busy {busy:.2} %",
        longest / US,
        mean / US
    );
    assert!(waits.len() > 1000);
    (longest, mean, busy)
}

/// Short launches go in short turns, each when little of the one before is left: that, and how late the dispatcher looks, is all that
/// somebody waits for.
#[test]
fn who_comes_beside_a_storm_of_launches_waits_for_one_turn_and_what_is_left_of_another() {
    let settings = Settings::default();
    let rare = Tenant {
        burst: 1,
        pause_ns: 3 * MS,
        ..Tenant::backlogged(500_000, 100 * US)
    };
    let storm = Tenant {
        host_ns: US,
        ..Tenant::backlogged(0, 14 * US)
    };
    let mut world = World::new(&[rare, storm], settings, 9);
    world.run(4_000 * MS);
    let (longest, mean, busy) = waited(&world);
    let turn = settings.short_span_ns + settings.lead_ns;
    assert!(longest <= turn + 30 * US && mean <= 70 * US, "{longest} {mean}");
    assert!(busy > 95.0, "{busy}");
}

/// A kernel of one wave cannot be cut: who comes waits for the one that runs, and hardly ever for another.
#[test]
fn who_comes_beside_kernels_of_one_wave_waits_for_one_of_them() {
    let rare = Tenant {
        burst: 1,
        pause_ns: 3 * MS,
        ..Tenant::backlogged(500_000, 100 * US)
    };
    let waves = Tenant {
        spread: 5,
        ..Tenant::backlogged(0, 150 * US)
    };
    let mut world = World::new(&[rare, waves], Settings::default(), 9);
    world.run(4_000 * MS);
    let (longest, mean, _) = waited(&world);
    assert!(longest <= 220 * US && mean <= 130 * US, "{longest} {mean}");
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let log = |seed| {
        let mut world = World::new(&four(), Settings::default(), seed);
        world.run(200 * MS);
        world.log
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
}

#[test]
fn doubled_weights_change_nothing() {
    let tenants = four();
    let mut halves = tenants;
    halves.iter_mut().for_each(|t| t.share_ppm /= 2);
    let log = |tenants: &[Tenant]| {
        let mut world = World::new(tenants, Settings::default(), 1);
        world.run(200 * MS);
        world.log
    };
    assert_eq!(log(&tenants), log(&halves));
}

/// What must not matter to shares: another order of the tenants, one more that sleeps, kernels cut into shorter ones.
#[test]
fn order_idle_tenants_and_shorter_kernels_change_no_share() {
    let percent = |tenants: &[Tenant]| -> Vec<f64> {
        let mut world = World::new(tenants, Settings::default(), 2);
        world.run(1_100 * MS);
        let had = world.had_ns(100 * MS, 1_100 * MS);
        had.iter().map(|ns| *ns as f64 / (10 * MS) as f64).collect()
    };
    let plain = percent(&four());
    let same = |changed: &[f64], what: &str| {
        let apart = plain.iter().zip(changed).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f64::max) <= 0.5, "{what}: {plain:?} became {changed:?}");
    };
    let mut reversed = four();
    reversed.reverse();
    let mut back = percent(&reversed);
    back.reverse();
    same(&back, "another order");
    // It had its turn at the start, so that the gate knows it, and wants nothing since.
    let sleeper = Tenant {
        burst: 1,
        pause_ns: 10_000 * MS,
        ..Tenant::backlogged(400_000, 50 * US)
    };
    let mut more = four().to_vec();
    more.push(sleeper);
    let with_sleeper = percent(&more);
    same(&with_sleeper, "one that sleeps");
    assert_eq!((with_sleeper.len(), with_sleeper[4]), (5, 0.0));
    let mut shorter = four();
    shorter[2].kernel_ns /= 4;
    same(&percent(&shorter), "shorter kernels of one");
}

#[test]
fn a_larger_share_hastens_what_is_deferred_already() {
    // One burst: 4 ms of work, 400 ms at one per cent. Its tenant submits nothing more, so that nobody asks for its new share.
    let burst = Tenant {
        burst: 40,
        pause_ns: 10_000 * MS,
        ..Tenant::backlogged(10_000, 100 * US)
    };
    let mut world = World::new(&[burst, Tenant::backlogged(300_000, 100 * US)], Settings::default(), 3);
    world.run(10 * MS);
    world.contexts[0].set_shares(700_000, 1_000_000);
    world.run(20 * MS);
    let had = world.had_ns(10 * MS, 30 * MS)[0];
    assert!(had >= 2 * MS, "{had} ns of what is left");
}

#[test]
fn shares_that_change_under_way_hold_from_then_on() {
    let tenants = [
        Tenant::backlogged(200_000, 30 * US),
        Tenant::backlogged(800_000, 60 * US),
    ];
    let mut world = World::new(&tenants, Settings::default(), 3);
    world.run(600 * MS);
    world.contexts[0].set_shares(700_000, 1_000_000);
    world.contexts[1].set_shares(300_000, 1_000_000);
    world.run(600 * MS);
    let percent = |from: u64, until: u64| -> Vec<u64> {
        let had = world.had_ns(from * MS, until * MS);
        had.iter().map(|ns| ns * 100 / ((until - from) * MS)).collect()
    };
    assert!(percent(100, 600)[0].abs_diff(20) <= 1, "{:?}", percent(100, 600));
    assert!(percent(610, 1_190)[0].abs_diff(70) <= 1, "{:?}", percent(610, 1_190));
    world.contexts[0].set_shares(100_000, 100_000);
    world.run(600 * MS);
    let limited = world.had_ns(1_250 * MS, 1_750 * MS);
    assert!(limited[0] * 100 / (500 * MS) <= 11, "a limit holds, too: {limited:?}");
    world.contexts[0].set_shares(100_000, 1_000_000);
    world.contexts[1].set_shares(900_000, 50_000);
    world.run(600 * MS);
    let freed = world.had_ns(1_850 * MS, 2_350 * MS);
    assert!(
        freed[0] * 100 / (500 * MS) >= 90,
        "and one that is gone does not: {freed:?}"
    );
    assert!(world.driver.violations().is_empty(), "{:?}", world.driver.violations());
}

/// Task number and stretch; task number, time and shares.
type Notes = (Vec<(u64, Stretch)>, Vec<(u64, u64, [u32; 3])>);

/// What an observer was told.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Notes>>);

impl Observer for Recorder {
    fn throttled(&self, number: u64, stretch: &Stretch) {
        self.0.lock().unwrap().0.push((number, *stretch));
    }

    fn shares(&self, number: u64, t_ns: u64, shares_ppm: [u32; 3]) {
        self.0.lock().unwrap().1.push((number, t_ns, shares_ppm));
    }
}

#[test]
fn an_observer_is_told_all_holds_and_the_shares_ten_times_a_second() {
    let limited = Tenant {
        limit_ppm: 200_000,
        ..Tenant::backlogged(200_000, 30 * US)
    };
    let recorder = Recorder::default();
    let mut world = World::observed(
        &[limited, Tenant::backlogged(300_000, 90 * US)],
        Settings::default(),
        5,
        recorder.clone(),
    );
    world.run(2_000 * MS);
    let (on, since_ns) = world.gate.throttled(1).unwrap();
    assert!(
        on && since_ns < 100 * MS,
        "it is held again and again, from early on: {since_ns}"
    );
    assert_eq!(
        (world.gate.throttled(2), world.gate.throttled(3)),
        (Some((false, 0)), None)
    );
    let half = recorder.0.lock().unwrap().0.len();
    assert!((15..=21).contains(&half), "a stretch is about 100 ms: {half} in 2 s");
    world.gate.tell_throttles();
    let so_far: u64 = recorder.0.lock().unwrap().0.iter().map(|(_, s)| s.held_ns).sum();
    assert_eq!(
        so_far,
        world.contexts[0].throttled_ns(),
        "who looks now knows of all holds that are over"
    );
    world.finish();
    let recorder = recorder.0.lock().unwrap();
    let used = world.contexts[0].used();
    assert!(recorder.0.iter().all(|&(number, _)| number == 1));
    assert_eq!(
        recorder.0.iter().map(|(_, s)| s.held_ns).sum::<u64>(),
        used.throttled_ns
    );
    assert_eq!(
        recorder.0.iter().map(|(_, s)| u64::from(s.holds)).sum::<u64>(),
        used.throttles
    );
    for number in [1, 2] {
        let mine: Vec<_> = recorder.1.iter().filter(|t| t.0 == number).collect();
        assert!(
            (19..=22).contains(&mine.len()),
            "{} times in 2 s, and at the end",
            mine.len()
        );
        for &&(_, t_ns, [_, tenth, second]) in &mine[..mine.len() - 1] {
            let end = t_ns / (10 * MS) * 10 * MS;
            let share = |window: u64| {
                let had = world.had_ns(end.saturating_sub(window), end)[number as usize - 1];
                had * 1_000_000 / window
            };
            assert!(share(100 * MS).abs_diff(tenth.into()) < 30_000, "{tenth} at {t_ns}");
            assert!(share(1_000 * MS).abs_diff(second.into()) < 3_000, "{second} at {t_ns}");
        }
    }
}
