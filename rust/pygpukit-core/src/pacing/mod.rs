//! Who may launch when: fair queueing of tenants by measured device time, bounded work in flight, and what each one got.
//!
//! While several tenants want a device their commands are deferred: each tenant has a line of its own, and a dispatcher gives the
//! device batches of one tenant after another. Batches are chained by events and lie between two of their own, so that they run one
//! after the other and their times add up. A batch is charged with an estimate when it is issued and corrected when its time is
//! known. Method: start-time fair queueing (Goyal, Vin and Cheng 1996).

mod command;
mod cost;
mod fair;
mod gate;
mod heap;
mod line;
mod meter;
mod observer;
mod queue;
mod settings;
mod stretch;
mod tenant;

pub use command::{Batch, Command, Item, Refusal, Work};
pub use cost::{Cost, CostTable};
pub use fair::{FairQueue, WHOLE_PPM};
pub use gate::{Gate, Next, Submitted, View};
pub use heap::IndexedHeap;
pub use line::{Line, Retired};
pub use meter::{Meter, BUCKET_NS};
pub use observer::Observer;
pub use queue::{Offer, Queue, Throttle};
pub use settings::Settings;
pub use stretch::{Stretch, JOIN_NS, LONGEST_NS};
pub use tenant::TenantView;
