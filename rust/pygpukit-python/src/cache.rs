//! Python class over the kernel cache.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pygpukit_core::cache::{self, CacheConfig, Key};
use pygpukit_core::clock::MonotonicClock;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Content-addressed entries: a memory LRU with TTL in front of one-file-an-entry on disk.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct KernelCache(cache::KernelCache);

fn key_of(key: &[u8]) -> PyResult<Key> {
    key.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "a key has 32 bytes, got {}; use KernelCache.digest()",
            key.len()
        ))
    })
}

fn duration(name: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let parsed = seconds.map(Duration::try_from_secs_f64).transpose();
    parsed.map_err(|_| PyValueError::new_err(format!("{name} must be a number of seconds, 0 or more")))
}

#[pymethods]
impl KernelCache {
    #[new]
    #[pyo3(signature = (directory, memory_bytes=64 << 20, disk_bytes=1 << 30, ttl_seconds=None, disk_ttl_seconds=None))]
    fn new(
        directory: Option<PathBuf>,
        memory_bytes: u64,
        disk_bytes: u64,
        ttl_seconds: Option<f64>,
        disk_ttl_seconds: Option<f64>,
    ) -> PyResult<KernelCache> {
        let config = CacheConfig {
            directory,
            memory_bytes,
            disk_bytes,
            ttl: duration("ttl_seconds", ttl_seconds)?,
            disk_ttl: duration("disk_ttl_seconds", disk_ttl_seconds)?,
        };
        Ok(KernelCache(cache::KernelCache::new(config, Arc::new(MonotonicClock))))
    }

    /// (payload, "memory" or "disk"), or None. A damaged file is quarantined and is a miss. `stored` looks past this process's
    /// memory, for what another process may just have written.
    #[pyo3(signature = (key, stored=false))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        stored: bool,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, &'static str)>> {
        let key = key_of(key)?;
        let entry = py.detach(|| {
            if stored {
                self.0.get_stored(&key)
            } else {
                self.0.get(&key)
            }
        });
        Ok(entry.map(|(payload, source)| (PyBytes::new(py, &payload), source.name())))
    }

    /// The keys on disk; those in memory where there is no disk.
    fn keys<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let keys = py.detach(|| self.0.keys());
        keys.iter().map(|key| PyBytes::new(py, key)).collect()
    }

    /// An entry with its header and digest, as it lies on disk, or None: what archives hold.
    fn sealed<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = key_of(key)?;
        Ok(py
            .detach(|| self.0.sealed(&key))
            .map(|sealed| PyBytes::new(py, &sealed)))
    }

    /// (key, payload) of a sealed entry. Raises ValueError, saying what is wrong, for anything else.
    #[staticmethod]
    fn open_sealed<'py>(py: Python<'py>, sealed: &[u8]) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (key, payload) = cache::KernelCache::open_sealed(sealed)
            .map_err(|damage| PyValueError::new_err(format!("a cache entry cannot be read: {damage}")))?;
        Ok((PyBytes::new(py, &key), PyBytes::new(py, payload)))
    }

    fn put(&self, py: Python<'_>, key: &[u8], payload: &[u8]) -> PyResult<()> {
        let key = key_of(key)?;
        py.detach(|| self.0.put(key, payload));
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> PyResult<bool> {
        Ok(self.0.remove(&key_of(key)?))
    }

    fn clear(&self) {
        self.0.clear();
    }

    /// Why there is no disk cache, or None.
    fn problem(&self) -> Option<&str> {
        self.0.problem()
    }

    /// Why the latest entry that could not be written to the disk was not, once, or None.
    fn take_refusal(&self) -> Option<String> {
        self.0.take_refusal()
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        for (name, value) in self.0.stats() {
            stats.set_item(name, value)?;
        }
        Ok(stats)
    }

    /// BLAKE3 of the length-prefixed parts: the one way to make a key.
    #[staticmethod]
    fn digest(py: Python<'_>, parts: Vec<Vec<u8>>) -> Bound<'_, PyBytes> {
        PyBytes::new(py, &cache::digest(&parts))
    }
}
