//! Tasks on several devices by example: who gets which, who waits for whom, and a long schedule.

mod scheduler_devices_support;
mod scheduler_support;

use pygpukit_core::scheduler::{Outcome, Phase, Placement, Reason};
use scheduler_devices_support::{anywhere, devices, on, schedule};
use scheduler_support::*;

#[test]
fn a_task_of_several_devices_gets_all_or_waits_and_holds_back_later_ones_there() {
    let (mut table, _) = table(devices(&[100, 100, 100]));
    table.submit(on(&[1], asks("one", 60, 0)), 0).unwrap();
    let pair = table.submit(on(&[0, 1], asks("pair", 50, 0)), 0).unwrap();
    assert_eq!((pair.phase, pair.reason), (Phase::Queued, Reason::WaitingForMemory));
    assert_eq!(detail(&pair), [("asked", 50), ("available", 40), ("position", 1)]);
    assert_eq!(
        table.submit(on(&[0], asks("behind", 60, 0)), 0).unwrap().phase,
        Phase::Queued
    );
    assert_eq!(
        table.submit(on(&[2], asks("beside", 60, 0)), 0).unwrap().phase,
        Phase::Admitted
    );
    assert_eq!(table.stats(0).reserved_memory, 120, "nothing is held for who waits");
    table.cancel("one", 1).unwrap();
    assert_eq!(
        (phase(&mut table, "pair"), phase(&mut table, "behind")),
        (Phase::Admitted, Phase::Queued)
    );
    assert_eq!(table.stats(1).reserved_memory, 160);
}

#[test]
fn tasks_of_several_devices_that_share_one_take_turns() {
    let (mut table, _) = table(devices(&[100, 100, 100, 100]));
    for (id, pair) in [("a", [0, 1]), ("b", [1, 2]), ("c", [2, 3]), ("d", [0, 3])] {
        table.submit(on(&pair, asks(id, 10, 0)), 0).unwrap();
    }
    let waits = table.get("b", 0).unwrap();
    assert_eq!((waits.phase, waits.reason), (Phase::Queued, Reason::WaitingForDevice));
    assert_eq!(
        phase(&mut table, "c"),
        Phase::Queued,
        "or b would wait for its end, too"
    );
    assert_eq!(
        table.submit(on(&[1], asks("one", 10, 0)), 0).unwrap().phase,
        Phase::Admitted
    );
    assert_eq!(next(&mut table, 1).as_deref(), Some("a"));
    table.finish("a", Outcome::Succeeded, 2).unwrap();
    assert_eq!(
        (phase(&mut table, "b"), phase(&mut table, "c")),
        (Phase::Admitted, Phase::Queued)
    );
}

#[test]
fn a_higher_priority_takes_the_place_of_what_has_not_begun_on_all_its_devices_or_on_none() {
    let (mut table, _) = table(devices(&[100, 100]));
    table.submit(on(&[0], urgent("low", 80, 0)), 0).unwrap();
    table.submit(on(&[1], urgent("busy", 80, 0)), 0).unwrap();
    table.start("busy", 0).unwrap();
    let pair = |id, priority| on(&[0, 1], urgent(id, 50, priority));
    assert_eq!(table.submit(pair("in vain", 5), 0).unwrap().phase, Phase::Queued);
    assert_eq!(phase(&mut table, "low"), Phase::Admitted, "it would not have helped");
    table.finish("busy", Outcome::Succeeded, 1).unwrap();
    assert_eq!(phase(&mut table, "in vain"), Phase::Admitted);
    assert_eq!(table.get("low", 1).unwrap().reason, Reason::WaitingForMemory);
    assert_eq!(
        table.submit(pair("more urgent", 9), 1).unwrap().phase,
        Phase::Admitted,
        "its seats, too"
    );
    assert_eq!(phase(&mut table, "in vain"), Phase::Queued);
}

#[test]
fn who_leaves_the_choice_waits_for_the_devices_that_lack_the_least() {
    for placement in Placement::ALL {
        let (mut table, _) = table(devices(&[100, 100, 100]));
        table.set_placement(placement);
        for (device, bytes) in [(0, 90), (1, 60), (2, 80)] {
            table
                .submit(on(&[device], asks(&device.to_string(), bytes, 0)), 0)
                .unwrap();
        }
        let waits = table.submit(anywhere(1, asks("any", 50, 0)), 0).unwrap();
        assert_eq!((waits.phase, waits.devices.first), (Phase::Queued, None));
        assert_eq!(detail(&waits)[..2], [("asked", 50), ("available", 40)]);
        assert_eq!(
            table.submit(on(&[1], asks("there", 10, 0)), 0).unwrap().phase,
            Phase::Queued
        );
        assert_eq!(
            table.submit(on(&[2], asks("elsewhere", 10, 0)), 0).unwrap().phase,
            Phase::Admitted
        );
        table.cancel("0", 0).unwrap();
        assert_eq!(
            table.get("any", 0).unwrap().devices.first,
            Some(0),
            "where there is room first"
        );
        assert_eq!(phase(&mut table, "there"), Phase::Admitted);
    }
}

#[test]
fn a_schedule_over_many_devices_keeps_every_promise() {
    for (count, seed) in [(2, 1), (5, 2), (16, 3)] {
        let out = schedule::run(count, 6000, seed, 500);
        assert_eq!(out.succeeded + out.failed + out.cancelled, 6000);
        assert!(
            out.wide > 300 && out.by_device.iter().all(|&tasks| tasks > 0),
            "{out:?}"
        );
    }
}
