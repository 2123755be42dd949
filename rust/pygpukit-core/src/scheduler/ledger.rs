//! The ledger of reserved memory and compute share: both are taken together or not at all.

/// What one task holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    pub memory_bytes: u64,
    pub share_ppm: u32,
}

impl Reservation {
    pub fn is_empty(&self) -> bool {
        self.memory_bytes == 0 && self.share_ppm == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Memory,
    Share,
}

/// The resource that was short, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub resource: Resource,
    pub asked: u64,
    pub available: u64,
}

/// Totals and what is reserved of them. Integers only; reserved never exceeds the total.
#[derive(Clone, Debug)]
pub struct Ledger {
    total: Reservation,
    reserved: Reservation,
}

impl Ledger {
    pub fn new(total_memory: u64, total_share_ppm: u32) -> Ledger {
        let total = Reservation {
            memory_bytes: total_memory,
            share_ppm: total_share_ppm,
        };
        Ledger {
            total,
            reserved: Reservation::default(),
        }
    }

    pub fn reserved(&self) -> Reservation {
        self.reserved
    }

    pub fn available(&self) -> Reservation {
        Reservation {
            memory_bytes: self.total.memory_bytes - self.reserved.memory_bytes,
            share_ppm: self.total.share_ppm - self.reserved.share_ppm,
        }
    }

    /// What stands in the way of the request now; None when it fits.
    pub fn shortage(&self, request: Reservation) -> Option<Shortage> {
        short_of(request, self.available())
    }

    /// What stands in the way even when nothing else is reserved.
    pub fn shortage_when_empty(&self, request: Reservation) -> Option<Shortage> {
        short_of(request, self.total)
    }

    /// Takes both resources, or neither.
    pub fn reserve(&mut self, request: Reservation) -> Result<(), Shortage> {
        match self.shortage(request) {
            Some(shortage) => Err(shortage),
            None => {
                self.reserved.memory_bytes += request.memory_bytes;
                self.reserved.share_ppm += request.share_ppm;
                Ok(())
            }
        }
    }

    /// Gives back what `reserve` took. More than is reserved would mean that the books are wrong: that stops the program.
    pub fn release(&mut self, request: Reservation) {
        let memory_bytes = self.reserved.memory_bytes.checked_sub(request.memory_bytes);
        let share_ppm = self.reserved.share_ppm.checked_sub(request.share_ppm);
        match (memory_bytes, share_ppm) {
            (Some(memory_bytes), Some(share_ppm)) => {
                self.reserved = Reservation {
                    memory_bytes,
                    share_ppm,
                }
            }
            _ => panic!("ledger: released {request:?} of {:?}", self.reserved),
        }
    }
}

fn short_of(request: Reservation, available: Reservation) -> Option<Shortage> {
    if request.memory_bytes > available.memory_bytes {
        let (asked, available) = (request.memory_bytes, available.memory_bytes);
        return Some(Shortage {
            resource: Resource::Memory,
            asked,
            available,
        });
    }
    if request.share_ppm > available.share_ppm {
        let (asked, available) = (request.share_ppm.into(), available.share_ppm.into());
        return Some(Shortage {
            resource: Resource::Share,
            asked,
            available,
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(memory_bytes: u64, share_ppm: u32) -> Reservation {
        Reservation {
            memory_bytes,
            share_ppm,
        }
    }

    #[test]
    fn both_or_neither() {
        let mut ledger = Ledger::new(100, 10);
        assert!(ledger.reserve(ask(60, 5)).is_ok());
        let short = Shortage {
            resource: Resource::Share,
            asked: 6,
            available: 5,
        };
        assert_eq!(ledger.reserve(ask(10, 6)), Err(short));
        assert_eq!(ledger.reserved(), ask(60, 5));
        let short = Shortage {
            resource: Resource::Memory,
            asked: u64::MAX,
            available: 40,
        };
        assert_eq!(ledger.reserve(ask(u64::MAX, 1)), Err(short));
        ledger.release(ask(60, 5));
        assert_eq!(ledger.available(), ask(100, 10));
    }

    #[test]
    #[should_panic(expected = "ledger")]
    fn releasing_too_much_stops() {
        Ledger::new(100, 10).release(ask(1, 0));
    }
}
