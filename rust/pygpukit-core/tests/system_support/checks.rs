//! What holds of the whole system: at any time, by the pool's records, and in the end.

use super::worker::Worker;
use super::{Report, System, PARTITIONS, US};
use pygpukit_core::counters::{Counter, Counters};
use pygpukit_core::pacing::Next;
use pygpukit_core::pool::PoolStats;
use pygpukit_core::ring::kind;
use pygpukit_core::sim_driver::SimUsage;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Contexts that a task left so long ago are not charged any more.
const SETTLED: usize = 4096;

impl System {
    /// Puts the pool's records into the digest, and looks at who lost memory. `by`: the account of the one who just did something.
    pub(super) fn read_ring(&mut self, by: Option<u64>) {
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
    pub(super) fn check(&mut self) {
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

    pub(super) fn finish(mut self, tasks: u64) -> Report {
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
