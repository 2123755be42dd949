//! The task table by example: submission, order, refusals and dependencies.

mod scheduler_support;

use pygpukit_core::scheduler::{edge, edges_as_markdown, Config, Outcome, Phase, Policy, Reason, TaskSpec, EDGES};
use scheduler_support::*;
use std::collections::HashSet;

#[test]
fn a_task_that_fits_runs_and_gives_everything_back() {
    let (mut table, log) = small();
    let record = table.submit(asks("a", 60, 200_000), 5).unwrap();
    assert_eq!(
        (record.phase, record.reason, record.submitted_ns),
        (Phase::Admitted, Reason::None, 5)
    );
    assert_eq!(next(&mut table, 7).as_deref(), Some("a"));
    assert_eq!(next(&mut table, 7), None);
    assert_eq!(table.stats(7).reserved_memory, 60);
    assert_eq!(table.finish("a", Outcome::Succeeded, 19), Ok(Phase::Succeeded));
    let record = table.get("a", 20).unwrap();
    assert_eq!((record.started_ns, record.finished_ns), (7, 19));
    let stats = table.stats(20);
    assert_eq!(
        (
            stats.reserved_memory,
            stats.reserved_share_ppm,
            stats.available_memory,
            stats.succeeded
        ),
        (0, 0, 100, 1)
    );
    let edges: Vec<_> = log.lock().unwrap().iter().map(|&(_, from, to, _)| (from, to)).collect();
    use Phase::*;
    assert_eq!(
        edges,
        [(Submitted, Admitted), (Admitted, Running), (Running, Succeeded)]
    );
}

#[test]
fn a_new_task_needs_an_id_that_nobody_has() {
    let (mut table, _) = small();
    assert_eq!(table.submit_new(asks("a", 60, 0), 0), Ok(Phase::Admitted));
    for bytes in [60, 61] {
        let refused = table.submit_new(asks("a", bytes, 0), 1).unwrap_err();
        assert_eq!(refused.field, "task_id");
        assert_eq!(
            refused.message,
            "'a' is taken by another task, which is Admitted; choose another"
        );
    }
    assert_eq!(table.submit_new(asks("b", 60, 0), 2), Ok(Phase::Queued));
    assert_eq!(table.submit_new(asks("c", 101, 0), 3), Ok(Phase::Rejected));
    assert_eq!(table.stats(3).submitted, 3);
}

#[test]
fn higher_priority_first_then_first_come() {
    let (mut table, _) = small();
    for (id, priority) in [("low", -1), ("a", 0), ("b", 0), ("high", 3), ("c", 0)] {
        table
            .submit(
                TaskSpec {
                    priority,
                    ..TaskSpec::new(id)
                },
                0,
            )
            .unwrap();
    }
    let order: Vec<_> = std::iter::from_fn(|| next(&mut table, 0)).collect();
    assert_eq!(order, ["high", "a", "b", "c", "low"]);
}

#[test]
fn waiting_tasks_say_for_what_and_where_they_stand() {
    let (mut table, _) = small();
    table.submit(asks("a", 80, 500_000), 0).unwrap();
    next(&mut table, 0);
    let memory = table.submit(asks("memory", 30, 0), 0).unwrap();
    assert_eq!((memory.phase, memory.reason), (Phase::Queued, Reason::WaitingForMemory));
    assert_eq!(detail(&memory), [("asked", 30), ("available", 20), ("position", 1)]);
    let behind = table.submit(asks("behind", 5, 0), 0).unwrap();
    assert_eq!(
        behind.reason,
        Reason::WaitingForMemory,
        "it would fit, but must not overtake"
    );
    assert_eq!(detail(&behind), [("position", 2)]);
    let nothing = table.submit(TaskSpec::new("nothing"), 0).unwrap();
    assert_eq!(
        nothing.phase,
        Phase::Admitted,
        "a task that reserves nothing waits for no reservation"
    );
    let urgent = table
        .submit(
            TaskSpec {
                priority: 9,
                ..asks("urgent", 1, 600_000)
            },
            0,
        )
        .unwrap();
    assert_eq!(urgent.reason, Reason::WaitingForShare);
    assert_eq!(
        detail(&urgent),
        [("asked", 600_000), ("available", 500_000), ("position", 1)]
    );
    assert_eq!(
        detail(&table.get("memory", 0).unwrap()),
        [("asked", 30), ("available", 20), ("position", 2)]
    );
    let positions: Vec<_> = table
        .snapshot(0)
        .iter()
        .filter_map(|r| Some((r.id.clone(), r.detail.position?)))
        .collect();
    assert_eq!(
        positions,
        [("memory".into(), 2), ("behind".into(), 3), ("urgent".into(), 1)]
    );
    table.finish("a", Outcome::Succeeded, 40).unwrap();
    for id in ["memory", "behind", "urgent"] {
        assert_eq!(phase(&mut table, id), Phase::Admitted);
    }
}

#[test]
fn wait_is_estimated_from_past_runs() {
    let (mut table, _) = small();
    table.submit(asks("first", 100, 0), 0).unwrap();
    next(&mut table, 0);
    table.finish("first", Outcome::Succeeded, 500).unwrap();
    table.submit(asks("second", 100, 0), 500).unwrap();
    next(&mut table, 500);
    table.submit(asks("third", 100, 0), 500).unwrap();
    let fourth = table.submit(asks("fourth", 100, 0), 500).unwrap();
    assert_eq!(
        detail(&fourth),
        [
            ("asked", 100),
            ("available", 0),
            ("position", 2),
            ("estimated_wait_ns", 1000)
        ]
    );
}

#[test]
fn refusals_name_the_reason_and_the_numbers() {
    let (mut table, log) = table(Config {
        max_queue: 1,
        ..Config::new(100)
    });
    let mut refused = |spec: TaskSpec| {
        let record = table.submit(spec, 50).unwrap();
        assert_eq!(record.phase, Phase::Rejected);
        (record.reason, detail(&record), record.field)
    };
    let of = |asked, available| vec![("asked", asked), ("available", available)];
    assert_eq!(refused(asks("big", 101, 0)), (Reason::ExceedsDevice, of(101, 100), ""));
    assert_eq!(
        refused(asks("wide", 0, 1_000_001)),
        (Reason::ShareOversubscribed, of(1_000_001, 1_000_000), "")
    );
    let late = TaskSpec {
        deadline_ns: 50,
        ..TaskSpec::new("late")
    };
    assert_eq!(refused(late), (Reason::DeadlineUnmeetable, of(0, 0), ""));
    assert_eq!(
        refused(after("lost", &["nobody"])),
        (Reason::InvalidSpec, vec![], "depends_on")
    );
    assert_eq!(
        refused(after("self", &["self"])),
        (Reason::InvalidSpec, vec![], "depends_on")
    );
    let empty = TaskSpec {
        policy: Policy::Guaranteed,
        ..TaskSpec::new("empty")
    };
    assert_eq!(refused(empty), (Reason::InvalidSpec, vec![], "policy"));
    let named = TaskSpec {
        name: "n".repeat(257).into(),
        ..TaskSpec::new("named")
    };
    assert_eq!(refused(named), (Reason::InvalidSpec, vec![], "name"));
    table.submit(TaskSpec::new("fits"), 50).unwrap();
    let full = table.submit(TaskSpec::new("full"), 50).unwrap();
    assert_eq!((full.reason, detail(&full)), (Reason::QueueFull, of(2, 1)));
    table.close();
    assert_eq!(
        table.submit(TaskSpec::new("closed"), 50).unwrap().reason,
        Reason::ShuttingDown
    );
    assert!(table.get("self", 50).unwrap().error.contains("cycle"));
    let rejected = log.lock().unwrap().iter().filter(|t| t.2 == Phase::Rejected).count();
    assert_eq!((table.stats(50).rejected, rejected), (9, 9));
    table.audit().unwrap();
}

#[test]
fn an_id_is_one_task() {
    let (mut table, _) = small();
    let first = table.submit(asks("a", 10, 0), 1).unwrap();
    assert_eq!(
        table.submit(asks("a", 10, 0), 2).unwrap(),
        first,
        "the same again is the same task"
    );
    let other = table.submit(asks("a", 11, 0), 3).unwrap_err();
    assert_eq!(other.field, "id");
    assert!(
        other
            .to_string()
            .contains("'a' is taken by another task, which is Admitted"),
        "{other}"
    );
    assert_eq!(table.submit(TaskSpec::new(""), 3).unwrap_err().field, "id");
    assert_eq!(table.submit(TaskSpec::new("x".repeat(257)), 3).unwrap_err().field, "id");
    assert_eq!((table.stats(3).submitted, table.stats(3).reserved_memory), (1, 10));
}

#[test]
fn nothing_is_kept_of_a_new_task_that_is_malformed() {
    let (mut table, log) = small();
    let nowhere = TaskSpec {
        partition: "nowhere".into(),
        ..TaskSpec::new("a")
    };
    let contradiction = TaskSpec {
        policy: Policy::Guaranteed,
        ..TaskSpec::new("a")
    };
    for (spec, field) in [
        (nowhere, "partition"),
        (after("a", &["nobody"]), "depends_on"),
        (contradiction, "policy"),
        (TaskSpec::new(""), "task_id"),
    ] {
        assert_eq!(table.submit_new(spec, 1).unwrap_err().field, field);
    }
    assert!(log.lock().unwrap().is_empty() && table.get("a", 1).is_none());
    assert_eq!(table.stats(1), small().0.stats(1));
    assert_eq!(table.submit_new(TaskSpec::new("a"), 1), Ok(Phase::Admitted));
    table.audit().unwrap();
}

#[test]
fn dependants_follow_success_and_fail_with_failure() {
    let (mut table, _) = small();
    table.submit(TaskSpec::new("a"), 0).unwrap();
    table.submit(TaskSpec::new("b"), 0).unwrap();
    let both = table.submit(after("both", &["a", "b", "a"]), 0).unwrap();
    assert_eq!((both.phase, both.reason), (Phase::Queued, Reason::WaitingForDependency));
    table.submit(after("chain", &["both", "b"]), 0).unwrap();
    assert_eq!(
        (next(&mut table, 0).as_deref(), next(&mut table, 0).as_deref()),
        (Some("a"), Some("b"))
    );
    assert_eq!(next(&mut table, 0), None);
    table.finish("a", Outcome::Succeeded, 1).unwrap();
    assert_eq!(phase(&mut table, "both"), Phase::Queued);
    table.finish("b", failed("boom"), 2).unwrap();
    for id in ["both", "chain"] {
        let record = table.get(id, 2).unwrap();
        assert_eq!((record.phase, record.reason), (Phase::Failed, Reason::DependencyFailed));
    }
    assert_eq!(table.get("both", 2).unwrap().error, "dependency 'b' ended Failed");
    let late = table.submit(after("late", &["both"]), 3).unwrap();
    assert_eq!((late.phase, late.reason), (Phase::Failed, Reason::DependencyFailed));
    assert_eq!(
        table.submit(after("after a", &["a"]), 3).unwrap().phase,
        Phase::Admitted
    );
}

#[test]
fn a_long_chain_of_dependants_ends_without_recursion() {
    let (mut table, _) = table(Config {
        max_queue: 50_001,
        max_finished: 100_000,
        ..Config::new(0)
    });
    table.submit(TaskSpec::new("0"), 0).unwrap();
    for i in 1..50_000 {
        table.submit(after(&i.to_string(), &[&(i - 1).to_string()]), 0).unwrap();
    }
    assert!(table.cancel("0", 1).unwrap());
    assert_eq!(
        (table.stats(1).cancelled, table.stats(1).failed, table.stats(1).queued),
        (1, 49_999, 0)
    );
}

#[test]
fn numbers_are_unique_across_schedulers() {
    let (mut one, _) = table(Config {
        ordinal: 1,
        ..Config::new(1)
    });
    let (mut two, _) = table(Config {
        ordinal: 2,
        ..Config::new(1)
    });
    let numbers: HashSet<u64> = [&mut one, &mut two]
        .map(|t| t.submit(TaskSpec::new("a"), 0).unwrap().number)
        .into_iter()
        .collect();
    assert_eq!(numbers, HashSet::from([(1 << 32) + 1, (2 << 32) + 1]));
}

#[test]
fn the_documented_table_is_the_one_in_use() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/task-phases.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&edges_as_markdown()),
        "docs/task-phases.md is out of date; it must hold:\n{}",
        edges_as_markdown()
    );
    for reason in Reason::ALL.iter().filter(|&&reason| reason != Reason::None) {
        let row = format!("| {} | {} | ", reason.group().name(), reason.name());
        assert!(page.contains(&row), "docs/task-phases.md does not say when {row}");
    }
    assert_eq!(EDGES.len(), 24);
    assert!(edge(Phase::Succeeded, Phase::Running).is_none());
}
