//! Meter: the device time that one tenant got in the last 10 ms, 100 ms and 1 s.

pub const BUCKET_NS: u64 = 10_000_000;
const BUCKETS: usize = 128;

/// Device time by 10 ms of the host's clock.
#[derive(Clone)]
pub struct Meter {
    ns: [u32; BUCKETS],
    /// The newest bucket; older than BUCKETS before it is forgotten.
    newest: u64,
}

impl Default for Meter {
    fn default() -> Self {
        let ns = [0; BUCKETS];
        Meter { ns, newest: 0 }
    }
}

impl Meter {
    fn advance(&mut self, bucket: u64) {
        let gone = bucket.saturating_sub(self.newest).min(BUCKETS as u64);
        for i in 0..gone {
            self.ns[(bucket - i) as usize % BUCKETS] = 0;
        }
        self.newest = self.newest.max(bucket);
    }

    /// It had the device from one time to another.
    pub fn add(&mut self, mut from_ns: u64, to_ns: u64) {
        if to_ns <= from_ns {
            return;
        }
        self.advance((to_ns - 1) / BUCKET_NS);
        let oldest = (self.newest + 1).saturating_sub(BUCKETS as u64);
        from_ns = from_ns.max(oldest * BUCKET_NS);
        while from_ns < to_ns {
            let bucket = from_ns / BUCKET_NS;
            let end = to_ns.min((bucket + 1) * BUCKET_NS);
            self.ns[bucket as usize % BUCKETS] += (end - from_ns) as u32;
            from_ns = end;
        }
    }

    /// Its shares of the last 10 ms, 100 ms and 1 s before a time.
    pub fn shares_ppm(&self, until_ns: u64) -> [u32; 3] {
        [1, 10, 100].map(|buckets| self.share_ppm(until_ns, buckets))
    }

    /// Its share of the last `buckets` whole buckets before a time, in parts per million.
    pub fn share_ppm(&self, until_ns: u64, buckets: u64) -> u32 {
        let end = until_ns / BUCKET_NS;
        let oldest = (self.newest + 1).saturating_sub(BUCKETS as u64);
        let had: u64 = (end.saturating_sub(buckets)..end)
            .filter(|bucket| (oldest..=self.newest).contains(bucket))
            .map(|bucket| u64::from(self.ns[bucket as usize % BUCKETS]))
            .sum();
        (had * 1_000_000 / (buckets * BUCKET_NS)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the plain sum over all intervals.
        #[test]
        fn shares_are_what_lies_in_the_window(
            steps in prop::collection::vec((0u64..30_000_000, 1u64..30_000_000), 1..200),
            buckets in prop::sample::select(vec![1u64, 10, 100]),
        ) {
            let (mut meter, mut now, mut had) = (Meter::default(), 0u64, Vec::new());
            for (idle, busy) in steps {
                meter.add(now + idle, now + idle + busy);
                had.push((now + idle, now + idle + busy));
                now += idle + busy;
            }
            let end = now / BUCKET_NS * BUCKET_NS;
            let begin = end.saturating_sub(buckets * BUCKET_NS);
            let sum: u64 = had.iter().map(|&(a, b)| b.min(end).saturating_sub(a.max(begin))).sum();
            prop_assert_eq!(meter.share_ppm(now, buckets) as u64, sum * 1_000_000 / (buckets * BUCKET_NS));
        }
    }
}
