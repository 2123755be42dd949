//! Run times so far, and what they say of the time a task would need.

use super::name::Name;
use super::spec::TaskSpec;
use crate::hash::Seeded;
use std::collections::HashMap;

/// Names remembered; later ones are not.
const MAX_NAMES: usize = 4096;

/// Means of successful runs in ns, where each new run counts one eighth.
#[derive(Default)]
pub(super) struct RunTimes {
    all: Option<u64>,
    by_name: HashMap<Name, u64, Seeded>,
}

impl RunTimes {
    pub fn add(&mut self, name: &Name, ns: u64) {
        self.all = Some(self.all.map_or(ns, |mean| next_mean(mean, ns)));
        if let Some(mean) = self.by_name.get_mut(name) {
            *mean = next_mean(*mean, ns);
        } else if self.by_name.len() < MAX_NAMES {
            self.by_name.insert(name.clone(), ns);
        }
    }

    /// Over all tasks; None before the first.
    pub fn mean_ns(&self) -> Option<u64> {
        self.all
    }

    /// How long a run takes, as far as its caller or earlier ones of its name tell.
    pub fn expected_ns(&self, spec: &TaskSpec) -> Option<u64> {
        let said = (spec.run_ns > 0).then_some(spec.run_ns);
        said.or_else(|| self.of_name(&spec.name))
    }

    fn of_name(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }
}

fn next_mean(mean: u64, ns: u64) -> u64 {
    ((u128::from(mean) * 7 + u128::from(ns)) / 8) as u64 // between the two
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_means_of_their_own() {
        let mut times = RunTimes::default();
        assert_eq!((times.mean_ns(), times.of_name("a")), (None, None));
        times.add(&"a".into(), 800);
        times.add(&"b".into(), 0);
        times.add(&"a".into(), u64::MAX);
        assert_eq!(times.of_name("b"), Some(0));
        assert_eq!(times.of_name("a"), Some((u64::MAX - 800) / 8 + 800));
        for i in 0..2 * MAX_NAMES {
            times.add(&i.to_string().into(), 1);
        }
        assert_eq!(times.by_name.len(), MAX_NAMES);
    }
}
