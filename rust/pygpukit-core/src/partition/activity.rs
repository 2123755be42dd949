//! What tasks had the device do, by themselves or all those of a partition together. Relaxed counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a piece of work is counted as; `core.h` has the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum WorkKind {
    /// A kernel, or a graph.
    #[default]
    Kernel = 0,
    /// A copy from or to the host or on the device.
    Transfer = 1,
    /// Neither.
    Fill = 2,
}

impl WorkKind {
    pub fn from_number(number: u32) -> WorkKind {
        match number {
            0 => WorkKind::Kernel,
            1 => WorkKind::Transfer,
            _ => WorkKind::Fill,
        }
    }
}

/// Counted so far, and waiting now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Submitted so far.
    pub kernels: u64,
    pub transfers: u64,
    /// Of those, the ones that the device was not given yet.
    pub pending_kernels: u64,
    /// Of those, the ones that wait for a turn, or that a transfer engine has not finished.
    pub pending_transfers: u64,
    /// Device time, as far as it is measured.
    pub gpu_ns: u64,
}

#[derive(Debug, Default)]
pub struct Activity {
    /// By kind.
    submitted: [AtomicU64; 2],
    pending: [AtomicU64; 2],
    gpu_ns: AtomicU64,
}

impl Activity {
    pub fn submit(&self, kind: WorkKind, count: u64) {
        if let Some(counter) = self.submitted.get(kind as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub fn begin_wait(&self, kind: WorkKind) {
        if let Some(counter) = self.pending.get(kind as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends one `begin_wait`.
    pub fn end_wait(&self, kind: WorkKind) {
        if let Some(counter) = self.pending.get(kind as usize) {
            counter.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn add_gpu_ns(&self, ns: u64) {
        self.gpu_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub fn figures(&self) -> Figures {
        let [kernels, transfers] = &self.submitted;
        let [pending_kernels, pending_transfers] = &self.pending;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            kernels: read(kernels),
            transfers: read(transfers),
            pending_kernels: read(pending_kernels),
            pending_transfers: read(pending_transfers),
            gpu_ns: read(&self.gpu_ns),
        }
    }
}

impl PartialEq for Activity {
    fn eq(&self, other: &Activity) -> bool {
        self.figures() == other.figures()
    }
}

impl Eq for Activity {}
