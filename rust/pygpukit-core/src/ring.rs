//! The event ring: fixed-size records, lock-free writers that wait for nobody, readers that are told what they missed.
//!
//! Each slot's first word is a stamp: a sequence number, and whether its record is still being written. A writer claims the next slot
//! that nobody writes, and with it the number, stores the payload and completes it: one atomic exchange a record. Where it finds a
//! writer who was overtaken by a whole lap, it gives that number up, says so, and takes the next, so that readers do not wait for it.
//! So no number is given out twice, no payload ever has two writers, and no reader takes a mixed one.

use crate::sync::atomic::{fence, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Records that the process-wide ring keeps.
pub const CAPACITY: usize = 65536;
/// Bytes of one record as readers get it.
pub const RECORD_BYTES: usize = 64;

/// Record kinds (`docs/seams.md` says what a, b and c are).
pub mod kind {
    pub const ALLOC: u16 = 1;
    pub const FREE: u16 = 2;
    pub const EVICT: u16 = 3;
    pub const RESTORE: u16 = 4;
    pub const SEGMENT_MAP: u16 = 5;
    pub const SEGMENT_UNMAP: u16 = 6;
    pub const OUT_OF_MEMORY: u16 = 7;
    pub const LAUNCH: u16 = 16;
    pub const HOST_LAUNCH: u16 = 17;
    pub const COPY: u16 = 18;
    pub const TASK: u16 = 32;
    pub const QUEUE: u16 = 34;
    pub const THROTTLE: u16 = 35;
    pub const SHARE: u16 = 36;
    pub const COMPILE: u16 = 48;
    pub const CELL_BEGIN: u16 = 64;
    pub const CELL_END: u16 = 65;
    pub const GAUGE: u16 = 80;
}

/// What a writer says: a record without its sequence number and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub kind: u16,
    pub device: u16,
    /// Short id of the stream, 0 = default stream.
    pub stream: u32,
    pub tenant: u32,
    pub name: u32,
    pub a: u64,
    pub b: u64,
    pub c: u64,
    pub cell: u32,
    pub line: u32,
}

/// What a reader gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// From 1; each is read or counted as lost.
    pub seq: u64,
    pub t_ns: u64,
    pub event: Event,
}

impl Record {
    /// The 64 bytes of `docs/seams.md`, little endian.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let words = payload(self.t_ns, &self.event);
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(std::iter::once(self.seq).chain(words)) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Words 1 to 7 of a record.
fn payload(t_ns: u64, e: &Event) -> [u64; 7] {
    [
        t_ns,
        u64::from(e.kind) | u64::from(e.device) << 16 | u64::from(e.stream) << 32,
        u64::from(e.tenant) | u64::from(e.name) << 32,
        e.a,
        e.b,
        e.c,
        u64::from(e.cell) | u64::from(e.line) << 32,
    ]
}

fn record(seq: u64, w: [u64; 7]) -> Record {
    let event = Event {
        kind: w[1] as u16,
        device: (w[1] >> 16) as u16,
        stream: (w[1] >> 32) as u32,
        tenant: w[2] as u32,
        name: (w[2] >> 32) as u32,
        a: w[3],
        b: w[4],
        c: w[5],
        cell: w[6] as u32,
        line: (w[6] >> 32) as u32,
    };
    Record { seq, t_ns: w[0], event }
}

/// The lowest bit of a stamp: its record is being written.
const BUSY: u64 = 1;

#[repr(align(64))]
struct Slot([AtomicU64; 8]);

/// How far the numbers have gone.
#[repr(align(64))]
struct Head {
    /// The latest number that was claimed, or one before it: writers look on from there, or from what was given up.
    claimed: AtomicU64,
    /// The latest number that was given up.
    abandoned: AtomicU64,
}

impl Head {
    /// Every number up to here has been claimed or given up.
    #[inline]
    fn passed(&self) -> u64 {
        let claimed = self.claimed.load(Ordering::Acquire); // with it comes what its writer knows to be given up
        claimed.max(self.abandoned.load(Ordering::Relaxed))
    }

    /// A later writer may come between the two steps: then others find what it claimed when they look on from here, a lap at most.
    /// The fence of `claim` lies between what the writer knows to be given up and this store, which needs no order of its own.
    #[inline]
    fn advance(&self, seq: u64) {
        if self.claimed.load(Ordering::Relaxed) < seq {
            self.claimed.store(seq, Ordering::Relaxed);
        }
    }
}

/// Slots between the one that is written and the one that is brought into the cache for a later writer: the ring is larger than the
/// caches nearby, and a claim cannot begin before its slot is there.
const FETCH_AHEAD: u64 = 8;

/// After so many times that others were quicker to claim, a writer stands back no longer than before: some microseconds.
const MAX_BEATEN: u32 = 7;

#[inline]
fn fetch(slot: &[AtomicU64; 8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing; every x86-64 processor has it.
    unsafe {
        use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(slot.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// The number is the caller's, who is the slot's only writer.
    Taken,
    /// A writer of an earlier lap is still there.
    Occupied,
    /// Another writer has the number, or the slot's number is later: this one.
    Late(u64),
}

#[inline]
fn claim(slot: &[AtomicU64; 8], seq: u64) -> Claim {
    // Acquire, here and below: with a number comes what its writer knew of the numbers before.
    let mut seen = slot[0].load(Ordering::Acquire);
    while seen >> 1 < seq {
        if seen & BUSY != 0 {
            return Claim::Occupied;
        }
        match slot[0].compare_exchange_weak(seen, seq << 1 | BUSY, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                fence(Ordering::Release); // a reader that sees any word of this record, or its number in `Head`, also sees BUSY
                return Claim::Taken;
            }
            Err(now) => seen = now,
        }
    }
    Claim::Late(seen >> 1)
}

/// Leaves the next numbers to others for a moment, after so many that others were quicker to claim: writers that all go on to the next
/// number at once keep taking its slot from each other.
fn stand_back(beaten: u32) {
    let looks = if cfg!(loom) { 0 } else { 1 << beaten.min(MAX_BEATEN) };
    (0..looks).for_each(|_| std::hint::spin_loop());
}

/// Ends the writing that `claim` began: nobody else changes the stamp meanwhile.
#[inline]
fn complete(slot: &[AtomicU64; 8], seq: u64) {
    slot[0].store(seq << 1, Ordering::Release);
}

/// A ring of records. Memory: 64 bytes a record.
pub struct Ring {
    head: Head,
    slots: Box<[Slot]>,
}

impl Ring {
    /// A ring of `capacity` records, a power of two (else the next one).
    pub fn new(capacity: usize) -> Ring {
        let slots = (0..capacity.next_power_of_two())
            .map(|_| Slot(Default::default()))
            .collect();
        Ring {
            head: Head {
                claimed: AtomicU64::new(0),
                abandoned: AtomicU64::new(0),
            },
            slots,
        }
    }

    /// The ring of this process.
    pub fn global() -> &'static Arc<Ring> {
        static RING: OnceLock<Arc<Ring>> = OnceLock::new();
        RING.get_or_init(|| Arc::new(Ring::new(CAPACITY)))
    }

    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The sequence number that the next record will get.
    pub fn head(&self) -> u64 {
        let mut next = self.head.passed() + 1;
        loop {
            match self.slot(next)[0].load(Ordering::Acquire) >> 1 {
                claimed if claimed >= next => next = claimed + 1, // its writer has yet to say so
                _ => return next,
            }
        }
    }

    #[inline]
    fn slot(&self, seq: u64) -> &[AtomicU64; 8] {
        &self.slots[(seq - 1) as usize & (self.slots.len() - 1)].0
    }

    /// Writes a record and returns its sequence number. Never waits: after as many slots with a slow writer as there are, the record is
    /// given up.
    #[inline(always)] // out of line its caller stores the event first, and the claim waits until that is done
    pub fn push(&self, t_ns: u64, event: &Event) -> u64 {
        let mut seq = self.head.passed() + 1;
        fetch(self.slot(seq + FETCH_AHEAD));
        let mut claimed = claim(self.slot(seq), seq);
        if claimed != Claim::Taken {
            (seq, claimed) = self.claim_later(seq, claimed);
        }
        if claimed == Claim::Taken {
            self.head.advance(seq);
            let slot = self.slot(seq);
            for (word, value) in slot[1..].iter().zip(payload(t_ns, event)) {
                word.store(value, Ordering::Relaxed);
            }
            complete(slot, seq);
        }
        seq
    }

    /// The first number after `seq`, which was not to be had, that is: Taken, or the last one given up.
    #[cold]
    fn claim_later(&self, mut seq: u64, mut claimed: Claim) -> (u64, Claim) {
        let (mut occupied, mut beaten) = (0, 0);
        while claimed != Claim::Taken {
            if let Claim::Late(number) = claimed {
                if number == seq {
                    stand_back(beaten);
                    beaten += 1;
                }
                seq = number;
            } else {
                self.head.abandoned.fetch_max(seq, Ordering::Relaxed);
                occupied += 1;
                if occupied == self.slots.len() {
                    break;
                }
            }
            seq = seq.max(self.head.passed()) + 1;
            claimed = claim(self.slot(seq), seq);
        }
        (seq, claimed)
    }

    /// Hands `take` the records from sequence `since` on, at most `max`, in order, and returns (next, lost): the sequence to ask for
    /// next and how many numbers of `since..next` were overwritten or given up. Stops before a record that is still being written.
    pub fn read_with(&self, since: u64, max: usize, mut take: impl FnMut(&Record)) -> (u64, u64) {
        let since = since.max(1);
        let head = self.head();
        let mut seq = since.max(head.saturating_sub(self.slots.len() as u64));
        let mut lost = seq - since;
        let mut taken = 0;
        while seq < head && taken < max {
            let slot = self.slot(seq);
            let stamp = slot[0].load(Ordering::Acquire);
            let abandoned = || seq <= self.head.abandoned.load(Ordering::Relaxed);
            if stamp == seq << 1 | BUSY || stamp >> 1 < seq && !abandoned() {
                break;
            }
            if stamp == seq << 1 {
                let words = std::array::from_fn(|i| slot[i + 1].load(Ordering::Relaxed));
                fence(Ordering::Acquire);
                if slot[0].load(Ordering::Relaxed) == stamp {
                    take(&record(seq, words));
                    taken += 1;
                } else {
                    lost += 1;
                }
            } else {
                lost += 1;
            }
            seq += 1;
        }
        (seq, lost)
    }

    /// As `read_with`: (records, next, lost).
    pub fn read(&self, since: u64, max: usize) -> (Vec<Record>, u64, u64) {
        let mut records = Vec::new();
        let (next, lost) = self.read_with(since, max, |r| records.push(*r));
        (records, next, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim without its record.
    fn stall(ring: &Ring) -> u64 {
        let seq = ring.head();
        assert_eq!(claim(ring.slot(seq), seq), Claim::Taken);
        seq
    }

    fn numbers(ring: &Ring, since: u64) -> Vec<u64> {
        ring.read(since, 9).0.iter().map(|r| r.seq).collect()
    }

    #[test]
    fn a_stalled_writer_keeps_its_slot_and_the_others_pass() {
        let ring = Ring::new(2);
        let event = Event::default();
        let stalled = stall(&ring);
        assert_eq!(ring.head(), 2, "a number is gone before its writer says so");
        assert_eq!(ring.push(0, &event), 2);
        assert_eq!(
            ring.read(1, 9),
            (vec![], 1, 0),
            "readers stop at a record that is being written"
        );
        assert_eq!(ring.push(0, &event), 4, "3 would be in the stalled one's slot");
        let (records, next, lost) = ring.read(1, 9);
        assert_eq!((records[0].seq, records.len(), next, lost), (4, 1, 5, 3));
        assert_eq!(ring.push(0, &event), 6);
        complete(ring.slot(stalled), stalled);
        assert_eq!((numbers(&ring, 5), ring.head()), (vec![6], 7));
        ring.push(0, &event);
        ring.push(0, &event);
        assert_eq!(numbers(&ring, 7), [7, 8], "the slot is in use again");
    }

    #[test]
    fn a_record_is_given_up_when_every_slot_has_a_stalled_writer() {
        let ring = Ring::new(2);
        let stalled = [stall(&ring), stall(&ring)];
        assert_eq!(ring.push(0, &Event::default()), 4);
        assert_eq!(ring.read(1, 9), (vec![], 5, 4), "nobody waits for them");
        stalled.into_iter().for_each(|seq| complete(ring.slot(seq), seq));
        assert_eq!(ring.push(0, &Event::default()), 5);
        assert_eq!(numbers(&ring, 5), [5]);
    }

    #[test]
    fn a_writer_that_looks_late_takes_a_number_that_is_free() {
        let ring = Ring::new(1);
        let last = (1..=9).map(|_| ring.push(5, &Event::default())).last();
        assert_eq!(last, Some(9));
        ring.head.claimed.store(1, Ordering::Relaxed); // as a writer that rested within `advance` leaves it
        assert_eq!(
            claim(ring.slot(2), 2),
            Claim::Late(9),
            "and not every number is looked at"
        );
        assert_eq!(ring.head(), 10);
        assert_eq!(ring.push(5, &Event::default()), 10);
        assert_eq!((numbers(&ring, 1), ring.head.passed()), (vec![10], 10));
    }
}
