//! Limits and size classes of a pinned pool.

use std::fmt;

use crate::pool;

/// What the driver aligns pinned memory to.
const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedConfig {
    /// Of blocks in use and those kept for reuse, together.
    pub limit_bytes: u64,
    /// Keep freed blocks for reuse.
    pub pooling: bool,
    /// Sizes are multiples of it; a power of two up to a page.
    pub alignment: u64,
}

impl Default for PinnedConfig {
    fn default() -> Self {
        PinnedConfig {
            limit_bytes: 1 << 30,
            pooling: true,
            alignment: 256,
        }
    }
}

/// A configuration that cannot be: the field and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub field: &'static str,
    pub text: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PinnedConfig {
    /// What a request is rounded up to: the device pool's classes, at most 12.5 % more beyond 4 KiB. None when that overflows.
    pub fn class_of(&self, bytes: u64) -> Option<u64> {
        pool::class_of(bytes)?.bytes.checked_next_multiple_of(self.alignment)
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        if self.limit_bytes == 0 {
            let text = "max_size is 0; give the limit in bytes".to_string();
            return Err(ConfigError {
                field: "max_size",
                text,
            });
        }
        if !self.alignment.is_power_of_two() || self.alignment > PAGE {
            let text = format!("alignment is {}; use a power of two up to {PAGE}", self.alignment);
            return Err(ConfigError {
                field: "alignment",
                text,
            });
        }
        Ok(())
    }
}
