//! What the pool is tried with, the simple model that it is compared with, and the looks at both.

mod checks;
pub mod strategies;
pub mod world;

const MIB: u64 = 1 << 20;
