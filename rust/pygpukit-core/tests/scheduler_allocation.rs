//! What the task table allocates once it has grown: one context a start, and nothing to take in, to end and to forget a task.

use pygpukit_core::partition::Limits;
use pygpukit_core::scheduler::{Config, Name, Outcome, TaskSpec, TaskStart, TaskTable, Transition};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn counted<T>(sum: &mut u64, call: impl FnOnce() -> T) -> T {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let result = call();
    *sum += ALLOCATIONS.load(Ordering::Relaxed) - before;
    result
}

/// The only test of its program: another one's thread would be counted too.
#[test]
fn a_table_that_has_grown_allocates_one_context_a_task() {
    const TENANTS: u64 = 50;
    const BACKLOG: usize = 300;
    let config = Config {
        max_queue: BACKLOG + 1,
        max_finished: 500,
        ..Config::new(1 << 30)
    };
    let mut table = TaskTable::new(config, Box::new(|_: &Transition<'_>| {}));
    let tenants: Vec<Name> = (0..TENANTS).map(|i| format!("tenant-{i}").into()).collect();
    table.with_partitions(0, |partitions| {
        for id in &tenants {
            partitions.create(id, id, Limits::new((1 << 30) / TENANTS, 0)).unwrap();
        }
    });
    let (mut submits, mut picks, mut finishes) = (0, 0, 0);
    for i in 0..40_000usize {
        let mut spec = TaskSpec {
            memory_bytes: 1 << 10,
            priority: (i % 3) as i32,
            name: tenants[0].clone(),
            partition: tenants[i * 7 % tenants.len()].clone(),
            ..TaskSpec::new(i.to_string())
        };
        spec.policy = spec.demand().class();
        if i == 20_000 {
            (submits, picks, finishes) = (0, 0, 0);
        }
        drop(counted(&mut submits, || table.submit(spec, 1).unwrap()));
        if i < BACKLOG {
            continue;
        }
        let TaskStart { context, .. } = counted(&mut picks, || table.next(2).unwrap());
        counted(&mut finishes, || {
            table.finish(&context.id, Outcome::Succeeded, 3).unwrap()
        });
    }
    // A place that a task takes for the first time, far from where it is used most, may still grow something: not one in a hundred.
    assert!(submits < 200, "{submits} allocations of 20000 submissions");
    assert!(
        (20_000..20_020).contains(&picks),
        "{picks} allocations of 20000 choices"
    );
    assert_eq!(finishes, 0);
}
