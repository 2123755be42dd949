//! Simulated address ranges, physical memory and mappings, with storage.

use std::collections::{BTreeMap, HashMap};

struct Physical {
    bytes: u64,
    data: Vec<u8>,
    mapped: bool,
}

/// Misuse is told as a sentence.
pub(super) type Checked<T> = Result<T, String>;

pub(super) struct Memory {
    granularity: u64,
    capacity: u64,
    store: bool,
    next: u64,
    reservations: BTreeMap<u64, u64>,
    mappings: BTreeMap<u64, (u64, u64)>,
    physicals: HashMap<u64, Physical>,
    pub physical_bytes: u64,
}

impl Memory {
    pub fn new(capacity: u64, granularity: u64, store: bool) -> Memory {
        Memory {
            granularity,
            capacity,
            store,
            next: 0x7f00_0000_0000,
            reservations: BTreeMap::new(),
            mappings: BTreeMap::new(),
            physicals: HashMap::new(),
            physical_bytes: 0,
        }
    }

    pub fn reservations(&self) -> usize {
        self.reservations.len()
    }

    pub fn mappings(&self) -> usize {
        self.mappings.len()
    }

    fn whole(&self, bytes: u64) -> Checked<()> {
        if bytes == 0 || bytes % self.granularity != 0 {
            return Err(format!(
                "{bytes} bytes are no multiple of the granularity {}",
                self.granularity
            ));
        }
        Ok(())
    }

    /// Addresses are never given out twice, and a granule between ranges catches strays.
    pub fn reserve(&mut self, bytes: u64) -> Checked<u64> {
        self.whole(bytes)?;
        let address = self.next;
        self.next += bytes + self.granularity;
        self.reservations.insert(address, bytes);
        Ok(address)
    }

    pub fn unreserve(&mut self, address: u64, bytes: u64) -> Checked<()> {
        if self.overlapping(address, bytes) {
            return Err(format!("address range {address:#x} freed while mapped"));
        }
        match self.reservations.get(&address) {
            Some(&reserved) if reserved == bytes => {
                self.reservations.remove(&address);
                Ok(())
            }
            _ => Err(format!(
                "freed address range {address:#x} of {bytes} bytes was not reserved"
            )),
        }
    }

    /// None when the device is full.
    pub fn create(&mut self, bytes: u64) -> Checked<Option<u64>> {
        self.whole(bytes)?;
        if self.physical_bytes + bytes > self.capacity {
            return Ok(None);
        }
        self.physical_bytes += bytes;
        let id = self.next;
        self.next += self.granularity;
        let data = if self.store {
            vec![0; bytes as usize]
        } else {
            Vec::new()
        };
        self.physicals.insert(
            id,
            Physical {
                bytes,
                data,
                mapped: false,
            },
        );
        Ok(Some(id))
    }

    pub fn exists(&self, physical: u64) -> bool {
        self.physicals.contains_key(&physical)
    }

    pub fn release(&mut self, physical: u64) -> Checked<()> {
        match self.physicals.get(&physical) {
            None => Err(format!("released physical memory {physical:#x} does not exist")),
            Some(p) if p.mapped => Err(format!("physical memory {physical:#x} released while mapped")),
            Some(p) => {
                self.physical_bytes -= p.bytes;
                self.physicals.remove(&physical);
                Ok(())
            }
        }
    }

    fn overlapping(&self, address: u64, bytes: u64) -> bool {
        let before = self.mappings.range(..address + bytes).next_back();
        before.is_some_and(|(&start, &(length, _))| start + length > address)
    }

    pub fn map(&mut self, address: u64, bytes: u64, physical: u64) -> Checked<()> {
        let inside = |(&start, &length): (&u64, &u64)| start + length >= address + bytes;
        if !self.reservations.range(..=address).next_back().is_some_and(inside) {
            return Err(format!("mapped range {address:#x} of {bytes} bytes is not reserved"));
        }
        if self.overlapping(address, bytes) {
            return Err(format!("address range {address:#x} mapped twice"));
        }
        match self.physicals.get_mut(&physical) {
            Some(p) if p.bytes == bytes && !p.mapped => p.mapped = true,
            _ => {
                return Err(format!(
                    "physical memory {physical:#x} is not there, is mapped, or has another size than {bytes}"
                ))
            }
        }
        self.mappings.insert(address, (bytes, physical));
        Ok(())
    }

    pub fn unmap(&mut self, address: u64, bytes: u64) -> Checked<()> {
        match self.mappings.get(&address) {
            Some(&(mapped, physical)) if mapped == bytes => {
                self.mappings.remove(&address);
                if let Some(p) = self.physicals.get_mut(&physical) {
                    p.mapped = false;
                    p.data.fill(0xdd); // what comes back must come from a copy
                }
                Ok(())
            }
            _ => Err(format!("unmapped range {address:#x} of {bytes} bytes was not mapped")),
        }
    }

    /// Mapping and offset of a range; a range must lie in one mapping.
    fn place(&self, address: u64, bytes: u64) -> Checked<(u64, usize)> {
        let mapping = self.mappings.range(..=address).next_back();
        match mapping {
            Some((&start, &(length, physical))) if start + length >= address + bytes => {
                Ok((physical, (address - start) as usize))
            }
            _ => Err(format!("access to unmapped memory at {address:#x}, {bytes} bytes")),
        }
    }

    pub fn check(&self, address: u64, bytes: u64) -> Checked<()> {
        self.place(address, bytes).map(|_| ())
    }

    /// The stored bytes of a range; empty when nothing is stored.
    pub fn bytes_mut(&mut self, address: u64, bytes: u64) -> Checked<&mut [u8]> {
        let (physical, offset) = self.place(address, bytes)?;
        let physical = self
            .physicals
            .get_mut(&physical)
            .ok_or("mapping without physical memory")?;
        Ok(if self.store {
            &mut physical.data[offset..offset + bytes as usize]
        } else {
            &mut []
        })
    }
}
