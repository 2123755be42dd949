//! The scheduler as a Python class.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::lock::Lock;
use pygpukit_core::partition::Reservation;
use pygpukit_core::ring::Ring;
use pygpukit_core::scheduler as core;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::asked_devices::AskedDevices;
use crate::entered::EnteredTasks;
use crate::errors::raise_with;
use crate::errors::spec_error;
use crate::gate;
use crate::health;
use crate::live;
use crate::partition::PartitionManager;
use crate::scheduler_figures::{self, totals};
use crate::sms::{Holdings, Space};
use crate::task_conditions::{conditions, ConditionFields};
use crate::task_events::{Reader, TableLog};
use crate::task_record::TaskRecord;
use crate::task_start::TaskStart;
use crate::text::{OwnText, TaskId, Text};

/// The task state table, memory and share ledger, and queue. Thread-safe; no Python runs under its lock.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct SchedulerCore {
    scheduler: Arc<core::Scheduler>,
    /// The upper half of its tasks' numbers.
    #[pyo3(get)]
    ordinal: u32,
    /// Of the last submission: tasks of one function come in rows, and share its text.
    last_name: Lock<core::Name>,
    entered: EnteredTasks,
    /// Ids that `next` gave each thread and that are not finished: what an interrupted thread may not know of.
    taken: Mutex<HashMap<ThreadId, Vec<core::Name>>>,
    /// Multiprocessors of its partitions.
    holdings: Arc<Holdings>,
}

type Dict<'py> = Bound<'py, PyDict>;
type Moment<'py> = (u64, u64, Dict<'py>, Vec<TaskRecord>, Vec<Dict<'py>>);

fn task_error(error: core::TaskError) -> PyErr {
    match error {
        core::TaskError::Unknown { .. } => PyKeyError::new_err(error.to_string()),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

impl SchedulerCore {
    fn shared_name(&self, name: &str) -> core::Name {
        let mut last = self.last_name.lock();
        if **last != *name {
            *last = name.into();
        }
        last.clone()
    }
}

#[pymethods]
impl SchedulerCore {
    #[new]
    #[pyo3(signature = (total_memory, total_share_ppm=1_000_000, max_queue=1000, max_finished=4096, workers=0, order=None, admission=None,
        further_memory=Vec::new(), placement=None))]
    #[allow(clippy::too_many_arguments)] // the keyword arguments of one Python call
    fn new(
        py: Python<'_>,
        total_memory: u64,
        total_share_ppm: u32,
        max_queue: usize,
        max_finished: usize,
        workers: usize,
        order: Option<Text<'_>>,
        admission: Option<Text<'_>>,
        further_memory: Vec<u64>,
        placement: Option<Text<'_>>,
    ) -> PyResult<SchedulerCore> {
        let ordinal = live::next_ordinal();
        let config = core::Config {
            total_memory,
            further_memory,
            total_share_ppm,
            workers,
            max_queue,
            max_finished,
            ordinal,
        };
        let scheduler = Arc::new(core::Scheduler::new(
            config,
            Arc::new(MonotonicClock),
            Box::new(TableLog::default()),
        ));
        let policies = scheduler.call(|table, _| {
            table.watch(health::of_process());
            if let Some(name) = admission {
                table.set_admission(core::admission_named(&name)?);
            }
            if let Some(name) = placement {
                table.set_placement(core::Placement::from_name(&name)?);
            }
            order.map_or(Ok(()), |name| table.set_order(&name))
        });
        policies.map_err(|error| spec_error(py, error))?;
        live::register(&scheduler);
        Ok(SchedulerCore {
            scheduler,
            ordinal,
            last_name: Lock::new(core::Name::default()),
            entered: EnteredTasks::default(),
            taken: Mutex::default(),
            holdings: Arc::default(),
        })
    }

    /// Names for `order`; the first is the default.
    #[staticmethod]
    fn orders() -> Vec<&'static str> {
        core::order_names()
    }

    /// Names for `admission`; the first is the default.
    #[staticmethod]
    fn admissions() -> Vec<&'static str> {
        core::admission_names()
    }

    /// Names for `placement`; the first is the default.
    #[staticmethod]
    fn placements() -> Vec<&'static str> {
        core::Placement::ALL.map(core::Placement::name).to_vec()
    }

    /// Takes in a task under a new id: true, or false when it was Rejected. Its record is made when get() asks for it. `policy=None`
    /// derives the class; `retry` is (retries, first pause in ns, longest pause in ns). devices: a number is so many, whichever; a list is
    /// those; None is that of its partition.
    #[pyo3(signature = (id, name, memory_bytes, share_ppm, partition=Text::from(""), policy=None, priority=0, depends_on=None, deadline_ns=0,
        idempotent=false, memory_limit=None, share_limit_ppm=None, run_ns=0, retry=None, devices=None))]
    #[allow(clippy::too_many_arguments)] // the keyword arguments of one Python call
    fn submit(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        name: Text<'_>,
        memory_bytes: u64,
        share_ppm: u32,
        partition: Text<'_>,
        policy: Option<Text<'_>>,
        priority: i32,
        depends_on: Option<Vec<TaskId>>,
        deadline_ns: u64,
        idempotent: bool,
        memory_limit: Option<u64>,
        share_limit_ppm: Option<u32>,
        run_ns: u64,
        retry: Option<(u32, u64, u64)>,
        devices: Option<AskedDevices>,
    ) -> PyResult<bool> {
        let request = Reservation {
            memory_bytes,
            share_ppm,
        };
        let demand = core::Demand {
            request,
            memory_limit,
            share_limit_ppm,
        };
        let policy = match policy {
            None => demand.class(),
            Some(name) => core::Policy::from_name(&name).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "unknown policy {:?}: Guaranteed, Burstable or BestEffort",
                    &*name
                ))
            })?,
        };
        let retry = retry.map_or(core::Retry::default(), |(retries, first_ns, longest_ns)| core::Retry {
            retries,
            backoff: core::Backoff { first_ns, longest_ns },
        });
        let spec = core::TaskSpec {
            id: (*id).into(),
            name: self.shared_name(&name),
            memory_bytes,
            share_ppm,
            memory_limit,
            share_limit_ppm,
            policy,
            priority,
            partition: (*partition).into(),
            devices: devices.map_or(core::Devices::OfPartition, AskedDevices::into),
            depends_on: depends_on.into_iter().flatten().map(|task| task.0.into()).collect(),
            deadline_ns,
            run_ns,
            idempotent,
            retry,
        };
        match self.scheduler.submit_new(spec) {
            Ok(phase) => Ok(phase != core::Phase::Rejected),
            Err(error) => Err(raise_with(
                py,
                "InvalidSpecError",
                (format!("{}: {error}", &*name), error.field),
            )),
        }
    }

    /// Waits, without the GIL, for a task to run, and marks it Running. None at the timeout.
    fn next(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<TaskStart>> {
        let timeout = timeout(timeout_s)?;
        let next = py.detach(|| self.scheduler.next(timeout));
        if let Some(start) = &next {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let mine = taken.entry(thread::current().id()).or_default();
            mine.push(start.context.id.clone());
        }
        Ok(next.map(TaskStart))
    }

    /// Ids that next() gave the calling thread and that are not finished.
    fn taken(&self) -> Vec<String> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = taken.get(&thread::current().id());
        mine.map_or(Vec::new(), |ids| ids.iter().map(|id| id.to_string()).collect())
    }

    /// `lost`: the worker process that it ran in is gone, and a fresh one may run it again.
    #[pyo3(signature = (id, error=None, reason=Text::from("UserError"), lost=false))]
    fn finish(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        error: Option<OwnText>,
        reason: Text<'_>,
        lost: bool,
    ) -> PyResult<&'static str> {
        let outcome = match error {
            None => core::Outcome::Succeeded,
            Some(OwnText(error)) => {
                let reason = core::Reason::from_name(&reason)
                    .ok_or_else(|| PyValueError::new_err(format!("unknown reason {:?}", &*reason)))?;
                if lost {
                    core::Outcome::Lost { reason, error }
                } else {
                    core::Outcome::Failed { reason, error }
                }
            }
        };
        // So that its record is complete when others see it end.
        self.entered.leave(&id, |context| py.detach(|| gate::leave(context)));
        let result = self.scheduler.finish(&id, outcome);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for ids in taken.values_mut() {
            ids.retain(|other| **other != *id);
        }
        taken.retain(|_, ids| !ids.is_empty());
        drop(taken);
        result.map(core::Phase::name).map_err(task_error)
    }

    fn cancel(&self, id: Text<'_>) -> PyResult<bool> {
        self.scheduler.cancel(&id).map_err(task_error)
    }

    /// Holds an unfinished task back until resume(); false when it was paused already. KeyError for an unknown one, RuntimeError for
    /// one that has ended or runs in a worker process.
    fn pause(&self, id: Text<'_>) -> PyResult<bool> {
        self.scheduler.pause(&id).map_err(task_error)
    }

    /// False when it was not paused. Errors as pause().
    fn resume(&self, id: Text<'_>) -> PyResult<bool> {
        self.scheduler.resume(&id).map_err(task_error)
    }

    /// Changes an unfinished task; None = as it is. KeyError for an unknown one, RuntimeError for one that has ended,
    /// InvalidSpecError for what cannot be; nothing changes then.
    #[pyo3(signature = (id, *, priority=None, share_ppm=None, share_limit_ppm=None))]
    fn adjust(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        priority: Option<i32>,
        share_ppm: Option<u32>,
        share_limit_ppm: Option<u32>,
    ) -> PyResult<()> {
        let change = core::Change {
            priority,
            share_ppm,
            share_limit_ppm,
        };
        self.scheduler.adjust(&id, change).map_err(|error| match error {
            core::TaskError::Invalid(error) => spec_error(py, error),
            other => task_error(other),
        })?;
        self.entered.promise(&self.scheduler, &id);
        Ok(())
    }

    /// Tasks that ended after the first `since`, and how many have ended; waits without the GIL for one more, or for a wake() after the
    /// first `woken`.
    #[pyo3(signature = (since, timeout_s, woken=None))]
    fn finished(
        &self,
        py: Python<'_>,
        since: u64,
        timeout_s: f64,
        woken: Option<u64>,
    ) -> PyResult<(Vec<TaskRecord>, u64)> {
        let timeout = timeout(timeout_s)?;
        let (records, count) = py.detach(|| self.scheduler.finished(since, woken, timeout));
        Ok((records.into_iter().map(TaskRecord).collect(), count))
    }

    fn get(&self, id: Text<'_>) -> Option<TaskRecord> {
        self.scheduler.get(&id).map(TaskRecord)
    }

    fn tasks(&self) -> Vec<TaskRecord> {
        self.scheduler.tasks().into_iter().map(TaskRecord).collect()
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        totals(py, &self.scheduler.stats())
    }

    /// Adds what a worker process counted for a task under way to the task's own counters.
    #[allow(clippy::too_many_arguments)] // the counters of one task
    fn charge(
        &self,
        id: Text<'_>,
        launches: u64,
        slices: u64,
        kernels: u64,
        transfers: u64,
        gpu_ns: u64,
        paced: u64,
        asked_ns: u64,
        others_ns: u64,
        waited_ns: u64,
        throttles: u64,
        throttled_ns: u64,
    ) {
        if let Some(context) = self.scheduler.context(&id) {
            context.add(&core::Used {
                launches,
                slices,
                kernels,
                transfers,
                gpu_ns,
                paced,
                asked_ns,
                others_ns,
                waited_ns,
                throttles,
                throttled_ns,
                host_ns: 0, // of a thread of that process
            });
        }
    }

    /// Partitions may have a worker process from now on: the caller asks worker_partition() where to run each task.
    fn offer_processes(&self) {
        self.scheduler.partitions(|partitions| partitions.offer_workers());
    }

    /// The id of the partition that tasks of this one are in ("" is the default), if they run in a worker process.
    fn worker_partition(&self, partition: Text<'_>) -> Option<String> {
        self.scheduler
            .call(|table, _| table.partitions().worker_partition(&partition).map(str::to_string))
    }

    /// What native.enter_context() takes on a device, valid until the task is finished: the handle of its scheduling context, and the
    /// account in the device's pool that its blocks count for, 0 when it has none. tenant: the interned name that the pool calls it by.
    /// Of a task of several devices: once for each.
    fn enter(&self, py: Python<'_>, start: &TaskStart, tenant: u32, device: i32) -> PyResult<(u64, u64)> {
        self.entered
            .enter(py, &self.scheduler, start.0.context.clone(), tenant, device)
    }

    /// One moment: (nanoseconds, sequence number of the next event, counts and sums, every task, what is reserved on each device),
    /// nothing between them.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Moment<'py>> {
        let moment = |table: &mut core::TaskTable, now| {
            let (stats, tasks) = (table.stats(now), table.snapshot(now));
            (now, stats, tasks, table.device_views(now), Ring::global().head())
        };
        let (now, stats, tasks, views, next) = self.scheduler.call(moment);
        let tasks = tasks.into_iter().map(TaskRecord).collect();
        Ok((
            now,
            next,
            totals(py, &stats)?,
            tasks,
            scheduler_figures::reserved(py, &views)?,
        ))
    }

    /// Events of its tasks from the event ring, from sequence number `since` on: those found, as tuples that begin with their kind, the
    /// number to ask with next, and how many records of any kind were overwritten unread.
    fn events<'py>(
        &self,
        py: Python<'py>,
        since: u64,
        max_records: usize,
        kinds: Vec<OwnText>,
    ) -> PyResult<(Vec<Bound<'py, PyTuple>>, u64, u64)> {
        let runs = || {
            live::live()
                .flat_map(|scheduler| scheduler.call(|table, _| table.runs()))
                .collect()
        };
        let reader = Reader {
            ordinal: self.ordinal,
            kinds: kinds.into_iter().map(|kind| kind.0).collect(),
            runs: &runs,
        };
        reader.read(py, since, max_records)
    }

    /// What is true of a task beside its phase: (type, status, reason, message, nanoseconds of the last change). None for an unknown one.
    fn conditions(&self, py: Python<'_>, id: Text<'_>) -> Option<Vec<ConditionFields>> {
        let account = self.entered.held(&id);
        py.detach(|| conditions(&self.scheduler, &id, account))
    }

    /// What the tasks of each name used and wait for, a dict each; name None: those of all names that came when there were enough.
    fn tenants<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        scheduler_figures::tenants(py, &self.scheduler)
    }

    /// Tasks in line by partition, "" for the default.
    fn depths(&self) -> Vec<(String, u64)> {
        self.scheduler.call(|table, _| table.depths())
    }

    /// The multiprocessors that a task of a partition runs on ("" for the default); leave_space() when its work has ended. None while
    /// no backend is open.
    fn enter_space(&self, partition: Text<'_>, device: i32) -> Option<Space> {
        if !partition.is_empty() {
            return self.holdings.enter(Some(&partition), device);
        }
        let default = self
            .scheduler
            .call(|table, _| table.partitions().default_partition().map(|p| p.id.clone()));
        self.holdings.enter(default.as_deref(), device)
    }

    fn leave_space(&self, space: &Space) {
        self.holdings.leave(space);
    }

    /// What is reserved on each device and how many tasks are there: a dict each.
    fn reservations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let views = self.scheduler.call(|table, now| table.device_views(now));
        scheduler_figures::reserved(py, &views)
    }

    /// Its partitions, to read and to change.
    fn partitions(&self) -> PartitionManager {
        PartitionManager::of(self.scheduler.clone(), self.holdings.clone(), self.entered.accounts())
    }

    /// What the gates measured: one dict for each device that tasks have launched on, and for each set of multiprocessors there.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        scheduler_figures::devices(py)
    }

    fn wakes(&self) -> u64 {
        self.scheduler.wakes()
    }

    fn wake(&self) {
        self.scheduler.wake();
    }

    fn close(&self) {
        self.scheduler.close();
    }
}

fn timeout(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "timeout_s is {seconds}; it must be a number of seconds, 0 or more"
        ))
    })
}
