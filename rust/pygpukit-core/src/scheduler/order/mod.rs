//! Which of the admitted tasks is started next: the orders there are, by name. Higher priority comes first in all of them.

mod ranked;
mod turns;

use super::estimate::RunTimes;
use super::key::Key;
use super::policy::Named;
use super::spec::TaskSpec;
use super::tasks::Tasks;
use ranked::Ranked;
use turns::Turns;

/// A task that may be started, as an order looks at it.
#[derive(Clone, Copy)]
pub(super) struct Ready<'a> {
    pub key: Key,
    pub priority: i32,
    /// Of its partition.
    pub slot: usize,
    pub submitted_ns: u64,
    pub spec: &'a TaskSpec,
    pub runs: &'a RunTimes,
}

impl<'a> Ready<'a> {
    pub fn of(tasks: &'a Tasks, runs: &'a RunTimes, key: Key) -> Ready<'a> {
        let task = &tasks[key];
        Ready {
            key,
            priority: task.spec.priority,
            slot: task.slot(),
            submitted_ns: task.submitted_ns,
            spec: &task.spec,
            runs,
        }
    }

    /// One that comes now, after all others.
    pub fn one_more(spec: &'a TaskSpec, slot: usize, now: u64, runs: &'a RunTimes) -> Ready<'a> {
        Ready {
            key: Key::LAST,
            priority: spec.priority,
            slot,
            submitted_ns: now,
            spec,
            runs,
        }
    }

    /// How long it is expected to run: as its caller says, else as tasks of its name did, else as all did.
    fn run_ns(&self) -> u64 {
        let known = self.runs.expected_ns(self.spec).or(self.runs.mean_ns());
        known.unwrap_or(0)
    }
}

/// The admitted tasks of a table. A partition that is not open has all its streams in use: its tasks stay, and none is started.
pub(super) trait Order: Send {
    fn len(&self) -> usize;

    fn insert(&mut self, task: &Ready<'_>);

    /// False when it is not there. `starts`: its partition's weight, when it leaves to be started.
    fn remove(&mut self, priority: i32, slot: usize, key: Key, starts: Option<u32>) -> bool;

    /// The task to start next.
    fn first(&self) -> Option<Key>;

    fn set_open(&mut self, slot: usize, open: bool);

    /// The tasks that are started before one more, in their order, if none comes or goes meanwhile. What partitions hold that are not
    /// open is passed over, unless it is its own. weight: of a slot's partition.
    fn before(&self, task: &Ready<'_>, weight: &dyn Fn(usize) -> u32) -> Vec<Key>;

    /// (priority, key) of every task below a priority.
    fn lower_than(&self, below: i32) -> Vec<(i32, Key)>;

    fn has_lower_than(&self, below: i32) -> bool;

    /// The tasks by priority, then number: whatever the order.
    fn keys(&self) -> Vec<Key>;
}

/// In "shortest", a task is passed by shorter ones that are submitted within so many of its runs after it, and by no others.
const PATIENCE: u64 = 8;

/// The first is the default.
pub(super) const ORDERS: &[Named<dyn Order>] = &[
    ("turns", || Box::<Turns>::default()),
    ("fifo", || Box::new(Ranked::by(|_| 0))),
    ("deadline", || {
        Box::new(Ranked::by(|task| match task.spec.deadline_ns {
            0 => u64::MAX,
            deadline_ns => deadline_ns,
        }))
    }),
    ("shortest", || {
        Box::new(Ranked::by(|task| {
            task.submitted_ns.saturating_add(task.run_ns().saturating_mul(PATIENCE))
        }))
    }),
];

/// Names for `TaskTable::set_order`.
pub fn order_names() -> Vec<&'static str> {
    ORDERS.iter().map(|(name, _)| *name).collect()
}
