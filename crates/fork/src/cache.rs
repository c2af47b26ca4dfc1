//! A bounded table of things that are worth keeping, for a static: plans by formula, code by program.
//!
//! Keys come in any number, as formulas do, and the table must not grow with them. Two generations
//! bound it: what is asked for goes to the recent one, and when that is full it becomes the former
//! one, and the former one is forgotten. So what is used between two such turns stays, at the cost of
//! a look-up in two tables. Called by the front door of pairs and by the assembler.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};
use std::mem;

use crate::ForkMutex;

type Table<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// Values by key, at most twice `generation` of them; those that are used stay.
pub struct ForkCache<K: 'static, V: 'static> {
    generation: usize,
    tables: ForkMutex<Tables<K, V>>,
}

struct Tables<K, V> {
    recent: Table<K, V>,
    former: Table<K, V>,
}

impl<K: Eq + Hash + Send, V: Clone + Send> ForkCache<K, V> {
    /// An empty one, for a static.
    pub const fn new(generation: usize) -> ForkCache<K, V> {
        let tables = Tables {
            recent: HashMap::with_hasher(BuildHasherDefault::new()),
            former: HashMap::with_hasher(BuildHasherDefault::new()),
        };
        ForkCache { generation, tables: ForkMutex::new(tables) }
    }

    /// The value of a key, if it is kept.
    pub fn get(&'static self, key: &K) -> Option<V> {
        let mut tables = self.tables.lock();
        if let Some(value) = tables.recent.get(key) {
            return Some(value.clone());
        }
        let (key, value) = tables.former.remove_entry(key)?;
        let found = value.clone();
        let forgotten = self.put(&mut tables, key, value);
        drop(tables);
        drop(forgotten);
        Some(found)
    }

    /// Keeps the value of a key, in place of a former one.
    pub fn insert(&'static self, key: K, value: V) {
        let mut tables = self.tables.lock();
        let older = tables.former.remove_entry(&key);
        let forgotten = self.put(&mut tables, key, value);
        // What is forgotten may take a lock when it is dropped, and much time.
        drop(tables);
        drop((older, forgotten));
    }

    /// Adds a recent value; gives what is no longer kept.
    fn put(&self, tables: &mut Tables<K, V>, key: K, value: V) -> (Table<K, V>, Option<V>) {
        let mut forgotten = Table::default();
        if tables.recent.len() >= self.generation {
            let full = mem::take(&mut tables.recent);
            forgotten = mem::replace(&mut tables.former, full);
        }
        (forgotten, tables.recent.insert(key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_take_bounded_room_and_those_in_use_stay() {
        static CACHE: ForkCache<u64, u64> = ForkCache::new(100);
        CACHE.insert(7, 70);
        for key in 1000..101_000 {
            CACHE.insert(key, key + 1);
            if key % 50 == 0 {
                assert_eq!(CACHE.get(&7), Some(70), "after {key}");
            }
            assert_eq!(CACHE.get(&key), Some(key + 1));
        }
        let tables = CACHE.tables.lock();
        assert!(tables.recent.len() <= 100 && tables.former.len() <= 100);
        drop(tables);
        assert_eq!(CACHE.get(&1000), None);
        CACHE.insert(7, 71);
        assert_eq!(CACHE.get(&7), Some(71));
    }

    #[test]
    fn values_are_dropped_without_the_lock() {
        #[derive(Clone)]
        struct Asks(u64);
        static CACHE: ForkCache<u64, Asks> = ForkCache::new(2);
        impl Drop for Asks {
            fn drop(&mut self) {
                CACHE.get(&(self.0 + 1000));
            }
        }
        for key in 0..20 {
            CACHE.insert(key % 7, Asks(key));
        }
    }
}
