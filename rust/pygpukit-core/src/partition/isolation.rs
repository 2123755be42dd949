//! Isolation levels, honestly named, and the one table of what each keeps apart: code, documentation and errors read it.

/// How a partition is kept apart from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Streams of one context; kernels of several partitions run side by side.
    #[default]
    Shared,
    /// A worker process; those of one device take turns, a task of one at a time.
    Timesliced,
    /// A green context: streaming multiprocessors of its own.
    Sm,
    /// A worker process.
    Process,
    /// A worker process on a hardware instance of the card, which is a device of its own.
    Mig,
}

impl Isolation {
    pub const ALL: [Isolation; 5] = [
        Isolation::Shared,
        Isolation::Timesliced,
        Isolation::Sm,
        Isolation::Process,
        Isolation::Mig,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Isolation::Shared => "shared",
            Isolation::Timesliced => "timesliced",
            Isolation::Sm => "sm",
            Isolation::Process => "process",
            Isolation::Mig => "mig",
        }
    }

    pub fn from_name(name: &str) -> Option<Isolation> {
        Isolation::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether its tasks run in a worker process.
    pub const fn in_worker(self) -> bool {
        matches!(self, Isolation::Timesliced | Isolation::Process | Isolation::Mig)
    }

    /// Whether it keeps each thing of `ISOLATED` apart.
    pub const fn isolates(self) -> [bool; ISOLATED.len()] {
        match self {
            Isolation::Shared => [false, false, false, true, false, false],
            Isolation::Timesliced => [true; 6], // from each other: what else is on the device runs beside them
            Isolation::Sm => [true, false, false, true, false, false],
            Isolation::Process => [false, false, false, true, true, true],
            Isolation::Mig => [true; 6],
        }
    }
}

/// What a level may keep apart. The memory quota counts at every level; that it counts is not that it hides: where the address
/// space is shared, every partition can read every other's memory.
pub const ISOLATED: [&str; 6] = [
    "SMs",
    "L2 and DRAM bandwidth",
    "copy engines",
    "memory quota",
    "address space",
    "faults",
];

/// The table as a Markdown table, for the documentation.
pub fn isolation_as_markdown() -> String {
    let mut text = format!(
        "| isolation | {} |\n|{}\n",
        ISOLATED.join(" | "),
        " --- |".repeat(ISOLATED.len() + 1)
    );
    for level in Isolation::ALL {
        let cells = level.isolates().map(|yes| if yes { "yes" } else { "no" });
        text.push_str(&format!("| {} | {} |\n", level.name(), cells.join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reversible() {
        for level in Isolation::ALL {
            assert_eq!(Isolation::from_name(level.name()), Some(level));
        }
        assert_eq!(Isolation::from_name("vault"), None);
    }

    #[test]
    fn only_processes_and_instances_isolate_faults_and_addresses() {
        for level in Isolation::ALL {
            let apart = level.in_worker();
            assert_eq!(level.isolates()[4..], [apart, apart], "{level:?}");
        }
    }
}
