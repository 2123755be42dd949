//! Who gives way under pressure: first what anybody holds beyond what was promised, by priority, then by who holds most beyond it, then
//! by last use; then what guaranteed accounts hold beyond it; then what was promised and not guaranteed. What was guaranteed stays, and
//! goes last of all where the same account makes the room. Who was promised nothing in particular counts as nobody. (The order of Kubernetes' node pressure eviction, with blocks for pods.)

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::slab::Status;
use super::state::State;

/// What an account may count on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Bytes of blocks that stay on the device while others hold more than they were promised.
    pub bytes: u64,
    /// Those bytes stay whatever others need.
    pub guaranteed: bool,
    /// Of those who hold more than they were promised, the lower gives way first.
    pub priority: i32,
}

/// When a block gives way: the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    rank: Rank,
    priority: i32,
    excess: Reverse<u64>,
    last_use: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Excess,
    GuaranteedExcess,
    Promised,
    Own,
}

impl State {
    /// Blocks that may be evicted for an account (0 = for nobody's in particular), each with its turn. Whatever is taken of them, nobody's
    /// excess is counted twice.
    pub(super) fn victims(&self, account: u64) -> HashMap<u32, Turn> {
        let mut held: HashMap<u64, Vec<(u64, u32)>> = HashMap::new();
        for (slot, s) in self.slab.iter().filter(|(_, s)| s.status == Status::Live) {
            let last_use = self.slab.state(slot).last_use.load(Ordering::Relaxed);
            let nobody = self.accounts.promise(s.owner.account) == Promise::default();
            let owner = if nobody { 0 } else { s.owner.account };
            held.entry(owner).or_default().push((last_use, slot));
        }
        let mut victims = HashMap::new();
        for (owner, mut blocks) in held {
            let promise = self.accounts.promise(owner);
            let mut resident: u64 = blocks.iter().map(|&(_, slot)| self.slab[slot].bytes).sum();
            let excess = Reverse(resident.saturating_sub(promise.bytes));
            blocks.sort_unstable_by_key(|&(last_use, slot)| (last_use, self.slab.id(slot)));
            for (last_use, slot) in blocks {
                if !self.may_move(slot) {
                    continue;
                }
                let rest = resident - self.slab[slot].bytes;
                let rank = match (rest >= promise.bytes, promise.guaranteed) {
                    (true, false) => Rank::Excess,
                    (true, true) => Rank::GuaranteedExcess,
                    (false, false) => Rank::Promised,
                    (false, true) if owner == account => Rank::Own,
                    (false, true) => continue,
                };
                if rank < Rank::Promised {
                    resident = rest;
                }
                let turn = Turn {
                    rank,
                    priority: promise.priority,
                    excess,
                    last_use,
                };
                victims.insert(slot, turn);
            }
        }
        victims
    }

    /// Whether nothing uses a block on the device at this moment, and its address means nothing to another process.
    fn may_move(&self, slot: u32) -> bool {
        self.slab.pins(slot) == 0 && !self.segments[&self.segment_of(self.slab[slot].address)].exported
    }
}
