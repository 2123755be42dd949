//! What holds of pool and device after every step and in the end.

use super::strategies::Step;
use super::world::{World, STAGING};
use pygpukit_core::pool::Moved;
use pygpukit_core::ring::kind;
use pygpukit_core::sim_driver::SimUsage;
use std::collections::HashMap;

impl World {
    /// Bytes of segments with memory behind them.
    pub(super) fn mapped(&self) -> u64 {
        self.pool.segments().iter().filter(|s| s.mapped).map(|s| s.bytes).sum()
    }

    pub(super) fn check(&self) {
        let violations = self.sim.violations();
        assert!(violations.is_empty(), "{violations:?}");
        if let Err(difference) = self.pool.audit() {
            panic!("{difference}");
        }
        let (stats, usage) = (self.pool.stats(), self.sim.usage());
        assert_eq!(stats.reserved, usage.physical_bytes);
        assert_eq!(stats.segment_count, usage.address_ranges as u64);
        let kept = stats.reserved - self.mapped();
        assert!(stats.spare <= self.setting.spare_bytes && stats.spare <= kept);
        assert!(
            self.setting.failures || [0, STAGING].contains(&(kept - stats.spare)),
            "{kept} bytes are kept unmapped, {} of them spares",
            stats.spare
        );
        assert_eq!(stats.active_blocks, self.blocks.len() as u64);
        let infos: HashMap<u64, _> = self.pool.blocks().into_iter().map(|b| (b.block, b)).collect();
        let mut used = 0;
        for block in &self.blocks {
            let info = infos[&block.allocation.block];
            assert_eq!(info.address, block.allocation.address, "a block never moves");
            assert!(info.resident || !block.pinned, "a pinned block was evicted");
            used += if info.resident { info.bytes } else { 0 };
        }
        assert_eq!(stats.used, used);
    }

    /// The log alone gives the same books.
    fn replay(&self) {
        let (records, _, lost) = self.ring.read(1, usize::MAX);
        assert_eq!(lost, 0);
        let (mut resident, mut evicted, mut reserved) = (HashMap::new(), HashMap::new(), 0);
        let mut traffic: HashMap<u32, (u64, u64)> = HashMap::new();
        for event in records.into_iter().map(|r| r.event) {
            match event.kind {
                kind::EVICT => traffic.entry(event.tenant).or_default().0 += event.b,
                kind::RESTORE => traffic.entry(event.tenant).or_default().1 += event.b,
                _ => {}
            }
            match event.kind {
                kind::ALLOC => assert!(resident.insert(event.c, event.b).is_none()),
                kind::FREE => assert!(resident.remove(&event.c).or_else(|| evicted.remove(&event.c)) == Some(event.b)),
                kind::EVICT => assert!(evicted
                    .insert(event.c, resident.remove(&event.c).expect("resident"))
                    .is_none()),
                kind::RESTORE => assert!(resident
                    .insert(event.c, evicted.remove(&event.c).expect("evicted"))
                    .is_none()),
                kind::SEGMENT_MAP | kind::SEGMENT_UNMAP => reserved = event.c,
                _ => assert_eq!(event.kind, kind::OUT_OF_MEMORY),
            }
        }
        let (by_tenant, others) = self.pool.traffic();
        let by_tenant: HashMap<_, _> = by_tenant
            .into_iter()
            .map(|(t, m)| (t, (m.evicted, m.restored)))
            .collect();
        assert_eq!((by_tenant, others), (traffic, Moved::default()));
        let stats = self.pool.stats();
        assert_eq!(
            (resident.values().sum(), evicted.values().sum(), reserved),
            (stats.used, stats.evicted, stats.reserved)
        );
    }

    pub(super) fn finish(mut self) {
        self.sim.heal();
        for i in 0..self.blocks.len() {
            self.step(&Step::Unpin(i));
            self.step(&Step::Read(i));
        }
        self.replay();
        while !self.blocks.is_empty() {
            self.step(&Step::Free(0));
            self.check();
        }
        self.pool.clear().expect("nothing is pinned");
        self.check();
        self.replay();
        let stats = self.pool.stats();
        assert_eq!(
            (
                stats.used,
                stats.cached,
                stats.reserved,
                stats.evicted,
                stats.segment_count
            ),
            (0, 0, 0, 0, 0)
        );
        assert_eq!((stats.active_blocks, stats.free_blocks), (0, 0));
        let World { sim, pool, .. } = self;
        drop(pool);
        assert_eq!(sim.usage(), SimUsage::default(), "everything was given back");
        assert_eq!(sim.violations(), Vec::<String>::new());
    }
}
