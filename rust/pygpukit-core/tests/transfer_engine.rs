//! The transfer engine, case by case.

mod transfer_support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use pygpukit_core::driver::Driver;
use pygpukit_core::sim_driver::Call;
use pygpukit_core::transfer::{Direction, LaneSettings, Order, Settings, State, SubmitError};
use transfer_support::{settings, Issue, World, CHUNK, IN_FLIGHT, KIB, SLOT};

#[test]
fn an_urgent_copy_passes_a_large_one_within_the_bound() {
    let world = World::new(settings());
    let large = world
        .engine
        .submit(world.request(0, Direction::ToDevice, SLOT))
        .expect("it is taken");
    for _ in 0..3 {
        world.engine.pump();
        world.sim.advance_ns(CHUNK);
    }
    let before = world.engine.info(large).expect("known").landed_bytes;
    let mut request = world.request(1, Direction::ToDevice, 4 * KIB);
    request.priority = 1;
    let urgent = world.engine.submit(request).expect("it is taken");
    while !world.engine.info(urgent).expect("known").state.is_terminal() {
        world.engine.pump();
        world.sim.advance_ns(1000);
    }
    let passed = world.engine.info(large).expect("known").landed_bytes - before;
    assert!(passed <= IN_FLIGHT, "{passed} bytes of the large copy went first");
    assert_eq!(world.engine.info(large).expect("known").state, State::InProgress);
    world.drain();
    assert_eq!(world.engine.info(large).expect("known").state, State::Completed);
}

#[test]
fn who_waits_for_a_stream_holds_up_nobody() {
    let world = World::new(settings());
    world.sim.work(7, 1_000_000);
    let mut request = world.request(0, Direction::ToDevice, CHUNK);
    request.after_streams.push(7);
    request.priority = 5;
    let waiting = world.engine.submit(request).expect("it is taken");
    let other = world
        .engine
        .submit(world.request(1, Direction::ToDevice, CHUNK))
        .expect("it is taken");
    world.engine.pump();
    world.sim.advance_ns(100_000);
    world.engine.pump();
    let state = |id| world.engine.info(id).expect("known").state;
    assert_eq!((state(waiting), state(other)), (State::Queued, State::Completed));
    world.drain();
    assert_eq!(state(waiting), State::Completed);
}

#[test]
fn a_stream_is_ordered_after_a_transfer() {
    let world = World::new(settings());
    let id = world
        .engine
        .submit(world.request(0, Direction::ToDevice, 3 * CHUNK))
        .expect("it is taken");
    let order = || {
        world
            .engine
            .order_after(id, world.spy.device(), 9, Duration::ZERO)
            .expect("the device works")
    };
    assert_eq!(order(), Order::NotYet);
    world.engine.pump(); // two of three pieces fit
    assert_eq!(order(), Order::NotYet);
    world.sim.advance_ns(CHUNK);
    world.engine.pump();
    assert_eq!(order(), Order::Ordered);
    // The simulated device objects to a read that is not ordered after the copy.
    let (_, to) = world.ends(0, Direction::ToDevice);
    world.sim.launch(9, to, 3 * CHUNK, None, 10);
    world.drain();
    assert!(matches!(order(), Order::Ended(info) if info.state == State::Completed));
    assert!(world.engine.forget(id) && !world.engine.forget(id));
    assert_eq!(order(), Order::Unknown);
    assert_eq!(world.sim.violations(), Vec::<String>::new());
}

#[test]
fn a_failed_piece_fails_its_transfer_alone() {
    let world = World::new(settings());
    world.sim.fail(Call::CopyToDevice, 2, 700);
    let bad = world
        .engine
        .submit(world.request(0, Direction::ToDevice, 4 * CHUNK))
        .expect("it is taken");
    let good = world
        .engine
        .submit(world.request(1, Direction::ToDevice, 4 * CHUNK))
        .expect("it is taken");
    world.drain();
    let (bad, good) = (
        world.engine.info(bad).expect("known"),
        world.engine.info(good).expect("known"),
    );
    assert_eq!(
        (bad.state, bad.landed_bytes, bad.error.map(|e| e.code)),
        (State::Failed, CHUNK, Some(700))
    );
    assert_eq!((good.state, good.bytes_per_s()), (State::Completed, Some(1e9)));
    let stats = world.engine.stats();
    let way = stats.of(Direction::ToDevice);
    assert_eq!(
        (way.completed, way.failed, way.bytes, way.bytes_per_s()),
        (1, 1, 5 * CHUNK, 1e9)
    );
}

struct Kept(Arc<AtomicBool>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn what_is_kept_goes_with_the_end_and_not_before() {
    let world = World::new(settings());
    let gone = Arc::new(AtomicBool::new(false));
    let mut request = world.request(0, Direction::ToHost, SLOT);
    request.keep = Some(Box::new(Kept(gone.clone())));
    let id = world.engine.submit(request).expect("it is taken");
    world.engine.pump();
    assert!(world.engine.cancel(id), "most of it was not issued");
    world.engine.pump();
    assert!(!gone.load(Ordering::SeqCst), "pieces are in flight");
    world.drain();
    assert!(gone.load(Ordering::SeqCst));
    let (mut queued, gone) = (
        world.request(1, Direction::ToHost, SLOT),
        Arc::new(AtomicBool::new(false)),
    );
    queued.keep = Some(Box::new(Kept(gone.clone())));
    let queued = world.engine.submit(queued).expect("it is taken");
    assert!(
        world.engine.cancel(queued) && gone.load(Ordering::SeqCst),
        "who sees the end finds it gone"
    );
    assert!(!world.engine.cancel(id), "it has ended");
    assert_eq!(world.engine.info(id).expect("known").state, State::Cancelled);
}

#[test]
fn at_most_so_many_are_in_progress() {
    let world = World::new(Settings {
        max_in_progress: 1,
        ..settings()
    });
    for slot in 0..3 {
        let direction = Direction::ALL[slot as usize];
        world
            .engine
            .submit(world.request(slot, direction, SLOT))
            .expect("it is taken");
    }
    while world.engine.pump() {
        assert!(world.engine.stats().in_progress <= 1);
        world.sim.advance_ns(7000);
    }
    assert_eq!(world.engine.stats().sum(|s| s.completed), 3);
}

#[test]
fn copies_to_another_device_go_in_pieces_and_by_priority_on_a_lane_of_their_own() {
    let world = World::new(settings());
    let sent: Vec<u64> = [0, 7]
        .into_iter()
        .enumerate()
        .map(|(slot, priority)| {
            let mut request = world.request(slot as u64, Direction::ToPeer, SLOT);
            (request.peer, request.priority) = (3, priority);
            world.engine.submit(request).expect("it is taken")
        })
        .collect();
    let other = world
        .engine
        .submit(world.request(2, Direction::OnDevice, CHUNK))
        .expect("it is taken");
    world.engine.pump();
    assert_eq!(
        world.engine.order_after(other, 3, 0, Duration::ZERO),
        Ok(Order::Ordered) // a stream of the other device
    );
    world.drain();
    let issues = world.spy.issues();
    let (to_peer, on_device): (Vec<&Issue>, Vec<&Issue>) =
        issues.iter().partition(|issue| issue.direction == Direction::ToPeer);
    assert_eq!(on_device.len(), 1);
    let expected: Vec<(u64, u64)> = [1, 0]
        .into_iter()
        .flat_map(|slot| {
            let (from, to) = world.ends(slot, Direction::ToPeer);
            (0..SLOT / settings().peer.chunk_bytes).map(move |piece| {
                let offset = piece * settings().peer.chunk_bytes;
                (from + offset, to + offset)
            })
        })
        .collect();
    let issued: Vec<(u64, u64)> = to_peer.iter().map(|issue| (issue.from, issue.to)).collect();
    assert_eq!(issued, expected);
    let info = world.engine.info(sent[0]).expect("known");
    assert_eq!((info.state, info.peer, info.landed_bytes), (State::Completed, 3, SLOT));
    assert_eq!(world.engine.stats().of(Direction::ToPeer).bytes, 2 * SLOT);
}

#[test]
fn bad_requests_and_settings_are_refused() {
    let world = World::new(settings());
    let mut request = world.request(0, Direction::ToDevice, 10);
    request.to = 0;
    assert!(matches!(
        world.engine.submit(request),
        Err(SubmitError::Range { address: 0, .. })
    ));
    let mut request = world.request(0, Direction::ToDevice, u64::MAX);
    request.bytes = u64::MAX;
    assert!(matches!(world.engine.submit(request), Err(SubmitError::Range { .. })));
    let lane = |chunk_bytes, in_flight_bytes| LaneSettings {
        chunk_bytes,
        in_flight_bytes,
    };
    let field = |host| Settings { host, ..settings() }.check().expect_err("it cannot be").field;
    assert_eq!(field(lane(0, 10)), "chunk_bytes");
    assert_eq!(field(lane(11, 10)), "in_flight_bytes");
}

#[test]
fn a_closed_engine_ends_everything_and_gives_all_back() {
    let World { sim, spy, engine, .. } = {
        let world = World::new(settings());
        let first = world
            .engine
            .submit(world.request(0, Direction::ToDevice, SLOT))
            .expect("it is taken");
        world.sim.work(3, 1 << 40);
        let mut request = world.request(1, Direction::ToHost, SLOT);
        request.after_streams.push(3);
        let second = world.engine.submit(request).expect("it is taken");
        world.engine.pump();
        world.engine.close();
        assert!(matches!(
            world.engine.submit(world.request(2, Direction::ToDevice, 1)),
            Err(SubmitError::Closed)
        ));
        world.sim.advance_ns(1 << 20);
        world.engine.run(); // ends, because the engine is closed and little is in flight
        for id in [first, second] {
            assert_eq!(world.engine.info(id).expect("known").state, State::Cancelled);
        }
        world
    };
    drop(engine);
    let usage = sim.usage();
    assert_eq!((usage.events, usage.streams), (0, 0));
    assert!(spy.issues().iter().map(|issue| issue.bytes).sum::<u64>() <= IN_FLIGHT);
}

#[test]
fn a_thread_of_its_own_moves_transfers_along() {
    let world = World::new(settings());
    let engine = &world.engine;
    std::thread::scope(|scope| {
        scope.spawn(|| engine.run());
        let id = engine
            .submit(world.request(0, Direction::ToDevice, SLOT))
            .expect("it is taken");
        loop {
            world.sim.advance_ns(1000);
            let info = engine.wait(id, Duration::from_micros(100)).expect("known");
            if info.state.is_terminal() {
                assert_eq!(info.state, State::Completed);
                break;
            }
        }
        engine.close();
    });
    assert!(world.target(0, Direction::ToDevice).iter().all(|&byte| byte == 1));
    let _ = world.sim.device_wait();
}
