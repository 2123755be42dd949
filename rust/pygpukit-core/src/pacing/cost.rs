//! CostTable: how long a kind of work takes, as a moving mean of measured times. Fixed size: of the kinds that share a set, a new one
//! takes the place of the one that was asked for the longest ago.

const SETS: usize = 1024;
const WAYS: usize = 4;
const MAX_NS: u64 = 1 << 40;

/// A kernel's or copy's name, and its blocks or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    name: u32,
    size: u64,
}

/// An estimate of one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub ns: u64,
    /// Where to tell what it took, as long as it is of this kind.
    pub slot: u16,
    pub(super) kind: Kind,
    /// Whether it was measured before; else `ns` is the guess that was asked for.
    pub known: bool,
    /// Whether the host stood still when it was launched last.
    pub(super) stalled: bool,
}

impl Cost {
    /// Whether a call that takes far longer than the work is taken for the host's fault.
    pub fn detects_stalls(&self) -> bool {
        self.known && !self.stalled
    }
}

#[derive(Clone, Copy, Default)]
struct Entry {
    kind: Kind,
    /// 0 = never measured.
    ns: u64,
    asked: u64,
    stalled: bool,
}

/// Keyed by name (a kernel) and size (blocks of its grid, bytes of a copy).
pub struct CostTable {
    sets: Box<[[Entry; WAYS]]>,
    /// Estimates so far.
    asked: u64,
}

impl Default for CostTable {
    fn default() -> Self {
        CostTable {
            sets: vec![[Entry::default(); WAYS]; SETS].into_boxed_slice(),
            asked: 0,
        }
    }
}

impl CostTable {
    pub fn estimate(&mut self, name: u32, size: u64, guess_ns: u64) -> Cost {
        let kind = Kind { name, size };
        let hash = (u64::from(name) ^ size.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let set = (hash >> (64 - SETS.ilog2())) as usize;
        self.asked += 1;
        let entries = &mut self.sets[set];
        let way = entries.iter().position(|entry| entry.kind == kind).unwrap_or_else(|| {
            let oldest = (0..WAYS).min_by_key(|&way| entries[way].asked).unwrap_or(0);
            entries[oldest] = Entry {
                kind,
                ..Entry::default()
            };
            oldest
        });
        let entry = &mut entries[way];
        entry.asked = self.asked;
        let known = entry.ns > 0;
        let ns = if known { entry.ns } else { guess_ns.max(1) };
        Cost {
            ns,
            slot: (set * WAYS + way) as u16,
            kind,
            known,
            stalled: entry.stalled,
        }
    }

    /// None when another kind took its place.
    fn entry(&mut self, part: Cost) -> Option<&mut Entry> {
        let entry = &mut self.sets[part.slot as usize / WAYS][part.slot as usize % WAYS];
        (entry.kind == part.kind).then_some(entry)
    }

    /// The host stood still while work of these kinds was launched, so that nothing is learnt of what it took.
    pub fn note_stall(&mut self, parts: impl Iterator<Item = Cost>) {
        for part in parts {
            if let Some(entry) = self.entry(part) {
                entry.stalled = true;
            }
        }
    }

    /// Work of these kinds, estimated at `estimated_ns` together, took `actual_ns`: each estimate moves a quarter of the way there in
    /// proportion; one that was a guess goes all the way.
    pub fn learn(&mut self, parts: impl Iterator<Item = Cost>, estimated_ns: u64, actual_ns: u64) {
        let to = |ns: u64| {
            let scaled = u128::from(ns) * u128::from(actual_ns) / u128::from(estimated_ns.max(1));
            scaled.clamp(1, MAX_NS.into()) as u64
        };
        for part in parts {
            let Some(entry) = self.entry(part) else { continue };
            entry.stalled = false;
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

    #[test]
    fn kinds_that_share_a_set_do_not_drive_each_other_out() {
        let mut costs = CostTable::default();
        let first = costs.estimate(1, 1, 1000);
        let mut alike =
            (2..).filter(|&name| costs.estimate(name, 1, 1000).slot as usize / WAYS == first.slot as usize / WAYS);
        let names: Vec<u32> = std::iter::once(1).chain(alike.by_ref().take(WAYS)).collect();
        let (kept, newest) = names.split_at(WAYS);
        for round in 0..3 {
            for &name in kept {
                let cost = costs.estimate(name, 1, 1000);
                assert_eq!(cost.known, round > 0);
                costs.learn([cost].into_iter(), cost.ns, 10 * u64::from(name));
            }
        }
        let late = costs.estimate(kept[0], 1, 1000);
        for &name in kept[1..].iter().chain(newest) {
            assert_eq!(costs.estimate(name, 1, 1000).known, name != newest[0]);
        }
        costs.learn([late].into_iter(), late.ns, 77_777);
        assert_eq!(
            costs.estimate(newest[0], 1, 1000).ns,
            1000,
            "what took its place learns nothing of it"
        );
    }
}
