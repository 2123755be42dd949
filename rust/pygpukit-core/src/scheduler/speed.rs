//! What scheduling costs on this machine, measured on the task table itself: the benchmark's rows and the example's.

use super::error::Outcome;
use super::name::Name;
use super::phase::Phase;
use super::record::{TaskStart, Transition};
use super::spec::{Config, TaskSpec};
use super::table::TaskTable;
use crate::clock::{Clock, MonotonicClock};
use crate::partition::Limits;
use std::hint::black_box;

/// Tasks that are admitted and wait for a dispatcher while a call is timed.
const BACKLOG: usize = 1000;
/// Calls before the first that counts: more than the table remembers, so that nothing grows any more.
const WARM_UP: usize = 8192;
const MEMORY: u64 = 1 << 40;

/// Nanoseconds of one call, the reading of the clock taken off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speed {
    pub submit_p50: f64,
    pub submit_p99: f64,
    pub next_p50: f64,
    pub next_p99: f64,
    pub finish_p50: f64,
}

/// Times `rounds` tasks one by one through a table with a backlog: submitted without a record, as from Python, which asks for it when
/// it is wanted. tenants: partitions that take turns; 0 = the default one.
pub fn one_by_one(tenants: usize, rounds: usize) -> Speed {
    let (mut table, names) = table(tenants, BACKLOG + 1);
    let clock = MonotonicClock;
    let mut reading: Vec<u64> = (0..1000).map(|_| timed(&clock, || ()).0).collect();
    let reading = percentile(&mut reading, 50);
    let [mut submits, mut picks, mut finishes] = [(); 3].map(|()| Vec::with_capacity(rounds));
    let total = BACKLOG + WARM_UP + rounds;
    for i in 0..total {
        let spec = spec(i, &names);
        let (submit, phase) = timed(&clock, || table.submit_new(spec, 1));
        assert_eq!(phase, Ok(Phase::Admitted));
        if i < BACKLOG {
            continue;
        }
        let (pick, start) = timed(&clock, || table.next(2));
        let TaskStart { context, .. } = start.expect("there is a backlog");
        let (finish, _) = timed(&clock, || table.finish(&context.id, Outcome::Succeeded, 3));
        if i >= BACKLOG + WARM_UP {
            submits.push(submit);
            picks.push(pick);
            finishes.push(finish);
        }
    }
    let ns = |times: &mut [u64], percent| percentile(times, percent) as f64 - reading as f64;
    Speed {
        submit_p50: ns(&mut submits, 50),
        submit_p99: ns(&mut submits, 99),
        next_p50: ns(&mut picks, 50),
        next_p99: ns(&mut picks, 99),
        finish_p50: ns(&mut finishes, 50),
    }
}

/// Nanoseconds of `tasks` submissions in a row into a new table.
pub fn in_a_row(tenants: usize, tasks: usize) -> u64 {
    let (mut table, names) = table(tenants, tasks);
    let specs: Vec<TaskSpec> = (0..tasks).map(|i| spec(i, &names)).collect();
    let submit_all = || {
        specs
            .into_iter()
            .for_each(|spec| _ = black_box(table.submit_new(spec, 1)))
    };
    timed(&MonotonicClock, submit_all).0
}

fn table(tenants: usize, max_queue: usize) -> (TaskTable, Vec<Name>) {
    let config = Config {
        max_queue,
        ..Config::new(MEMORY)
    };
    let mut table = TaskTable::new(config, Box::new(|t: &Transition<'_>| _ = black_box(t.number)));
    let names: Vec<Name> = (0..tenants).map(|tenant| format!("tenant-{tenant}").into()).collect();
    table.with_partitions(0, |partitions| {
        for (tenant, id) in names.iter().enumerate() {
            let limits = Limits {
                weight: 1 + (tenant % 7) as u32,
                ..Limits::new(MEMORY / tenants as u64, 1_000_000 / tenants as u32)
            };
            partitions.create(id, id, limits).expect("the quotas add up");
        }
    });
    (table, names)
}

fn spec(i: usize, tenants: &[Name]) -> TaskSpec {
    let mut spec = TaskSpec {
        memory_bytes: 1 << 16,
        priority: (i % 3) as i32,
        partition: tenants.get(i % tenants.len().max(1)).cloned().unwrap_or_default(),
        ..TaskSpec::new(format!("task-{i}"))
    };
    spec.policy = spec.demand().class();
    spec
}

fn timed<T>(clock: &MonotonicClock, call: impl FnOnce() -> T) -> (u64, T) {
    let start = clock.now_ns();
    let result = black_box(call());
    (clock.now_ns() - start, result)
}

fn percentile(times: &mut [u64], percent: usize) -> u64 {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_goes_through() {
        for tenants in [0, 3] {
            let speed = one_by_one(tenants, 100);
            assert!(
                speed.submit_p99 >= speed.submit_p50 && speed.next_p99 >= speed.next_p50,
                "{speed:?}"
            );
            assert!(in_a_row(tenants, 100) > 0);
        }
        assert_eq!(percentile(&mut [3, 1, 2], 50), 2);
    }
}
