//! The event ring under every order in which loads and stores of its threads can take effect, as loom explores them.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p pygpukit-core --test ring_loom`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use pygpukit_core::ring::{Event, Ring};

fn event(value: u64) -> Event {
    Event {
        kind: value as u16,
        name: value as u32,
        a: value,
        b: value,
        c: value,
        ..Event::default()
    }
}

/// What a reader may see: records of one writer each, in order, and every sequence number taken or lost once.
fn check(ring: &Ring, since: u64) -> u64 {
    let (records, next, lost) = ring.read(since, 9);
    for pair in records.windows(2) {
        assert!(pair[0].seq < pair[1].seq);
    }
    for record in &records {
        let value = record.t_ns;
        assert!(value == 1 || value == 2);
        assert_eq!(record.event, event(value), "words of two writers in one record");
    }
    assert_eq!(next - since, records.len() as u64 + lost);
    next
}

fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

#[test]
fn two_writers_of_one_slot_and_a_reader() {
    explore(2, || {
        let ring = Arc::new(Ring::new(1));
        let writers = [1, 2].map(|value| {
            let ring = ring.clone();
            thread::spawn(move || ring.push(value, &event(value)))
        });
        let next = check(&ring, 1);
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(
            check(&ring, next),
            3,
            "nobody writes any more: every record is there or lost"
        );
    });
}

/// A writer of record 1, and two more records from another thread meanwhile.
fn with_a_slow_writer(capacity: usize, look: impl Fn(&Ring, thread::JoinHandle<u64>) + Sync + Send + 'static) {
    explore(2, move || {
        let ring = Arc::new(Ring::new(capacity));
        let slow = {
            let ring = ring.clone();
            thread::spawn(move || ring.push(1, &event(1)))
        };
        let [first, second] = [(); 2].map(|()| ring.push(2, &event(2)));
        assert!(first < second);
        look(&ring, slow);
    });
}

#[test]
fn a_slow_writer_while_a_later_record_of_another_slot_is_given_up() {
    with_a_slow_writer(2, |ring, slow| {
        let next = check(ring, 1);
        slow.join().unwrap();
        assert_eq!(check(ring, next), ring.head());
        // Three records, and a number that the slow one's slot had when it was wanted: nothing is given up but that.
        assert!((4..=5).contains(&ring.head()), "{} numbers", ring.head() - 1);
        let newest = ring.read(ring.head() - 1, 9).0;
        assert!(ring.head() == 5 || newest.len() == 1, "the newest is there");
    });
}

#[test]
fn a_writer_that_is_overtaken_by_laps() {
    with_a_slow_writer(1, |ring, slow| {
        let next = check(ring, 1);
        slow.join().unwrap();
        let next = check(ring, next);
        assert_eq!(next, ring.head());
        assert_eq!(ring.push(2, &event(2)), next);
        assert_eq!(ring.read(next, 9).0.len(), 1, "the slot is in use again");
    });
}

#[test]
fn who_sees_a_number_knows_what_was_given_up_before_it() {
    // Once in the slow writer is enough: the others run on to their ends.
    explore(1, || {
        let ring = Arc::new(Ring::new(2));
        let slow = {
            let ring = ring.clone();
            thread::spawn(move || ring.push(1, &event(1)))
        };
        let reader = {
            let ring = ring.clone();
            thread::spawn(move || (ring.head(), ring.read(3, 9).1))
        };
        let numbers = [(); 2].map(|()| ring.push(2, &event(2)));
        let (head, next) = reader.join().unwrap();
        let first = slow.join().unwrap();
        // The slow one was still in its slot when 3 was wanted there, and the reader has seen 4.
        if (first, numbers) == (1, [2, 4]) && head > 4 {
            assert!(next > 3, "readers do not wait for a number that was given up");
        }
    });
}
