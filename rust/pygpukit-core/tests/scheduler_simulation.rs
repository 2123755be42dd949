//! A seeded simulation with faults; 10^7 tasks: `cargo test --release --test scheduler_simulation -- --ignored --nocapture`.
//!
//! None is lost, duplicated or stuck, the ledger is back to zero, and the same seed gives the same log.

use pygpukit_core::partition::{Limits, Reservation};
use pygpukit_core::scheduler::{
    edge, Config, Name, Outcome, Phase, Policy, Reason, Retry, TaskSpec, TaskTable, Transition, Verdict,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const MEMORY: u64 = 1 << 20;
const WORKERS: usize = 24;
const PARTITIONS: [&str; 4] = ["", "a", "b", "c"];

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Watches every transition: what the log says is replayed into phases, counts and a digest, and thrown away.
#[derive(Default)]
struct Watch {
    phases: HashMap<u64, Phase>,
    ended: u64,
    /// FNV-1a over the log's bytes.
    digest: u64,
    /// The bytes themselves, where they are kept.
    log: Option<Vec<u8>>,
    transitions: u64,
    taken: HashMap<(Phase, Phase), u64>,
}

impl Watch {
    fn see(&mut self, t: &Transition<'_>) {
        let before = match t.from {
            Phase::Submitted => self.phases.insert(t.number, t.to).is_none().then_some(Phase::Submitted),
            _ => self.phases.insert(t.number, t.to),
        };
        assert_eq!(before, Some(t.from), "task {}: a gap, or a second ending", t.number);
        assert!(!t.from.is_terminal() && edge(t.from, t.to).is_some_and(|e| e.reasons == t.reason.group()));
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
        for byte in words.into_iter().flat_map(u64::to_le_bytes) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
            if let Some(log) = &mut self.log {
                log.push(byte);
            }
        }
    }
}

fn spec(random: &mut Random, number: u64, now: u64, recent: &[Name]) -> TaskSpec {
    let empty = random.one_in(4);
    let memory_bytes = if empty { 0 } else { 1 + random.below(MEMORY / 8) };
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
        partition: PARTITIONS[random.below(4) as usize].into(),
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
        spec.deadline_ns = now + random.below(200_000_000);
    }
    for _ in 0..random.below(8).saturating_sub(5) {
        if let Some(id) = recent.get(random.below(recent.len().max(1) as u64) as usize) {
            spec.depends_on.push(id.clone());
        }
    }
    spec
}

struct Inside {
    id: Name,
    until: u64,
    fails: Option<Reason>,
}

/// Runs `tasks` tasks and returns what was watched, with the log if `keep`.
fn simulate(seed: u64, tasks: u64, keep: bool) -> Watch {
    let watch = Arc::new(Mutex::new(Watch {
        log: keep.then(Vec::new),
        ..Watch::default()
    }));
    let sink = watch.clone();
    let config = Config {
        max_queue: 200,
        max_finished: 512,
        ..Config::new(MEMORY)
    };
    let observer = move |t: &Transition<'_>| sink.lock().unwrap().see(t);
    let mut table = TaskTable::new(config, Box::new(observer));
    let mut faults = Random(seed ^ 0xFA);
    table.add_check(Box::new(move |_: &TaskSpec, _| match faults.below(400) {
        0 => Verdict::Never(Reason::DeviceUnhealthy),
        1..=8 => Verdict::Later(Reason::WaitingForDevice),
        _ => Verdict::Pass,
    }));
    let quota = |part: u64, borrow: bool| Limits {
        borrow: Reservation {
            memory_bytes: if borrow { MEMORY / 4 } else { 0 },
            share_ppm: 0,
        },
        lend: Reservation {
            memory_bytes: MEMORY / part / 2,
            share_ppm: 0,
        },
        max_streams: 8,
        weight: part as u32,
        priorities: (-2, 1),
        ..Limits::new(MEMORY / part, 200_000)
    };
    table.with_partitions(0, |partitions| {
        for (id, part) in [("a", 4), ("b", 8), ("c", 4)] {
            partitions.create(id, id, quota(part, id != "c")).unwrap();
        }
    });
    let mut random = Random(seed);
    let (mut now, mut submitted) = (1u64, 0u64);
    let mut inside: Vec<Inside> = Vec::new();
    let mut recent: Vec<Name> = Vec::new();
    let mut idle_rounds = 0;
    while submitted < tasks || !inside.is_empty() || idle_rounds < 40 {
        let open = submitted < tasks;
        now += if open {
            1 + random.below(3_000_000)
        } else {
            1_100_000_000
        };
        for _ in 0..random.below(12) {
            if submitted < tasks {
                let spec = spec(&mut random, submitted, now, &recent);
                submitted += 1;
                if recent.len() == 64 {
                    recent.remove(0);
                }
                recent.push(spec.id.clone());
                table.submit(spec, now).unwrap_or_else(|error| {
                    assert_eq!(error.field, "id", "{error}");
                    unreachable!("every id is new")
                });
            }
        }
        while inside.len() < WORKERS {
            let Some(context) = table.next(now) else { break };
            let fails = match random.below(if open { 12 } else { 1 << 40 }) {
                0 => Some(Reason::UserError),
                1 => Some(Reason::OutOfMemory),
                2 => Some(Reason::CompileError),
                _ => None,
            };
            let until = now + random.below(9_000_000);
            let id = context.id.clone();
            inside.push(Inside { id, until, fails });
        }
        if open && random.one_in(6) {
            if let Some(id) = recent.get(random.below(recent.len().max(1) as u64) as usize) {
                _ = table.cancel(id, now); // which may have been forgotten
            }
        }
        if open && random.one_in(8) && !inside.is_empty() {
            // A worker is lost: an idempotent task goes back once, or as often as it has retries; any other has failed.
            let lost = inside.swap_remove(random.below(inside.len() as u64) as usize);
            let (reason, error) = (Reason::WorkerLost, String::new());
            table.finish(&lost.id, Outcome::Lost { reason, error }, now).unwrap();
        }
        if open && random.one_in(50) {
            let part = 4 + random.below(6);
            // Refused while too much of it is in use by others.
            _ = table.with_partitions(now, |partitions| partitions.resize("a", quota(part, true)));
        }
        for i in (0..inside.len()).rev() {
            if inside[i].until <= now {
                let Inside { id, fails, .. } = inside.swap_remove(i);
                let outcome = fails.map_or(Outcome::Succeeded, |reason| Outcome::Failed {
                    reason,
                    error: "injected".into(),
                });
                table.finish(&id, outcome, now).unwrap();
            }
        }
        if submitted % 4096 < 8 {
            table.audit().unwrap();
        }
        idle_rounds = if open || !inside.is_empty() { 0 } else { idle_rounds + 1 };
    }
    table.audit().unwrap();
    let stats = table.stats(now);
    let ended = stats.succeeded + stats.failed + stats.cancelled + stats.rejected + stats.expired;
    assert_eq!(
        (stats.submitted, ended),
        (tasks, tasks),
        "none lost, none twice, none stuck: {stats:?}"
    );
    assert_eq!((stats.reserved_memory, stats.reserved_share_ppm), (0, 0));
    drop(table);
    let watch = Arc::into_inner(watch).unwrap().into_inner().unwrap();
    assert_eq!((watch.ended, watch.phases.len()), (tasks, 0));
    watch
}

#[test]
fn a_hundred_thousand_tasks_end_once_each() {
    let watch = simulate(7, 100_000, false);
    let never = [
        (Phase::Running, Phase::Suspended),
        (Phase::Suspended, Phase::Running),
        (Phase::Suspended, Phase::Failed),
        (Phase::Suspended, Phase::Cancelled),
        (Phase::Suspended, Phase::Expired),
        (Phase::Suspended, Phase::Queued),
        (Phase::Admitted, Phase::Failed),
    ];
    for edge in pygpukit_core::scheduler::EDGES {
        let pair = (edge.from, edge.to);
        assert_eq!(watch.taken.contains_key(&pair), !never.contains(&pair), "{pair:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let runs = [3, 3, 4].map(|seed| simulate(seed, 10_000, true));
    let [first, again, other] = runs.map(|watch| {
        let log = watch.log.unwrap();
        assert_eq!(log.len() as u64, 24 * watch.transitions);
        log
    });
    assert!(first == again, "byte for byte");
    assert!(first != other);
}

#[test]
#[ignore = "a minute in release, many without"]
fn ten_million_tasks_end_once_each() {
    let watch = simulate(11, 10_000_000, false);
    println!(
        "{} transitions, digest {:016x}, {:?}",
        watch.transitions, watch.digest, watch.taken
    );
}
