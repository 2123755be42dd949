//! A whole system on one simulated device, in one thread and in virtual time: table, partitions, pool accounts and gate, tasks that
//! allocate and launch, and faults at any moment.

use crate::simulation_support::{spec, Books, Digest, Kinds, Random, Watch};
use pygpukit_core::clock::Clock;
use pygpukit_core::counters::{Counter, Counters};
use pygpukit_core::driver::{Driver, DriverError, DriverResult};
use pygpukit_core::pacing::{Command, Gate, Next, Settings, Submitted, Work};
use pygpukit_core::partition::{Limits, Reservation};
use pygpukit_core::pool::{Allocation, Owner, Pool, PoolConfig, PoolError, PoolStats, Promise, Services};
use pygpukit_core::ring::{kind, Ring};
use pygpukit_core::scheduler::{
    Change, Config, Name, Outcome, Policy, Reason, TaskContext, TaskSpec, TaskTable, Transition, Verdict,
};
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver, SimUsage};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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
/// Device calls that fail now and then.
const FAILING: [Call; 17] = [
    Call::MemoryInfo,
    Call::AddressReserve,
    Call::AddressFree,
    Call::PhysicalCreate,
    Call::PhysicalRelease,
    Call::Map,
    Call::Unmap,
    Call::HostAlloc,
    Call::CopyToHost,
    Call::CopyToDevice,
    Call::StreamWait,
    Call::EventCreate,
    Call::EventRecord,
    Call::EventDone,
    Call::EventElapsed,
    Call::StreamWaitEvent,
    Call::StreamDone,
];
/// Contexts that a task left so long ago are not charged any more.
const SETTLED: usize = 4096;
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

/// A kernel on a block, which stays on the device until it was issued or dropped.
struct Kernel {
    sim: Arc<SimDriver>,
    pool: Arc<Pool>,
    block: Allocation,
    stream: u64,
    ns: u64,
    refused: bool,
}

impl Kernel {
    fn kept(&self) -> Kernel {
        self.pool.pin(self.block.block, 0).expect("it is pinned already");
        Kernel {
            sim: self.sim.clone(),
            pool: self.pool.clone(),
            ..*self
        }
    }
}

impl Command for Kernel {
    fn issue(&self) -> DriverResult<()> {
        if self.refused {
            let text = "no such kernel".to_string();
            return Err(DriverError { code: 1, text });
        }
        self.sim
            .launch(self.stream, self.block.address, self.block.bytes, Some(1), self.ns);
        Ok(())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.pool.unpin(self.block.block);
    }
}

/// A dispatcher inside a task.
struct Worker {
    context: Arc<TaskContext>,
    guaranteed: bool,
    owner: Owner,
    stream: u64,
    blocks: Vec<Allocation>,
    /// Launches that are left.
    left: u64,
    at_ns: u64,
    /// How it ends, once the device has done its work.
    outcome: Option<Outcome>,
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
        table.add_check(Box::new(move |_: &TaskSpec, _| match checks.below(400) {
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

    fn any_recent(&mut self) -> Option<Name> {
        let at = self.random.below(self.recent.len().max(1) as u64);
        self.recent.get(at as usize).cloned()
    }

    fn resume(&mut self, id: &str) {
        _ = self.table.resume(id, self.now()); // it may have ended
    }

    /// What may go wrong at any time.
    fn disturb(&mut self) {
        let now = self.now();
        if self.random.one_in(60) {
            if let Some(id) = self.any_recent() {
                _ = self.table.cancel(&id, now); // it may be forgotten
            }
        }
        if self.random.one_in(80) {
            if let Some(id) = self.any_recent() {
                if self.table.pause(&id, now) == Ok(true) {
                    self.tally.paused += 1;
                    self.paused.push(id);
                }
            }
        }
        if self.random.one_in(60) && !self.paused.is_empty() {
            let at = self.random.below(self.paused.len() as u64);
            let id = self.paused.swap_remove(at as usize);
            self.resume(&id);
        }
        if self.random.one_in(80) {
            if let Some(id) = self.any_recent() {
                let change = Change {
                    priority: Some(self.random.below(4) as i32 - 2),
                    ..Change::default()
                };
                _ = self.table.adjust(&id, change, now); // refused for one that has ended
            }
        }
        if self.random.one_in(400) {
            let limits = quota(4 + self.random.below(6), true);
            let bound = limits.memory_bound().expect("it has a quota of memory");
            // Refused while too much of it is in use by others.
            let resized = self
                .table
                .with_partitions(now, |partitions| partitions.resize("a", limits));
            if resized.is_ok() {
                assert!(self.pool.set_account_limit(self.accounts["a"], bound));
            }
        }
        if self.random.one_in(150) {
            let call = FAILING[self.random.below(FAILING.len() as u64) as usize];
            let code = if self.random.one_in(2) { 2 } else { 700 };
            self.sim.heal(); // one at a time: what is refused twice in a row is lost with its device
            self.sim.fail(call, 1 + self.random.below(3), code);
        }
        if self.random.one_in(300) {
            self.sim.heal();
        }
        if self.random.one_in(50) && !self.workers.is_empty() {
            let at = self.random.below(self.workers.len() as u64) as usize;
            let reason = if self.random.one_in(2) {
                Reason::WorkerLost
            } else {
                Reason::StickyDeviceError
            };
            let error = "injected".to_string();
            if self.workers[at].outcome.is_none() {
                self.tally.lost += 1;
                self.workers[at].outcome = Some(Outcome::Lost { reason, error });
            }
        }
    }

    fn dispatch(&mut self) {
        while !self.free_streams.is_empty() {
            let now = self.now();
            let Some(context) = self.table.next(now) else { return };
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
            let guaranteed = self.table.get(&id, now).expect("it runs").policy == Policy::Guaranteed;
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

    fn step_worker(&mut self, at: usize) {
        let now = self.now();
        let worker = &self.workers[at];
        if worker.outcome.is_none() && worker.context.stopped() {
            self.tally.cancelled_inside += 1;
            self.workers[at].outcome = Some(Outcome::Succeeded); // which it is not any more: the table knows better
        }
        if self.workers[at].outcome.is_some() {
            return self.leave(at);
        }
        let worker = &self.workers[at];
        let result = match self.random.below(8) {
            _ if worker.left == 0 => {
                let failed = |reason| Outcome::Failed {
                    reason,
                    error: "injected".into(),
                };
                self.workers[at].outcome = Some(match self.random.below(if self.open { 16 } else { 1 << 40 }) {
                    0 => failed(Reason::UserError),
                    1 => failed(Reason::CompileError),
                    _ => Outcome::Succeeded,
                });
                Ok(())
            }
            0..=2 => self.allocate(at),
            3 => self.release(at),
            _ => self.launch(at),
        };
        if let Err(error) = result {
            let reason = match error {
                PoolError::OutOfMemory(_) => {
                    self.tally.out_of_memory += 1;
                    Reason::OutOfMemory
                }
                PoolError::Driver(_) | PoolError::Busy { .. } => {
                    self.tally.device_faults += 1;
                    Reason::LaunchError
                }
                error => panic!("{error}"),
            };
            let error = error_text(reason);
            self.workers[at].outcome = Some(Outcome::Failed { reason, error });
        }
        let by = self.workers[at].owner.account;
        self.read_ring(Some(by));
        let worker = &mut self.workers[at];
        worker.at_ns = worker.at_ns.max(now) + 2 * US + self.random.below(60 * US);
    }

    fn allocate(&mut self, at: usize) -> Result<(), PoolError> {
        let bytes = match self.random.below(6) {
            0 | 1 => 1 + self.random.below(6 * MIB),
            2 | 3 => 1 + self.random.below(MIB),
            _ => 1 + self.random.below(20_000),
        };
        let worker = &mut self.workers[at];
        let block = self.pool.alloc(bytes, worker.stream, worker.owner)?;
        worker.blocks.push(block);
        Ok(())
    }

    /// Frees a block that no deferred launch uses.
    fn release(&mut self, at: usize) -> Result<(), PoolError> {
        let worker = &mut self.workers[at];
        if !worker.blocks.is_empty() && !self.gate.has_deferred(Some(worker.stream)) {
            let block = self.random.below(worker.blocks.len() as u64);
            self.pool.free(worker.blocks.swap_remove(block as usize).block)?;
        }
        Ok(())
    }

    fn launch(&mut self, at: usize) -> Result<(), PoolError> {
        let worker = &mut self.workers[at];
        let Some(&block) = worker
            .blocks
            .get(self.random.below(worker.blocks.len().max(1) as u64) as usize)
        else {
            return self.allocate(at);
        };
        self.pool.pin(block.block, worker.owner.account)?;
        let name = self.random.below(20);
        let kernel = Kernel {
            sim: self.sim.clone(),
            pool: self.pool.clone(),
            block,
            stream: worker.stream,
            ns: (2 + 8 * name) * US,
            refused: self.open && self.random.one_in(400),
        };
        let work = Work {
            stream: worker.stream,
            name: name as u32 + 1,
            size: 1,
            ..Work::default()
        };
        let submitted = self.gate.submit(
            &worker.context,
            work,
            || kernel.issue(),
            || Arc::new(kernel.kept()),
            || (),
        );
        self.digest.add(&[worker.context.number, code(&submitted)]);
        match submitted {
            Submitted::Issued | Submitted::Deferred => worker.left -= 1,
            Submitted::Full => worker.at_ns = self.sim.now_ns() + 50 * US,
            Submitted::Stopped => {}
            Submitted::Refused(_) => {
                self.tally.refused += 1;
                let (reason, error) = (Reason::LaunchError, "refused".to_string());
                worker.outcome = Some(Outcome::Failed { reason, error });
            }
        }
        self.wake_gate();
        Ok(())
    }

    fn wake_gate(&mut self) {
        if self.step_ns == u64::MAX && self.gate.has_deferred(None) {
            self.step_ns = self.now() + 5 * US + self.random.below(50 * US);
        }
    }

    /// Leaves a task once the device has done its work, however it ends.
    fn leave(&mut self, at: usize) {
        let (now, worker) = (self.now(), &mut self.workers[at]);
        if self.gate.has_deferred(Some(worker.stream)) || !self.sim.stream_done(worker.stream).unwrap_or(false) {
            worker.at_ns = now + 20 * US;
            return self.wake_gate();
        }
        if let Some(&block) = worker.blocks.last() {
            // Another step of its own for each: whatever happens between them.
            self.pool.free(block.block).expect("a live block");
            worker.blocks.pop();
            worker.at_ns = now + self.random.below(2 * US);
            let by = worker.owner.account;
            return self.read_ring(Some(by));
        }
        let worker = self.workers.swap_remove(at);
        if self.random.one_in(2) {
            _ = self.gate.take_refusal(worker.stream); // else it goes with the tenant
        }
        self.gate.leave(&worker.context);
        self.pool.close_account(worker.owner.account);
        assert_eq!(self.pool.account(worker.owner.account), None, "it holds nothing");
        self.free_streams.push(worker.stream);
        let outcome = worker.outcome.expect("it has ended");
        self.table
            .finish(&worker.context.id, outcome, now)
            .expect("it was inside");
        self.tally.throttled += u64::from(worker.context.throttled_ns() > 0);
        self.left.push_back(worker.context);
        self.read_ring(None);
    }

    /// Puts the pool's records into the digest, and looks at who lost memory. `by`: the account of the one who just did something.
    fn read_ring(&mut self, by: Option<u64>) {
        let (records, next, lost) = self.ring.read(self.read, usize::MAX);
        assert_eq!(lost, 0, "the ring holds what one step records");
        self.read = next;
        for record in records {
            let event = record.event;
            self.digest.add(&[
                record.seq,
                record.t_ns,
                u64::from(event.kind),
                event.a,
                event.b,
                event.c,
            ]);
            if event.kind == kind::EVICT {
                self.tally.evictions += 1;
                let of = self
                    .workers
                    .iter()
                    .find(|worker| worker.blocks.iter().any(|block| block.block == event.c));
                if let Some(victim) = of.filter(|worker| worker.guaranteed) {
                    assert_eq!(
                        Some(victim.owner.account),
                        by,
                        "guaranteed memory went for somebody else"
                    );
                }
            }
        }
    }

    /// What holds at any time.
    fn check(&mut self) {
        let now = self.now();
        let inside: HashSet<u64> = self.workers.iter().map(|worker| worker.context.number).collect();
        self.books.check(&mut self.table, &self.watch, &inside, now);
        self.pool.audit().unwrap();
        assert_eq!(self.sim.violations(), Vec::<String>::new());
        let stats = self.pool.stats();
        let growing = |s: &PoolStats| {
            [
                s.allocation_count,
                s.reuse_count,
                s.eviction_count,
                s.restore_count,
                s.peak_used,
            ]
        };
        let (before, after) = (growing(&self.pool_stats), growing(&stats));
        assert!(
            before.iter().zip(after).all(|(&b, a)| b <= a),
            "{before:?} became {after:?}"
        );
        self.pool_stats = stats;
        let held = |worker: &Worker| self.pool.account(worker.owner.account).expect("it is open").used;
        let sum: u64 = self.workers.iter().map(held).sum();
        assert_eq!(
            sum,
            stats.used + stats.evicted,
            "what tasks hold is what the pool has given out"
        );
        self.check_time();
    }

    /// What all tasks were charged is what was counted, and no more than there was.
    fn check_time(&mut self) {
        for _ in SETTLED..self.left.len() {
            let context = self.left.pop_front().expect("there are more");
            if Arc::strong_count(&context) > 1 {
                self.left.push_back(context); // it may run again
                continue;
            }
            self.settled_ns += context.gpu_ns();
        }
        let open = self
            .left
            .iter()
            .chain(self.workers.iter().map(|worker| &worker.context));
        let charged = self.settled_ns + open.map(|context| context.gpu_ns()).sum::<u64>();
        let counted = Counters::global().get(Counter::TaskNs) - self.counted_ns;
        assert_eq!(charged, counted, "the sum over tasks and the total");
        assert!(
            charged <= self.now(),
            "{charged} ns of device time in {} ns",
            self.now()
        );
    }

    fn finish(mut self, tasks: u64) -> Report {
        for _ in 0..100_000 {
            if self.gate.step() == Next::Idle {
                break;
            }
            self.sim.advance_ns(100 * US);
        }
        self.check();
        let (now, view) = (self.now(), self.gate.view());
        assert_eq!((view.tenants.len(), view.in_flight_ns), (0, 0), "{:?}", view.tenants);
        assert_eq!(self.deferred.load(Ordering::SeqCst), 0);
        for (id, _) in PARTITIONS {
            let partition = self.table.partitions().get(id).expect("nobody deleted it");
            let pending = partition.activity.figures().pending_kernels;
            assert_eq!(
                (partition.tasks, partition.occupied, pending),
                (0, 0, 0),
                "partition '{id}'"
            );
        }
        let stats = self.table.stats(now);
        let ended = stats.succeeded + stats.failed + stats.cancelled + stats.rejected + stats.expired;
        assert_eq!(
            (stats.submitted, ended),
            (tasks, tasks),
            "none lost, none twice, none stuck: {stats:?}"
        );
        assert_eq!((stats.reserved_memory, stats.reserved_share_ppm), (0, 0));
        assert_eq!(self.pool.stats().active_blocks, 0);
        self.accounts
            .values()
            .for_each(|&account| self.pool.close_account(account));
        assert!(self
            .accounts
            .values()
            .all(|&account| self.pool.account(account).is_none()));
        self.pool.clear().expect("nothing is pinned");
        self.read_ring(None);
        let System {
            sim,
            pool,
            gate,
            table,
            watch,
            mut digest,
            tally,
            ..
        } = self;
        drop((gate, table));
        assert!(Arc::into_inner(pool).is_some(), "a launch is left over");
        let usage = SimUsage {
            events: 0, // those of a gate live as long as its device
            ..sim.usage()
        };
        assert_eq!(usage, SimUsage::default(), "everything was given back");
        assert_eq!(sim.violations(), Vec::<String>::new());
        let watch = Arc::into_inner(watch).unwrap().into_inner().unwrap();
        assert_eq!((watch.ended, watch.phases.len()), (tasks, 0));
        digest.add(&[watch.digest.0]);
        Report {
            digest: digest.0,
            tally,
            virtual_ns: now,
            watch,
        }
    }
}

fn error_text(reason: Reason) -> String {
    format!("injected {reason:?}")
}

fn code(submitted: &Submitted) -> u64 {
    match submitted {
        Submitted::Issued => 0,
        Submitted::Deferred => 1,
        Submitted::Full => 2,
        Submitted::Stopped => 3,
        Submitted::Refused(_) => 4,
    }
}
