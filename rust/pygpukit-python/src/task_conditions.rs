//! The conditions of a task, put together from those who know: the task table, the gates and the pool.

use pygpukit_core::partition::WHOLE_SHARE_PPM;
use pygpukit_core::pool::AccountUse;
use pygpukit_core::scheduler as core;
use pygpukit_core::scheduler::{Condition, ConditionKind, Phase, TaskRecord};

use crate::gate;

/// Type, status, reason, message, and nanoseconds of the last change.
pub type ConditionFields = (&'static str, &'static str, &'static str, String, u64);

/// In the order of `ConditionKind`. account: None where no thread of this process is in the task, Some(None) where nothing is kept of its
/// memory.
pub fn conditions(
    scheduler: &core::Scheduler,
    id: &str,
    account: Option<Option<AccountUse>>,
) -> Option<Vec<ConditionFields>> {
    let (mut listed, record) = scheduler.call(|table, now| Some((table.conditions(id, now)?, table.get(id, now)?)))?;
    listed.extend(memory(&record, account));
    listed.push(throttled(scheduler, &record, account.is_some()));
    listed.sort_by_key(|condition| ConditionKind::ALL.iter().position(|&kind| kind == condition.kind));
    let fields = |c: Condition| (c.kind.name(), c.status.name(), c.reason, c.message, c.since_ns);
    Some(listed.into_iter().map(fields).collect())
}

fn runs(record: &TaskRecord) -> bool {
    matches!(record.phase, Phase::Running | Phase::Suspended)
}

/// When it came into the state in which it does not run.
fn rests_since_ns(record: &TaskRecord) -> u64 {
    record.finished_ns.max(record.submitted_ns)
}

/// is_here: a thread of this process is in the task.
fn throttled(scheduler: &core::Scheduler, record: &TaskRecord, is_here: bool) -> Condition {
    let kind = ConditionKind::Throttled;
    if !runs(record) {
        return Condition::new(kind, false, "NotRunning", String::new(), rests_since_ns(record));
    }
    // Its own limit, or one that its partition's multiprocessors and quota make for it.
    let limit_ppm = scheduler
        .context(&record.id)
        .map_or(WHOLE_SHARE_PPM, |context| context.limit_ppm());
    if limit_ppm >= WHOLE_SHARE_PPM {
        return Condition::new(kind, false, "NoLimit", String::new(), record.submitted_ns);
    }
    if !is_here {
        let message = "its launches are held back in a worker process".to_string();
        return Condition::unknown(kind, "InWorkerProcess", message, record.started_ns);
    }
    let message = format!(
        "held back for {} ns so far, by a limit of {limit_ppm} ppm of the time on its multiprocessors",
        record.throttled_ns
    );
    let (on, since_ns) = gate::throttled(record.number);
    let reason = if on { "LimitReached" } else { "WithinLimit" };
    Condition::new(kind, on, reason, message, since_ns.max(record.submitted_ns))
}

fn memory(record: &TaskRecord, account: Option<Option<AccountUse>>) -> [Condition; 2] {
    let kinds = [ConditionKind::MemoryResident, ConditionKind::Evicted];
    let since_ns = rests_since_ns(record);
    let text = String::new;
    match account {
        Some(Some(held)) => {
            let AccountUse { used, evicted, .. } = held;
            let since_ns = held.evicted_since_ns.max(record.started_ns);
            let message = || format!("{evicted} of {used} bytes are in host memory");
            let away = evicted > 0;
            let reason = if away { "InHostMemory" } else { "OnDevice" };
            [(kinds[0], !away), (kinds[1], away)]
                .map(|(kind, on)| Condition::new(kind, on, reason, message(), since_ns))
        }
        Some(None) => {
            let message = "it asked for no memory and has no limit, no priority and no partition, so that no account is kept of it";
            kinds.map(|kind| Condition::unknown(kind, "NoAccount", message.to_string(), record.started_ns))
        }
        None if runs(record) => {
            let message = "its memory is in a worker process";
            kinds.map(|kind| Condition::unknown(kind, "InWorkerProcess", message.to_string(), record.started_ns))
        }
        None => kinds.map(|kind| Condition::new(kind, false, "NotRunning", text(), since_ns)),
    }
}
