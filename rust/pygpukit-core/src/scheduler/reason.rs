//! Why a task is in its phase: one closed set of reasons, numbered for event records.

/// Which kind of transition a reason belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonGroup {
    None,
    Reject,
    Queue,
    Fail,
}

impl ReasonGroup {
    pub const fn name(self) -> &'static str {
        match self {
            ReasonGroup::None => "",
            ReasonGroup::Reject => "Reject",
            ReasonGroup::Queue => "Queue",
            ReasonGroup::Fail => "Fail",
        }
    }
}

macro_rules! reasons {
    ($($group:ident { $($name:ident = $code:literal,)* })*) => {
        /// A reason; the number is stable and is the one in TASK event records. `None` is 0.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Reason {
            None = 0,
            $($($name = $code,)*)*
        }

        impl Reason {
            pub const ALL: &'static [Reason] = &[Reason::None, $($(Reason::$name,)*)*];

            /// The name; empty for `None`.
            pub const fn name(self) -> &'static str {
                match self {
                    Reason::None => "",
                    $($(Reason::$name => stringify!($name),)*)*
                }
            }

            pub const fn group(self) -> ReasonGroup {
                match self {
                    Reason::None => ReasonGroup::None,
                    $($(Reason::$name => ReasonGroup::$group,)*)*
                }
            }
        }
    };
}

reasons! {
    Reject {
        ExceedsDevice = 1,
        ExceedsPartition = 2,
        ShareOversubscribed = 3,
        QueueFull = 4,
        PriorityNotAllowed = 5,
        DeadlineUnmeetable = 6,
        DeviceUnhealthy = 7,
        ShuttingDown = 8,
        InvalidSpec = 9,
        MemoryInUse = 10,
        ShareInUse = 11,
    }
    Queue {
        WaitingForMemory = 33,
        WaitingForShare = 34,
        WaitingForPreemption = 35,
        WaitingForDependency = 36,
        WaitingForDevice = 37,
        WaitingForRetry = 38,
        WaitingForResume = 39,
    }
    Fail {
        CompileError = 65,
        LaunchError = 66,
        StickyDeviceError = 67,
        WorkerLost = 68,
        OutOfMemory = 69,
        WatchdogTimeout = 70,
        DependencyFailed = 71,
        UserError = 72,
    }
}

impl Reason {
    pub const fn code(self) -> u64 {
        self as u64
    }

    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.iter().copied().find(|reason| reason.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_and_names_are_unique_and_reversible() {
        let codes: HashSet<u64> = Reason::ALL.iter().map(|r| r.code()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        for &reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.name()), Some(reason));
        }
        assert_eq!(Reason::from_name("NoSuchReason"), None);
    }
}
