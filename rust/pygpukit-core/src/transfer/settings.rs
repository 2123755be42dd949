//! How transfers are cut and how much is in flight.

use std::fmt;

use super::Direction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    /// Bytes of a piece.
    pub chunk_bytes: u64,
    /// Bytes that are with the device at a time; what an urgent transfer waits for at most.
    pub in_flight_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Between host and device, each way.
    pub host: LaneSettings,
    pub device: LaneSettings,
    /// To other devices.
    pub peer: LaneSettings,
    /// Transfers that are in progress at a time, in all directions together.
    pub max_in_progress: usize,
    /// Pause between two looks at what is in flight.
    pub poll_ns: u64,
}

impl Default for Settings {
    /// A copy costs about 2.7 us beside its bytes (measured on an H200: 1 MiB pieces reach 87 % of the rate, 8 MiB ones 98 %). Pieces of
    /// 4 MiB reach 96 %; three of them last longer than the pause between two looks.
    fn default() -> Self {
        Settings {
            host: LaneSettings {
                chunk_bytes: 4 << 20,
                in_flight_bytes: 12 << 20,
            },
            device: LaneSettings {
                chunk_bytes: 64 << 20,
                in_flight_bytes: 256 << 20,
            },
            peer: LaneSettings {
                chunk_bytes: 16 << 20,
                in_flight_bytes: 64 << 20,
            },
            max_in_progress: usize::MAX,
            poll_ns: 20_000,
        }
    }
}

/// A setting that cannot be: its name and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    pub field: &'static str,
    pub text: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Settings {
    pub(super) fn lane(&self, direction: Direction) -> LaneSettings {
        match direction {
            Direction::OnDevice => self.device,
            Direction::ToPeer => self.peer,
            Direction::ToDevice | Direction::ToHost => self.host,
        }
    }

    /// Errors: a size of zero, or less in flight than a piece.
    pub fn check(&self) -> Result<(), SettingsError> {
        let wrong = |field, text| Err(SettingsError { field, text });
        for lane in [self.host, self.device, self.peer] {
            if lane.chunk_bytes == 0 {
                return wrong(
                    "chunk_bytes",
                    "chunk_bytes is 0; a piece has at least one byte".to_string(),
                );
            }
            if lane.in_flight_bytes < lane.chunk_bytes {
                let text = format!(
                    "in_flight_bytes is {}, less than one piece of {} bytes (chunk_bytes); give at least that",
                    lane.in_flight_bytes, lane.chunk_bytes
                );
                return wrong("in_flight_bytes", text);
            }
        }
        if self.max_in_progress == 0 {
            return wrong(
                "max_concurrent",
                "max_concurrent is 0; at least 1 is needed".to_string(),
            );
        }
        Ok(())
    }
}
