//! What the seeded simulations share: numbers from a seed, a watch over every transition, and tasks of all kinds.
#![allow(dead_code)] // each test binary uses its own part

use pygpukit_core::scheduler::{edge, Name, Phase, Policy, Retry, Stats, TaskRecord, TaskSpec, TaskTable, Transition};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

/// SplitMix64 (Steele, Lea and Flood 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// FNV-1a over the bytes of a log.
pub struct Digest(pub u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub fn add(&mut self, words: &[u64]) {
        for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Watches every transition: what the log says is replayed into phases, counts and a digest, and thrown away.
#[derive(Default)]
pub struct Watch {
    /// Of tasks that have not ended.
    pub phases: HashMap<u64, Phase>,
    pub counts: [u64; Phase::COUNT],
    pub ended: u64,
    pub digest: Digest,
    /// The bytes themselves, where they are kept.
    pub log: Option<Vec<u8>>,
    pub transitions: u64,
    pub taken: HashMap<(Phase, Phase), u64>,
}

impl Watch {
    pub fn see(&mut self, t: &Transition<'_>) {
        let before = match t.from {
            Phase::Submitted => self.phases.insert(t.number, t.to).is_none().then_some(Phase::Submitted),
            _ => self.phases.insert(t.number, t.to),
        };
        assert_eq!(before, Some(t.from), "task {}: a gap, or a second ending", t.number);
        assert!(!t.from.is_terminal() && edge(t.from, t.to).is_some_and(|e| e.reasons == t.reason.group()));
        if t.from != Phase::Submitted {
            self.counts[t.from as usize] -= 1;
        }
        self.counts[t.to as usize] += 1;
        if t.to.is_terminal() {
            self.ended += 1;
            self.phases.remove(&t.number);
        }
        *self.taken.entry((t.from, t.to)).or_default() += 1;
        self.transitions += 1;
        let words = [
            t.number,
            t.from.code() << 32 | t.to.code() << 16 | t.reason.code(),
            t.t_ns,
        ];
        self.digest.add(&words);
        if let Some(log) = &mut self.log {
            log.extend(words.into_iter().flat_map(u64::to_le_bytes));
        }
    }
}

/// What tasks asked for, so that the log gives the ledger.
#[derive(Default)]
pub struct Books {
    asked: HashMap<u64, TaskRecord>,
    last: Stats,
}

impl Books {
    /// As it was submitted.
    pub fn add(&mut self, record: TaskRecord) {
        self.asked.insert(record.number, record);
    }

    /// The log replayed gives the table's counts and its ledger, in sum and by partition; what only grows has grown. `inside`: tasks
    /// that a dispatcher has not left yet.
    pub fn check(&mut self, table: &mut TaskTable, watch: &Mutex<Watch>, inside: &HashSet<u64>, now: u64) {
        let stats = table.stats(now);
        table.audit().unwrap();
        let watch = watch.lock().unwrap();
        let counts = [
            (Phase::Queued, stats.queued),
            (Phase::Admitted, stats.admitted),
            (Phase::Running, stats.running),
            (Phase::Suspended, stats.suspended),
            (Phase::Succeeded, stats.succeeded),
            (Phase::Failed, stats.failed),
            (Phase::Cancelled, stats.cancelled),
            (Phase::Rejected, stats.rejected),
            (Phase::Expired, stats.expired),
        ];
        for (phase, count) in counts {
            assert_eq!(count, watch.counts[phase as usize], "{phase:?}");
        }
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), stats.submitted);
        let growing = |s: &Stats| [s.submitted, s.succeeded, s.failed, s.cancelled, s.rejected, s.expired];
        let (before, after) = (growing(&self.last), growing(&stats));
        assert!(
            before.iter().zip(after).all(|(&b, a)| b <= a),
            "{before:?} became {after:?}"
        );
        self.last = stats;
        self.asked
            .retain(|number, _| watch.phases.contains_key(number) || inside.contains(number));
        let mut used: HashMap<&str, (u64, u64)> = HashMap::new();
        for (number, task) in &self.asked {
            if inside.contains(number) || watch.phases[number] == Phase::Admitted {
                let sum = used.entry(&task.partition).or_default();
                *sum = (sum.0 + task.memory_bytes, sum.1 + u64::from(task.share_ppm));
            }
        }
        let sums = used.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!((stats.reserved_memory, stats.reserved_share_ppm), sums, "the ledger");
        for (id, sum) in used.into_iter().filter(|(id, _)| !id.is_empty()) {
            let books = table.partitions().used(id).expect("a partition");
            assert_eq!(
                (books.memory_bytes, u64::from(books.share_ppm)),
                sum,
                "partition '{id}'"
            );
        }
    }
}

/// What tasks of a simulation ask for.
pub struct Kinds {
    pub partitions: &'static [&'static str],
    /// The most memory that one asks for.
    pub memory_bytes: u64,
    /// The latest deadline, from the submission on.
    pub deadline_ns: u64,
}

/// A task of any kind; `recent`: ids that it may depend on.
pub fn spec(random: &mut Random, kinds: &Kinds, number: u64, now: u64, recent: &[Name]) -> TaskSpec {
    let empty = random.one_in(4);
    let memory_bytes = if empty { 0 } else { 1 + random.below(kinds.memory_bytes) };
    let share_ppm = if empty || random.one_in(3) {
        0
    } else {
        1 + random.below(120_000) as u32
    };
    let mut spec = TaskSpec {
        name: format!("kind-{}", random.below(12)).into(),
        memory_bytes,
        share_ppm,
        priority: random.below(5) as i32 - 2,
        partition: kinds.partitions[random.below(kinds.partitions.len() as u64) as usize].into(),
        idempotent: random.one_in(2),
        ..TaskSpec::new(number.to_string())
    };
    if random.one_in(3) {
        (spec.memory_limit, spec.share_limit_ppm) = (
            (memory_bytes > 0).then_some(memory_bytes),
            (share_ppm > 0).then_some(share_ppm),
        );
    }
    spec.policy = spec.demand().class();
    if random.one_in(200) {
        spec.policy = Policy::Guaranteed; // which most requests contradict
    }
    if random.one_in(5) {
        spec.retry = Retry {
            retries: 1 + random.below(3) as u32,
            ..Retry::default()
        };
    }
    if random.one_in(10) {
        spec.deadline_ns = now + random.below(kinds.deadline_ns);
    }
    for _ in 0..random.below(8).saturating_sub(5) {
        if let Some(id) = recent.get(random.below(recent.len().max(1) as u64) as usize) {
            spec.depends_on.push(id.clone());
        }
    }
    spec
}
