//! Prints what admission and pick-next cost with many tenants: `cargo run --release --example policy_speed`.

use pygpukit_core::partition::Limits;
use pygpukit_core::scheduler::{Config, Outcome, TaskSpec, TaskTable, Transition};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 9;
const TASKS: usize = 10_000;
const TENANTS: usize = 1000;
const READINGS: u32 = 1000;

fn table(tenants: usize) -> TaskTable {
    let config = Config {
        max_queue: TASKS,
        ..Config::new(1 << 40)
    };
    let mut table = TaskTable::new(config, Box::new(|t: &Transition<'_>| _ = black_box(t.number)));
    table.with_partitions(0, |partitions| {
        for tenant in 0..tenants {
            let limits = Limits {
                weight: 1 + (tenant % 7) as u32,
                max_streams: TASKS as u32,
                ..Limits::new((1 << 40) / tenants as u64, 1_000_000 / tenants as u32)
            };
            let id = format!("t{tenant}");
            partitions.create(&id, &id, limits).expect("the quotas add up");
        }
    });
    table
}

fn specs(tenants: usize) -> Vec<TaskSpec> {
    let spec = |i: usize| {
        let mut spec = TaskSpec {
            memory_bytes: 1 << 20,
            name: "bench".into(),
            priority: (i % 3) as i32,
            partition: if tenants == 0 {
                String::new()
            } else {
                format!("t{}", i % tenants)
            },
            ..TaskSpec::new(format!("task-{i}"))
        };
        spec.policy = spec.demand().class();
        spec
    };
    (0..TASKS).map(spec).collect()
}

/// p50 and p99 of submit and the mean of next in ns, the reading of the clock taken off; all submissions, untimed singly, in ms.
fn round(tenants: usize) -> [f64; 4] {
    let mut timed = table(tenants);
    let clock = Instant::now();
    for _ in 0..READINGS {
        black_box(Instant::now());
    }
    let reading = clock.elapsed().as_nanos() as f64 / f64::from(READINGS);
    let mut ns: Vec<f64> = Vec::with_capacity(TASKS);
    for spec in specs(tenants) {
        let start = Instant::now();
        black_box(timed.submit(spec, 1).expect("a new id"));
        ns.push(start.elapsed().as_nanos() as f64 - reading);
    }
    ns.sort_by(f64::total_cmp);
    let picks = Instant::now();
    let running: Vec<_> = (0..TASKS).map(|_| timed.next(2).expect("all are admitted")).collect();
    let pick_ns = picks.elapsed().as_nanos() as f64 / TASKS as f64;
    for context in running {
        timed.finish(&context.id, Outcome::Succeeded, 3).expect("it runs");
    }
    let mut plain = table(tenants);
    let specs = specs(tenants);
    let start = Instant::now();
    for spec in specs {
        black_box(plain.submit(spec, 1).expect("a new id"));
    }
    let all_ms = start.elapsed().as_nanos() as f64 / 1e6;
    [ns[TASKS / 2], ns[TASKS * 99 / 100], pick_ns, all_ms]
}

fn main() {
    println!("tenants  submit p50 ns  p99 ns  next ns  {TASKS} submissions ms   (median of {ROUNDS} rounds)");
    for tenants in [0, 1, TENANTS] {
        let rounds: Vec<[f64; 4]> = (0..ROUNDS).map(|_| round(tenants)).collect();
        let median = |column: usize| {
            let mut values: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
            values.sort_by(f64::total_cmp);
            values[ROUNDS / 2]
        };
        let [p50, p99, pick, all] = [0, 1, 2, 3].map(median);
        println!("{tenants:7}  {p50:13.0}  {p99:6.0}  {pick:7.0}  {all:21.2}");
    }
}
