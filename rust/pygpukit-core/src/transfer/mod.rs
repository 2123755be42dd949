//! Asynchronous copies between host and device, and on the device: queued by priority, cut into pieces, bounded in flight.
//!
//! * One stream a direction. A transfer is issued piece by piece, and only so many bytes of a direction are in flight at a time, so that
//!   an urgent copy goes in front of what was not issued yet of a large one.
//! * Higher priorities go first, equal ones in the order in which they were submitted. What a transfer comes after (streams, events, other
//!   transfers) is awaited before its first piece is issued, so that it holds up nobody else.
//! * `Engine::pump` does the work; a thread of its own calls it through `Engine::run`. Everybody else only changes the books.

mod books;
mod direction;
mod engine;
mod pump;
mod record;
mod settings;
mod state;
mod stats;

pub use direction::Direction;
pub use engine::{Engine, EngineError, Order, SubmitError};
pub use record::{Info, Request};
pub use settings::{LaneSettings, Settings, SettingsError};
pub use state::{State, EDGES};
pub use stats::{DirectionStats, Stats};
