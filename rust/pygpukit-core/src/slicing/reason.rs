//! Why a kernel is not sliced: a closed set of reasons, and where in the PTX.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The text is not PTX that this parser knows.
    Malformed,
    /// The module has no entry of the name.
    NoEntry,
    /// It is the result of slicing.
    AlreadySliced,
    /// Blocks wait for the whole grid: cooperative launches.
    GridSync,
    /// Blocks of a cluster must be launched together.
    Cluster,
    /// Programmatic dependent launch: overlaps the launch before it.
    ProgrammaticLaunch,
    /// It launches kernels.
    DynamicParallelism,
    /// It reads the number of its launch, of which slices have several.
    GridId,
    /// It calls through a pointer: what is called may read the block's place.
    IndirectCall,
    /// It calls a function that is not in the module.
    ExternCall,
    /// It reads the block's place in a way that cannot be replaced.
    BlockIndexRead,
    /// It uses a variable of the module: the sliced variant would have a copy of its own.
    ModuleVariable,
    /// There is no PTX.
    NoPtx,
}

impl Reason {
    pub const ALL: [Reason; 13] = [
        Reason::Malformed,
        Reason::NoEntry,
        Reason::AlreadySliced,
        Reason::GridSync,
        Reason::Cluster,
        Reason::ProgrammaticLaunch,
        Reason::DynamicParallelism,
        Reason::GridId,
        Reason::IndirectCall,
        Reason::ExternCall,
        Reason::BlockIndexRead,
        Reason::ModuleVariable,
        Reason::NoPtx,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Reason::Malformed => "Malformed",
            Reason::NoEntry => "NoEntry",
            Reason::AlreadySliced => "AlreadySliced",
            Reason::GridSync => "GridSync",
            Reason::Cluster => "Cluster",
            Reason::ProgrammaticLaunch => "ProgrammaticLaunch",
            Reason::DynamicParallelism => "DynamicParallelism",
            Reason::GridId => "GridId",
            Reason::IndirectCall => "IndirectCall",
            Reason::ExternCall => "ExternCall",
            Reason::BlockIndexRead => "BlockIndexRead",
            Reason::ModuleVariable => "ModuleVariable",
            Reason::NoPtx => "NoPtx",
        }
    }
}

/// A refusal. line: in the PTX, from 1. function: which one holds it, "" outside of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsliceable {
    pub reason: Reason,
    pub function: String,
    pub line: u32,
    pub text: String,
}

impl Unsliceable {
    pub fn new(reason: Reason, function: &str, line: u32, text: impl Into<String>) -> Unsliceable {
        Unsliceable {
            reason,
            function: function.to_string(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Unsliceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (PTX line {}", self.reason.name(), self.text, self.line)?;
        if !self.function.is_empty() {
            write!(f, ", in {}", self.function)?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Unsliceable {}
