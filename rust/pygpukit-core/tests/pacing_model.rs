//! Random operations on the queue against a model that looks at every tenant, and tenants at random against what the device really did.

mod cases;
mod pacing_support;

use cases::cases;
use pacing_support::{Tenant, World};
use proptest::prelude::*;
use pygpukit_core::pacing::{FairQueue, IndexedHeap, Settings};
use std::collections::BTreeSet;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const LAG_NS: u64 = 200_000;
const BURST_NS: u64 = 700_000;

#[derive(Clone, Debug)]
enum Op {
    Enqueue { who: u8, backlogged: bool },
    Withdraw { who: u8 },
    Pick,
    Charge { who: u8, ns: u64 },
    Correct { who: u8, difference: i64 },
    Wait { ns: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u8..6, any::<bool>()).prop_map(|(who, backlogged)| Op::Enqueue { who, backlogged }),
        1 => (0u8..6).prop_map(|who| Op::Withdraw { who }),
        4 => Just(Op::Pick),
        4 => (0u8..6, 1u64..2_000_000).prop_map(|(who, ns)| Op::Charge { who, ns }),
        2 => (0u8..6, -1_000_000i64..1_000_000).prop_map(|(who, difference)| Op::Correct { who, difference }),
        2 => (0u64..3_000_000).prop_map(|ns| Op::Wait { ns }),
    ]
}

#[derive(Clone, Default)]
struct Flow {
    weight: i128,
    limit: i128,
    tag: i128,
    ready: i128,
    /// Order of arrival, while it waits.
    waits: Option<u64>,
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_queue_does_what_a_plain_list_does(
        weights in prop::collection::vec((1_000u32..1_000_000, 0u32..4), 6),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut queue = FairQueue::new(LAG_NS, BURST_NS);
        let mut model = Vec::new();
        for (id, &(weight, limit)) in weights.iter().enumerate() {
            let limit = if limit == 0 { weight } else { 1_000_000 };
            queue.add(id as u32, weight, limit);
            model.push(Flow { weight: weight.into(), limit: limit.into(), ready: i64::MIN.into(), ..Flow::default() });
        }
        let (mut now, mut virtual_now, mut arrivals) = (0u64, 0i128, 0u64);
        for op in ops {
            match op {
                Op::Enqueue { who, backlogged } => {
                    let flow = &mut model[who as usize];
                    if flow.waits.is_none() {
                        queue.enqueue(who.into(), now, backlogged);
                        if !backlogged {
                            flow.tag = flow.tag.max(virtual_now - i128::from(LAG_NS) * 1_000_000 / flow.weight);
                        }
                        arrivals += 1;
                        flow.waits = Some(arrivals);
                    }
                }
                Op::Withdraw { who } => {
                    prop_assert_eq!(queue.withdraw(who.into()), model[who as usize].waits.take().is_some());
                }
                Op::Charge { who, ns } => {
                    let flow = &mut model[who as usize];
                    if flow.waits.is_none() {
                        queue.charge(who.into(), ns, now);
                        let ns = i128::from(ns) * 1_000_000;
                        flow.tag += ns / flow.weight;
                        flow.ready = flow.ready.max(i128::from(now) - i128::from(BURST_NS) * 1_000_000 / flow.limit) + ns / flow.limit;
                    }
                }
                Op::Correct { who, difference } => {
                    queue.correct(who.into(), difference, now);
                    let flow = &mut model[who as usize];
                    flow.tag += i128::from(difference) * 1_000_000 / flow.weight;
                    flow.ready += i128::from(difference) * 1_000_000 / flow.limit;
                }
                Op::Wait { ns } => now += ns,
                Op::Pick => {
                    while queue.release(now).is_some() {}
                    let free = |f: &&mut Flow| f.waits.is_some() && (f.limit == 1_000_000 || f.ready <= now.into());
                    let first = model.iter_mut().filter(free).min_by_key(|f| (f.tag, f.waits));
                    let expected = first.map(|flow| {
                        virtual_now = virtual_now.max(flow.tag);
                        flow.waits.take().unwrap()
                    });
                    let picked = queue.pick();
                    prop_assert_eq!(picked.is_some(), expected.is_some());
                    if let Some(id) = picked {
                        prop_assert!(model[id as usize].waits.is_none(), "picked {} instead", id);
                    }
                }
            }
            for (id, flow) in model.iter().enumerate() {
                prop_assert_eq!(queue.waits(id as u32), flow.waits.is_some());
            }
        }
    }

    #[test]
    fn the_heap_does_what_a_sorted_set_does(ops in prop::collection::vec((0u8..3, 0u32..20, 0u32..50), 1..200)) {
        let (mut heap, mut set) = (IndexedHeap::new(), BTreeSet::new());
        heap.reserve_ids(20);
        for (kind, id, key) in ops {
            match kind {
                0 => {
                    set.retain(|&(_, other)| other != id);
                    set.insert((key, id));
                    heap.set(id, key);
                }
                1 => {
                    let before = set.iter().find(|&&(_, other)| other == id).copied();
                    set.retain(|&(_, other)| other != id);
                    prop_assert_eq!(heap.remove(id), before.map(|(key, _)| key));
                }
                _ => prop_assert_eq!(heap.contains(id), set.iter().any(|&(_, other)| other == id)),
            }
            prop_assert_eq!(heap.len(), set.len());
            prop_assert_eq!(heap.peek().map(|(key, _)| key), set.first().map(|&(key, _)| key));
        }
    }
}

fn tenant() -> impl Strategy<Value = Tenant> {
    let kernel = prop_oneof![US..40 * US, 40 * US..1_500 * US];
    let limit = prop::sample::select(vec![1_000_000u32, 1_000_000, 300_000]);
    (
        0u32..1_000_000,
        limit,
        kernel,
        0u64..60,
        2 * US..200 * US,
        0u64..30,
        0u64..5 * MS,
        (1u32..200, prop_oneof![Just(0u64), 1u64..40]),
    )
        .prop_map(
            |(share_ppm, limit_ppm, kernel_ns, spread, host_ns, burst, pause_ns, (blocks, wave))| Tenant {
                share_ppm,
                limit_ppm,
                kernel_ns,
                spread,
                host_ns,
                burst,
                pause_ns,
                blocks,
                wave,
            },
        )
}

proptest! {
    #![proptest_config(cases(200))]

    /// Whatever tenants do: their commands run in order, once, whole or in parts that cover them, and are measured; limits hold; the
    /// device does not wait for someone who could run; nothing is left over.
    #[test]
    fn any_tenants(tenants in prop::collection::vec(tenant(), 1..6), seed in any::<u64>()) {
        let settings = Settings::default();
        let mut world = World::new(&tenants, settings, seed);
        world.run(60 * MS);
        let now = world.now();
        for (i, t) in tenants.iter().enumerate() {
            if t.limit_ppm < 1_000_000 {
                let batch = settings.direct_span_ns.max(t.kernel_ns) * (100 + t.spread) / 100 + t.kernel_ns;
                let slack = 4 * batch + settings.burst_ns;
                let had = world.had_ns(0, now)[i];
                prop_assert!(had <= now * 3 / 10 + slack, "{} of {} under a limit of 30 %", had, now);
            }
        }
        let unlimited = tenants.iter().all(|t| t.limit_ppm == 1_000_000);
        if unlimited && tenants.iter().any(|t| t.burst == 0 && t.host_ns < t.kernel_ns * (100 - t.spread) / 200) {
            let busy: u64 = world.had_ns(MS, now).iter().sum();
            prop_assert!(busy * 100 >= (now - MS) * 85, "busy for {} of {}", busy, now - MS);
        }
        world.finish();
        prop_assert!(world.gate.view().tenants.is_empty());
        prop_assert_eq!(world.gate.view().in_flight_ns, 0);
        let (mut next, mut begun, mut parts) = (vec![0; tenants.len()], vec![0; tenants.len()], vec![0; tenants.len()]);
        for ran in &world.books.lock().unwrap().ran {
            let (i, t) = (ran.tenant, tenants[ran.tenant]);
            prop_assert_eq!((ran.number, ran.first), (next[i], begun[i]));
            begun[i] += ran.blocks;
            if ran.blocks < t.blocks {
                parts[i] += 1;
                prop_assert!(u64::from(ran.blocks) % t.wave.max(1) == 0 || begun[i] == t.blocks, "{:?} of {:?}", ran, t);
            }
            if begun[i] == t.blocks {
                (next[i], begun[i]) = (next[i] + 1, 0);
            }
        }
        for (i, context) in world.contexts.iter().enumerate() {
            prop_assert_eq!((context.launches(), begun[i]), (next[i], 0));
            prop_assert!(context.slices() >= parts[i] && (parts[i] == 0) == (context.slices() == 0), "{:?}", tenants[i]);
            prop_assert!(tenants[i].wave > 0 || parts[i] == 0);
        }
        let measured: u64 = world.contexts.iter().map(|c| c.gpu_ns()).sum();
        let ran: u64 = world.books.lock().unwrap().ran.iter().map(|r| r.to_ns - r.from_ns).sum();
        prop_assert!(measured <= world.now(), "{} ns measured in {}", measured, world.now());
        prop_assert!(measured * 100 + 100 * MS >= ran * 90, "{} ns measured of {}", measured, ran);
        prop_assert!(measured <= ran + ran / 4 + 2 * MS, "{} ns measured, {} ran", measured, ran);
        prop_assert!(world.driver.violations().is_empty());
    }
}
