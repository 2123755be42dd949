//! The plan covers a grid once and in order; sizes are whole waves; the queue hands out every item once.

mod cases;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::slicing::{Device, Plan, QueueConfig, Sizer, SliceQueue, DEFAULT_QUANTUM_NS, MAX_QUANTUM_NS};

fn number(place: [u32; 3], grid: [u32; 3]) -> u64 {
    (u64::from(place[2]) * u64::from(grid[1]) + u64::from(place[1])) * u64::from(grid[0]) + u64::from(place[0])
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_plan_covers_the_grid_exactly_once_in_order(
        grid in [1u32..14, 1u32..9, 1u32..7], blocks in 1u64..1200,
    ) {
        let mut seen = Vec::new();
        for part in Plan::new(grid, blocks) {
            prop_assert!(part.blocks() >= 1 && part.blocks() <= blocks);
            for z in 0..part.extent[2] {
                for y in 0..part.extent[1] {
                    for x in 0..part.extent[0] {
                        let place = [part.first[0] + x, part.first[1] + y, part.first[2] + z];
                        prop_assert!((0..3).all(|axis| place[axis] < grid[axis]));
                        seen.push(number(place, grid));
                    }
                }
            }
        }
        let total = Plan::new(grid, blocks).total();
        prop_assert_eq!(seen, (0..total).collect::<Vec<_>>());
    }

    #[test]
    fn a_plan_has_few_parts(width in 1u32..5000, height in 1u32..50, depth in 1u32..9, blocks in 1u64..100_000) {
        let parts = Plan::new([width, height, depth], blocks).count() as u64;
        let total = Plan::new([width, height, depth], blocks).total();
        // Boxes waste less than half of a slice, but for the last of each row or plane.
        let ends = if blocks >= u64::from(width) { u64::from(depth) } else { u64::from(height) * u64::from(depth) };
        prop_assert!(parts <= total.div_ceil(blocks) * 2 + ends, "{} parts", parts);
    }

    #[test]
    fn the_queue_hands_out_every_item_once(
        kernels in prop::collection::vec((1u64..3000, 1u32..65, -2i32..3), 1..8),
        config in (1u64..700, 1u64..4, 4u64..40, any::<bool>()),
        times in prop::collection::vec(1u64..4_000_000, 64),
    ) {
        let mut queue = SliceQueue::new(QueueConfig {
            max_items: config.0, min_slices: config.1, max_slices: config.2, adaptive: config.3, max_duration_ns: 500_000,
        });
        let numbers: Vec<u64> = kernels
            .iter()
            .map(|&(items, threads, priority)| queue.submit(7, items, [threads, 1, 1], 0, None, priority).unwrap())
            .collect();
        let mut next = vec![0; kernels.len()];
        let mut handed = 0u64;
        while let Some(slice) = queue.next_slice() {
            let at = numbers.iter().position(|&number| number == slice.kernel).unwrap();
            prop_assert_eq!(slice.offset, next[at]);
            let max_count = config.0.max(kernels[at].0.div_ceil(config.2)).min(kernels[at].0.div_ceil(config.1));
            prop_assert!((1..=max_count).contains(&slice.count));
            prop_assert_eq!(u64::from(slice.blocks), slice.count.div_ceil(u64::from(kernels[at].1)));
            let waiting = (0..kernels.len()).filter(|&k| next[k] < kernels[k].0).map(|k| kernels[k].2).max();
            prop_assert_eq!(Some(slice.priority), waiting, "the highest priority goes first");
            next[at] += slice.count;
            if handed % 3 != 0 {
                prop_assert!(queue.complete(times[handed as usize % times.len()]));
            }
            handed += 1;
        }
        while queue.complete(1000) {}
        prop_assert!(kernels.iter().zip(&next).all(|(kernel, &done)| kernel.0 == done));
        let stats = queue.stats();
        prop_assert_eq!((stats.total_slices, stats.completed_slices, stats.pending_slices), (handed, handed, 0));
        let count = kernels.len() as u64;
        prop_assert_eq!((stats.total_kernels, stats.completed_kernels, stats.pending_kernels), (count, count, 0));
    }
}

const DEVICE: Device = Device {
    multiprocessors: 132,
    blocks_per_multiprocessor: 8,
};

#[test]
fn a_slice_is_whole_waves_that_fill_the_quantum() {
    let mut sizer = Sizer::new(DEFAULT_QUANTUM_NS).unwrap();
    let wave = DEVICE.wave();
    assert_eq!(
        (wave, sizer.blocks(&"k", DEVICE)),
        (1056, 1056),
        "one wave before it is measured"
    );
    sizer.observe("k", 10 * wave, 200_000); // 20 us a wave: five fit
    assert_eq!(sizer.blocks(&"k", DEVICE), 5 * wave);
    sizer.observe("slow", wave, 3_000_000);
    assert_eq!(sizer.blocks(&"slow", DEVICE), wave, "never less than one");
    assert_eq!(sizer.blocks(&"other", DEVICE), wave);
}

#[test]
fn the_size_follows_what_is_measured() {
    let mut sizer = Sizer::new(DEFAULT_QUANTUM_NS).unwrap();
    sizer.observe("k", 1000, 1_000_000);
    for _ in 0..20 {
        sizer.observe("k", 1000, 100_000);
    }
    let block_ps = sizer.block_ps(&"k").unwrap();
    assert!((99_000..105_000).contains(&block_ps), "{block_ps}");
    sizer.observe("k", 0, 5);
    assert_eq!(sizer.block_ps(&"k"), Some(block_ps), "no blocks tell nothing");
}

#[test]
fn extremes_do_not_overflow() {
    assert!(Sizer::<u8>::new(0).is_none() && Sizer::<u8>::new(MAX_QUANTUM_NS + 1).is_none());
    let mut sizer = Sizer::new(MAX_QUANTUM_NS).unwrap();
    sizer.observe("k", u64::MAX, 0);
    let huge = Device {
        multiprocessors: u32::MAX,
        blocks_per_multiprocessor: u32::MAX,
    };
    assert!(sizer.blocks(&"k", huge) > 0);
    sizer.observe("k", 1, u64::MAX);
    assert!(sizer.blocks(&"k", DEVICE) > 0);
    let largest = [0x7fff_ffff, 0xffff, 0xffff];
    let mut plan = Plan::new(largest, u64::MAX);
    assert_eq!(plan.next().map(|part| part.extent), Some(largest));
    assert_eq!(plan.next(), None);
}

#[test]
fn a_queue_without_slices_out_has_nothing_to_complete() {
    let mut queue = SliceQueue::new(QueueConfig::default());
    assert!(!queue.complete(1));
    assert_eq!(queue.submit(1, 0, [32, 1, 1], 0, None, 0), None);
    queue.submit(1, 100, [32, 1, 1], 0, None, 0);
    queue.clear();
    assert!(queue.next_slice().is_none());
}

#[test]
fn no_slice_has_more_items_than_asked_and_there_are_enough() {
    for (max_items, min_slices, block, counts) in [
        (100, 1, 256, vec![100; 10]),
        (600, 1, 256, vec![512, 488]),
        (1000, 4, 1, vec![250; 4]),
    ] {
        let mut queue = SliceQueue::new(QueueConfig {
            max_items,
            min_slices,
            ..QueueConfig::default()
        });
        queue.submit(1, 1000, [block, 1, 1], 0, None, 0).unwrap();
        let mut slice_counts = Vec::new();
        while let Some(slice) = queue.next_slice() {
            slice_counts.push(slice.count);
            assert!(queue.complete(1)); // so quick that larger slices would fit
        }
        assert_eq!(slice_counts, counts);
    }
}

#[test]
fn adaptive_slices_follow_the_time() {
    let mut queue = SliceQueue::new(QueueConfig {
        max_items: 1 << 20,
        max_duration_ns: 1_000_000,
        min_slices: 100,
        ..QueueConfig::default()
    });
    queue.submit(1, 1 << 20, [256, 1, 1], 0, None, 0).unwrap();
    let first = queue.next_slice().unwrap();
    queue.complete(first.count * 100); // 100 ns an item: 10 000 items, in whole blocks 9984
    assert_eq!(queue.next_slice().unwrap().count, 9984);
}
