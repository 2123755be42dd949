//! Who gives way under pressure: first what anybody holds beyond what was promised, by priority, then by who holds most beyond it, then
//! by last use; then what guaranteed accounts hold beyond it; then what was promised and not guaranteed. What was guaranteed stays, and
//! goes last of all where the same account makes the room. Who was promised nothing in particular counts as nobody. (The order of Kubernetes' node pressure eviction, with blocks for pods.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::Ordering;

use super::slab::Status;
use super::state::State;
use super::Pool;

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

/// A block on the device at one moment. Of two that may go, the lesser goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resident {
    /// None: it stays.
    pub turn: Option<Turn>,
    pub block: u64,
    pub bytes: u64,
    pub segment: u64,
    pub segment_bytes: u64,
    /// 0 for who was promised nothing in particular.
    owner: u64,
    last_use: u64,
    /// Nothing uses it, and its address means nothing to another process.
    may_move: bool,
}

/// All of them by address, and what their owners may count on.
struct Residents {
    blocks: Vec<Resident>,
    promises: HashMap<u64, Promise>,
}

impl State {
    fn residents(&self) -> Residents {
        let promises = self.accounts.promises();
        let mut blocks = Vec::new();
        for (&address, segment) in &self.segments {
            let live = self
                .chunks_of(segment)
                .filter(|&slot| self.slab[slot].status == Status::Live);
            blocks.extend(live.map(|slot| {
                let account = self.slab[slot].owner.account;
                Resident {
                    turn: None,
                    block: self.slab.id(slot),
                    bytes: self.slab[slot].bytes,
                    segment: address,
                    segment_bytes: segment.bytes,
                    owner: if promises.contains_key(&account) { account } else { 0 },
                    last_use: self.slab.state(slot).last_use.load(Ordering::Relaxed),
                    may_move: segment.exports == 0 && self.slab.pins(slot) == 0,
                }
            }));
        }
        Residents { blocks, promises }
    }
}

impl Residents {
    /// Gives each block that may be evicted for an account (0 = for nobody's in particular) its turn. Whatever is taken of them, nobody's
    /// excess is counted twice.
    fn rank(&mut self, account: u64) {
        let mut held: HashMap<u64, Vec<&mut Resident>> = HashMap::new();
        for block in &mut self.blocks {
            held.entry(block.owner).or_default().push(block);
        }
        for (owner, mut blocks) in held {
            let promise = self.promises.get(&owner).copied().unwrap_or_default();
            let mut resident: u64 = blocks.iter().map(|block| block.bytes).sum();
            let excess = Reverse(resident.saturating_sub(promise.bytes));
            if promise.bytes > 0 {
                // Else all are beyond it, whichever is looked at first.
                blocks.sort_unstable_by_key(|block| (block.last_use, block.block));
            }
            for block in blocks.into_iter().filter(|block| block.may_move) {
                let rest = resident - block.bytes;
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
                block.turn = Some(Turn {
                    rank,
                    priority: promise.priority,
                    excess,
                    last_use: block.last_use,
                });
            }
        }
    }
}

impl Pool {
    /// The blocks on the device by address, with their turns to give way for an account (0 = for nobody's in particular). The books are
    /// locked for one look at each block only: what changes meanwhile shows when the block is evicted.
    pub(super) fn residents(&self, account: u64) -> Vec<Resident> {
        let mut candidates = self.lock().residents();
        candidates.rank(account);
        candidates.blocks
    }
}

/// The least first. Each is looked for when it is asked for: mostly a few are, of thousands.
pub(super) fn in_turn<T: Ord>(candidates: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut rest: BinaryHeap<Reverse<T>> = candidates.map(Reverse).collect();
    std::iter::from_fn(move || rest.pop().map(|Reverse(first)| first))
}
