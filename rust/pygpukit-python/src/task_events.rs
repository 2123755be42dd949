//! What happens to tasks: into the event ring, by the table and the gates, and out of it for one scheduler.

use std::collections::{HashMap, HashSet};

use pygpukit_core::intern::Interner;
use pygpukit_core::pacing;
use pygpukit_core::partition::WHOLE_SHARE_PPM;
use pygpukit_core::ring::{kind, Event, Record, Ring};
use pygpukit_core::scheduler as core;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::gate;
use crate::sms;

/// Writes TASK and QUEUE records.
#[derive(Default)]
pub struct TableLog {
    /// The last task's name and its number: tasks of one name come in rows, and the table of names is shared by all threads.
    last: (String, u32),
}

impl TableLog {
    fn number_of(&mut self, name: &str) -> u32 {
        if self.last.0 != name {
            name.clone_into(&mut self.last.0);
            self.last.1 = Interner::global().intern(name);
        }
        self.last.1
    }
}

/// The device of a record of a task that has none yet.
const NO_DEVICE: u16 = u16::MAX;

fn device_of(device: Option<u32>) -> u16 {
    device.map_or(NO_DEVICE, |device| device as u16)
}

impl core::Observer for TableLog {
    fn transition(&mut self, transition: &core::Transition<'_>) {
        let event = Event {
            kind: kind::TASK,
            device: device_of(transition.device),
            name: self.number_of(transition.name),
            a: transition.number,
            b: transition.from.code() << 8 | transition.to.code(),
            c: transition.reason.code(),
            ..Event::default()
        };
        Ring::global().push(transition.t_ns, &event);
    }

    fn moved(&mut self, moved: &core::Move<'_>) {
        let event = Event {
            kind: kind::QUEUE,
            device: device_of(moved.device),
            name: Interner::global().intern(moved.partition),
            a: moved.number,
            b: moved.place,
            c: moved.depth << 1 | u64::from(moved.came),
            line: moved.line,
            ..Event::default()
        };
        Ring::global().push(moved.t_ns, &event);
    }
}

/// Writes THROTTLE and SHARE records of one gate.
pub struct GateLog {
    pub device: u16,
    pub lane: u32,
}

impl pacing::Observer for GateLog {
    fn throttled(&self, number: u64, stretch: &pacing::Stretch) {
        let event = Event {
            kind: kind::THROTTLE,
            device: self.device,
            a: number,
            b: stretch.from_ns,
            c: stretch.held_ns,
            line: stretch.holds,
            ..Event::default()
        };
        Ring::global().push(stretch.until_ns, &event);
    }

    fn shares(&self, number: u64, t_ns: u64, [ppm_10ms, ppm_100ms, ppm_1s]: [u32; 3]) {
        let event = Event {
            kind: kind::SHARE,
            device: self.device,
            a: number,
            b: u64::from(ppm_10ms) | u64::from(ppm_100ms) << 32,
            c: ppm_1s.into(),
            line: self.lane,
            ..Event::default()
        };
        Ring::global().push(t_ns, &event);
    }
}

/// The kinds of events, by the names that Python gives them.
const KINDS: [(&str, &[u16]); 6] = [
    ("task", &[kind::TASK]),
    ("queue", &[kind::QUEUE]),
    ("throttle", &[kind::THROTTLE]),
    ("share", &[kind::SHARE]),
    ("memory", &[kind::EVICT, kind::RESTORE, kind::FREE]),
    ("launch", &[kind::LAUNCH]),
];

fn name_of(id: u32) -> String {
    Interner::global()
        .name(id)
        .map_or(String::new(), |name| name.to_string())
}

/// Who is meant by a number or, as far as that is one task, by the name of a tenant at some time.
struct Tasks {
    names: HashMap<u64, core::Name>,
    /// (number, start, end) of all that were started, in whichever scheduler.
    by_name: HashMap<core::Name, Vec<(u64, u64, u64)>>,
}

impl Tasks {
    fn new(runs: Vec<(u64, core::Name, u64, u64)>) -> Tasks {
        let mut by_name: HashMap<core::Name, Vec<(u64, u64, u64)>> = HashMap::new();
        for (number, name, started, finished) in &runs {
            if *started > 0 {
                let runs = by_name.entry(name.clone()).or_default();
                runs.push((*number, *started, if *finished > 0 { *finished } else { u64::MAX }));
            }
        }
        let names = runs.into_iter().map(|(number, name, ..)| (number, name)).collect();
        Tasks { names, by_name }
    }

    fn name(&self, number: u64) -> &str {
        self.names.get(&number).map_or("", |name| name)
    }

    /// Numbers of the tasks of a name that were under way.
    fn under_way(&self, name: &str, t_ns: u64) -> Vec<u64> {
        let runs = self.by_name.get(name).into_iter().flatten();
        let then = runs.filter(|&&(_, started, finished)| (started..=finished).contains(&t_ns));
        then.map(|&(number, ..)| number).collect()
    }
}

fn only(numbers: &[u64]) -> u64 {
    match numbers {
        [number] => *number,
        _ => 0,
    }
}

/// Events of one scheduler's tasks, as tuples that begin with their kind, and as `Ring::read_with` the number to ask with next and how many
/// are missing.
pub struct Reader<'a> {
    pub ordinal: u32,
    pub kinds: Vec<String>,
    /// Every task that the process remembers.
    pub runs: &'a dyn Fn() -> Vec<(u64, core::Name, u64, u64)>,
}

impl Reader<'_> {
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        since: u64,
        max_records: usize,
    ) -> PyResult<(Vec<Bound<'py, PyTuple>>, u64, u64)> {
        let mut requested: HashSet<u16> = HashSet::new();
        for name in &self.kinds {
            let known = KINDS.iter().find(|(known, _)| known == name);
            let known = known.ok_or_else(|| PyValueError::new_err(format!("no kind of event is called {name:?}")))?;
            requested.extend(known.1);
        }
        if requested.contains(&kind::THROTTLE) {
            py.detach(gate::tell_throttles);
        }
        let ring = Ring::global();
        // Addresses of blocks in host memory, by device: what is freed there is told, what is freed elsewhere is not.
        let mut away: HashSet<(u16, u64)> = HashSet::new();
        if requested.contains(&kind::EVICT) && since > 1 {
            ring.read_with(1, ring.capacity(), |record| {
                if record.seq < since {
                    track(&mut away, &record.event);
                }
            });
        }
        let mut records = Vec::new();
        let (next, lost) = ring.read_with(since, max_records, |record| {
            let event = &record.event;
            let left = track(&mut away, event);
            let mine = event.a >> 32 == u64::from(self.ordinal);
            let is_reported = match event.kind {
                kind::TASK | kind::QUEUE | kind::THROTTLE | kind::SHARE => mine,
                kind::FREE => left,
                _ => true,
            };
            if is_reported && requested.contains(&event.kind) {
                records.push(*record);
            }
        });
        let tasks = if self.kinds.iter().any(|name| name != "task") {
            Tasks::new((self.runs)())
        } else {
            Tasks::new(Vec::new())
        };
        let events = records
            .iter()
            .filter_map(|record| self.event(py, &tasks, record).transpose());
        Ok((events.collect::<PyResult<_>>()?, next, lost))
    }

    fn event<'py>(&self, py: Python<'py>, tasks: &Tasks, record: &Record) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let (seq, t_ns) = (record.seq, record.t_ns);
        let Event { a, b, c, device, .. } = record.event;
        let place = (device != NO_DEVICE).then_some(device);
        let event = match record.event.kind {
            kind::TASK => {
                let phase = |code: u64| core::Phase::ALL[code as usize % core::Phase::COUNT].name();
                let reason = core::Reason::ALL.iter().find(|reason| reason.code() == c);
                let reason = reason.map_or("", |reason| reason.name());
                let name = name_of(record.event.name);
                ("task", seq, t_ns, a, name, phase(b >> 8), phase(b & 255), reason, place).into_pyobject(py)?
            }
            kind::QUEUE => {
                let partition = name_of(record.event.name);
                let (came, depth, line) = (c & 1 == 1, c >> 1, record.event.line);
                (
                    "queue",
                    seq,
                    t_ns,
                    a,
                    tasks.name(a),
                    partition,
                    came,
                    b,
                    depth,
                    place,
                    line,
                )
                    .into_pyobject(py)?
            }
            kind::THROTTLE => {
                let holds = record.event.line;
                ("throttle", seq, t_ns, a, tasks.name(a), device, b, c, holds).into_pyobject(py)?
            }
            kind::SHARE => {
                let lane_ppm = sms::lane_ppm(device.into(), record.event.line as usize);
                let share = |ppm: u64| ppm as f64 * f64::from(lane_ppm) / f64::from(WHOLE_SHARE_PPM).powi(2);
                let shares = (share(b & u64::from(u32::MAX)), share(b >> 32), share(c));
                (
                    "share",
                    seq,
                    t_ns,
                    a,
                    tasks.name(a),
                    device,
                    shares.0,
                    shares.1,
                    shares.2,
                )
                    .into_pyobject(py)?
            }
            kind::LAUNCH => {
                let tenant = name_of(record.event.tenant);
                let mut running = tasks.under_way(&tenant, t_ns);
                running.retain(|number| number >> 32 == u64::from(self.ordinal));
                if running.is_empty() {
                    return Ok(None);
                }
                let kernel = record.event.name;
                ("launch", seq, t_ns, only(&running), tenant, device, kernel, a, b, c).into_pyobject(py)?
            }
            _ => {
                let tenant = name_of(record.event.tenant);
                let number = only(&tasks.under_way(&tenant, t_ns));
                let what = match record.event.kind {
                    kind::EVICT => "evicted",
                    kind::RESTORE => "restored",
                    _ => "freed",
                };
                ("memory", seq, t_ns, number, tenant, device, what, b, c).into_pyobject(py)?
            }
        };
        Ok(Some(event))
    }
}

/// Keeps the blocks in host memory; true when the record says that one is there no more. By address: a block keeps it there, while
/// the numbers of blocks are each pool's own.
fn track(away: &mut HashSet<(u16, u64)>, event: &Event) -> bool {
    let block = (event.device, event.a);
    match event.kind {
        kind::EVICT => {
            away.insert(block);
            false
        }
        kind::RESTORE | kind::FREE => away.remove(&block),
        _ => false,
    }
}

/// The phase table as (from, to, reason group, when).
#[pyfunction]
pub fn task_edges() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    core::EDGES
        .iter()
        .map(|edge| (edge.from.name(), edge.to.name(), edge.reasons.name(), edge.when))
        .collect()
}
