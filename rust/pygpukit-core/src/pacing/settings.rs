//! Settings of a gate: how much work goes to the device at once, and how much waits.

/// All in nanoseconds of device time, but `alone_ns`, which is the host's.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A batch while all tenants have work, and while somebody may come.
    pub span_ns: u64,
    pub short_span_ns: u64,
    /// What is still unfinished when a short batch is issued: the device must not run dry.
    pub lead_ns: u64,
    /// Unfinished batches at most.
    pub flying: usize,
    /// A tenant alone measures its work in batches of this much.
    pub direct_span_ns: u64,
    /// What a tenant alone may have in flight before its commands are deferred.
    pub direct_ns: u64,
    /// A tenant has the device to itself when no other has launched for so long.
    pub alone_ns: u64,
    /// What one tenant may have deferred: estimated time, and commands, which take an interpreter's time to refill.
    pub line_ns: u64,
    pub line_commands: usize,
    /// What work is taken to cost before it was measured.
    pub guess_ns: u64,
    /// What a tenant may lag behind without losing it.
    pub lag_ns: u64,
    /// What a limited tenant may use at once after it used less: a request of a millisecond is not cut in two by a limit that it keeps,
    /// and in any window nobody is above a limit by more than this burst and its turns in flight: 2 points of 100 ms, and the turns.
    pub burst_ns: u64,
}

/// How work is issued, given who has some and who may come.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A batch.
    pub span_ns: u64,
    /// What may be unfinished on the device when the next batch is issued: it must not run dry.
    pub near_ns: u64,
    /// Unfinished batches that are too few whatever they are estimated at: they may end sooner.
    pub min_flying: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            span_ns: 200_000,
            short_span_ns: 90_000,
            lead_ns: 20_000,
            flying: 4,
            direct_span_ns: 800_000,
            direct_ns: 2_000_000,
            alone_ns: 100_000_000,
            line_ns: 4_000_000,
            line_commands: 128,
            guess_ns: 100_000,
            lag_ns: 200_000,
            burst_ns: 2_000_000,
        }
    }
}
