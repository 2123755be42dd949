//! What can go wrong with memory, each with its numbers and the remedy.

use std::fmt;

use super::{AccountUse, Owner, OwnerUsage};
use crate::driver::DriverError;
use crate::intern::Interner;

/// A request that could not be met. The pool stays usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were asked for.
    pub requested: u64,
    pub limit: u64,
    /// Bytes that one could still get in pieces: under the limit, and on the device.
    pub free: u64,
    pub used: u64,
    pub reserved: u64,
    /// Who holds most, largest first.
    pub owners: Vec<OwnerUsage>,
    pub eviction: bool,
    /// The tenant whose own limit it is, and not the pool's.
    pub account: Option<AccountUse>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolError {
    OutOfMemory(Box<OutOfMemory>),
    /// No live block has this id: freed, or never allocated.
    BadBlock(u64),
    /// The block cannot leave the device now.
    Busy {
        block: u64,
        why: &'static str,
    },
    /// Bytes offset..offset + bytes are not inside the block.
    OutOfRange {
        block: u64,
        offset: u64,
        bytes: u64,
        block_bytes: u64,
    },
    /// No segment of this pool holds the address.
    BadAddress(u64),
    Driver(DriverError),
}

pub type PoolResult<T> = Result<T, PoolError>;

impl From<DriverError> for PoolError {
    fn from(error: DriverError) -> Self {
        PoolError::Driver(error)
    }
}

/// Bytes for people: 1536 -> "1.5 KiB".
pub(super) fn human(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    let digits = if value.fract() < 0.05 || unit == "B" { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}

/// The request would take a tenant beyond what it may hold.
fn write_account(f: &mut fmt::Formatter<'_>, requested: u64, account: &AccountUse) -> fmt::Result {
    let name = Interner::global().name(account.tenant).unwrap_or_default();
    write!(
        f,
        "out of GPU memory: '{name}' asked for {} and holds {} of the {} that it may; delete arrays of it (del x) or raise its limit",
        human(requested),
        human(account.used),
        human(account.limit)
    )
}

fn owner_text(owner: &Owner) -> String {
    let name = |id| Interner::global().name(id).filter(|text| !text.is_empty());
    let mut text = name(owner.name).map_or_else(|| "arrays without a name".to_string(), |text| format!("'{text}'"));
    if let Some(cell) = name(owner.cell) {
        text += &format!(" (cell {cell}, line {})", owner.line);
    }
    if let Some(tenant) = name(owner.tenant) {
        text += &format!(" of {tenant}");
    }
    text
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(account) = &self.account {
            return write_account(f, self.requested, account);
        }
        let limited = self.limit != u64::MAX;
        let (asked, free) = (human(self.requested), human(self.free));
        write!(f, "out of GPU memory: asked for {asked}, ")?;
        match self.free < self.requested {
            true => write!(f, "and {free} are free")?,
            false => write!(f, "and {free} are free, but not in one piece")?,
        }
        write!(f, "; arrays hold {}", human(self.used))?;
        if limited {
            write!(f, ", the limit is {}", human(self.limit))?;
        }
        for (i, usage) in self.owners.iter().enumerate() {
            f.write_str(if i == 0 { "; most of it: " } else { ", " })?;
            write!(f, "{} {}", owner_text(&usage.owner), human(usage.bytes))?;
        }
        f.write_str("; delete arrays that you no longer need (del x)")?;
        f.write_str(match (self.eviction, limited) {
            (true, true) => " or raise the limit: what could move to the host has moved",
            (true, false) => ": what could move to the host has moved",
            (false, true) => ", raise the limit, or let unused ones move to the host (enable_eviction=True)",
            (false, false) => ", or let unused ones move to the host (enable_eviction=True)",
        })
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolError::OutOfMemory(detail) => detail.fmt(f),
            PoolError::BadBlock(block) => {
                write!(f, "block {block} is not allocated: freed already, or of another pool")
            }
            PoolError::Busy { block, why } => write!(f, "block {block} cannot leave the device now: {why}"),
            PoolError::OutOfRange {
                block,
                offset,
                bytes,
                block_bytes,
            } => {
                write!(
                    f,
                    "bytes {offset}..{offset} + {bytes} are not inside block {block} of {block_bytes} bytes"
                )
            }
            PoolError::BadAddress(address) => write!(f, "no segment of this pool holds address {address:#x}"),
            PoolError::Driver(error) => write!(f, "device memory call failed: {error}"),
        }
    }
}

impl std::error::Error for PoolError {}
