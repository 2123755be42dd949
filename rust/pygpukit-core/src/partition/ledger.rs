//! The ledger of reserved memory and compute share, by account: all of a request is taken or nothing.
//!
//! Each account keeps `kept` for itself, whether it uses it or not, and never goes over `cap`. What holds at every step, for each
//! resource: sum over the accounts of max(used, kept) <= total, what accounts bring with them included.

/// What one task holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    pub memory_bytes: u64,
    pub share_ppm: u32,
}

impl Reservation {
    pub fn is_empty(&self) -> bool {
        self.memory_bytes == 0 && self.share_ppm == 0
    }

    pub fn of(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Memory => self.memory_bytes,
            Resource::Share => self.share_ppm.into(),
        }
    }

    fn amounts(&self) -> Amounts {
        [self.memory_bytes, self.share_ppm.into()]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Memory = 0,
    Share = 1,
}

impl Resource {
    pub const ALL: [Resource; 2] = [Resource::Memory, Resource::Share];
}

/// Whose bound was in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The account's own cap.
    Partition,
    /// What the accounts have between them.
    Device,
}

/// The resource that was short, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub resource: Resource,
    pub asked: u64,
    pub available: u64,
    pub scope: Scope,
}

/// Memory in bytes, share in parts per million.
type Amounts = [u64; 2];

/// The bounds of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Never lent.
    pub kept: Reservation,
    /// Never exceeded.
    pub cap: Reservation,
    /// More than there would be without it.
    pub brings: Reservation,
}

#[derive(Clone, Copy, Debug, Default)]
struct Books {
    used: Amounts,
    kept: Amounts,
    cap: Amounts,
    brings: Amounts,
}

impl Books {
    fn committed(&self, i: usize) -> u64 {
        self.used[i].max(self.kept[i])
    }
}

/// Integers only. Accounts are numbered from 0 by the caller; one that was never opened has a cap of 0.
#[derive(Clone, Debug)]
pub struct Ledger {
    total: Amounts,
    accounts: Vec<Books>,
    /// Sums over the accounts, of max(used, kept), of kept and of used.
    committed: Amounts,
    kept: Amounts,
    reserved: Amounts,
}

impl Ledger {
    pub fn new(total_memory: u64, total_share_ppm: u32) -> Ledger {
        Ledger {
            total: [total_memory, total_share_ppm.into()],
            accounts: Vec::new(),
            committed: [0; 2],
            kept: [0; 2],
            reserved: [0; 2],
        }
    }

    /// Sets the bounds of an account, used or not; in use over a new cap, it keeps what it uses and gets no more.
    /// Err, and no change, when the accounts between them have too little for what it is to keep.
    pub fn open(&mut self, account: usize, bounds: Account) -> Result<(), Shortage> {
        if self.accounts.len() <= account {
            self.accounts.resize(account + 1, Books::default());
        }
        let mut books = self.accounts[account];
        (books.kept, books.cap, books.brings) = (bounds.kept.amounts(), bounds.cap.amounts(), bounds.brings.amounts());
        let (mut committed, mut kept, mut total) = (self.committed, self.kept, self.total);
        for resource in Resource::ALL {
            let i = resource as usize;
            let others = committed[i] - self.accounts[account].committed(i);
            total[i] = total[i] - self.accounts[account].brings[i] + books.brings[i];
            let available = total[i].saturating_sub(others);
            // Others may use what the account brought until now: then that is asked for, too.
            let asked = others + books.committed(i) - (total[i] - available);
            if asked > available {
                return Err(Shortage {
                    resource,
                    asked,
                    available,
                    scope: Scope::Device,
                });
            }
            committed[i] = others + books.committed(i);
            kept[i] = kept[i] - self.accounts[account].kept[i] + books.kept[i];
        }
        (self.accounts[account], self.committed) = (books, committed);
        (self.kept, self.total) = (kept, total);
        Ok(())
    }

    /// What all accounts have reserved.
    pub fn reserved(&self) -> Reservation {
        reservation(self.reserved)
    }

    pub fn used(&self, account: usize) -> Reservation {
        self.accounts
            .get(account)
            .map_or(Reservation::default(), |books| reservation(books.used))
    }

    /// What is not reserved, by whomever it may be had.
    pub fn available(&self) -> Reservation {
        reservation([self.total[0] - self.reserved[0], self.total[1] - self.reserved[1]])
    }

    /// What stands in the way of the request now; None when it fits.
    pub fn shortage(&self, account: usize, request: Reservation) -> Option<Shortage> {
        let books = self.books(account);
        let own = |i: usize| books.cap[i].saturating_sub(books.used[i]);
        let shared = |i: usize| self.total[i] - (self.committed[i] - books.committed(i)) - books.used[i];
        short_of(request, own, shared)
    }

    /// How far the request is from fitting: what the resource that is shortest lacks, in parts per million of the device; 0 when it fits.
    pub fn lack_ppm(&self, account: usize, request: Reservation) -> u64 {
        let books = self.books(account);
        let lack = |i: usize, asked: u64| {
            let own = books.cap[i].saturating_sub(books.used[i]);
            let shared = self.total[i] - (self.committed[i] - books.committed(i)) - books.used[i];
            let short = u128::from(asked.saturating_sub(own.min(shared)));
            // Rounded up: what does not fit lacks something.
            (short * 1_000_000).div_ceil(u128::from(self.total[i].max(1))) as u64
        };
        let asked = request.amounts();
        lack(0, asked[0]).max(lack(1, asked[1]))
    }

    /// The part of the device that is reserved, in parts per million: of the resource of which that is more.
    pub fn reserved_ppm(&self) -> u64 {
        let part = |i: usize| u128::from(self.reserved[i]) * 1_000_000 / u128::from(self.total[i].max(1));
        part(0).max(part(1)) as u64
    }

    /// What stands in the way even when nothing at all is reserved.
    pub fn shortage_when_empty(&self, account: usize, request: Reservation) -> Option<Shortage> {
        let books = self.books(account);
        let shared = |i: usize| self.total[i] - (self.kept[i] - books.kept[i]);
        short_of(request, |i| books.cap[i], shared)
    }

    /// True when the request comes out of what the account keeps for itself, so that it takes nothing from anyone.
    pub fn within_kept(&self, account: usize, request: Reservation) -> bool {
        let (books, asked) = (self.books(account), request.amounts());
        (0..2).all(|i| {
            books.used[i]
                .checked_add(asked[i])
                .is_some_and(|sum| asked[i] == 0 || sum <= books.kept[i])
        })
    }

    /// True when giving back some of this resource would leave more for other accounts.
    pub fn lends(&self, account: usize, resource: Resource) -> bool {
        let (books, i) = (self.books(account), resource as usize);
        books.used[i] > books.kept[i]
    }

    /// Takes both resources, or neither.
    pub fn reserve(&mut self, account: usize, request: Reservation) -> Result<(), Shortage> {
        if let Some(shortage) = self.shortage(account, request) {
            return Err(shortage);
        }
        self.take(account, request);
        Ok(())
    }

    /// Takes what fits by `reserve`, or undoes a release: what was held is held again, even over a cap that is smaller by now.
    pub(crate) fn take(&mut self, account: usize, request: Reservation) {
        if request.is_empty() {
            return;
        }
        let books = &mut self.accounts[account];
        for (i, asked) in request.amounts().into_iter().enumerate() {
            self.committed[i] -= books.committed(i);
            books.used[i] += asked;
            self.committed[i] += books.committed(i);
            self.reserved[i] += asked;
        }
    }

    /// Gives back what `reserve` took. More than is reserved would mean that the books are wrong: that stops the program.
    pub fn release(&mut self, account: usize, request: Reservation) {
        let used = self.used(account);
        if request.memory_bytes > used.memory_bytes || request.share_ppm > used.share_ppm {
            panic!("ledger: released {request:?} of {used:?}");
        }
        if request.is_empty() {
            return;
        }
        let books = &mut self.accounts[account];
        for (i, amount) in request.amounts().into_iter().enumerate() {
            self.committed[i] -= books.committed(i);
            books.used[i] -= amount;
            self.committed[i] += books.committed(i);
            self.reserved[i] -= amount;
        }
    }

    /// Recounts the sums; an Err is a defect of this module.
    pub fn audit(&self) -> Result<(), String> {
        for i in 0..2 {
            let committed: u128 = self.accounts.iter().map(|b| u128::from(b.committed(i))).sum();
            let reserved: u128 = self.accounts.iter().map(|b| u128::from(b.used[i])).sum();
            let kept: u128 = self.accounts.iter().map(|b| u128::from(b.kept[i])).sum();
            if (committed, kept, reserved) != (self.committed[i].into(), self.kept[i].into(), self.reserved[i].into())
                || committed > self.total[i].into()
            {
                return Err(format!(
                    "ledger: {committed} committed, {kept} kept and {reserved} reserved by recount of {self:?}"
                ));
            }
        }
        Ok(())
    }

    fn books(&self, account: usize) -> Books {
        self.accounts.get(account).copied().unwrap_or_default()
    }
}

fn reservation(amounts: Amounts) -> Reservation {
    Reservation {
        memory_bytes: amounts[0],
        share_ppm: amounts[1] as u32, // never over the total, which came from a u32
    }
}

fn short_of(request: Reservation, own: impl Fn(usize) -> u64, shared: impl Fn(usize) -> u64) -> Option<Shortage> {
    for resource in Resource::ALL {
        let asked = request.of(resource);
        // The smaller of the two is what can be had; when both are too small, the account's own bound is named.
        let (own, shared) = (own(resource as usize), shared(resource as usize));
        if asked > own.min(shared) && asked > 0 {
            return Some(Shortage {
                resource,
                asked,
                available: own.min(shared),
                scope: if asked > own { Scope::Partition } else { Scope::Device },
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(memory_bytes: u64, share_ppm: u32) -> Reservation {
        Reservation {
            memory_bytes,
            share_ppm,
        }
    }

    fn ledger(bounds: &[(u64, u64)]) -> Ledger {
        let mut ledger = Ledger::new(100, 10);
        for (i, &(kept, cap)) in bounds.iter().enumerate() {
            let account = Account {
                kept: ask(kept, 0),
                cap: ask(cap, 10),
                ..Account::default()
            };
            ledger.open(i, account).unwrap();
        }
        ledger
    }

    #[test]
    fn both_or_neither() {
        let mut ledger = ledger(&[(0, 100)]);
        assert!(ledger.reserve(0, ask(60, 5)).is_ok());
        let short = ledger.reserve(0, ask(10, 6)).unwrap_err();
        assert_eq!((short.resource, short.asked, short.available), (Resource::Share, 6, 5));
        assert_eq!(ledger.reserved(), ask(60, 5));
        let short = ledger.reserve(0, ask(u64::MAX, 1)).unwrap_err();
        assert_eq!((short.resource, short.available), (Resource::Memory, 40));
        ledger.release(0, ask(60, 5));
        assert_eq!((ledger.available(), ledger.audit()), (ask(100, 10), Ok(())));
    }

    #[test]
    fn what_is_kept_is_there_and_what_is_lent_is_shared() {
        let mut ledger = ledger(&[(0, 100), (30, 50), (0, 80)]);
        assert!(ledger.reserve(0, ask(70, 0)).is_ok(), "all but what account 1 keeps");
        let short = ledger.reserve(2, ask(1, 0)).unwrap_err();
        assert_eq!((short.available, short.scope), (0, Scope::Device));
        assert!(ledger.within_kept(1, ask(30, 0)) && !ledger.within_kept(1, ask(31, 0)));
        assert!(ledger.lends(0, Resource::Memory) && !ledger.lends(1, Resource::Memory));
        assert!(ledger.reserve(1, ask(30, 0)).is_ok());
        assert_eq!(ledger.reserve(1, ask(21, 0)).unwrap_err().scope, Scope::Partition);
        assert_eq!(ledger.reserve(1, ask(20, 0)).unwrap_err().scope, Scope::Device);
        assert_eq!(ledger.shortage_when_empty(0, ask(71, 0)).unwrap().available, 70);
        assert_eq!(ledger.shortage_when_empty(2, ask(71, 0)).unwrap().scope, Scope::Device);
        ledger.audit().unwrap();
    }

    #[test]
    fn bounds_change_only_as_far_as_the_rest_allows() {
        let mut ledger = ledger(&[(0, 100), (30, 50)]);
        ledger.reserve(0, ask(60, 0)).unwrap();
        let bounds = |kept, cap| Account {
            kept: ask(kept, 0),
            cap: ask(cap, 10),
            ..Account::default()
        };
        assert_eq!(ledger.open(1, bounds(41, 50)).unwrap_err().available, 40);
        ledger.open(1, bounds(40, 50)).unwrap();
        ledger.open(0, bounds(0, 10)).unwrap();
        assert_eq!(
            ledger.shortage(0, ask(1, 0)).unwrap().available,
            0,
            "it uses more than it may now"
        );
        ledger.release(0, ask(60, 0));
        assert_eq!(ledger.shortage(0, ask(10, 0)), None);
    }

    #[test]
    #[should_panic(expected = "ledger")]
    fn releasing_too_much_stops() {
        ledger(&[(0, 100)]).release(0, ask(1, 0));
    }
}
