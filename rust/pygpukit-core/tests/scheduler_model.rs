//! Random operations against a model that keeps nothing but the phases and recomputes the rest each time.

mod cases;
mod scheduler_model_support;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::scheduler::Phase;
use scheduler_model_support::run::run;
use scheduler_model_support::strategies::{op, ops_of};
use std::collections::HashMap;

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn table_follows_the_model(ops in prop::collection::vec(op(), 1..120)) {
        run(&ops, 1);
    }
}

#[test]
fn a_hundred_thousand_operations_in_long_runs() {
    let mut taken: HashMap<(Phase, Phase), usize> = HashMap::new();
    for seed in 0..200 {
        for (_, from, to, _, _) in run(&ops_of(seed, 500), 250) {
            *taken.entry((from, to)).or_default() += 1;
        }
    }
    for edge in pygpukit_core::scheduler::EDGES {
        let pair = (edge.from, edge.to);
        assert!(taken.contains_key(&pair), "{pair:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let ops = ops_of(99, 3000);
    let first = run(&ops, 1000);
    assert_eq!(first, run(&ops, 1000));
    assert_ne!(first, run(&ops_of(98, 3000), 1000));
}
