//! The event ring, names and counters for Python, and the telemetry frame (docs/seams.md, version 1).

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use pygpukit_core::clock::{Clock, MonotonicClock};
use pygpukit_core::counters::{Counter, Counters};
use pygpukit_core::intern::Interner;
use pygpukit_core::ring::{kind, Event, Ring, RECORD_BYTES};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::abi;
use crate::live;
use crate::table;
use crate::text::Text;

const MAGIC: u32 = 0x314B_4750;
const VERSION: u16 = 1;
const HEADER_BYTES: u16 = 64;
const GAUGES: u16 = 16;

/// Tells one process's frames from another's after a restart.
fn session() -> u64 {
    static SESSION: OnceLock<u64> = OnceLock::new();
    *SESSION.get_or_init(|| {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64);
        now ^ u64::from(std::process::id()).rotate_left(32)
    })
}

#[pyfunction]
pub fn ring_head() -> u64 {
    Ring::global().head()
}

#[pyfunction]
#[pyo3(signature = (since, max_records=65536))]
pub fn ring_read(py: Python<'_>, since: u64, max_records: usize) -> (Bound<'_, PyBytes>, u64, u64) {
    let (bytes, next, lost) = py.detach(|| {
        let mut bytes = Vec::new();
        let (next, lost) = Ring::global().read_with(since, max_records, |r| bytes.extend_from_slice(&r.to_bytes()));
        (bytes, next, lost)
    });
    (PyBytes::new(py, &bytes), next, lost)
}

#[pyfunction]
#[pyo3(signature = (kind, *, device=0, stream=0, tenant=0, name=0, a=0, b=0, c=0, cell=0, line=0))]
#[allow(clippy::too_many_arguments)] // the fields of one record
pub fn ring_push(
    kind: u16,
    device: u16,
    stream: u32,
    tenant: u32,
    name: u32,
    a: u64,
    b: u64,
    c: u64,
    cell: u32,
    line: u32,
) -> u64 {
    let event = Event {
        kind,
        device,
        stream,
        tenant,
        name,
        a,
        b,
        c,
        cell,
        line,
    };
    Ring::global().push(MonotonicClock.now_ns(), &event)
}

#[pyfunction]
pub fn now_ns() -> u64 {
    MonotonicClock.now_ns()
}

#[pyfunction]
pub fn intern(text: Text<'_>) -> u32 {
    Interner::global().intern(&text)
}

#[pyfunction]
pub fn name(id: u32) -> PyResult<String> {
    Interner::global()
        .name(id)
        .map(|text| text.to_string())
        .ok_or_else(|| PyKeyError::new_err(format!("no name has id {id}")))
}

#[pyfunction]
pub fn counters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let counters = Counters::global();
    let result = PyDict::new(py);
    for (key, counter) in [
        ("launches", Counter::Launches),
        ("host_launches", Counter::HostLaunches),
        ("h2d_bytes", Counter::H2dBytes),
        ("d2h_bytes", Counter::D2hBytes),
        ("d2d_bytes", Counter::D2dBytes),
        ("fills", Counter::Fills),
        ("task_ns", Counter::TaskNs),
        ("later_parts", Counter::LaterParts),
        ("pageable_buffers", Counter::PageableBuffers),
        ("pageable_bytes", Counter::PageableBytes),
    ] {
        result.set_item(key, counters.get(counter))?;
    }
    Ok(result)
}

/// The 16 gauges; memory is zero until a backend is open.
fn gauges(device: i32) -> [u64; GAUGES as usize] {
    let mut g = [0u64; GAUGES as usize];
    if table::table().is_some() {
        if let Ok(pool) = abi::default_pool(device) {
            let s = pool.stats();
            g[..8].copy_from_slice(&[
                s.used,
                s.reserved,
                s.quota,
                s.cached,
                s.evicted,
                s.peak_used,
                s.active_blocks,
                s.segment_count,
            ]);
        }
        if let Ok((free, total)) =
            abi::driver(device).and_then(|d| Ok(pygpukit_core::driver::Driver::memory_info(&*d)?))
        {
            (g[12], g[13]) = (free, total);
            g[2] = g[2].min(total);
        }
    }
    let counters = Counters::global();
    g[8] = counters.get(Counter::Launches);
    g[9] = counters.get(Counter::HostLaunches);
    g[10] = counters.get(Counter::H2dBytes);
    g[11] = counters.get(Counter::D2hBytes);
    (g[14], g[15]) = live::task_counts();
    g
}

/// One frame as bytes, and the sequence number and name id to ask for next.
fn frame(device: i32, since: u64, since_name: u32, max_records: usize) -> (Vec<u8>, u64, u32) {
    let gauges = gauges(device);
    let t_ns = MonotonicClock.now_ns();
    let gauge = Event {
        kind: kind::GAUGE,
        device: device as u16,
        a: gauges[0],
        b: gauges[1],
        c: gauges[8] + gauges[9],
        ..Event::default()
    };
    let gauge_seq = Ring::global().push(t_ns, &gauge);

    let mut records = Vec::new();
    // The newest records matter most: when more wait than one frame holds, the older ones count as lost.
    let oldest = (gauge_seq + 1).saturating_sub(max_records as u64).max(1);
    let since = since.clamp(1, gauge_seq); // never past what exists, as a reader of another process might ask
    let skipped = oldest.saturating_sub(since);
    let first = since.max(oldest);
    let (next, lost) = Ring::global().read_with(first, max_records, |r| records.extend_from_slice(&r.to_bytes()));

    let names = Interner::global().names_since(since_name.max(1));
    let next_name = names.last().map_or(since_name.max(1), |(id, _)| id + 1);

    let mut out = Vec::with_capacity(HEADER_BYTES as usize + 128 + records.len() + 64 * names.len());
    out.extend_from_slice(&MAGIC.to_le_bytes());
    for half in [VERSION, HEADER_BYTES, RECORD_BYTES as u16, GAUGES] {
        out.extend_from_slice(&half.to_le_bytes());
    }
    out.extend_from_slice(&((records.len() / RECORD_BYTES) as u32).to_le_bytes());
    for word in [session(), first, next, lost + skipped, t_ns, gauge_seq] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for value in gauges {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(&records);
    out.extend_from_slice(&(names.len() as u32).to_le_bytes());
    for (id, text) in &names {
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        out.resize(out.len().next_multiple_of(4), 0);
    }
    (out, next, next_name)
}

#[pyfunction]
#[pyo3(signature = (device, since, since_name, max_records=4096))]
pub fn telemetry_frame(
    py: Python<'_>,
    device: i32,
    since: u64,
    since_name: u32,
    max_records: usize,
) -> (Bound<'_, PyBytes>, u64, u32) {
    let (bytes, next, next_name) = py.detach(|| frame(device, since, since_name, max_records.max(1)));
    (PyBytes::new(py, &bytes), next, next_name)
}
