//! Multiprocessors given out to partitions: the allocator against a simple model, and the spaces that tasks use, over SimDriver.

mod cases;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::partition::{
    Isolation, Limits, PartitionConfig, PartitionManager, SmSplit, Spaces, MAX_LANES, REST,
};
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver, SimUsage};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn sim(sms: u32) -> Arc<SimDriver> {
    Arc::new(SimDriver::new(SimConfig {
        sms,
        ..SimConfig::default()
    }))
}

fn spaces(sim: &Arc<SimDriver>) -> Spaces {
    Spaces::new(sim.clone(), sim.clone())
}

proptest! {
    #![proptest_config(cases(1000))]

    /// The model: owners, each with what it asked for. Whatever is done, grants are disjoint, of the size that their rounding up gives,
    /// and leave a group for the rest; what is refused changes nothing.
    #[test]
    fn grants_are_disjoint_and_rounded_up(
        total in 1u32..150,
        group in prop_oneof![Just(1u32), Just(2), Just(8)],
        ops in prop::collection::vec((1u64..6, prop::option::weighted(0.7, 0u32..700_000)), 1..40),
    ) {
        let sizes: Vec<u32> = (0..total).step_by(group as usize).map(|first| group.min(total - first)).collect();
        let mut split = SmSplit::new(sizes.clone());
        let mut model: BTreeMap<u64, u32> = BTreeMap::new();
        for (owner, ask) in ops {
            let before: Vec<_> = split.grants().map(|(owner, grant)| (owner, grant.clone())).collect();
            let own = split.get(owner).map_or(Vec::new(), |grant| grant.groups.clone());
            let free = split.sms_of(&split.rest()) + split.sms_of(&own);
            match ask {
                None => prop_assert_eq!(split.release(owner), model.remove(&owner).is_some()),
                Some(ppm) => match split.take(owner, ppm) {
                    Ok(grant) => {
                        let asked = u64::from(ppm) * u64::from(total);
                        prop_assert!(u64::from(grant.sms) * 1_000_000 >= asked, "rounded down");
                        prop_assert!(u64::from(grant.sms - grant.sms.min(group)) * 1_000_000 < asked, "a group too many");
                        prop_assert!(grant.share_ppm >= ppm && grant.asked_ppm == ppm);
                        let kept = own.iter().filter(|group| grant.groups.contains(group)).count();
                        prop_assert!(kept == own.len() || grant.groups.len() <= own.len(), "gave up groups for others");
                        model.insert(owner, ppm);
                    }
                    Err(error) => {
                        prop_assert_eq!(error.field, "isolation");
                        let after: Vec<_> = split.grants().map(|(owner, grant)| (owner, grant.clone())).collect();
                        prop_assert_eq!(before, after);
                        let needed = (u64::from(ppm) * u64::from(total)).div_ceil(1_000_000) as u32;
                        prop_assert!(ppm == 0 || needed + group > free, "{} of {} free were refused", needed, free);
                    }
                },
            }
            let mut seen = BTreeSet::new();
            for (owner, grant) in split.grants() {
                prop_assert_eq!(model.get(&owner), Some(&grant.asked_ppm));
                prop_assert_eq!(grant.sms, grant.groups.iter().map(|&g| sizes[g as usize]).sum::<u32>());
                prop_assert!(grant.groups.iter().all(|group| seen.insert(*group)), "a group given out twice");
            }
            prop_assert_eq!(split.grants().count(), model.len());
            let rest = split.rest();
            prop_assert!(!rest.is_empty() && rest.iter().all(|group| seen.insert(*group)));
            prop_assert_eq!(seen.len(), sizes.len());
        }
    }
}

#[test]
fn a_fifth_of_132_is_28_and_the_rest_is_104() {
    let sim = sim(132);
    let spaces = spaces(&sim);
    assert_eq!((spaces.enter(1).handle, spaces.lane_ppm(0)), (0, 1_000_000)); // the whole device
    let grant = spaces.take(1, 200_000).unwrap();
    assert_eq!((grant.sms, grant.asked_ppm, grant.share_ppm), (28, 200_000, 212_121));
    let (own, rest) = (spaces.enter(1), spaces.enter(2));
    assert_eq!((own.sms, own.owner, own.lane), (28, 1, 1));
    assert_eq!((rest.sms, rest.owner, rest.lane), (104, REST, 0));
    assert_eq!((spaces.lane_ppm(0), spaces.lane_ppm(1)), (787_878, 212_121));
    assert!(sim.violations().is_empty());
}

#[test]
fn a_change_waits_for_the_tasks_of_old_spaces() {
    let sim = sim(8);
    let spaces = spaces(&sim);
    let early = spaces.enter(REST);
    spaces.take(1, 250_000).unwrap();
    let switching = |spaces: &Spaces| {
        let view = spaces.view(1).unwrap();
        (view.switching, view.switch_ns)
    };
    assert_eq!((early.retired(), switching(&spaces)), (true, (true, 0)));
    sim.advance_ns(700);
    assert_eq!(switching(&spaces), (true, 700));
    spaces.leave(&early);
    sim.advance_ns(5);
    assert_eq!(switching(&spaces), (false, 700));

    let inside = spaces.enter(1);
    assert_eq!(spaces.take(1, 500_000).unwrap().groups, [0, 1]); // keeps its group
    assert_eq!((inside.sms, spaces.view(1).unwrap().sms), (2, 4));
    assert_eq!(sim.usage().sm_partitions, 3); // the old one, which a task still uses, the new one and the rest
    spaces.leave(&inside);
    drop(inside);
    assert_eq!((sim.usage().sm_partitions, switching(&spaces).0), (2, false));
    spaces.release(1);
    assert_eq!(
        (spaces.view(1), sim.usage(), spaces.lane_ppm(0)),
        (None, SimUsage::default(), 1_000_000)
    );
    assert_eq!(spaces.enter(REST).handle, 0);
    assert!(sim.violations().is_empty());
}

#[test]
fn what_cannot_be_had_changes_nothing() {
    let sim = sim(132);
    let spaces = spaces(&sim);
    spaces.take(1, 500_000).unwrap();
    let before = sim.sm_partitions();
    for (owner, ppm) in [(2, 0), (2, 500_000), (1, 1_000_000)] {
        assert_eq!(spaces.take(owner, ppm).unwrap_err().field, "isolation");
    }
    for (call, nth) in [(Call::SmPartitionCreate, 1), (Call::SmPartitionCreate, 2)] {
        sim.fail(call, nth, 801);
        let error = spaces.take(2, 100_000).unwrap_err();
        assert!(error.message.contains("failed on request"), "{error}");
    }
    assert_eq!(
        (spaces.view(1).unwrap().sms, spaces.view(2), sim.sm_partitions().len()),
        (66, None, 2)
    );
    assert_eq!(sim.sm_partitions().concat().len(), before.concat().len());
    for owner in 2..=MAX_LANES as u64 {
        let taken = spaces.take(owner, 1);
        assert_eq!(taken.is_ok(), owner < MAX_LANES as u64, "{owner}: {taken:?}");
    }
    assert!(sim.violations().is_empty());
}

#[test]
fn an_old_driver_is_named() {
    let sim = sim(132);
    sim.fail(Call::SmGroups, 1, 801);
    let spaces = spaces(&sim);
    let error = spaces.take(1, 200_000).unwrap_err();
    assert_eq!(
        error.to_string(),
        "isolation: 'sm' is not available: SmGroups failed on request"
    );
    assert!(spaces.take(1, 200_000).is_ok());
}

#[test]
fn time_makes_up_for_rounding() {
    let mut manager = PartitionManager::new(PartitionConfig {
        isolation: vec![Isolation::Sm],
        ..PartitionConfig::new(100, 1_000_000)
    });
    let mut limits = Limits {
        isolation: Isolation::Sm,
        ..Limits::new(0, 200_000)
    };
    manager.create("p", "p", limits.clone()).unwrap();
    assert_eq!(manager.get("p").unwrap().time_limit_ppm(1_000_000), 1_000_000);
    manager.set_sm_ppm("p", 250_000).unwrap();
    let limit = |manager: &PartitionManager, ppm| manager.get("p").unwrap().time_limit_ppm(ppm);
    assert_eq!(
        (limit(&manager, 1_000_000), limit(&manager, 100_000)),
        (800_000, 400_000)
    );
    limits.borrow.share_ppm = 100_000; // it may have more than its quota: then it may use all it has
    manager.resize("p", limits).unwrap();
    assert_eq!(limit(&manager, 1_000_000), 1_000_000);
    assert!(manager.set_sm_ppm("q", 1).is_err());
}
