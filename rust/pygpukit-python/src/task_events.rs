//! Transitions of tasks: into the event ring and out of it, and the table of those there are.

use pygpukit_core::intern::Interner;
use pygpukit_core::ring::{kind, Event, Record, Ring};
use pygpukit_core::scheduler as core;
use pyo3::prelude::*;

/// Writes a TASK record for every transition.
pub fn record(transition: &core::Transition<'_>) {
    let event = Event {
        kind: kind::TASK,
        name: Interner::global().intern(transition.name),
        a: transition.number,
        b: transition.from.code() << 8 | transition.to.code(),
        c: transition.reason.code(),
        ..Event::default()
    };
    Ring::global().push(transition.t_ns, &event);
}

/// Sequence number, time in ns, number of the task, its name, the phases it left and entered, and the reason.
pub type TaskEvent = (u64, u64, u64, String, &'static str, &'static str, &'static str);

pub fn task_event(record: &Record) -> TaskEvent {
    let Event { a, b, c, name, .. } = record.event;
    let phase = |code: u64| core::Phase::ALL[code as usize % core::Phase::COUNT].name();
    let reason = core::Reason::ALL.iter().find(|reason| reason.code() == c);
    let name = Interner::global()
        .name(name)
        .map_or(String::new(), |name| name.to_string());
    let reason = reason.map_or("", |reason| reason.name());
    (record.seq, record.t_ns, a, name, phase(b >> 8), phase(b & 255), reason)
}

/// The phase table as (from, to, reason group, when).
#[pyfunction]
pub fn task_edges() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    core::EDGES
        .iter()
        .map(|edge| (edge.from.name(), edge.to.name(), edge.reasons.name(), edge.when))
        .collect()
}
