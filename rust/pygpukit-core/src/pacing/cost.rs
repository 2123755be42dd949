//! CostTable: how long a kind of work takes, as a moving mean of measured times. Fixed size: a newer kind takes an older one's place.

const SLOTS: usize = 4096;
const MAX_NS: u64 = 1 << 40;

/// An estimate of one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub ns: u64,
    /// Where to tell what it took.
    pub slot: u16,
    /// Whether it was measured before; else `ns` is the guess that was asked for.
    pub known: bool,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    name: u32,
    size: u64,
    /// 0 = never measured.
    ns: u64,
}

/// Keyed by name (a kernel) and size (blocks of its grid, bytes of a copy).
pub struct CostTable(Box<[Entry]>);

impl Default for CostTable {
    fn default() -> Self {
        CostTable(vec![Entry::default(); SLOTS].into_boxed_slice())
    }
}

impl CostTable {
    pub fn estimate(&mut self, name: u32, size: u64, guess_ns: u64) -> Cost {
        let hash = (u64::from(name) ^ size.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> 52) as u16;
        let entry = &mut self.0[slot as usize];
        if (entry.name, entry.size) != (name, size) {
            *entry = Entry { name, size, ns: 0 };
        }
        let known = entry.ns > 0;
        let ns = if known { entry.ns } else { guess_ns.max(1) };
        Cost { ns, slot, known }
    }

    /// Work of these kinds, estimated at `estimated_ns` together, took `actual_ns`: each estimate moves a quarter of the way there in
    /// proportion; one that was a guess goes all the way.
    pub fn learn(&mut self, parts: impl Iterator<Item = Cost>, estimated_ns: u64, actual_ns: u64) {
        let to = |ns: u64| {
            let scaled = u128::from(ns) * u128::from(actual_ns) / u128::from(estimated_ns.max(1));
            scaled.clamp(1, MAX_NS.into()) as u64
        };
        for part in parts {
            let entry = &mut self.0[part.slot as usize];
            entry.ns = if part.known && entry.ns > 0 {
                (3 * entry.ns + to(entry.ns)).div_ceil(4)
            } else {
                to(part.ns)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_measurement_replaces_the_guess_and_later_ones_move_it() {
        let mut costs = CostTable::default();
        let guess = costs.estimate(7, 32, 1000);
        assert_eq!((guess.ns, guess.known), (1000, false));
        costs.learn([guess].into_iter(), 1000, 20_000);
        let known = costs.estimate(7, 32, 1000);
        assert_eq!((known.ns, known.known), (20_000, true));
        costs.learn([known].into_iter(), 20_000, 40_000);
        assert_eq!(costs.estimate(7, 32, 1000).ns, 25_000);
        assert!(!costs.estimate(7, 33, 1000).known, "another size is another kind");
    }

    #[test]
    fn estimates_stay_in_range() {
        let mut costs = CostTable::default();
        let part = costs.estimate(1, 1, u64::MAX);
        costs.learn([part].into_iter(), 0, u64::MAX);
        assert_eq!(costs.estimate(1, 1, 5).ns, MAX_NS);
        for _ in 0..200 {
            let part = costs.estimate(1, 1, 5);
            costs.learn([part].into_iter(), part.ns, 0);
        }
        assert!((1..=4).contains(&costs.estimate(1, 1, 5).ns));
    }
}
