//! Prints what submit, pick-next and finish cost with a given backlog: `cargo run --release --example scheduler_speed`.

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::scheduler::{Config, Outcome, Policy, Scheduler, TaskSpec, TaskStart, Transition};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;

fn main() {
    println!("backlog  submit ns  next ns  finish ns   (median of {ROUNDS} rounds, a call)");
    for backlog in [1, 100, 1000, 10_000] {
        let mut rounds: Vec<[f64; 3]> = (0..ROUNDS).map(|_| round(backlog)).collect();
        let mut median = |column: usize| {
            rounds.sort_by(|a, b| a[column].total_cmp(&b[column]));
            rounds[ROUNDS / 2][column]
        };
        println!("{backlog:7}  {:9.0}  {:7.0}  {:9.0}", median(0), median(1), median(2));
    }
}

/// Fills the queue to the backlog and empties it, repeated to at least 10^4 tasks: ns a submit, next and finish.
fn round(backlog: usize) -> [f64; 3] {
    let config = Config {
        max_queue: backlog,
        ..Config::new(u64::MAX)
    };
    let scheduler = Scheduler::new(
        config,
        Arc::new(MonotonicClock),
        Box::new(|t: &Transition<'_>| _ = black_box(t.number)),
    );
    let mut spent = [Duration::ZERO; 3];
    let repeats = 10_000usize.div_ceil(backlog);
    for repeat in 0..repeats {
        let specs: Vec<TaskSpec> = (0..backlog)
            .map(|i| TaskSpec {
                memory_bytes: 1 << 20,
                share_ppm: 1,
                policy: Policy::Guaranteed,
                priority: (i % 3) as i32,
                ..TaskSpec::new(format!("task-{repeat}-{i}"))
            })
            .collect();
        let start = Instant::now();
        for spec in specs {
            black_box(scheduler.submit(spec).expect("a new id"));
        }
        let submitted = Instant::now();
        let running: Vec<_> = (0..backlog)
            .map(|_| scheduler.next(Duration::ZERO).expect("all are admitted"))
            .collect();
        let started = Instant::now();
        for TaskStart { context, .. } in &running {
            black_box(scheduler.finish(&context.id, Outcome::Succeeded).expect("it runs"));
        }
        let finished = Instant::now();
        let parts = [submitted - start, started - submitted, finished - started];
        for (total, part) in spent.iter_mut().zip(parts) {
            *total += part;
        }
    }
    spent.map(|total| total.as_nanos() as f64 / (repeats * backlog) as f64)
}
