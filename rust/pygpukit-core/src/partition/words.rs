//! Amounts in the words of a message: bytes, and shares in per cent of the device.

/// How an amount reads, with its unit.
pub type Words = fn(u64) -> String;

pub fn bytes(count: u64) -> String {
    format!("{count} bytes")
}

/// Of parts per million: "70 %", "0.25 %".
pub fn percent(ppm: u64) -> String {
    let (whole, rest) = (ppm / 10_000, ppm % 10_000);
    let digits = format!(".{rest:04}");
    format!("{whole}{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_share_has_the_digits_that_it_needs() {
        let words = [
            (0, "0 %"),
            (1, "0.0001 %"),
            (2_500, "0.25 %"),
            (100_000, "10 %"),
            (333_333, "33.3333 %"),
            (1_000_000, "100 %"),
            (u64::MAX, "1844674407370955.1615 %"),
        ];
        for (ppm, text) in words {
            assert_eq!(percent(ppm), text);
        }
    }
}
