//! How many cases a property test tries.

use proptest::prelude::ProptestConfig;

/// So many, or as many as the environment's PROPTEST_CASES says.
pub fn cases(quick: u32) -> ProptestConfig {
    let said = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: said.map_or(quick, |text| text.parse().expect("PROPTEST_CASES is a number")),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
