//! Policies by name.

use crate::partition::SpecError;

/// A name, and what makes the policy of that name.
pub type Named<T> = (&'static str, fn() -> Box<T>);

/// field: what the caller calls it.
pub(super) fn named<T: ?Sized>(field: &'static str, name: &str, all: &[Named<T>]) -> Result<Named<T>, SpecError> {
    let policy = all.iter().find(|(known, _)| *known == name).copied();
    policy.ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        SpecError::new(
            field,
            format!("no {field} {name:?}; choose one of {}", known.join(", ")),
        )
    })
}
