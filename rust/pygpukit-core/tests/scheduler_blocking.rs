//! The blocking front: threads that submit, run, cancel and wait at the same time, and time that passes while they wait.

use pygpukit_core::clock::{Clock, MonotonicClock};
use pygpukit_core::scheduler::{Config, Outcome, Phase, Policy, Scheduler, TaskSpec, TaskStart, Transition};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_millis(20);

fn scheduler(config: Config) -> Arc<Scheduler> {
    Arc::new(Scheduler::new(
        config,
        Arc::new(MonotonicClock),
        Box::new(|_: &Transition<'_>| {}),
    ))
}

fn asks(id: String, memory_bytes: u64) -> TaskSpec {
    TaskSpec {
        memory_bytes,
        policy: if memory_bytes == 0 {
            Policy::BestEffort
        } else {
            Policy::Burstable
        },
        ..TaskSpec::new(id)
    }
}

#[test]
fn next_waits_for_a_submission_and_for_freed_memory() {
    let scheduler = scheduler(Config::new(100));
    assert!(scheduler.next(SOON).is_none());
    let waiter = thread::spawn({
        let scheduler = scheduler.clone();
        move || {
            [
                scheduler.next(LONG).unwrap().context.id.clone(),
                scheduler.next(LONG).unwrap().context.id.clone(),
            ]
        }
    });
    thread::sleep(SOON);
    scheduler.submit(asks("a".into(), 100)).unwrap();
    scheduler.submit(asks("b".into(), 100)).unwrap();
    let end = Instant::now() + LONG;
    while scheduler.get("a").unwrap().phase != Phase::Running && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(!waiter.is_finished());
    scheduler.finish("a", Outcome::Succeeded).unwrap();
    assert_eq!(waiter.join().unwrap(), ["a", "b"]);
}

#[test]
fn a_deadline_passes_while_everyone_waits() {
    let scheduler = scheduler(Config::new(100));
    scheduler.submit(asks("holds".into(), 100)).unwrap();
    scheduler.next(LONG).unwrap();
    let waiter = thread::spawn({
        let scheduler = scheduler.clone();
        move || scheduler.finished(0, None, LONG)
    });
    thread::sleep(SOON);
    let deadline_ns = MonotonicClock.now_ns() + 30_000_000;
    scheduler
        .submit(TaskSpec {
            deadline_ns,
            ..asks("late".into(), 50)
        })
        .unwrap();
    let (ended, seen) = waiter.join().unwrap();
    assert_eq!((ended.len(), seen), (1, 1));
    assert_eq!((ended[0].id.as_str(), ended[0].phase), ("late", Phase::Expired));
    assert!(ended[0].finished_ns >= deadline_ns);
}

#[test]
fn a_requeued_task_comes_back_to_a_waiting_dispatcher() {
    let scheduler = scheduler(Config::new(100));
    scheduler
        .submit(TaskSpec {
            idempotent: true,
            ..asks("a".into(), 100)
        })
        .unwrap();
    scheduler.next(LONG).unwrap();
    let waiter = thread::spawn({
        let scheduler = scheduler.clone();
        move || scheduler.next(LONG).unwrap().context.id.clone()
    });
    thread::sleep(SOON);
    let start = Instant::now();
    scheduler
        .requeue("a", pygpukit_core::scheduler::Reason::WaitingForDevice)
        .unwrap();
    assert_eq!(waiter.join().unwrap(), "a");
    assert!(start.elapsed() >= Duration::from_millis(10));
}

#[test]
fn a_wake_before_the_wait_begins_ends_it_for_who_knew_of_none() {
    let scheduler = scheduler(Config::new(100));
    let woken = scheduler.wakes();
    scheduler.wake();
    let start = Instant::now();
    assert!(scheduler.finished(0, Some(woken), LONG).0.is_empty());
    assert!(start.elapsed() < LONG);
    let woken = scheduler.wakes();
    scheduler.finished(0, Some(woken), SOON);
    assert!(start.elapsed() >= SOON, "nobody woke it since");
}

#[test]
fn wake_and_close_let_every_waiter_go() {
    let scheduler = scheduler(Config::new(100));
    let wait = || {
        let of = |f: fn(&Scheduler) -> bool| {
            let scheduler = scheduler.clone();
            thread::spawn(move || f(&scheduler))
        };
        [
            of(|s| s.next(LONG).is_none()),
            of(|s| s.next(LONG).is_none()),
            of(|s| s.finished(0, None, LONG).0.is_empty()),
        ]
    };
    let start = Instant::now();
    let waiters = wait();
    while !waiters.iter().all(|waiter| waiter.is_finished()) && start.elapsed() < LONG {
        scheduler.wake(); // lets go who waits by now; a thread may take long to begin
        thread::sleep(Duration::from_millis(1));
    }
    assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
    scheduler.submit(TaskSpec::new("a")).unwrap();
    let waiters = wait();
    scheduler.close();
    let taken = waiters
        .into_iter()
        .map(|waiter| waiter.join().unwrap())
        .filter(|none| !none)
        .count();
    assert!(taken <= 1, "the one admitted task may have been taken before the close");
    assert!(scheduler.next(LONG).is_none());
    assert_eq!(scheduler.submit(TaskSpec::new("b")).unwrap().phase, Phase::Rejected);
    assert!(start.elapsed() < LONG);
}

#[test]
fn many_threads_end_every_task_once_and_never_overbook() {
    const TASKS: usize = 4000;
    const MEMORY: u64 = 100;
    let config = Config {
        max_queue: TASKS,
        max_finished: TASKS,
        ..Config::new(MEMORY)
    };
    let endings = Arc::new(Mutex::new(Vec::new()));
    let sink = endings.clone();
    let observer = move |t: &Transition<'_>| {
        if t.to.is_terminal() {
            sink.lock().unwrap().push(t.number);
        }
    };
    let scheduler = Arc::new(Scheduler::new(config, Arc::new(MonotonicClock), Box::new(observer)));
    let (inside, runs) = (AtomicU64::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for worker in 0..3 {
            let (scheduler, inside, runs) = (&scheduler, &inside, &runs);
            scope.spawn(move || {
                while let Some(TaskStart { context, .. }) = scheduler.next(LONG) {
                    let bytes = context.id.parse::<u64>().unwrap() % 60;
                    assert!(
                        inside.fetch_add(bytes, Ordering::SeqCst) + bytes <= MEMORY,
                        "overbooked"
                    );
                    context.add_launch();
                    runs.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    inside.fetch_sub(bytes, Ordering::SeqCst);
                    scheduler.finish(&context.id, Outcome::Succeeded).unwrap();
                }
                worker
            });
        }
        for part in 0..2 {
            let scheduler = &scheduler;
            scope.spawn(move || {
                for i in (part..TASKS).step_by(2) {
                    scheduler.submit(asks(i.to_string(), i as u64 % 60)).unwrap();
                    if i % 5 == 0 {
                        scheduler.cancel(&(i / 2).to_string()).ok();
                    }
                }
            });
        }
        let (mut ended, mut seen) = (HashSet::new(), 0);
        while ended.len() < TASKS {
            let (records, next) = scheduler.finished(seen, None, LONG);
            assert_eq!(next - seen, records.len() as u64);
            seen = next;
            assert!(
                records.into_iter().all(|record| ended.insert(record.number)),
                "seen twice"
            );
        }
        scheduler.close();
    });
    let stats = scheduler.stats();
    assert_eq!(stats.succeeded + stats.cancelled, TASKS as u64);
    assert_eq!((stats.reserved_memory, stats.reserved_share_ppm), (0, 0));
    let launches: u64 = scheduler.tasks().iter().map(|record| record.launches).sum();
    assert_eq!(launches, runs.load(Ordering::Relaxed) as u64);
    let endings = endings.lock().unwrap();
    assert_eq!(
        (endings.len(), endings.iter().collect::<HashSet<_>>().len()),
        (TASKS, TASKS)
    );
}
