//! A whole system on one simulated device, in one thread and in virtual time: table, partitions, pool accounts and gate, tasks that
//! allocate and launch, and faults at any moment.

mod checks;
mod faults;
mod kernel;
mod worker;

use crate::simulation_support::{spec, Books, Digest, Kinds, Random, Watch};
use pygpukit_core::clock::Clock;
use pygpukit_core::counters::{Counter, Counters};
use pygpukit_core::pacing::{Gate, Next, Settings};
use pygpukit_core::partition::{Limits, Reservation};
use pygpukit_core::pool::{Owner, Pool, PoolConfig, PoolStats, Promise, Services};
use pygpukit_core::ring::Ring;
use pygpukit_core::scheduler::{
    Config, Name, Policy, Reason, TaskContext, TaskSpec, TaskStart, TaskTable, Transition, Verdict,
};
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use worker::Worker;

const MIB: u64 = 1 << 20;
const US: u64 = 1_000;
const MEMORY: u64 = 32 * MIB;
const WORKERS: usize = 12;
/// So little that tasks meet their limits here, whose work is short.
const BURST_NS: u64 = 200 * US;
const KINDS: Kinds = Kinds {
    partitions: &["", "a", "b", "c"],
    memory_bytes: MEMORY / 6,
    deadline_ns: 20_000_000,
};
const PARTITIONS: [(&str, u64); 3] = [("a", 4), ("b", 8), ("c", 4)];
/// Virtual time in which everything ends once nothing fails any more.
const PATIENCE_NS: u64 = 60_000_000_000;

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub runs: u64,
    pub lost: u64,
    pub out_of_memory: u64,
    pub device_faults: u64,
    pub refused: u64,
    pub cancelled_inside: u64,
    pub paused: u64,
    pub evictions: u64,
    pub throttled: u64,
}

/// What a run came to.
pub struct Report {
    pub watch: Watch,
    /// Over the transitions, the pool's records and what the gate answered.
    pub digest: u64,
    pub tally: Tally,
    pub virtual_ns: u64,
}

pub struct System {
    sim: Arc<SimDriver>,
    ring: Arc<Ring>,
    read: u64,
    pool: Arc<Pool>,
    pool_stats: PoolStats,
    gate: Gate,
    deferred: &'static AtomicU64,
    step_ns: u64,
    table: TaskTable,
    watch: Arc<Mutex<Watch>>,
    books: Books,
    random: Random,
    workers: Vec<Worker>,
    free_streams: Vec<u64>,
    accounts: HashMap<&'static str, u64>,
    recent: VecDeque<Name>,
    paused: Vec<Name>,
    /// Contexts by their last run, oldest first.
    left: VecDeque<Arc<TaskContext>>,
    settled_ns: u64,
    counted_ns: u64,
    digest: Digest,
    tally: Tally,
    submitted: u64,
    open: bool,
}

fn quota(part: u64, borrows: bool) -> Limits {
    let reservation = |memory_bytes| Reservation {
        memory_bytes,
        share_ppm: 0,
    };
    Limits {
        borrow: reservation(if borrows { MEMORY / 4 } else { 0 }),
        lend: reservation(MEMORY / part / 2),
        max_streams: 6,
        weight: part as u32,
        priorities: (-2, 1),
        ..Limits::new(MEMORY / part, 200_000)
    }
}

impl System {
    pub fn new(seed: u64) -> System {
        let sim = Arc::new(SimDriver::new(SimConfig {
            store: false,
            ..SimConfig::default()
        }));
        let ring = Arc::new(Ring::new(1 << 12));
        let services = Services {
            ring: ring.clone(),
            clock: sim.clone(),
        };
        let config = PoolConfig {
            limit_bytes: MEMORY,
            eviction: true,
            host_cache_bytes: 8 * MIB,
            staging_bytes: 2 * MIB,
            spare_bytes: 4 * MIB,
        };
        let pool = Arc::new(Pool::new(sim.clone(), config, services).expect("the simulated device answers"));
        let watch = Arc::new(Mutex::new(Watch::default()));
        let sink = watch.clone();
        let config = Config {
            max_queue: 96,
            max_finished: 512,
            ..Config::new(MEMORY)
        };
        let observer = move |t: &Transition<'_>| sink.lock().unwrap().see(t);
        let mut table = TaskTable::new(config, Box::new(observer));
        let mut checks = Random(seed ^ 0xFA);
        table.set_admission(Box::new(move |_: &TaskSpec, _| match checks.below(400) {
            0 => Verdict::Never(Reason::DeviceUnhealthy),
            1..=8 => Verdict::Later(Reason::WaitingForDevice),
            _ => Verdict::Pass,
        }));
        let mut accounts = HashMap::new();
        for (id, part) in PARTITIONS {
            let limits = quota(part, id != "c");
            let bound = limits.memory_bound().expect("it has a quota of memory");
            accounts.insert(id, pool.open_account(0, bound, 0));
            table
                .with_partitions(0, |partitions| partitions.create(id, id, limits))
                .unwrap();
        }
        let deferred: &'static AtomicU64 = Box::leak(Box::default());
        System {
            gate: Gate::new(
                sim.clone(),
                sim.clone(),
                Settings {
                    burst_ns: BURST_NS,
                    ..Settings::default()
                },
                deferred,
            ),
            sim,
            ring,
            read: 1,
            pool,
            pool_stats: PoolStats::default(),
            deferred,
            step_ns: u64::MAX,
            table,
            watch,
            books: Books::default(),
            random: Random(seed),
            workers: Vec::new(),
            free_streams: (1..=WORKERS as u64).rev().collect(),
            accounts,
            recent: VecDeque::new(),
            paused: Vec::new(),
            left: VecDeque::new(),
            settled_ns: 0,
            counted_ns: Counters::global().get(Counter::TaskNs),
            digest: Digest::default(),
            tally: Tally::default(),
            submitted: 0,
            open: true,
        }
    }

    fn now(&self) -> u64 {
        self.sim.now_ns()
    }

    /// Runs so many tasks and lets everything end.
    pub fn run(mut self, tasks: u64) -> Report {
        let (mut arrival_ns, mut rounds, mut closed_ns) = (0, 0u64, u64::MAX);
        loop {
            if self.open && self.submitted == tasks {
                self.open = false;
                self.sim.heal();
                closed_ns = self.now();
                arrival_ns = u64::MAX;
            }
            if !self.open {
                std::mem::take(&mut self.paused).iter().for_each(|id| self.resume(id));
                let stats = self.table.stats(self.now());
                if self.workers.is_empty() && stats.queued + stats.admitted + stats.running + stats.suspended == 0 {
                    break;
                }
                assert!(self.now() < closed_ns + PATIENCE_NS, "stuck: {stats:?}");
            }
            let worker = (0..self.workers.len()).min_by_key(|&i| (self.workers[i].at_ns, i));
            let worker_ns = worker.map_or(u64::MAX, |i| self.workers[i].at_ns);
            let timer_ns = self.table.timer().unwrap_or(u64::MAX);
            let next_ns = [arrival_ns, worker_ns, self.step_ns, timer_ns]
                .into_iter()
                .min()
                .unwrap();
            assert_ne!(next_ns, u64::MAX, "nothing will ever happen again");
            self.sim.advance_ns(next_ns.saturating_sub(self.now()));
            if next_ns == self.step_ns {
                self.step_gate();
            } else if next_ns == worker_ns {
                self.step_worker(worker.expect("it has a time"));
            } else if next_ns == arrival_ns {
                self.arrive();
                arrival_ns = self.now() + self.random.below(400 * US);
            }
            if self.open {
                self.disturb();
            }
            self.dispatch();
            rounds += 1;
            if rounds % 512 == 0 {
                self.check();
            }
        }
        self.finish(tasks)
    }

    fn arrive(&mut self) {
        let now = self.now();
        let recent = self.recent.make_contiguous();
        let mut spec = spec(&mut self.random, &KINDS, self.submitted, now, recent);
        if self.random.one_in(4) {
            spec.share_limit_ppm = Some(spec.share_ppm.max(100_000));
            spec.policy = spec.demand().class();
        }
        self.submitted += 1;
        if self.recent.len() == 48 {
            self.recent.pop_front();
        }
        self.recent.push_back(spec.id.clone());
        let record = self.table.submit(spec, now).expect("every id is new");
        self.books.add(record);
    }

    fn dispatch(&mut self) {
        while !self.free_streams.is_empty() {
            let now = self.now();
            let Some(TaskStart { context, policy, .. }) = self.table.next(now) else {
                return;
            };
            if Arc::strong_count(&context) > 2 {
                self.left.retain(|left| left.number != context.number); // it runs again
            }
            let id = context.id.to_string();
            let parent = self
                .table
                .partition_here(&id)
                .map_or(0, |partition| self.accounts[partition]);
            let (limit, promise) = self.table.memory_terms(&id).unwrap_or((u64::MAX, Promise::default()));
            let tenant = context.number as u32;
            let account = self.pool.open_account(tenant, limit, parent);
            assert!(self.pool.promise_account(account, promise));
            self.tally.runs += 1;
            let guaranteed = policy == Policy::Guaranteed;
            self.workers.push(Worker {
                context,
                guaranteed,
                owner: Owner {
                    tenant,
                    account,
                    ..Owner::default()
                },
                stream: self.free_streams.pop().expect("there is one"),
                blocks: Vec::new(),
                left: 1 + self.random.below(6),
                at_ns: now + self.random.below(20 * US),
                outcome: None,
            });
        }
    }

    fn step_gate(&mut self) {
        let now = self.now();
        self.step_ns = match self.gate.step() {
            Next::Again => now + 5 * US,
            Next::At(at) => at.max(now + 5 * US) + self.random.below(20 * US),
            Next::Idle => u64::MAX,
        };
        self.read_ring(None);
    }
}
