//! Launches that take longer than turns do and cannot be cut: promises are kept by the time that was measured.

mod pacing_support;

use pacing_support::{Tenant, World};
use pygpukit_core::pacing::Settings;

const MS: u64 = 1_000_000;
const WHOLE_PERCENT: u32 = 100;

/// Always has launches of so many ms; share and limit in percent.
fn tenant(ms: u64, share: u32, limit: u32) -> Tenant {
    Tenant {
        limit_ppm: limit * 10_000,
        spread: 5,
        ..Tenant::backlogged(share * 10_000, ms * MS)
    }
}

fn guaranteed(ms: u64, share: u32) -> Tenant {
    tenant(ms, share, share)
}

fn burstable(ms: u64, share: u32) -> Tenant {
    tenant(ms, share, WHOLE_PERCENT)
}

fn best_effort(ms: u64) -> Tenant {
    burstable(ms, 0)
}

/// Percent of the device that each had, once costs are known.
fn shares(tenants: &[Tenant]) -> Vec<f64> {
    let longest = tenants.iter().map(|t| t.kernel_ns).max().unwrap().max(5 * MS);
    let (from, to) = (20 * longest, 320 * longest);
    let mut world = World::new(tenants, Settings::default(), 7);
    world.run(to);
    let had = world.had_ns(from, to);
    had.iter().map(|&ns| ns as f64 * 100.0 / (to - from) as f64).collect()
}

/// All promises are kept to half a point, no limit is passed by more than that, and the device is busy.
fn check(tenants: &[Tenant]) {
    let had = shares(tenants);
    for (t, had) in tenants.iter().zip(&had) {
        let (promise, limit) = (f64::from(t.share_ppm) / 1e4, f64::from(t.limit_ppm) / 1e4);
        assert!(
            *had > promise - 0.5 && *had < limit + 0.5,
            "{had:.2} % had, {promise} % promised: {t:?} of {tenants:?}"
        );
    }
    let limits: u32 = tenants.iter().map(|t| t.limit_ppm).sum();
    let busy: f64 = had.iter().sum();
    assert!(limits < 1_000_000 || busy > 99.0, "{busy:.2} % busy: {tenants:?}");
}

const LENGTHS: [u64; 5] = [1, 5, 25, 100, 300];

#[test]
fn a_guaranteed_share_is_had_beside_launches_as_long() {
    for ms in LENGTHS {
        for share in [20, 30, 40, 50, 60, 70] {
            check(&[guaranteed(ms, share), burstable(ms, 20)]);
            check(&[guaranteed(ms, share), best_effort(ms)]);
        }
    }
}

#[test]
fn a_guaranteed_share_is_had_beside_launches_of_another_length() {
    for ms in LENGTHS {
        for other in [1, 25, 50] {
            for share in [30, 60] {
                check(&[guaranteed(ms, share), burstable(other, 20)]);
            }
        }
    }
}

#[test]
fn three_and_four_tenants_have_what_they_were_promised() {
    for ms in LENGTHS {
        check(&[guaranteed(ms, 60), burstable(ms, 20), best_effort(ms)]);
        check(&[guaranteed(ms, 30), guaranteed(ms, 30), best_effort(ms)]);
        check(&[
            guaranteed(ms, 25),
            guaranteed(25, 35),
            burstable(ms, 20),
            best_effort(5),
        ]);
        check(&[guaranteed(ms, 40), guaranteed(ms, 30), guaranteed(ms, 30)]);
        check(&[guaranteed(ms, 40), tenant(ms, 30, 50), burstable(ms, 30)]);
    }
}

/// Nobody knows what a kernel takes that was never measured: a tenant that is alone does not fill the device with more of the kind.
#[test]
fn who_comes_beside_launches_that_were_never_measured_waits_for_two_of_them() {
    for ms in LENGTHS {
        for at_ms in [0, 1] {
            let mut world = World::new(&[best_effort(ms), guaranteed(1, 50)], Settings::default(), 7);
            world.begin_at(1, at_ms * MS + 200_000);
            world.run((4 * ms + 5) * MS);
            let books = world.books.lock().unwrap();
            let first = books.ran.iter().position(|ran| ran.tenant == 1).expect("it ran");
            let before = books.ran[..first].iter().filter(|ran| ran.to_ns > at_ms * MS + 200_000);
            let before = before.count();
            assert!(
                before <= 2 + usize::from(ms < 5),
                "{before} launches of {ms} ms before it"
            );
        }
    }
}

/// What waits is booked as it waits, not when its turn comes: who looks on sees whom nobody lets in.
#[test]
fn a_wait_under_way_is_told() {
    let mut world = World::new(&[best_effort(100), guaranteed(100, 60)], Settings::default(), 7);
    world.run(1_900 * MS);
    let before: Vec<(u64, u64)> = world
        .contexts
        .iter()
        .map(|c| (c.waited_ns(), c.throttled_ns()))
        .collect();
    world.gate.view();
    world.driver.advance_ns(40 * MS);
    world.gate.view();
    world.driver.advance_ns(7 * MS);
    world.gate.view();
    for (context, (waited, throttled)) in world.contexts.iter().zip(before) {
        let more = context.waited_ns() - waited + context.throttled_ns() - throttled;
        assert!(more >= 47 * MS, "{more} ns of 47 ms");
    }
    let total = world.contexts[1].waited_ns() + world.contexts[1].throttled_ns();
    assert!(total <= world.now(), "{total} ns in {}", world.now());
}

/// How long each had work, and what of the device others had meanwhile: what a broken promise is told by.
#[test]
fn what_others_had_while_one_had_work_is_told_apart_from_what_nobody_had() {
    let sum_of = |had: &[u64], but: usize| {
        had.iter()
            .enumerate()
            .filter(|&(i, _)| i != but)
            .map(|(_, ns)| ns)
            .sum::<u64>()
    };
    let near = |reported: u64, ns: u64, what: &str| {
        assert!(reported.abs_diff(ns) < 60 * MS, "{what}: {reported} told, {ns} ns")
    };
    let to = 3_000 * MS;
    for ms in [1, 5, 20] {
        let tenants = [burstable(ms, 60), burstable(ms, 30), best_effort(ms)];
        let mut world = World::new(&tenants, Settings::default(), 7);
        world.run(to);
        world.gate.view();
        let had = world.had_ns(0, to);
        for (i, context) in world.contexts.iter().enumerate() {
            let used = context.used();
            near(used.asked_ns, to, "had work");
            near(used.others_ns, sum_of(&had, i), "others had");
        }
        // Alone, with pauses: nobody took anything from it, and it asked for no more than it used.
        let pausing = Tenant {
            burst: 40,
            pause_ns: 40 * ms * MS,
            ..best_effort(ms)
        };
        let mut world = World::new(&[pausing], Settings::default(), 7);
        world.run(to);
        world.gate.view();
        let (had, used) = (world.had_ns(0, to)[0], world.contexts[0].used());
        assert_eq!(used.others_ns, 0);
        assert!(
            used.asked_ns.abs_diff(had) < to / 10,
            "{} asked, {had} had",
            used.asked_ns
        );
    }
}
