//! Slices of several kernels in turn: one of each, higher priorities first, sized by what earlier ones took.

use std::collections::VecDeque;

use super::plan::Plan;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// A slice has at most so many items, unless that would make more than `max_slices`. Less than a block cuts blocks.
    pub max_items: u64,
    /// The time that one slice is meant to take; used when `adaptive`.
    pub max_duration_ns: u64,
    /// A kernel is cut into at least, and before it is measured into at most, so many.
    pub min_slices: u64,
    pub max_slices: u64,
    pub adaptive: bool,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            max_items: 65536,
            max_duration_ns: 1_000_000,
            min_slices: 1,
            max_slices: 256,
            adaptive: true,
        }
    }
}

/// A part of a kernel's items, and the blocks that cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub kernel: u64,
    pub handle: u64,
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub id: u64,
    pub offset: u64,
    pub count: u64,
    pub blocks: u32,
    pub task: Option<String>,
    pub priority: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    pub total_slices: u64,
    pub completed_slices: u64,
    pub pending_slices: u64,
    pub total_kernels: u64,
    pub completed_kernels: u64,
    pub pending_kernels: u64,
}

struct Kernel {
    number: u64,
    handle: u64,
    items: u64,
    next: u64,
    block: [u32; 3],
    shared_bytes: u32,
    task: Option<String>,
    priority: i32,
    /// Items of the next slice, and the most that one may have.
    slice_items: u64,
    ceiling_items: u64,
    in_flight: u64,
    /// Picoseconds an item, by the slices that have ended.
    item_ps: Option<u64>,
}

impl Kernel {
    fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product::<u64>().max(1)
    }

    fn left(&self) -> u64 {
        (self.items - self.next).div_ceil(self.slice_items)
    }
}

/// A slice that was handed out, and how long it took once it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    pub kernel: u64,
    pub id: u64,
    pub offset: u64,
    pub count: u64,
    pub blocks: u32,
    pub duration_ns: Option<u64>,
}

/// How many of the slices that have ended are remembered.
const MAX_ENDED: usize = 4096;

/// Kernels of one dimension over items. The caller launches the slices and tells when each has ended, in order.
pub struct SliceQueue {
    config: QueueConfig,
    kernels: VecDeque<Kernel>,
    /// Slices handed out, oldest first: `ended` of them have ended.
    handed: VecDeque<Handed>,
    ended: usize,
    next_kernel: u64,
    next_slice: u64,
    stats: QueueStats,
}

impl SliceQueue {
    pub fn new(config: QueueConfig) -> SliceQueue {
        SliceQueue {
            config,
            kernels: VecDeque::new(),
            handed: VecDeque::new(),
            ended: 0,
            next_kernel: 0,
            next_slice: 0,
            stats: QueueStats::default(),
        }
    }

    pub fn config(&self) -> QueueConfig {
        self.config
    }

    /// Takes a kernel over `items` items, one a thread; returns its number. None when there is nothing to do.
    pub fn submit(
        &mut self,
        handle: u64,
        items: u64,
        block: [u32; 3],
        shared_bytes: u32,
        task: Option<String>,
        priority: i32,
    ) -> Option<u64> {
        if items == 0 || block.contains(&0) {
            return None;
        }
        let config = self.config;
        let by_count = items.div_ceil(config.min_slices.max(1)).min(config.max_items.max(1));
        let slice_items = by_count.max(items.div_ceil(config.max_slices.max(1)));
        let mut kernel = Kernel {
            number: self.next_kernel,
            handle,
            items,
            next: 0,
            block,
            shared_bytes,
            task,
            priority,
            slice_items,
            ceiling_items: 0,
            in_flight: 0,
            item_ps: None,
        };
        // Whole blocks, where it is one or more.
        let threads = kernel.threads();
        kernel.slice_items = (slice_items / threads * threads).max(threads.min(slice_items));
        kernel.ceiling_items = kernel.slice_items;
        self.next_kernel += 1;
        self.stats.total_kernels += 1;
        let at = self.kernels.iter().position(|k| k.priority < priority);
        let number = kernel.number;
        self.kernels.insert(at.unwrap_or(self.kernels.len()), kernel);
        Some(number)
    }

    /// The next slice: in turn among the kernels of the highest priority that has any left.
    pub fn next_slice(&mut self) -> Option<Slice> {
        let at = self.kernels.iter().position(|k| k.next < k.items)?;
        let mut kernel = self.kernels.remove(at)?;
        // One row of items: the plan's rule for the order and the cover holds here, too.
        let mut rest = Plan::new(
            [u32::try_from(kernel.items - kernel.next).unwrap_or(u32::MAX), 1, 1],
            kernel.slice_items,
        );
        let count = rest.next().map_or(1, |part| part.blocks());
        let slice = Slice {
            kernel: kernel.number,
            handle: kernel.handle,
            block: kernel.block,
            shared_bytes: kernel.shared_bytes,
            id: self.next_slice,
            offset: kernel.next,
            count,
            blocks: u32::try_from(count.div_ceil(kernel.threads())).unwrap_or(u32::MAX),
            task: kernel.task.clone(),
            priority: kernel.priority,
        };
        kernel.next += count;
        kernel.in_flight += 1;
        self.next_slice += 1;
        self.stats.total_slices += 1;
        self.handed.push_back(Handed {
            kernel: slice.kernel,
            id: slice.id,
            offset: slice.offset,
            count,
            blocks: slice.blocks,
            duration_ns: None,
        });
        let back = self.kernels.iter().position(|k| k.priority < kernel.priority);
        self.kernels.insert(back.unwrap_or(self.kernels.len()), kernel);
        Some(slice)
    }

    /// The oldest slice handed out has ended after `duration_ns`; false when none is out.
    pub fn complete(&mut self, duration_ns: u64) -> bool {
        let Some(handed) = self.handed.get_mut(self.ended) else {
            return false;
        };
        handed.duration_ns = Some(duration_ns);
        let (number, items) = (handed.kernel, handed.count);
        self.ended += 1;
        if self.ended > MAX_ENDED {
            self.handed.pop_front();
            self.ended -= 1;
        }
        self.stats.completed_slices += 1;
        let adaptive = self.config.adaptive.then_some(self.config.max_duration_ns);
        let Some(at) = self.kernels.iter().position(|k| k.number == number) else {
            return true;
        };
        let kernel = &mut self.kernels[at];
        kernel.in_flight -= 1;
        if let Some(target_ns) = adaptive {
            let new = duration_ns.saturating_mul(1000) / items.max(1);
            let average = kernel.item_ps.map_or(new, |old| old - (old >> 2) + (new >> 2)).max(1);
            kernel.item_ps = Some(average);
            let threads = kernel.threads();
            let fitting = target_ns.saturating_mul(1000) / average / threads * threads;
            kernel.slice_items = fitting.clamp(threads.min(kernel.ceiling_items), kernel.ceiling_items);
        }
        if kernel.next == kernel.items && kernel.in_flight == 0 {
            self.kernels.remove(at);
            self.stats.completed_kernels += 1;
        }
        true
    }

    /// Slices of a kernel that were handed out, in their order; of those that have ended, the last 4096 of all kernels.
    pub fn handed(&self, kernel: u64) -> Vec<Handed> {
        self.handed.iter().filter(|one| one.kernel == kernel).copied().collect()
    }

    pub fn pending_slices(&self) -> u64 {
        self.kernels.iter().map(Kernel::left).sum()
    }

    pub fn pending_kernels(&self) -> u64 {
        self.kernels.iter().filter(|k| k.next < k.items).count() as u64
    }

    pub fn stats(&self) -> QueueStats {
        QueueStats {
            pending_slices: self.pending_slices(),
            pending_kernels: self.pending_kernels(),
            ..self.stats
        }
    }

    /// Forgets every kernel and slice; statistics stay.
    pub fn clear(&mut self) {
        self.kernels.clear();
        self.handed.clear();
        self.ended = 0;
    }
}
