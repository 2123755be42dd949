//! Shares as Python has them, fractions of the device, and as the core has them, parts per million.

use pygpukit_core::partition::WHOLE_SHARE_PPM;
use pyo3::prelude::*;

use crate::errors::raise_with;

pub const PPM: f64 = WHOLE_SHARE_PPM as f64;

/// Parts per million of a fraction from 0 to 1.
pub fn ppm(py: Python<'_>, field: &'static str, fraction: f64) -> PyResult<u32> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok((fraction * PPM).round() as u32);
    }
    let text = format!("{field}={fraction}; give a fraction of the device from 0 to 1");
    Err(raise_with(py, "InvalidSpecError", (text, field)))
}

pub fn fraction(ppm: u64) -> f64 {
    ppm as f64 / PPM
}
