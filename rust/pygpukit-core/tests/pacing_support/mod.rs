//! A deterministic world for the gate: tenants that submit, wait and sleep in virtual time, and what the device really did.
#![allow(dead_code)] // each test binary uses its own part

use pygpukit_core::clock::Clock;
use pygpukit_core::driver::DriverResult;
use pygpukit_core::pacing::{Command, Gate, Next, Observer, Settings, Submitted, Work};
use pygpukit_core::scheduler::TaskContext;
use pygpukit_core::sim_driver::{SimConfig, SimDriver};
use pygpukit_core::slicing::SubGrid;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

pub static DEFERRED: AtomicU64 = AtomicU64::new(0);

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Tenant {
    pub share_ppm: u32,
    pub limit_ppm: u32,
    pub kernel_ns: u64,
    /// Percent by which a kernel's time varies up and down.
    pub spread: u64,
    /// Host time between two launches.
    pub host_ns: u64,
    /// Launches before it waits for their end and then pauses so long; 0 = never.
    pub burst: u64,
    pub pause_ns: u64,
    /// Blocks of a kernel, and how many the device runs at once: it can be launched in parts. 0: it cannot.
    pub blocks: u32,
    pub wave: u64,
}

impl Tenant {
    pub fn backlogged(share_ppm: u32, kernel_ns: u64) -> Tenant {
        Tenant {
            share_ppm,
            limit_ppm: 1_000_000,
            kernel_ns,
            spread: 20,
            host_ns: 6_000,
            burst: 0,
            pause_ns: 0,
            blocks: 1,
            wave: 0,
        }
    }
}

/// One kernel, or a part of one, as the device ran it.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    pub tenant: usize,
    pub number: u64,
    pub first: u32,
    pub blocks: u32,
    /// When the device was given it.
    pub granted_ns: u64,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The device's own books.
#[derive(Default)]
pub struct Books {
    pub ran: Vec<Ran>,
    free_ns: u64,
    /// Launches in which the driver stands still, the first to come first.
    pub stalls: VecDeque<Stall>,
    /// Launches return when the kernel is over.
    pub blocking: bool,
}

/// The first launch after a time stands still.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    pub at_ns: u64,
    pub ns: u64,
    /// When the device has the kernel, else before.
    pub late: bool,
}

impl Books {
    /// When so many kernels of a tenant were over; None while the device was given fewer.
    fn last_to_ns(&self, tenant: usize, count: u64, blocks: u32) -> Option<u64> {
        let last = self.ran.iter().rfind(|r| r.tenant == tenant)?;
        (last.number + 1 == count && last.first + last.blocks == blocks).then_some(last.to_ns)
    }
}

/// A kernel of a known length.
#[derive(Clone)]
pub struct Kernel {
    driver: Arc<SimDriver>,
    books: Arc<Mutex<Books>>,
    tenant: usize,
    number: u64,
    ns: u64,
    blocks: u32,
}

impl Kernel {
    fn run(&self, first: u32, blocks: u32) {
        let now_ns = self.driver.now_ns();
        let due = |books: &mut Books| {
            let stall = books.stalls.front().is_some_and(|stall| stall.at_ns <= now_ns);
            books.stalls.drain(..usize::from(stall)).next()
        };
        let stall = due(&mut self.books.lock().unwrap());
        let stand_still = |late: bool| {
            if let Some(stall) = stall.filter(|stall| stall.late == late) {
                self.driver.advance_ns(stall.ns);
            }
        };
        stand_still(false);
        let ns = self.ns * u64::from(blocks) / u64::from(self.blocks);
        self.driver.work(self.tenant as u64 + 1, ns);
        let mut books = self.books.lock().unwrap();
        let granted_ns = self.driver.now_ns();
        let from_ns = books.free_ns.max(granted_ns);
        books.free_ns = from_ns + ns;
        books.ran.push(Ran {
            tenant: self.tenant,
            number: self.number,
            first,
            blocks,
            granted_ns,
            from_ns,
            to_ns: from_ns + ns,
        });
        if books.blocking {
            self.driver.advance_ns(books.free_ns - self.driver.now_ns());
        }
        stand_still(true);
    }
}

impl Command for Kernel {
    fn issue(&self) -> DriverResult<()> {
        self.run(0, self.blocks);
        Ok(())
    }

    fn issue_part(&self, part: SubGrid) -> DriverResult<()> {
        assert_eq!((part.extent[1], part.extent[2]), (1, 1));
        self.run(part.first[0], part.extent[0]);
        Ok(())
    }
}

pub struct World {
    pub gate: Gate,
    pub driver: Arc<SimDriver>,
    pub contexts: Vec<Arc<TaskContext>>,
    pub tenants: Vec<Tenant>,
    pub books: Arc<Mutex<Books>>,
    pub log: String,
    random: Random,
    submit_ns: Vec<u64>,
    /// Waits for the end of its burst.
    settles: Vec<bool>,
    submitted: Vec<u64>,
    next_ns: Vec<u64>,
    step_ns: u64,
}

impl World {
    pub fn new(tenants: &[Tenant], settings: Settings, seed: u64) -> World {
        struct Nobody;
        impl Observer for Nobody {}
        World::observed(tenants, settings, seed, Nobody)
    }

    pub fn observed(tenants: &[Tenant], settings: Settings, seed: u64, observer: impl Observer + 'static) -> World {
        let driver = Arc::new(SimDriver::new(SimConfig::default()));
        let mut random = Random(seed);
        let context = |(i, t): (usize, &Tenant)| {
            let (number, id) = (i as u64 + 1, format!("t{i}"));
            Arc::new(TaskContext::new(number, id.into(), t.share_ppm, t.limit_ppm))
        };
        World {
            gate: Gate::new(driver.clone(), driver.clone(), settings, &DEFERRED).observed_by(Box::new(observer)),
            contexts: tenants.iter().enumerate().map(context).collect(),
            tenants: tenants.to_vec(),
            books: Arc::default(),
            log: String::new(),
            submit_ns: (0..tenants.len() as u64).collect(),
            settles: vec![false; tenants.len()],
            submitted: vec![0; tenants.len()],
            next_ns: tenants.iter().map(|t| length(t, &mut random)).collect(),
            step_ns: u64::MAX,
            random,
            driver,
        }
    }

    pub fn now(&self) -> u64 {
        self.driver.now_ns()
    }

    /// The tenant submits nothing before this time.
    pub fn begin_at(&mut self, i: usize, at_ns: u64) {
        self.submit_ns[i] = at_ns;
    }

    fn submit(&mut self, i: usize) {
        let (now, t) = (self.now(), self.tenants[i]);
        if self.settles[i] {
            // As a thread does: it polls until its work is over.
            if self
                .books
                .lock()
                .unwrap()
                .last_to_ns(i, self.submitted[i], t.blocks)
                .map_or(true, |to_ns| to_ns > now)
            {
                self.submit_ns[i] = now + 20_000;
                return;
            }
            self.settles[i] = false;
            self.submit_ns[i] = now + t.pause_ns;
            return;
        }
        let kernel = Kernel {
            driver: self.driver.clone(),
            books: self.books.clone(),
            tenant: i,
            number: self.submitted[i],
            ns: self.next_ns[i],
            blocks: t.blocks,
        };
        let work = Work {
            stream: i as u64 + 1,
            name: i as u32 + 1,
            size: t.blocks.into(),
            grid: [t.blocks, 1, 1],
            wave: t.wave,
            ..Work::default()
        };
        let kept = kernel.clone();
        let submitted = self
            .gate
            .submit(&self.contexts[i], work, || kernel.issue(), || Arc::new(kept), || ());
        writeln!(self.log, "{now} {i} {} {submitted:?}", self.next_ns[i]).unwrap();
        match submitted {
            Submitted::Issued | Submitted::Deferred => {
                self.submitted[i] += 1;
                self.next_ns[i] = length(&t, &mut self.random);
                self.submit_ns[i] = now + t.host_ns;
                self.settles[i] = t.burst > 0 && self.submitted[i] % t.burst == 0;
                if submitted == Submitted::Deferred && self.step_ns == u64::MAX {
                    self.step_ns = now + 5_000 + self.random.below(50_000); // it slept
                }
            }
            Submitted::Full => {
                // It sleeps until there is room, and wakes late.
                self.submit_ns[i] = now + 100_000 + self.random.below(100_000);
                while !self.gate.wait_for_room(&self.contexts[i], work.stream, 0) && self.submit_ns[i] < now + 1_000_000
                {
                    self.submit_ns[i] += 100_000;
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn step(&mut self) {
        let now = self.now();
        self.step_ns = match self.gate.step() {
            Next::Again => now + 5_000,
            Next::At(at) => at.max(now + 5_000) + self.random.below(20_000),
            Next::Idle => u64::MAX,
        };
    }

    /// Lets time pass.
    pub fn run(&mut self, ns: u64) {
        let end = self.now() + ns;
        loop {
            let (at, i) = self.submit_ns.iter().copied().zip(0..).min().unwrap();
            let at = at.min(self.step_ns);
            let now = self.now();
            if at > end {
                return self.driver.advance_ns(end.saturating_sub(now));
            }
            self.driver.advance_ns(at.saturating_sub(now));
            if self.step_ns <= at {
                self.step();
            } else {
                self.submit(i);
            }
        }
    }

    /// Device time that each tenant really had in a window.
    pub fn had_ns(&self, from_ns: u64, to_ns: u64) -> Vec<u64> {
        let mut had = vec![0; self.tenants.len()];
        let books = self.books.lock().unwrap();
        let first = books.ran.partition_point(|r| r.to_ns <= from_ns);
        for r in books.ran[first..].iter().take_while(|r| r.from_ns < to_ns) {
            had[r.tenant] += r.to_ns.min(to_ns) - r.from_ns.max(from_ns);
        }
        had
    }

    /// Submits nothing more and lets everything end.
    pub fn finish(&mut self) {
        for _ in 0..1_000_000 {
            if self.gate.step() == Next::Idle {
                break;
            }
            self.driver.advance_ns(100_000);
        }
        self.contexts.iter().for_each(|context| self.gate.leave(context));
    }
}

fn length(t: &Tenant, random: &mut Random) -> u64 {
    let spread = t.kernel_ns * t.spread / 100;
    (t.kernel_ns - spread + random.below(2 * spread + 1)).max(1)
}

/// What one batch can take at most.
pub fn longest_batch_ns(t: &Tenant, settings: &Settings) -> u64 {
    settings.span_ns.max(t.kernel_ns) * (100 + t.spread) / 100 + t.kernel_ns
}

/// Requests at the beginning, while what work costs is still guessed.
pub const GUESSED: usize = 3;

/// The longest that a tenant's request of ten kernels took, from its first to the end of its last.
pub fn slowest_request_ns(world: &World, tenant: usize) -> u64 {
    let books = world.books.lock().unwrap();
    let asked: Vec<_> = books.ran.iter().filter(|r| r.tenant == tenant).collect();
    let requests = asked.chunks_exact(10).skip(GUESSED);
    requests
        .map(|request| request[9].to_ns - request[0].from_ns)
        .max()
        .unwrap()
}
