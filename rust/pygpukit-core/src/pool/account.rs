//! Accounts: what a tenant may hold of a pool, and what it holds. A block counts until it is freed, evicted or not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Owner, Pool, Promise};

/// Over all pools, so that an account of one means nothing to another. 0 = no account. No id comes twice: blocks may outlive their account.
static LAST: AtomicU64 = AtomicU64::new(0);

/// In the id of an account that nothing limited when it was opened: another pool, which does not know it, refuses it nothing either.
const UNLIMITED: u64 = 1 << 63;

/// What a tenant holds and may hold, in bytes of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountUse {
    /// Interned name, for messages.
    pub tenant: u32,
    pub limit: u64,
    pub used: u64,
    pub peak_used: u64,
    pub blocks: u64,
    /// Of that, in host memory.
    pub evicted: u64,
    /// When some of it first went there, or the last of it came back; 0 = never.
    pub evicted_since_ns: u64,
}

impl AccountUse {
    fn set_evicted(&mut self, bytes: u64, now: u64) {
        if (self.evicted == 0) != (bytes == 0) {
            self.evicted_since_ns = now;
        }
        self.evicted = bytes;
    }
}

#[derive(Debug)]
struct Account {
    held: AccountUse,
    promise: Promise,
    /// What it holds counts there, too.
    parent: u64,
    closed: bool,
}

#[derive(Default)]
pub(super) struct Accounts(HashMap<u64, Account>);

impl Accounts {
    fn open(&mut self, tenant: u32, limit: u64, parent: u64) -> u64 {
        let free = limit == u64::MAX && (parent == 0 || parent & UNLIMITED != 0);
        let mark = if free { UNLIMITED } else { 0 };
        let id = (LAST.fetch_add(1, Ordering::Relaxed) + 1) | mark;
        let held = AccountUse {
            tenant,
            limit,
            ..AccountUse::default()
        };
        let account = Account {
            held,
            promise: Promise::default(),
            parent,
            closed: false,
        };
        self.0.insert(id, account);
        id
    }

    /// The account that has no room for so much more, if there is one: the owner's or one above it.
    #[inline]
    pub fn refusal(&self, owner: Owner, bytes: u64) -> Option<AccountUse> {
        match owner.account {
            0 => None,
            id => self.full(id, owner.tenant, bytes),
        }
    }

    fn full(&self, mut id: u64, tenant: u32, bytes: u64) -> Option<AccountUse> {
        while id != 0 {
            let Some(account) = self.0.get(&id) else {
                if id & UNLIMITED != 0 {
                    return None;
                }
                let nothing = AccountUse {
                    tenant,
                    ..AccountUse::default()
                };
                return Some(nothing); // of another pool, or closed and empty
            };
            if account.held.used.saturating_add(bytes) > account.held.limit {
                return Some(account.held);
            }
            id = account.parent;
        }
        None
    }

    #[inline]
    pub fn add(&mut self, owner: Owner, bytes: u64) {
        if owner.account != 0 {
            self.change(owner.account, |held| {
                held.used += bytes;
                held.peak_used = held.peak_used.max(held.used);
                held.blocks += 1;
            });
        }
    }

    #[inline]
    pub fn remove(&mut self, owner: Owner, bytes: u64) {
        if owner.account != 0 {
            self.change(owner.account, |held| {
                held.used -= bytes;
                held.blocks -= 1;
            });
        }
    }

    /// A block became so much smaller.
    pub fn shrink(&mut self, owner: Owner, bytes: u64) {
        if owner.account != 0 {
            self.change(owner.account, |held| held.used -= bytes);
        }
    }

    /// A block of it went to host memory.
    pub fn evict(&mut self, owner: Owner, bytes: u64, now: u64) {
        self.change(owner.account, |held| held.set_evicted(held.evicted + bytes, now));
    }

    /// A block of it is in host memory no more.
    pub fn restore(&mut self, owner: Owner, bytes: u64, now: u64) {
        self.change(owner.account, |held| held.set_evicted(held.evicted - bytes, now));
    }

    #[cold]
    fn change(&mut self, mut id: u64, change: impl Fn(&mut AccountUse)) {
        while let Some(account) = self.0.get_mut(&id) {
            change(&mut account.held);
            let (gone, parent) = (account.closed && account.held.blocks == 0, account.parent);
            if gone {
                self.0.remove(&id);
            }
            id = parent;
        }
    }

    /// Of those who were promised anything in particular.
    pub fn promises(&self) -> HashMap<u64, Promise> {
        let promised = self
            .0
            .iter()
            .filter(|(_, account)| account.promise != Promise::default());
        promised.map(|(&id, account)| (id, account.promise)).collect()
    }

    /// Bytes by account, and those of them in host memory, as the books have them.
    pub fn books(&self) -> HashMap<u64, (u64, u64)> {
        let of = |account: &Account| (account.held.used, account.held.evicted);
        self.0.iter().map(|(&id, account)| (id, of(account))).collect()
    }

    /// The accounts that a block of this one counts for.
    pub fn above(&self, mut id: u64) -> Vec<u64> {
        let mut ids = Vec::new();
        while let Some(account) = self.0.get(&id) {
            ids.push(id);
            id = account.parent;
        }
        ids
    }
}

impl Pool {
    /// A new account with a hard limit in bytes of blocks (u64::MAX: none). parent: one that all it holds counts for as well, or 0.
    /// tenant: interned name, for messages.
    pub fn open_account(&self, tenant: u32, limit: u64, parent: u64) -> u64 {
        self.lock().accounts.open(tenant, limit, parent)
    }

    /// Nothing more is allocated on the account once its last block is freed.
    pub fn close_account(&self, id: u64) {
        let mut st = self.lock();
        if let Some(account) = st.accounts.0.get_mut(&id) {
            account.closed = true;
            account.promise = Promise::default();
            account.held.limit = 0;
            if account.held.blocks == 0 {
                st.accounts.0.remove(&id);
            }
        }
    }

    /// What an account may count on under pressure, from now on. False for an unknown one.
    pub fn promise_account(&self, id: u64, promise: Promise) -> bool {
        let mut st = self.lock();
        let account = st.accounts.0.get_mut(&id);
        account.map(|account| account.promise = promise).is_some()
    }

    /// Another limit for an account. What it holds above that it keeps. False for an unknown one.
    pub fn set_account_limit(&self, id: u64, limit: u64) -> bool {
        let mut st = self.lock();
        let account = st.accounts.0.get_mut(&id);
        account.map(|account| account.held.limit = limit).is_some()
    }

    /// Another limit for an account that is open and holds no more than that. On an Err, with what it holds, nothing changes.
    pub fn hold_account(&self, id: u64, limit: u64) -> Result<(), u64> {
        let mut st = self.lock();
        let Some(account) = st.accounts.0.get_mut(&id) else {
            return Err(0);
        };
        if account.closed || account.held.used > limit {
            return Err(account.held.used);
        }
        account.held.limit = limit;
        Ok(())
    }

    /// What an account holds; None for one that was closed and is empty.
    pub fn account(&self, id: u64) -> Option<AccountUse> {
        self.lock().accounts.0.get(&id).map(|account| account.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_limits_an_account_holds_beyond_the_first_four_billion_of_them() {
        for so_far in [1 << 31, 1 << 32] {
            LAST.fetch_max(so_far, Ordering::Relaxed);
            let (mut here, other) = (Accounts::default(), Accounts::default());
            let limited = here.open(0, 1000, 0);
            let free = here.open(0, u64::MAX, 0);
            let refused = |accounts: &Accounts, account, bytes| {
                let owner = Owner {
                    account,
                    ..Owner::default()
                };
                accounts.refusal(owner, bytes).is_some()
            };
            assert!(limited > so_far && free & !UNLIMITED > limited);
            assert!(!refused(&here, limited, 1000) && refused(&here, limited, 1001) && refused(&other, limited, 1));
            assert!(!refused(&here, free, 1001) && !refused(&other, free, 1001));
            let below = [here.open(0, u64::MAX, free), here.open(0, u64::MAX, limited)];
            assert_eq!(below.map(|account| refused(&other, account, 1)), [false, true]);
        }
    }
}
