//! The pinned pool against a simple model: sizes, reuse, limit, holds, failing device calls.

mod cases;

use std::collections::BTreeMap;
use std::sync::Arc;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::clock::VirtualClock;
use pygpukit_core::pinned::{Hold, PinnedConfig, PinnedError, PinnedPool};
use pygpukit_core::sim_driver::{Call, SimConfig, SimDriver};

const LIMIT: u64 = 1 << 20;

#[derive(Clone, Debug)]
enum Step {
    Allocate(u64),
    Free(usize),
    Hold(usize, u64),
    LetGo(usize),
    ClearKept,
    Fail(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let any = 0usize..100;
    let bytes = prop_oneof![4 => 1u64..3000, 3 => 3000u64..200_000, 1 => 500_000..2 * LIMIT];
    let step = prop_oneof![
        8 => bytes.prop_map(Step::Allocate),
        6 => any.clone().prop_map(Step::Free),
        3 => (any.clone(), 0u64..5000).prop_map(|(block, offset)| Step::Hold(block, offset)),
        3 => any.prop_map(Step::LetGo),
        1 => Just(Step::ClearKept),
        1 => (1u64..3).prop_map(Step::Fail),
    ];
    prop::collection::vec(step, 1..100)
}

#[derive(Default)]
struct Model {
    /// By number: (address, bytes, rounded, holds, freed).
    blocks: BTreeMap<u64, (u64, u64, u64, u32, bool)>,
}

impl Model {
    fn used(&self) -> u64 {
        self.blocks.values().map(|block| block.2).sum()
    }

    fn live(&self) -> Vec<u64> {
        self.blocks.iter().filter(|(_, b)| !b.4).map(|(&id, _)| id).collect()
    }

    /// What nobody has any more goes.
    fn settle(&mut self) {
        self.blocks.retain(|_, block| !block.4 || block.3 > 0);
    }
}

fn run(steps: Vec<Step>, pooling: bool) {
    let sim = Arc::new(SimDriver::new(SimConfig::default()));
    let config = PinnedConfig {
        limit_bytes: LIMIT,
        pooling,
        ..PinnedConfig::default()
    };
    let clock = Arc::new(VirtualClock::default());
    let pool = Arc::new(PinnedPool::new(sim.clone(), clock, config).expect("the settings are good"));
    let mut model = Model::default();
    let mut holds: Vec<(u64, Hold)> = Vec::new();
    for step in steps {
        match step {
            Step::Allocate(bytes) => {
                let class = config.class_of(bytes).expect("small");
                let fits = model.used() + class <= LIMIT;
                assert_eq!(pool.can_allocate(bytes), fits);
                let kept = pool.stats().kept_blocks;
                match pool.allocate(bytes) {
                    Ok((block, reused)) => {
                        assert!(fits && (!reused || kept > 0) && block.class_bytes == class);
                        let end = block.address + class;
                        let apart =
                            |other: &(u64, u64, u64, u32, bool)| end <= other.0 || other.0 + other.2 <= block.address;
                        assert!(model.blocks.values().all(apart), "a block overlaps one in use");
                        model.blocks.insert(block.id, (block.address, bytes, class, 0, false));
                    }
                    Err(PinnedError::OutOfMemory { .. }) => assert!(!fits),
                    Err(PinnedError::Refused { requested, .. }) => assert!(fits && requested == bytes),
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Free(at) => {
                let live = model.live();
                let Some(&id) = live.get(at % live.len().max(1)) else {
                    continue;
                };
                pool.free(id).expect("it is live");
                assert_eq!(pool.free(id), Err(PinnedError::BadBlock(id)));
                model.blocks.get_mut(&id).expect("known").4 = true;
            }
            Step::Hold(at, offset) => {
                let live = model.live();
                let Some(&id) = live.get(at % live.len().max(1)) else {
                    continue;
                };
                let (address, bytes, ..) = model.blocks[&id];
                assert!(pool.hold(address, bytes + 1).is_none(), "a hold past the block's end");
                if let Some(hold) = pool.hold(address + offset.min(bytes - 1), 1) {
                    model.blocks.get_mut(&id).expect("known").3 += 1;
                    holds.push((id, hold));
                } else {
                    panic!("a byte of a live block cannot be held");
                }
            }
            Step::LetGo(at) if !holds.is_empty() => {
                let (id, hold) = holds.swap_remove(at % holds.len());
                drop(hold);
                model.blocks.get_mut(&id).expect("held").3 -= 1;
            }
            Step::LetGo(_) => {}
            Step::ClearKept => drop(pool.clear_kept()),
            Step::Fail(nth) => sim.fail(Call::HostAlloc, nth, 2),
        }
        model.settle();
        let stats = pool.stats();
        assert_eq!(stats.used, model.used());
        assert_eq!(stats.blocks, model.live().len() as u64);
        assert!(stats.used + stats.kept <= LIMIT, "more is pinned than the limit");
        assert!(pooling || stats.kept == 0);
        assert_eq!(
            sim.usage().host_buffers as u64,
            model.blocks.len() as u64 + stats.kept_blocks
        );
    }
    drop(holds);
    drop(pool);
    assert_eq!(sim.usage().host_buffers, 0);
    assert_eq!(sim.violations(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn blocks_follow_the_model(steps in steps(), pooling in prop::bool::weighted(0.8)) {
        run(steps, pooling);
    }
}
