//! The event ring under many writers: every number read or lost, no torn record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pygpukit_core::ring::{Event, Record, Ring, RECORD_BYTES};

/// An event whose every field follows from (writer, number), so that a mixture of two is seen.
fn stamped(writer: u64, number: u64) -> Event {
    let mixed = (writer << 32 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Event {
        kind: writer as u16,
        device: mixed as u16,
        stream: number as u32,
        tenant: (mixed >> 8) as u32,
        name: (mixed >> 16) as u32,
        a: mixed,
        b: !mixed,
        c: mixed.rotate_left(17),
        cell: (mixed >> 24) as u32,
        line: (mixed >> 32) as u32,
    }
}

fn intact(record: &Record) -> bool {
    record.event == stamped(u64::from(record.event.kind), u64::from(record.event.stream))
        && record.t_ns == record.event.a >> 1
}

/// Eight writers against one reader; returns (records read, numbers lost).
fn hammer(capacity: usize, each: u64) -> (u64, u64) {
    const WRITERS: u64 = 8;
    let ring = Arc::new(Ring::new(capacity));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (ring, stop) = (&ring, &stop);
        let reader = scope.spawn(move || {
            let (mut since, mut read, mut lost_total) = (1, 0u64, 0);
            let mut numbers = [None::<u64>; WRITERS as usize];
            loop {
                let last_round = stop.load(Ordering::SeqCst);
                let (records, next, lost) = ring.read(since, 1000);
                assert_eq!(
                    next,
                    since + lost + records.len() as u64,
                    "every sequence number is read or counted as lost"
                );
                let mut last = since - 1;
                for record in &records {
                    assert!(record.seq > last && record.seq < next);
                    assert!(intact(record), "torn: {record:?}");
                    let number = &mut numbers[record.event.kind as usize];
                    assert!(
                        number.map_or(true, |n| n < u64::from(record.event.stream)),
                        "a writer's records in order"
                    );
                    *number = Some(u64::from(record.event.stream));
                    last = record.seq;
                }
                (since, read, lost_total) = (next, read + records.len() as u64, lost_total + lost);
                if last_round && since == ring.head() {
                    return (read, lost_total);
                }
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for number in 0..each {
                        let event = stamped(writer, number);
                        ring.push(event.a >> 1, &event);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().expect("a writer panicked"));
        stop.store(true, Ordering::SeqCst);
        let (read, lost) = reader.join().expect("the reader panicked");
        assert_eq!(read + lost, ring.head() - 1);
        assert!(read <= WRITERS * each);
        (read, lost)
    })
}

#[test]
fn nothing_is_lost_while_the_ring_is_large_enough() {
    assert_eq!(hammer(1 << 17, 10_000), (80_000, 0));
}

#[test]
fn overtaken_writers_never_tear_a_record() {
    for capacity in [2, 8, 64] {
        let (read, _) = hammer(capacity, 60_000);
        assert!(read > 0);
    }
}

#[test]
fn a_record_that_changes_under_the_reader_is_not_taken() {
    let ring = Ring::new(1);
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                let event = stamped(1, number);
                ring.push(event.a >> 1, &event);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let (mut looks, mut read) = (0, 0);
        // The writer's thread may take long to begin, or rest within a record.
        while looks < 3_000_000 || (read == 0 && begin.elapsed() < Duration::from_secs(60)) {
            looks += 1;
            ring.read_with(ring.head() - 1, 1, |record| {
                assert!(intact(record), "torn: {record:?}");
                read += 1;
            });
        }
        stop.store(true, Ordering::Relaxed);
        assert!(read > 0);
    });
}

#[test]
fn readers_are_told_what_they_missed() {
    let ring = Ring::new(8);
    assert_eq!(ring.read(0, 10), (vec![], 1, 0));
    for number in 0..20 {
        let seq = ring.push(
            number,
            &Event {
                kind: 1,
                a: number,
                ..Event::default()
            },
        );
        assert_eq!(seq, number + 1);
    }
    let (records, next, lost) = ring.read(1, 100);
    assert_eq!((records.len(), next, lost), (8, 21, 12));
    assert_eq!(records[0].seq, 13);
    let (records, next, lost) = ring.read(15, 2);
    assert_eq!((records[0].seq, records.len(), next, lost), (15, 2, 17, 0));
    assert_eq!(ring.read(21, 10), (vec![], 21, 0));
    assert_eq!(ring.read(99, 10), (vec![], 99, 0));
}

#[test]
fn bytes_are_the_documented_layout() {
    let event = Event {
        kind: 1,
        device: 2,
        stream: 3,
        tenant: 4,
        name: 5,
        a: 6,
        b: 7,
        c: 8,
        cell: 9,
        line: 10,
    };
    let bytes = Record {
        seq: 11,
        t_ns: 12,
        event,
    }
    .to_bytes();
    let mut expected = Vec::new();
    expected.extend(11u64.to_le_bytes());
    expected.extend(12u64.to_le_bytes());
    expected.extend(1u16.to_le_bytes());
    expected.extend(2u16.to_le_bytes());
    for word in [3u32, 4, 5] {
        expected.extend(word.to_le_bytes());
    }
    for word in [6u64, 7, 8] {
        expected.extend(word.to_le_bytes());
    }
    for word in [9u32, 10] {
        expected.extend(word.to_le_bytes());
    }
    assert_eq!(bytes.to_vec(), expected);
    assert_eq!(bytes.len(), RECORD_BYTES);
}
