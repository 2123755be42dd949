//! What C++ calls: native/include/pygpukit/core.h, function for function. No panic crosses: the core returns errors.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_char;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use pygpukit_core::clock::{Clock, MonotonicClock};
use pygpukit_core::counters::Counters;
use pygpukit_core::driver::DriverError;
use pygpukit_core::intern::Interner;
use pygpukit_core::pool::{Allocation, BlockState, Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::ring::{Event, Ring};
use pyo3::prelude::*;

use crate::default_pools::{pool_error, warn_unpinned};
use crate::gate;
use crate::held;
use crate::table::{self, Table, TableDriver};

/// pk_allocation
#[repr(C)]
pub struct AllocationOut {
    address: u64,
    bytes: u64,
    block: u64,
    state: *const BlockState,
}

impl From<Allocation> for AllocationOut {
    fn from(a: Allocation) -> AllocationOut {
        AllocationOut {
            address: a.address,
            bytes: a.bytes,
            block: a.block,
            state: a.state,
        }
    }
}

/// pk_event
#[repr(C)]
pub struct EventIn {
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
}

const OK: i32 = 0;
const MISS: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const BAD_BLOCK: i32 = 3;
const DRIVER_ERROR: i32 = 4;

static DEFAULT_POOLS: Mutex<Option<HashMap<i32, Arc<Pool>>>> = Mutex::new(None);

/// Streams that exist, so that a pool made later knows their short ids.
static STREAMS: Mutex<Vec<(u64, u32)>> = Mutex::new(Vec::new());

thread_local! {
    static LAST_ERROR: RefCell<Option<PoolError>> = const { RefCell::new(None) };
}

pub fn fail(error: PoolError) -> i32 {
    let status = match error {
        PoolError::OutOfMemory(_) => OUT_OF_MEMORY,
        PoolError::Driver(_) => DRIVER_ERROR,
        _ => BAD_BLOCK,
    };
    LAST_ERROR.with(|last| *last.borrow_mut() = Some(error));
    status
}

fn status_of(result: Result<(), PoolError>) -> i32 {
    result.map_or_else(fail, |()| OK)
}

/// A driver for pools, or the error that no backend is open.
pub fn driver(device: i32) -> Result<Arc<TableDriver>, PoolError> {
    TableDriver::new(device).map(Arc::new).ok_or_else(|| {
        PoolError::Driver(DriverError {
            code: 3,
            text: "no backend is open".to_string(),
        })
    })
}

/// The default pool of a device; made on first use and kept for the life of the process. Errors: in a forked process, too.
pub fn default_pool(device: i32) -> Result<Arc<Pool>, PoolError> {
    table::refuse_forked("using the device's memory")?;
    let mut pools = DEFAULT_POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_with(HashMap::new);
    if let Some(pool) = pools.get(&device) {
        return Ok(pool.clone());
    }
    let config = PoolConfig {
        eviction: true,
        ..PoolConfig::default()
    };
    let pool = Arc::new(Pool::new(driver(device)?, config, Services::default())?);
    for &(stream, id) in STREAMS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        pool.register_stream(stream, id);
    }
    pools.insert(device, pool.clone());
    Ok(pool)
}

/// The default pools that exist. Cloned, because what is done with them may wait for the device.
pub fn default_pools() -> Vec<Arc<Pool>> {
    let pools = DEFAULT_POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.iter().flat_map(HashMap::values).cloned().collect()
}

/// # Safety
/// `pool` came from `pk_pool_default`, whose pools live as long as the process.
unsafe fn pool_at(pool: u64) -> &'static Pool {
    // SAFETY: the contract above.
    unsafe { &*(pool as *const Pool) }
}

#[no_mangle]
pub extern "C" fn pk_core_attach(driver: *const Table, raw: *const Table) {
    MonotonicClock.now_ns(); // the clock starts with the backend at the latest
    table::attach(driver, raw);
}

#[no_mangle]
pub extern "C" fn pk_pool_default(device: i32) -> u64 {
    match default_pool(device) {
        Ok(pool) => Arc::as_ptr(&pool) as u64,
        Err(error) => {
            fail(error);
            0
        }
    }
}

/// # Safety
/// As core.h: a pool handle, and valid pointers.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_try_alloc(
    pool: u64,
    bytes: u64,
    stream: u64,
    owner: *const Owner,
    out: *mut AllocationOut,
) -> i32 {
    // SAFETY: the contract above.
    unsafe {
        match pool_at(pool).try_alloc(bytes, stream, *owner) {
            Some(allocation) => {
                *out = allocation.into();
                OK
            }
            None => MISS,
        }
    }
}

/// # Safety
/// As core.h: a pool handle, and valid pointers.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_alloc(
    pool: u64,
    bytes: u64,
    stream: u64,
    owner: *const Owner,
    out: *mut AllocationOut,
) -> i32 {
    // SAFETY: the contract above.
    unsafe {
        match pool_at(pool).alloc(bytes, stream, *owner) {
            Ok(allocation) => {
                *out = allocation.into();
                OK
            }
            Err(error) => fail(error),
        }
    }
}

/// # Safety
/// `pool` is a pool handle.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_free(pool: u64, block: u64) -> i32 {
    // SAFETY: the contract above.
    status_of(held::free(unsafe { pool_at(pool) }, block))
}

/// # Safety
/// `pool` is a pool handle.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_shorten(pool: u64, block: u64, bytes: u64) -> i32 {
    // SAFETY: the contract above.
    status_of(unsafe { pool_at(pool) }.shorten(block, bytes).map(drop))
}

/// # Safety
/// As core.h: a pool handle, and valid pointers.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_take_outside(pool: u64, bytes: u64, owner: *const Owner, block: *mut u64) -> i32 {
    // SAFETY: the contract above.
    unsafe {
        let taken = pool_at(pool).take_outside(bytes, *owner);
        status_of(taken.map(|id| *block = id))
    }
}

/// # Safety
/// `pool` is a pool handle.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_give_outside(pool: u64, block: u64) -> i32 {
    // SAFETY: the contract above.
    status_of(unsafe { pool_at(pool) }.give_outside(block))
}

/// # Safety
/// `pool` is a pool handle.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_record_use(pool: u64, block: u64, stream: u64) -> i32 {
    // SAFETY: the contract above.
    status_of(unsafe { pool_at(pool) }.record_use(block, stream))
}

/// # Safety
/// `pool` is a pool handle.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_pin(pool: u64, block: u64, account: u64) -> i32 {
    // SAFETY: the contract above.
    status_of(unsafe { pool_at(pool) }.pin(block, account))
}

/// # Safety
/// `pool` is a pool handle; the thread has the GIL.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_tell(pool: u64) {
    // SAFETY: the contract above.
    let pool = unsafe { pool_at(pool) };
    if let Some(unpinned) = pool.take_unpinned() {
        Python::attach(|py| warn_unpinned(py, pool.device(), &unpinned));
    }
}

/// # Safety
/// `pool` is a pool handle.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_set_name(pool: u64, block: u64, name: u32) -> i32 {
    // SAFETY: the contract above.
    status_of(unsafe { pool_at(pool) }.set_name(block, name))
}

/// The interned name of a live block, 0 for an unknown one.
///
/// # Safety
/// `pool` is a pool handle.
#[no_mangle]
pub unsafe extern "C" fn pk_pool_name(pool: u64, block: u64) -> u32 {
    // SAFETY: the contract above.
    unsafe { pool_at(pool) }.block(block).map_or(0, |info| info.owner.name)
}

#[no_mangle]
pub extern "C" fn pk_pool_raise() {
    Python::attach(|py| {
        let error = LAST_ERROR.with(|last| last.borrow_mut().take());
        let error = error.unwrap_or(PoolError::Driver(DriverError {
            code: 999,
            text: "no reason was recorded".into(),
        }));
        pool_error(py, error).restore(py);
    });
}

#[no_mangle]
pub extern "C" fn pk_stream_created(stream: u64, id: u32) {
    STREAMS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((stream, id));
    default_pools().iter().for_each(|pool| pool.register_stream(stream, id));
}

/// Whether a handle is a stream's: the default one's, or one that was created and not retired.
pub fn stream_lives(stream: u64) -> bool {
    let streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    stream == 0 || streams.iter().any(|&(handle, _)| handle == stream)
}

#[no_mangle]
pub extern "C" fn pk_stream_retired(stream: u64) -> i32 {
    gate::forget_stream(stream);
    STREAMS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|&(handle, _)| handle != stream);
    let mut status = OK;
    for pool in default_pools() {
        if let Err(error) = pool.retire_stream(stream) {
            status = fail(error);
        }
    }
    status
}

/// # Safety
/// `event` points to a pk_event.
#[no_mangle]
pub unsafe extern "C" fn pk_ring_push(event: *const EventIn) -> u64 {
    // SAFETY: the contract above.
    unsafe { pk_ring_push_at(MonotonicClock.now_ns(), event) }
}

/// # Safety
/// `event` points to a pk_event.
#[no_mangle]
pub unsafe extern "C" fn pk_ring_push_at(t_ns: u64, event: *const EventIn) -> u64 {
    // SAFETY: the contract above.
    let EventIn {
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
    } = *unsafe { &*event };
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
    Ring::global().push(t_ns, &event)
}

#[no_mangle]
pub extern "C" fn pk_now_ns() -> u64 {
    MonotonicClock.now_ns()
}

/// # Safety
/// `text` points to `bytes` bytes.
#[no_mangle]
pub unsafe extern "C" fn pk_intern(text: *const c_char, bytes: u64) -> u32 {
    // SAFETY: the contract above.
    let text = unsafe { slice::from_raw_parts(text.cast::<u8>(), bytes as usize) };
    Interner::global().intern(&String::from_utf8_lossy(text))
}

/// # Safety
/// `buffer` has room for `capacity` bytes.
#[no_mangle]
pub unsafe extern "C" fn pk_name_text(id: u32, buffer: *mut c_char, capacity: u64) -> u64 {
    let Some(text) = Interner::global().name(id) else {
        return 0;
    };
    let count = text.len().min(capacity as usize);
    // SAFETY: the contract above; the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), count) };
    text.len() as u64
}

#[no_mangle]
pub extern "C" fn pk_count(counter: u32, amount: u64) {
    Counters::global().add_index(counter, amount);
}
