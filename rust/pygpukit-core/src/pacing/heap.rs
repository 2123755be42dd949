//! IndexedHeap: a binary min-heap of small ids whose keys can change. It allocates only when the range of ids grows.

const ABSENT: u32 = u32::MAX;

#[derive(Debug, Default)]
pub struct IndexedHeap<K> {
    items: Vec<(K, u32)>,
    /// Place of each id in `items`.
    places: Vec<u32>,
}

impl<K: Ord + Copy> IndexedHeap<K> {
    pub fn new() -> IndexedHeap<K> {
        let (items, places) = (Vec::new(), Vec::new());
        IndexedHeap { items, places }
    }

    /// Makes room for ids below `ids`.
    pub fn reserve_ids(&mut self, ids: usize) {
        if ids > self.places.len() {
            self.places.resize(ids, ABSENT);
            self.items.reserve(ids - self.items.len());
        }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn contains(&self, id: u32) -> bool {
        self.places[id as usize] != ABSENT
    }

    /// The smallest key and its id.
    pub fn peek(&self) -> Option<(K, u32)> {
        self.items.first().copied()
    }

    /// Adds an id that is not there, or gives one that is another key.
    pub fn set(&mut self, id: u32, key: K) {
        let place = match self.places[id as usize] {
            ABSENT => {
                self.items.push((key, id));
                self.items.len() - 1
            }
            place => {
                self.items[place as usize].0 = key;
                place as usize
            }
        };
        self.places[id as usize] = place as u32;
        let place = self.up(place);
        self.down(place);
    }

    /// Takes an id out; its key, or None when it was not there.
    pub fn remove(&mut self, id: u32) -> Option<K> {
        let place = self.places[id as usize];
        if place == ABSENT {
            return None;
        }
        let (key, _) = self.items.swap_remove(place as usize);
        self.places[id as usize] = ABSENT;
        if let Some(&(_, moved)) = self.items.get(place as usize) {
            self.places[moved as usize] = place;
            let place = self.up(place as usize);
            self.down(place);
        }
        Some(key)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
        self.places[self.items[a].1 as usize] = a as u32;
        self.places[self.items[b].1 as usize] = b as u32;
    }

    fn up(&mut self, mut place: usize) -> usize {
        while place > 0 && self.items[place].0 < self.items[(place - 1) / 2].0 {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    fn down(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let mut smallest = place;
            if left < self.items.len() && self.items[left].0 < self.items[smallest].0 {
                smallest = left;
            }
            if right < self.items.len() && self.items[right].0 < self.items[smallest].0 {
                smallest = right;
            }
            if smallest == place {
                return;
            }
            self.swap(place, smallest);
            place = smallest;
        }
    }
}
