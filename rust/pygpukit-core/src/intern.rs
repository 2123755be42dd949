//! Names as small numbers: an append-only table of strings. Id 0 is the empty string.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::hash::Seeded;

#[derive(Default)]
struct Table {
    ids: HashMap<Arc<str>, u32, Seeded>,
    names: Vec<Arc<str>>,
}

/// Ids count up from 1 in the order of first use and stay for the life of the table.
pub struct Interner(RwLock<Table>);

impl Default for Interner {
    fn default() -> Self {
        let empty: Arc<str> = Arc::from("");
        Interner(RwLock::new(Table {
            ids: [(empty.clone(), 0)].into_iter().collect(),
            names: vec![empty],
        }))
    }
}

impl Interner {
    /// The table of this process, which every record refers to.
    pub fn global() -> &'static Interner {
        static INTERNER: OnceLock<Interner> = OnceLock::new();
        INTERNER.get_or_init(Interner::default)
    }

    /// The id of `text`, new if need be. When all 2^32 ids are used, 0.
    pub fn intern(&self, text: &str) -> u32 {
        if let Some(&id) = self.0.read().unwrap_or_else(PoisonError::into_inner).ids.get(text) {
            return id;
        }
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = table.ids.get(text) {
            return id;
        }
        let Ok(id) = u32::try_from(table.names.len()) else {
            return 0;
        };
        let text: Arc<str> = Arc::from(text);
        table.names.push(text.clone());
        table.ids.insert(text, id);
        id
    }

    /// The text of an id; None for an id that was never given out.
    pub fn name(&self, id: u32) -> Option<Arc<str>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .names
            .get(id as usize)
            .cloned()
    }

    /// Every (id, text) with id >= `id`, in order: what a reader that knows the earlier ones still needs.
    pub fn names_since(&self, id: u32) -> Vec<(u32, Arc<str>)> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (id..).zip(table.names.iter().skip(id as usize).cloned()).collect()
    }

    /// Number of ids given out, the empty string included: the next new id.
    pub fn len(&self) -> u32 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).names.len() as u32
    }

    /// Never true: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_and_in_order() {
        let table = Interner::default();
        assert_eq!(table.intern(""), 0);
        let (a, b) = (table.intern("a"), table.intern("b"));
        assert_eq!((a, b, table.intern("a")), (1, 2, 1));
        assert_eq!(table.name(b).as_deref(), Some("b"));
        assert_eq!(table.name(3), None);
        let since: Vec<_> = table
            .names_since(2)
            .into_iter()
            .map(|(id, text)| (id, text.to_string()))
            .collect();
        assert_eq!(since, [(2, "b".to_string())]);
        assert!(table.names_since(9).is_empty());
    }

    #[test]
    fn threads_agree() {
        let table = Interner::default();
        let ids: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..500).map(|i| table.intern(&format!("n{i}"))).collect()))
                .collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(table.len(), 501);
    }
}
