//! The partition manager and its ledger against a model that recounts everything, and the documented isolation table.

mod cases;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::partition::{isolation_as_markdown, Account, Ledger, Reservation, Scope};

const TOTAL: [u64; 2] = [100, 50];

#[derive(Clone, Debug)]
enum Op {
    Open {
        account: usize,
        kept: [u64; 2],
        more: [u64; 2],
        brings: [u64; 2],
    },
    Reserve {
        account: usize,
        asked: [u64; 2],
    },
    Release {
        which: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let account = 0usize..4;
    let amounts = || [0u64..60, 0u64..30];
    prop_oneof![
        2 => (account.clone(), amounts(), amounts(), prop_oneof![Just([0, 0]), amounts()])
            .prop_map(|(account, kept, more, brings)| Op::Open { account, kept, more, brings }),
        5 => (account, amounts()).prop_map(|(account, asked)| Op::Reserve { account, asked }),
        4 => (0usize..64).prop_map(|which| Op::Release { which }),
    ]
}

fn reservation(amounts: [u64; 2]) -> Reservation {
    Reservation {
        memory_bytes: amounts[0],
        share_ppm: amounts[1] as u32,
    }
}

#[derive(Clone, Default)]
struct Model {
    /// (kept, cap, brings) by account.
    bounds: [([u64; 2], [u64; 2], [u64; 2]); 4],
    held: Vec<(usize, [u64; 2])>,
}

impl Model {
    fn used(&self, account: usize) -> [u64; 2] {
        let own = self.held.iter().filter(|(of, _)| *of == account);
        own.fold([0; 2], |sum, (_, held)| [sum[0] + held[0], sum[1] + held[1]])
    }

    fn holds(&self) -> bool {
        (0..2).all(|r| {
            let there = TOTAL[r] + self.bounds.iter().map(|bounds| bounds.2[r]).sum::<u64>();
            (0..4).map(|a| self.used(a)[r].max(self.bounds[a].0[r])).sum::<u64>() <= there
        })
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_ledger_follows_the_model(ops in prop::collection::vec(op(), 1..60)) {
        let mut ledger = Ledger::new(TOTAL[0], TOTAL[1] as u32);
        let mut model = Model::default();
        for op in ops {
            let mut next = model.clone();
            match op {
                Op::Open { account, kept, more, brings } => {
                    let cap = [kept[0] + more[0], kept[1] + more[1]];
                    next.bounds[account] = (kept, cap, brings);
                    let bounds = Account { kept: reservation(kept), cap: reservation(cap), brings: reservation(brings) };
                    let done = ledger.open(account, bounds).is_ok();
                    prop_assert_eq!(done, next.holds());
                    if done {
                        model = next;
                    }
                }
                Op::Reserve { account, asked } => {
                    next.held.push((account, asked));
                    let (used, cap) = (next.used(account), model.bounds[account].1);
                    // Nothing asked of a resource is nothing short of, also where more is used than the cap by now.
                    let own = (0..2).all(|r| asked[r] == 0 || used[r] <= cap[r]);
                    let foretold = ledger.shortage(account, reservation(asked));
                    let within = ledger.within_kept(account, reservation(asked));
                    let result = ledger.reserve(account, reservation(asked));
                    prop_assert_eq!(result.err(), foretold);
                    prop_assert_eq!(result.is_ok(), own && next.holds(), "{:?}", asked);
                    prop_assert!(!within || !own || result.is_ok(), "what is kept is always there");
                    match result {
                        Ok(()) => model = next,
                        Err(short) => {
                            prop_assert!(short.asked > short.available);
                            prop_assert!(short.scope == Scope::Device || !own);
                        }
                    }
                }
                Op::Release { which } => {
                    if let Some(index) = (!model.held.is_empty()).then(|| which % model.held.len()) {
                        let (account, held) = model.held.swap_remove(index);
                        ledger.release(account, reservation(held));
                    }
                }
            }
            prop_assert_eq!(ledger.audit(), Ok(()));
            for account in 0..4 {
                prop_assert_eq!(ledger.used(account), reservation(model.used(account)));
            }
        }
    }
}

#[test]
fn the_documented_table_is_the_one_in_use() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/partitions.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = isolation_as_markdown();
    assert!(
        page.contains(&table),
        "docs/partitions.md is out of date; it must hold:\n{table}"
    );
}
