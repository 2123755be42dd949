//! How the parts of a table name a task.

/// Where a task is, and its number: a key to a task that has gone never finds the one that took its slot.
/// Keys are in order of submission, like numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub number: u64,
    /// Of its slot.
    pub index: u32,
}

impl Key {
    /// After every task.
    pub const LAST: Key = Key {
        number: u64::MAX,
        index: u32::MAX,
    };

    #[cfg(test)]
    pub fn of(number: u64) -> Key {
        Key { number, index: 0 }
    }
}
