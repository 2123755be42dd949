//! Random operations on a task table, as tests make them: few of them contradict themselves or expire.

use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    Ok,
    Failed,
    Lost,
}

#[derive(Clone, Debug)]
pub enum Op {
    Submit {
        memory: u64,
        share: u32,
        policy: u8,
        priority: i8,
        depends: Vec<u8>,
        deadline_ms: u8,
        idempotent: bool,
        retries: u32,
    },
    Next,
    Finish {
        who: u8,
        how: Ending,
    },
    Cancel {
        who: u8,
    },
    Requeue {
        who: u8,
    },
    Pause {
        who: u8,
    },
    Resume {
        who: u8,
    },
    Adjust {
        who: u8,
        priority: Option<i32>,
        share: Option<u32>,
    },
    Wait {
        ms: u8,
    },
    Device {
        broken: bool,
    },
}

fn submit() -> impl Strategy<Value = Op> {
    let depends = prop::collection::vec(0u8..20, 0..3);
    let again = (any::<bool>(), 0u32..6);
    (0u64..120, 0u32..110, 0u8..12, -1i8..3, depends, 0u8..40, again).prop_map(
        |(memory, share, kind, priority, depends, deadline_ms, (idempotent, retries))| {
            // A third of them ask for nothing, many for little, few have deadlines or retries and few contradict themselves: else
            // nearly everything waits, expires or is refused.
            let (memory, share) = match kind {
                0..=3 => (0, 0),
                4..=7 => (memory / 4, share / 4),
                _ => (memory, share),
            };
            let class = if (memory, share) == (0, 0) { 0 } else { 1 };
            Op::Submit {
                memory,
                share,
                policy: if kind < 11 { class } else { (memory % 3) as u8 },
                priority,
                depends,
                deadline_ms: if deadline_ms < 30 { 0 } else { deadline_ms },
                idempotent,
                retries: retries.saturating_sub(3),
            }
        },
    )
}

fn adjust() -> impl Strategy<Value = Op> {
    (0u8..20, prop::option::of(-1i32..3), prop::option::of(0u32..110)).prop_map(|(who, priority, share)| Op::Adjust {
        who,
        priority,
        share,
    })
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => submit(),
        6 => Just(Op::Next),
        6 => (0u8..8, prop_oneof![3 => Just(Ending::Ok), 2 => Just(Ending::Failed), 1 => Just(Ending::Lost)])
            .prop_map(|(who, how)| Op::Finish { who, how }),
        1 => (0u8..20).prop_map(|who| Op::Cancel { who }),
        1 => (0u8..8).prop_map(|who| Op::Requeue { who }),
        2 => (0u8..20).prop_map(|who| Op::Pause { who }),
        2 => (0u8..20).prop_map(|who| Op::Resume { who }),
        2 => adjust(),
        2 => (0u8..30).prop_map(|ms| Op::Wait { ms }),
        1 => prop_oneof![1 => Just(true), 5 => Just(false)].prop_map(|broken| Op::Device { broken }),
    ]
}

/// Operations of one seed, from proptest's own generator.
pub fn ops_of(seed: u8, count: usize) -> Vec<Op> {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let strategy = op();
    (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}
