//! Which of the devices with room a task gets that leaves the choice: the policies there are, by name.

use crate::partition::SpecError;

/// The devices that a task which leaves the choice gets, out of those on which it fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Those of which the least is reserved, then those with the fewest tasks.
    #[default]
    Spread,
    /// Those of which the most is reserved: others stay whole for tasks that ask for much.
    Pack,
}

/// What a device is to a placement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub device: usize,
    /// The part that is reserved, and the tasks that hold something or run.
    pub reserved_ppm: u64,
    pub tasks: u64,
}

impl Placement {
    pub const ALL: [Placement; 2] = [Placement::Spread, Placement::Pack];

    pub const fn name(self) -> &'static str {
        match self {
            Placement::Spread => "spread",
            Placement::Pack => "pack",
        }
    }

    /// An Err names those there are.
    pub fn from_name(name: &str) -> Result<Placement, SpecError> {
        Placement::ALL
            .into_iter()
            .find(|placement| placement.name() == name)
            .ok_or_else(|| {
                let known = Placement::ALL.map(Placement::name).join(", ");
                SpecError::new("placement", format!("no placement {name:?}; choose one of {known}"))
            })
    }

    /// Smaller is better; no two devices are alike.
    pub(super) fn rank(self, candidate: &Candidate) -> (u64, u64, usize) {
        let Candidate {
            device,
            reserved_ppm,
            tasks,
        } = *candidate;
        match self {
            Placement::Spread => (reserved_ppm, tasks, device),
            Placement::Pack => (u64::MAX - reserved_ppm, u64::MAX - tasks, device),
        }
    }
}
