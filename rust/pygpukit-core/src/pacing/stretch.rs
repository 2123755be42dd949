//! Stretch: holds by a limit, one soon after another, as one.
//!
//! A tenant under its limit is held after every turn, some thousand times a second: told one by one they would say little and drive
//! all else out of the event ring.

/// Holds that are no farther apart belong to one stretch.
pub const JOIN_NS: u64 = 10_000_000;
/// No stretch is longer than this and one hold: who looks on is told that often.
pub const LONGEST_NS: u64 = 100_000_000;

/// A limit held a tenant back, perhaps often, from the first time to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    pub from_ns: u64,
    pub until_ns: u64,
    /// Within it, how long and how often.
    pub held_ns: u64,
    pub holds: u32,
}

/// The holds of one tenant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throttling {
    /// One is under way.
    pub held_ns: Option<u64>,
    /// The stretch that nobody was told of yet.
    untold: Option<Stretch>,
    /// Since when one followed soon after another, and the end of the last; 0 = never.
    since_ns: u64,
    until_ns: u64,
}

impl Throttling {
    pub fn begin(&mut self, now_ns: u64) {
        if self.held_ns.is_none() {
            self.held_ns = Some(now_ns);
            if self.until_ns == 0 || now_ns > self.until_ns + JOIN_NS {
                self.since_ns = now_ns;
            }
        }
    }

    /// When the hold under way began, if one is, and the stretch that ended before it.
    pub fn end(&mut self, now_ns: u64) -> Option<(u64, Option<Stretch>)> {
        let from_ns = self.held_ns.take()?;
        let joins = |s: &Stretch| from_ns <= s.until_ns + JOIN_NS && s.until_ns - s.from_ns < LONGEST_NS;
        let over = self.untold.take_if(|s| !joins(s));
        let stretch = self.untold.get_or_insert(Stretch {
            from_ns,
            ..Stretch::default()
        });
        (stretch.until_ns, self.until_ns) = (now_ns, now_ns);
        stretch.held_ns += now_ns - from_ns;
        stretch.holds += 1;
        Some((from_ns, over))
    }

    /// The last stretch, to be told now.
    pub fn tell(&mut self) -> Option<Stretch> {
        self.untold.take()
    }

    /// Whether its limit holds it back, now or a moment ago, and since when that is so; 0 = ever.
    pub fn state(&self, now_ns: u64) -> (bool, u64) {
        let on = self.held_ns.is_some() || (self.until_ns > 0 && now_ns <= self.until_ns + JOIN_NS);
        (on, if on { self.since_ns } else { self.until_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the list of holds: nothing is lost or told twice, and what lies far apart is not joined.
        #[test]
        fn stretches_are_the_holds(steps in prop::collection::vec((1u64..30_000_000, 1u64..30_000_000), 1..100)) {
            let (mut throttling, mut now, mut held, mut reported) = (Throttling::default(), 1, 0, Vec::new());
            for &(idle, hold) in &steps {
                now += idle;
                throttling.begin(now);
                prop_assert!(throttling.state(now).0);
                now += hold;
                let (from, over) = throttling.end(now).unwrap();
                prop_assert_eq!(from, now - hold);
                reported.extend(over);
                held += hold;
            }
            prop_assert_eq!(throttling.end(now), None);
            reported.extend(throttling.tell());
            prop_assert_eq!(throttling.tell(), None);
            prop_assert_eq!(reported.iter().map(|s| u64::from(s.holds)).sum::<u64>(), steps.len() as u64);
            prop_assert_eq!(reported.iter().map(|s| s.held_ns).sum::<u64>(), held);
            for pair in reported.windows(2) {
                prop_assert!(pair[0].until_ns < pair[1].from_ns);
            }
            for s in &reported {
                prop_assert!(s.until_ns - s.from_ns < LONGEST_NS + JOIN_NS + 30_000_000);
                prop_assert!(s.held_ns <= s.until_ns - s.from_ns);
            }
            let end = reported.last().unwrap().until_ns;
            prop_assert_eq!(throttling.state(end + JOIN_NS), (true, throttling.since_ns));
            prop_assert_eq!(throttling.state(end + JOIN_NS + 1), (false, end));
        }
    }
}
