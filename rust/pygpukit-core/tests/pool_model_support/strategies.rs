//! Random steps on a pool, and where its room ends.

use super::MIB;
use proptest::prelude::*;
use pygpukit_core::sim_driver::Call;

#[derive(Clone, Debug)]
pub enum Step {
    Alloc { bytes: u64, stream: u64, work_ns: u64 },
    Free(usize),
    Shorten(usize, u64),
    Launch { block: usize, stream: u64, work_ns: u64 },
    Read(usize),
    Write(usize),
    Touch(usize),
    Evict(usize),
    Restore(usize),
    Pin(usize),
    Unpin(usize),
    Advance(u64),
    Trim,
    SetLimit(u64),
    Retire(u64),
    Fail(Call, u64, i32),
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1u64..5000, 3 => 5000u64..MIB, 3 => MIB..8 * MIB, 1 => 16 * MIB..20 * MIB]
}

fn failing() -> impl Strategy<Value = Step> {
    let call = prop::sample::select(vec![
        Call::AddressReserve,
        Call::AddressFree,
        Call::PhysicalCreate,
        Call::PhysicalRelease,
        Call::Map,
        Call::Unmap,
        Call::HostAlloc,
        Call::CopyToHost,
        Call::CopyToDevice,
        Call::CopyOnDevice,
        Call::StreamWait,
        Call::EventCreate,
        Call::EventRecord,
        Call::EventDone,
        Call::EventWait,
        Call::StreamWaitEvent,
        Call::MemoryInfo,
    ]);
    (call, 1u64..4, prop::sample::select(vec![2, 700])).prop_map(|(call, nth, code)| Step::Fail(call, nth, code))
}

pub fn steps(failures: bool) -> impl Strategy<Value = Vec<Step>> {
    let any = 0usize..1000;
    let stream = 0u64..4;
    let work = prop::sample::select(vec![0u64, 100, 10_000, 1_000_000]);
    let step = prop_oneof![
        12 => (sizes(), stream.clone(), work.clone()).prop_map(|(bytes, stream, work_ns)| Step::Alloc { bytes, stream, work_ns }),
        8 => any.clone().prop_map(Step::Free),
        3 => (any.clone(), 0u64..120).prop_map(|(block, percent)| Step::Shorten(block, percent)),
        5 => (any.clone(), stream, work).prop_map(|(block, stream, work_ns)| Step::Launch { block, stream, work_ns }),
        3 => any.clone().prop_map(Step::Read),
        2 => any.clone().prop_map(Step::Write),
        1 => any.clone().prop_map(Step::Touch),
        3 => any.clone().prop_map(Step::Evict),
        3 => any.clone().prop_map(Step::Restore),
        2 => any.clone().prop_map(Step::Pin),
        3 => any.prop_map(Step::Unpin),
        2 => (0u64..2_000_000).prop_map(Step::Advance),
        1 => Just(Step::Trim),
        1 => (4u64..64).prop_map(|m| Step::SetLimit(m * MIB + 12_345)),
        1 => (1u64..4).prop_map(Step::Retire),
        3 => if failures { failing().boxed() } else { Just(Step::Trim).boxed() },
    ];
    prop::collection::vec(step, 1..90)
}

/// Where the pool's room ends, and what goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub limit_bytes: u64,
    pub memory_bytes: u64,
    pub eviction: bool,
    pub failures: bool,
    pub spare_bytes: u64,
    /// Bytes are kept and compared, which takes most of the time.
    pub contents: bool,
}

/// What may be kept: nothing, some of the blocks' sizes, all of them.
fn spares() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 3 * MIB, 10 * MIB, u64::MAX])
}

/// A limit, a device smaller than the limit, or no eviction.
pub fn settings(failures: bool, contents: bool) -> impl Strategy<Value = Setting> {
    let setting = move |limit_bytes, memory_bytes, eviction, spare_bytes| Setting {
        limit_bytes,
        memory_bytes,
        eviction,
        failures,
        spare_bytes,
        contents,
    };
    prop_oneof![
        2 => (8u64..48, spares()).prop_map(move |(limit, spare)| setting(limit * MIB + 777, 64 * MIB, true, spare)),
        1 => (8u64..48).prop_map(move |limit| setting(limit * MIB, 64 * MIB, false, 4 * MIB)),
        1 => (4u64..20, spares()).prop_map(move |(memory, spare)| setting(u64::MAX, memory * 2 * MIB, true, spare)),
    ]
}
