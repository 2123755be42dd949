//! The pool against a simple model, with random calls on random streams and failing device calls.

mod cases;
mod pool_model_support;

use cases::cases;
use pool_model_support::strategies::{settings, steps};
use pool_model_support::world::{run, World};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_books_follow_the_model(steps in steps(false), setting in settings(false, false)) {
        run(World::new(setting), &steps);
    }

    #[test]
    fn the_books_follow_the_model_while_device_calls_fail(steps in steps(true), setting in settings(true, false)) {
        run(World::new(setting), &steps);
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn contents_follow_the_model(steps in steps(false), setting in settings(false, true)) {
        run(World::new(setting), &steps);
    }

    #[test]
    fn contents_follow_the_model_while_device_calls_fail(steps in steps(true), setting in settings(true, true)) {
        run(World::new(setting), &steps);
    }
}
