//! Size classes: what a request is rounded up to.

/// Smallest class and unit of every size and offset inside a segment, in bytes.
pub const UNIT: u64 = 256;
/// Requests up to here share segments of `SHARED_SEGMENT`; larger ones get segments of their own size.
pub const SHARED_LIMIT: u64 = 1 << 20;
/// Bytes of a segment that small requests share (rounded up to the driver's granularity).
pub const SHARED_SEGMENT: u64 = 2 << 20;
/// Number of classes that have an index; sizes above the last are rounded to `LARGE_UNIT`.
pub const INDEXED: usize = 112;
const LARGE_UNIT: u64 = 2 << 20;
const LINEAR_TOP_LOG2: u32 = 12;
const INDEXED_TOP: u64 = 16 << 20;

/// A rounded size, and its list index when it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub bytes: u64,
    pub index: Option<usize>,
}

/// The class of a request. Multiples of 256 bytes to 4 KiB, eight steps an octave to 16 MiB, multiples of 2 MiB above: at most 12.5 %
/// waste beyond 4 KiB. None when rounding overflows.
#[inline]
pub fn class_of(bytes: u64) -> Option<Class> {
    let bytes = bytes.max(1);
    if bytes <= 1 << LINEAR_TOP_LOG2 {
        let units = bytes.div_ceil(UNIT);
        return Some(Class {
            bytes: units * UNIT,
            index: Some(units as usize - 1),
        });
    }
    if bytes <= INDEXED_TOP {
        let octave = (bytes - 1).ilog2();
        let step = 1u64 << (octave - 3);
        let steps = (bytes - (1 << octave)).div_ceil(step);
        let index = 16 + (octave - LINEAR_TOP_LOG2) as usize * 8 + steps as usize - 1;
        return Some(Class {
            bytes: (1 << octave) + steps * step,
            index: Some(index),
        });
    }
    Some(Class {
        bytes: bytes.checked_next_multiple_of(LARGE_UNIT)?,
        index: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_four_are_classes() {
        for k in 0..12 {
            let bytes = 256u64 << (2 * k);
            assert_eq!(class_of(bytes).expect("fits").bytes, bytes);
        }
    }

    #[test]
    fn classes_are_dense_fit_and_waste_little() {
        let mut last = Class { bytes: 0, index: None };
        let mut bytes = 0u64;
        while bytes < 80 << 20 {
            let class = class_of(bytes).expect("fits");
            assert!(class.bytes >= bytes && class.bytes % UNIT == 0);
            assert!(
                bytes <= 4096 || (class.bytes - bytes) * 8 <= bytes,
                "{bytes} -> {}",
                class.bytes
            );
            assert_eq!(class_of(class.bytes), Some(class), "a class is its own class");
            if class != last {
                assert!(class.bytes > last.bytes);
                if let (Some(now), Some(before)) = (class.index, last.index) {
                    assert_eq!(now, before + 1);
                }
                last = class;
            }
            assert!(class.index.map_or(true, |i| i < INDEXED));
            bytes = if bytes < 1 << 20 { bytes + 64 } else { bytes + 65536 + 1 };
        }
        assert_eq!(class_of(16 << 20).and_then(|c| c.index), Some(INDEXED - 1));
        assert_eq!(class_of(u64::MAX), None);
    }
}
