//! Which cases a property test tries, and how many.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// So many, or as many as the environment's PROPTEST_CASES says: the same ones each time, or those of PROPTEST_RNG_SEED.
pub fn cases(quick: u32) -> ProptestConfig {
    let said = std::env::var("PROPTEST_CASES").ok();
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: said.map_or(quick, |text| text.parse().expect("PROPTEST_CASES is a number")),
        failure_persistence: None,
        rng_seed: match default.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0),
            seed => seed,
        },
        ..default
    }
}
