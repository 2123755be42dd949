//! The device function table (native/include/pygpukit/driver.h) and the core's `Driver` over it.

use std::ffi::{c_char, c_void, CStr};
use std::sync::atomic::{AtomicPtr, Ordering};

use pygpukit_core::driver::{Driver, DriverError, DriverResult};

type Status = i32;

/// pk_driver, field for field.
#[repr(C)]
pub struct Table {
    pub version: u32,
    pub size_bytes: u32,
    pub name: *const c_char,
    pub error_name: extern "C" fn(Status) -> *const c_char,
    pub error_text: extern "C" fn(Status) -> *const c_char,
    pub device_count: extern "C" fn(*mut i32) -> Status,
    pub device_info: extern "C" fn(i32, *mut c_void) -> Status,
    pub device_use: extern "C" fn(i32) -> Status,
    pub device_wait: extern "C" fn() -> Status,
    pub memory_info: extern "C" fn(*mut u64, *mut u64) -> Status,
    pub granularity: extern "C" fn(*mut u64) -> Status,
    pub address_reserve: extern "C" fn(u64, *mut u64) -> Status,
    pub address_free: extern "C" fn(u64, u64) -> Status,
    pub physical_create: extern "C" fn(u64, *mut u64) -> Status,
    pub physical_release: extern "C" fn(u64) -> Status,
    pub map: extern "C" fn(u64, u64, u64) -> Status,
    pub unmap: extern "C" fn(u64, u64) -> Status,
    pub physical_export: extern "C" fn(u64, *mut i32) -> Status,
    pub physical_import: extern "C" fn(i32, u64, *mut u64) -> Status,
    pub host_alloc: extern "C" fn(u64, *mut *mut c_void) -> Status,
    pub host_free: extern "C" fn(*mut c_void) -> Status,
    pub copy_h2d: extern "C" fn(u64, *const c_void, u64, u64) -> Status,
    pub copy_d2h: extern "C" fn(*mut c_void, u64, u64, u64) -> Status,
    pub copy_d2d: extern "C" fn(u64, u64, u64, u64) -> Status,
    pub fill: extern "C" fn(u64, u32, u32, u64, u64) -> Status,
    pub stream_create: extern "C" fn(i32, *mut u64) -> Status,
    pub stream_destroy: extern "C" fn(u64) -> Status,
    pub stream_query: extern "C" fn(u64) -> Status,
    pub stream_wait: extern "C" fn(u64) -> Status,
    pub stream_wait_event: extern "C" fn(u64, u64) -> Status,
    pub event_create: extern "C" fn(i32, *mut u64) -> Status,
    pub event_destroy: extern "C" fn(u64) -> Status,
    pub event_record: extern "C" fn(u64, u64) -> Status,
    pub event_query: extern "C" fn(u64) -> Status,
    pub event_wait: extern "C" fn(u64) -> Status,
    pub event_elapsed: extern "C" fn(u64, u64, *mut f64) -> Status,
    /// Modules, launches and graphs, which are C++'s affair.
    _others: [*const c_void; 14],
    pub sm_groups: extern "C" fn(*mut i32, u32, *mut u32) -> Status,
    pub sm_partition_create: extern "C" fn(*const u32, u32, *mut i32, *mut u64) -> Status,
    pub sm_partition_destroy: extern "C" fn(u64) -> Status,
    /// Streams of partitions, PTX, arrays, textures and surfaces; what peers can do, and enabling it.
    _more: [*const c_void; 12],
    pub copy_peer: extern "C" fn(u64, i32, u64, i32, u64, u64) -> Status,
}

// SAFETY: the table is constant after it was attached, and its functions may be called from any thread.
unsafe impl Sync for Table {}

const NOT_INITIALIZED: Status = 3;
const NOT_READY: Status = 600;

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());
static RAW: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

/// Remembers the table that C++ opened, and the same without regard to what gates hold back.
pub fn attach(table: *const Table, raw: *const Table) {
    RAW.store(raw as *mut Table, Ordering::Release);
    TABLE.store(table as *mut Table, Ordering::Release);
}

/// The open table.
pub fn table() -> Option<&'static Table> {
    // SAFETY: attach() stores null or a table that lives as long as the process.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

extern "C" {
    /// core.h: makes a device current for this thread; C++ keeps track of which one is.
    fn pk_use_device(device: i32) -> Status;
    /// core.h: whether this process was forked by one that had opened the device.
    fn pk_forked() -> i32;
    /// core.h: counts what was copied from a device to another one.
    fn pk_peer_copied(from: i32, to: i32, bytes: u64);
}

/// Whether this process was forked by one that had opened the device: what it inherited is the parent's, and a thread that it does not
/// have may hold any lock.
pub fn forked() -> bool {
    // SAFETY: it reads a flag.
    unsafe { pk_forked() != 0 }
}

/// For what takes a lock before it comes to the device. Errors: in a forked process, the one that the device has for it.
pub fn refuse_forked(doing: &str) -> DriverResult<()> {
    match table() {
        Some(table) if forked() => check(table, NOT_INITIALIZED, doing),
        _ => Ok(()),
    }
}

fn check(table: &Table, status: Status, doing: &str) -> DriverResult<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the table promises non-null, NUL-terminated text.
    let text = unsafe { CStr::from_ptr((table.error_text)(status)) }.to_string_lossy();
    Err(DriverError {
        code: status,
        text: format!("{doing}: {text}"),
    })
}

/// One device behind the table. Makes its device current before every call: the core may run on any thread.
pub struct TableDriver {
    table: &'static Table,
    device: i32,
}

impl TableDriver {
    pub fn new(device: i32) -> Option<TableDriver> {
        table().map(|table| TableDriver { table, device })
    }

    /// The device as its gate sees it: what is held back there is not waited for.
    pub fn raw(device: i32) -> Option<TableDriver> {
        // SAFETY: as table().
        let table = unsafe { RAW.load(Ordering::Acquire).as_ref() }?;
        Some(TableDriver { table, device })
    }

    /// A call that is made elsewhere, as one of this device.
    pub fn with_device(&self, doing: &str, call: impl FnOnce() -> Status) -> DriverResult<()> {
        self.run(doing, |_| call())
    }

    fn check(&self, status: Status, doing: &str) -> DriverResult<()> {
        check(self.table, status, doing)
    }

    fn bind(&self) -> DriverResult<()> {
        // SAFETY: a TableDriver exists only while a backend is open.
        self.check(unsafe { pk_use_device(self.device) }, "making the device current")
    }

    /// A call that yields one number.
    fn get(&self, doing: &str, call: impl FnOnce(&Table, *mut u64) -> Status) -> DriverResult<u64> {
        self.bind()?;
        let mut value = 0u64;
        self.check(call(self.table, &mut value), doing).map(|()| value)
    }

    fn run(&self, doing: &str, call: impl FnOnce(&Table) -> Status) -> DriverResult<()> {
        self.bind()?;
        self.check(call(self.table), doing)
    }
}

impl Driver for TableDriver {
    fn device(&self) -> i32 {
        self.device
    }

    fn memory_info(&self) -> DriverResult<(u64, u64)> {
        let mut total = 0u64;
        let free = self.get("reading free memory", |t, free| (t.memory_info)(free, &mut total))?;
        Ok((free, total))
    }

    fn granularity(&self) -> DriverResult<u64> {
        self.get("reading the granularity of memory", |t, bytes| (t.granularity)(bytes))
    }

    fn address_reserve(&self, bytes: u64) -> DriverResult<u64> {
        self.get("reserving addresses", |t, address| (t.address_reserve)(bytes, address))
    }

    fn address_free(&self, address: u64, bytes: u64) -> DriverResult<()> {
        self.run("freeing addresses", |t| (t.address_free)(address, bytes))
    }

    fn physical_create(&self, bytes: u64) -> DriverResult<u64> {
        self.get("creating device memory", |t, physical| {
            (t.physical_create)(bytes, physical)
        })
    }

    fn physical_release(&self, physical: u64) -> DriverResult<()> {
        self.run("releasing device memory", |t| (t.physical_release)(physical))
    }

    fn map(&self, address: u64, bytes: u64, physical: u64) -> DriverResult<()> {
        self.run("mapping device memory", |t| (t.map)(address, bytes, physical))
    }

    fn unmap(&self, address: u64, bytes: u64) -> DriverResult<()> {
        self.run("unmapping device memory", |t| (t.unmap)(address, bytes))
    }

    fn physical_export(&self, physical: u64) -> DriverResult<i32> {
        let mut fd = -1;
        self.run("exporting device memory", |t| (t.physical_export)(physical, &mut fd))?;
        Ok(fd)
    }

    fn host_alloc(&self, bytes: u64) -> DriverResult<u64> {
        let mut host: *mut c_void = std::ptr::null_mut();
        self.run("allocating pinned host memory", |t| (t.host_alloc)(bytes, &mut host))?;
        Ok(host as u64)
    }

    fn host_free(&self, host: u64) -> DriverResult<()> {
        self.run("freeing pinned host memory", |t| (t.host_free)(host as *mut c_void))
    }

    fn copy_to_host(&self, host: u64, device: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.run("copying from the device", |t| {
            (t.copy_d2h)(host as *mut c_void, device, bytes, stream)
        })
    }

    fn copy_to_device(&self, device: u64, host: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.run("copying to the device", |t| {
            (t.copy_h2d)(device, host as *const c_void, bytes, stream)
        })
    }

    fn copy_on_device(&self, to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.run("copying on the device", |t| (t.copy_d2d)(to, from, bytes, stream))
    }

    fn copy_to_peer(&self, peer: i32, to: u64, from: u64, bytes: u64, stream: u64) -> DriverResult<()> {
        self.run("copying to another device", |t| {
            (t.copy_peer)(to, peer, from, self.device, bytes, stream)
        })?;
        // SAFETY: it adds to counters.
        unsafe { pk_peer_copied(self.device, peer, bytes) };
        Ok(())
    }

    fn stream_create(&self, priority: i32) -> DriverResult<u64> {
        self.get("creating a stream", |t, stream| (t.stream_create)(priority, stream))
    }

    fn stream_destroy(&self, stream: u64) -> DriverResult<()> {
        self.run("destroying a stream", |t| (t.stream_destroy)(stream))
    }

    fn stream_wait(&self, stream: u64) -> DriverResult<()> {
        self.run("waiting for a stream", |t| (t.stream_wait)(stream))
    }

    fn device_wait(&self) -> DriverResult<()> {
        self.run("waiting for the device", |t| (t.device_wait)())
    }

    fn event_create(&self) -> DriverResult<u64> {
        self.get("creating an event", |t, event| (t.event_create)(0, event))
    }

    fn event_create_timed(&self) -> DriverResult<u64> {
        self.get("creating an event", |t, event| (t.event_create)(1, event))
    }

    fn event_destroy(&self, event: u64) -> DriverResult<()> {
        self.run("destroying an event", |t| (t.event_destroy)(event))
    }

    fn event_record(&self, event: u64, stream: u64) -> DriverResult<()> {
        self.run("recording an event", |t| (t.event_record)(event, stream))
    }

    fn event_done(&self, event: u64) -> DriverResult<bool> {
        self.bind()?;
        match (self.table.event_query)(event) {
            NOT_READY => Ok(false),
            status => self.check(status, "querying an event").map(|()| true),
        }
    }

    fn event_wait(&self, event: u64) -> DriverResult<()> {
        self.run("waiting for an event", |t| (t.event_wait)(event))
    }

    fn event_elapsed_ns(&self, start: u64, end: u64) -> DriverResult<u64> {
        let mut milliseconds = 0.0;
        self.run("reading the time between events", |t| {
            (t.event_elapsed)(start, end, &mut milliseconds)
        })?;
        Ok((milliseconds * 1e6) as u64) // a negative difference, from the events' resolution, becomes 0
    }

    fn stream_wait_event(&self, stream: u64, event: u64) -> DriverResult<()> {
        self.run("making a stream wait for an event", |t| {
            (t.stream_wait_event)(stream, event)
        })
    }

    fn stream_of_wait_event(&self, device: i32, stream: u64, event: u64) -> DriverResult<()> {
        let of_it = TableDriver { device, ..*self };
        of_it.stream_wait_event(stream, event)
    }

    fn sm_groups(&self) -> DriverResult<Vec<u32>> {
        let (mut sizes, mut count) = ([0i32; 1024], 0u32);
        let doing = "splitting the multiprocessors";
        self.run(doing, |t| {
            (t.sm_groups)(sizes.as_mut_ptr(), sizes.len() as u32, &mut count)
        })?;
        Ok(sizes.iter().take(count as usize).map(|&sms| sms as u32).collect())
    }

    fn sm_partition_create(&self, groups: &[u32]) -> DriverResult<(u64, u32)> {
        let mut sms = 0i32;
        let partition = self.get("making a partition of multiprocessors", |t, partition| {
            (t.sm_partition_create)(groups.as_ptr(), groups.len() as u32, &mut sms, partition)
        })?;
        Ok((partition, sms as u32))
    }

    fn sm_partition_destroy(&self, partition: u64) -> DriverResult<()> {
        self.run("ending a partition of multiprocessors", |t| {
            (t.sm_partition_destroy)(partition)
        })
    }

    fn stream_done(&self, stream: u64) -> DriverResult<bool> {
        self.bind()?;
        match (self.table.stream_query)(stream) {
            NOT_READY => Ok(false),
            status => self.check(status, "querying a stream").map(|()| true),
        }
    }
}
