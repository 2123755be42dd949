//! Contexts of several models: the table against a plain list, and accounts of a pool against plain sums.

mod cases;

use std::collections::BTreeMap;
use std::sync::Arc;

use cases::cases;
use proptest::prelude::*;
use pygpukit_core::pool::{class_of, Owner, Pool, PoolConfig, PoolError, Services};
use pygpukit_core::scheduler::{ModelError, ModelSpec, ModelTable, Name, TaskContext};
use pygpukit_core::sim_driver::{SimConfig, SimDriver};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 1000;
const WHOLE_PPM: u32 = 1_000_000;

fn pool(eviction: bool) -> Pool {
    let sim = Arc::new(SimDriver::new(SimConfig {
        store: false,
        ..SimConfig::default()
    }));
    let config = PoolConfig {
        eviction,
        ..PoolConfig::default()
    };
    Pool::new(sim, config, Services::default()).expect("the simulated device answers")
}

fn of(account: u64) -> Owner {
    Owner {
        account,
        ..Owner::default()
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn the_table_promises_what_there_is_and_no_more(
        steps in prop::collection::vec((0usize..5, 0i32..2, 0u64..700, 0u32..700_000, 0usize..6), 1..60)
    ) {
        let mut table = ModelTable::new(7);
        table.set_budget(0, BUDGET).expect("nothing is promised yet");
        let mut model: BTreeMap<String, (i32, u64, u32)> = BTreeMap::new();
        let mut contexts: BTreeMap<String, Arc<TaskContext>> = BTreeMap::new();
        let mut numbers = Vec::new();
        for (name, device, max_memory, share_ppm, action) in steps {
            let id = format!("model {name}");
            if action == 0 {
                contexts.remove(&id);
                prop_assert_eq!(table.destroy(&id), model.remove(&id).is_some());
                continue;
            }
            let (resizes, before) = (action > 2, model.get(&id).copied());
            let device = before.filter(|_| resizes).map_or(device, |before| before.0);
            let (mut memory, mut share) = (0, 0);
            for (_, other) in model.iter().filter(|(other, spec)| spec.0 == device && (!resizes || **other != id)) {
                (memory, share) = (memory + other.1, share + other.2);
            }
            // More than some of what it is to be held to.
            let holds = 350;
            let mut asked = None;
            let outcome = if resizes {
                let parts = (action != 4, action != 5);
                let hold = |limit: Option<u64>| {
                    asked = Some(limit);
                    if limit.unwrap_or(u64::MAX) < holds { Err(holds) } else { Ok(()) }
                };
                let (memory, share) = (parts.0.then_some(max_memory), parts.1.then_some(share_ppm));
                table.resize(&id, memory, share, hold).map(|(memory, share)| (None, memory, share))
            } else {
                let spec = ModelSpec { id: Name::from(id.as_str()), device, max_memory, share_ppm };
                table.create(spec).map(|context| (Some(context), max_memory, share_ppm))
            };
            // What is not given stays as it was.
            let max_memory = before.filter(|_| action == 4).map_or(max_memory, |before| before.1);
            let share_ppm = before.filter(|_| action == 5).map_or(share_ppm, |before| before.2);
            prop_assert!(asked.map_or(true, |limit| action != 4 && limit == Some(max_memory).filter(|&m| m > 0)));
            match outcome {
                Ok((context, has_memory, has_share)) => {
                    prop_assert_eq!((has_memory, has_share), (max_memory, share_ppm));
                    prop_assert!(resizes == before.is_some() && share + share_ppm <= WHOLE_PPM);
                    prop_assert!(device != 0 || memory + max_memory <= BUDGET);
                    if let Some(context) = context {
                        prop_assert!(!numbers.contains(&context.number) && context.number >> 32 == 7);
                        numbers.push(context.number);
                        contexts.insert(id.clone(), context);
                    }
                    model.insert(id, (device, max_memory, share_ppm));
                }
                Err(ModelError::Spec(error)) if error.field == "llm_id" => prop_assert!(resizes == before.is_none()),
                Err(ModelError::Spec(error)) if error.field == "max_vram" => {
                    prop_assert!(asked == Some(Some(max_memory)) && max_memory < holds);
                }
                Err(ModelError::Spec(error)) => {
                    prop_assert_eq!(error.field, "share");
                    prop_assert!(share + share_ppm > WHOLE_PPM);
                }
                Err(ModelError::OverBudget { asked, promised, budget }) => {
                    prop_assert_eq!((asked, promised, budget), (max_memory, memory, BUDGET));
                    prop_assert!(device == 0 && memory + max_memory > BUDGET);
                }
            }
            let ids: Vec<&str> = table.ids().map(Name::as_str).collect();
            prop_assert_eq!(ids, model.keys().map(String::as_str).collect::<Vec<_>>());
            for (id, context) in &contexts {
                prop_assert_eq!(context.shares_ppm(), (model[id].2, WHOLE_PPM), "running work sees it at once");
            }
            for device in 0..2 {
                let here = || model.values().filter(|spec| spec.0 == device);
                prop_assert_eq!(table.promised_memory(device), here().map(|spec| spec.1).sum::<u64>());
                prop_assert_eq!(table.promised_share_ppm(device), here().map(|spec| spec.2).sum::<u32>());
            }
        }
    }

    #[test]
    fn an_account_holds_what_its_blocks_are_and_never_more_than_its_limit(
        steps in prop::collection::vec((0usize..3, 1u64..3 * MIB, 0usize..5), 1..80)
    ) {
        let pool = pool(true);
        let total = pool.open_account(0, 10 * MIB, 0);
        let mut limits = [4 * MIB, 6 * MIB, u64::MAX];
        let accounts = limits.map(|limit| pool.open_account(0, limit, total));
        let mut blocks: Vec<(usize, u64, u64)> = Vec::new();
        let sum = |blocks: &[(usize, u64, u64)], who: Option<usize>| -> u64 {
            blocks.iter().filter(|b| who.map_or(true, |who| b.0 == who)).map(|b| b.2).sum()
        };
        for (who, bytes, action) in steps {
            let class = class_of(bytes).expect("a class").bytes;
            match (action, blocks.is_empty()) {
                (0, false) => {
                    let (_, block, _) = blocks.swap_remove(bytes as usize % blocks.len());
                    pool.free(block).expect("a live block");
                }
                (1, false) => {
                    let at = bytes as usize % blocks.len();
                    blocks[at].2 = pool.shorten(blocks[at].1, blocks[at].2 / 3 + 1).expect("a live block");
                }
                (2, false) => pool.evict(blocks[bytes as usize % blocks.len()].1).expect("nobody has it pinned"),
                (4, _) => {
                    let held = sum(&blocks, Some(who));
                    let fits = pool.hold_account(accounts[who], 2 * bytes);
                    prop_assert_eq!(fits, if held > 2 * bytes { Err(held) } else { Ok(()) });
                    limits[who] = if fits.is_ok() { 2 * bytes } else { limits[who] };
                }
                _ => match pool.alloc(bytes, 0, of(accounts[who])) {
                    Ok(allocation) => blocks.push((who, allocation.block, allocation.bytes)),
                    Err(PoolError::OutOfMemory(error)) => {
                        let over = sum(&blocks, Some(who)) + class > limits[who] || sum(&blocks, None) + class > 10 * MIB;
                        prop_assert!(error.account.is_some() && over, "{}", error);
                    }
                    Err(other) => panic!("{other}"),
                },
            }
            for (who, account) in accounts.iter().enumerate() {
                let held = pool.account(*account).expect("open");
                prop_assert_eq!(held.used, sum(&blocks, Some(who)));
                prop_assert!(held.used <= limits[who] && held.peak_used >= held.used && held.limit == limits[who]);
            }
            prop_assert_eq!(pool.account(total).expect("open").used, sum(&blocks, None));
            prop_assert_eq!(pool.audit(), Ok(()));
        }
        accounts.iter().for_each(|&account| pool.close_account(account));
        for (_, block, _) in blocks {
            pool.free(block).expect("a live block");
        }
        prop_assert!(accounts.iter().all(|&account| pool.account(account).is_none()));
        prop_assert_eq!(pool.account(total).map(|held| (held.used, held.blocks)), Some((0, 0)));
    }
}

#[test]
fn a_closed_account_and_one_of_another_pool_get_nothing() {
    let (here, there) = (pool(false), pool(false));
    let account = here.open_account(0, MIB, 0);
    assert!(here.alloc(1000, 0, of(account)).is_ok());
    assert!(there.alloc(1000, 0, of(account)).is_err());
    let unlimited = here.open_account(0, u64::MAX, 0);
    assert!(
        there.alloc(1000, 0, of(unlimited)).is_ok(),
        "there was nothing to hold it to"
    );
    here.close_account(account);
    let Err(PoolError::OutOfMemory(error)) = here.alloc(1000, 0, of(account)) else {
        panic!("it is closed");
    };
    assert_eq!((error.requested, error.limit, error.used), (1000, 0, 1024));
    assert!(!here.set_account_limit(account + 1000, 1));
    assert_eq!(here.hold_account(account + 1000, 1), Err(0));
    assert_eq!(here.hold_account(account, MIB), Err(1024), "a closed one stays closed");
}
