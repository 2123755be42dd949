//! What is said of a request that cannot be meant: the field at fault and why.

use std::fmt;

/// The field, as callers write it, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    pub field: &'static str,
    pub message: String,
}

impl SpecError {
    pub(crate) fn new(field: &'static str, message: String) -> SpecError {
        SpecError { field, message }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for SpecError {}
