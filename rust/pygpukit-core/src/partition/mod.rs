//! Parts of devices with promises of their own: quotas, borrowing and lending, priority bands, isolation, and the ledger that keeps them.

mod activity;
mod devices;
mod error;
mod isolation;
mod ledger;
mod limits;
mod manager;
mod sms;
mod spaces;
pub mod words;

pub use activity::{Activity, Figures, WorkKind};
pub use devices::{DeviceList, Devices};
pub(crate) use devices::{Site, Slots};
pub use error::SpecError;
pub use isolation::{isolation_as_markdown, Isolation, ISOLATED};
pub use ledger::{Account, Ledger, Reservation, Resource, Scope, Shortage};
pub use limits::{Limits, MAX_WEIGHT};
pub use manager::{Partition, PartitionConfig, PartitionManager, PartitionStats, DEFAULT_SLOT};
pub use sms::{SmGrant, SmSplit};
pub use spaces::{Space, SpaceView, Spaces, MAX_LANES, REST};

/// One whole device, in parts per million.
pub const WHOLE_SHARE_PPM: u32 = 1_000_000;
/// Longest id and name, in bytes.
pub const MAX_TEXT_BYTES: usize = 256;
