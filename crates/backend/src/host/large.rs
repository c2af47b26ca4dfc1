//! Large blocks that are kept for reuse, for the whole process: a table of places, without a lock.
//!
//! A place holds one block. Its `size` says what is there, and whoever changes it from a size or
//! from [`EMPTY`] to [`BUSY`] owns the place until it writes the next state. Nobody waits for an
//! owner: a busy place is passed by. So a process that forks while another thread is between the
//! two leaves its child with one place that stays busy, and never with a lock that stays locked.
//!
//! Where there is no room for a block, others leave for it, one place after another: what a program
//! gives back now it will sooner want again than what has been lying there. Called by `host` alone.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

/// How many bytes are kept at most, and which part of the memory that the process may have.
const KEPT: usize = 2 << 30;
const PART: usize = 8;
/// How many blocks are kept at most: few enough to look through in less time than a page takes.
const PLACES: usize = 256;

/// Nothing is there. No block has this size or the next.
const EMPTY: usize = 0;
/// Somebody is about to put or to take a block.
const BUSY: usize = 1;

struct Place {
    size: AtomicUsize,
    address: AtomicPtr<u8>,
}

/// `N` places for blocks of so many bytes in all.
struct Table<const N: usize> {
    places: [Place; N],
    limit: AtomicUsize,
    /// The bytes that are here.
    bytes: AtomicUsize,
    /// The place whose block leaves next.
    next: AtomicUsize,
}

static TABLE: Table<PLACES> = Table::new(KEPT);

impl Place {
    /// Makes the place this thread's own, if it is in this state.
    fn own(&self, state: usize) -> bool {
        // Most places are in another state, and looking is cheaper than trying.
        self.size.load(Relaxed) == state
            && self.size.compare_exchange(state, BUSY, Acquire, Relaxed).is_ok()
    }
}

impl<const N: usize> Table<N> {
    const fn new(limit: usize) -> Self {
        Table {
            places: [const {
                Place { size: AtomicUsize::new(EMPTY), address: AtomicPtr::new(ptr::null_mut()) }
            }; N],
            limit: AtomicUsize::new(limit),
            bytes: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// The block of this size that is at a place, which leaves.
    fn leave(&self, place: &Place, size: usize) -> Option<NonNull<u8>> {
        if !place.own(size) {
            return None;
        }
        let address = place.address.load(Relaxed);
        place.size.store(EMPTY, Release);
        self.bytes.fetch_sub(size, Relaxed);
        NonNull::new(address)
    }

    /// A block of exactly this size, if there is one.
    fn take(&self, size: usize) -> Option<NonNull<u8>> {
        self.places.iter().find_map(|place| self.leave(place, size))
    }

    /// Any block, and its size: those of one place after another. Every place is looked at, whoever else
    /// looks, so that nothing found means that nothing is kept.
    fn take_any(&self) -> Option<(NonNull<u8>, usize)> {
        let first = self.next.load(Relaxed);
        (first..first + N).find_map(|number| {
            let place = &self.places[number % N];
            let found = match place.size.load(Relaxed) {
                EMPTY | BUSY => return None,
                size => (self.leave(place, size)?, size),
            };
            self.next.store((number + 1) % N, Relaxed);
            Some(found)
        })
    }

    /// Keeps a block if there is room.
    fn try_put(&self, address: NonNull<u8>, size: usize) -> bool {
        if self.bytes.fetch_add(size, Relaxed).saturating_add(size) <= self.limit.load(Relaxed)
            && let Some(place) = self.places.iter().find(|place| place.own(EMPTY))
        {
            place.address.store(address.as_ptr(), Relaxed);
            place.size.store(size, Release);
            return true;
        }
        self.bytes.fetch_sub(size, Relaxed);
        false
    }

    /// Keeps a block; those that leave for it go to `release`.
    fn put(&self, address: NonNull<u8>, size: usize, release: impl Fn(NonNull<u8>, usize)) -> bool {
        while !self.try_put(address, size) {
            if size > self.limit.load(Relaxed) {
                return false;
            }
            let Some((other, size)) = self.take_any() else { return false };
            release(other, size);
        }
        true
    }
}

/// A block of exactly this size, if there is one.
pub(super) fn take(size: usize) -> Option<NonNull<u8>> {
    TABLE.take(size)
}

/// Any block, and its size.
pub(super) fn take_any() -> Option<(NonNull<u8>, usize)> {
    TABLE.take_any()
}

/// Keeps a block, for which others that nobody has wanted may have to go to `release`; false if it is
/// larger than all that is kept, and then it is still the caller's.
pub(super) fn put(address: NonNull<u8>, size: usize, release: impl Fn(NonNull<u8>, usize)) -> bool {
    static KNOWN: AtomicBool = AtomicBool::new(false);
    // Whoever comes first; others may keep a block more until it is done.
    if !KNOWN.swap(true, Relaxed) {
        let most = memory(&|path| std::fs::read_to_string(path).ok());
        TABLE.limit.fetch_min(most.map_or(KEPT, |bytes| bytes / PART), Relaxed);
    }
    TABLE.put(address, size, release)
}

/// The memory that this process may have, in bytes: the machine's, or that of its control group, which a
/// container sees as the root. What cannot be read does not limit.
fn memory(read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
    });
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = group.into_iter().filter_map(|path| read(path)?.trim().parse::<usize>().ok());
    group.chain(machine).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A block that nobody looks into.
    fn block(number: usize) -> NonNull<u8> {
        NonNull::new(ptr::without_provenance_mut(64 * number)).unwrap()
    }

    #[test]
    fn old_blocks_leave_for_new_ones() {
        let (table, gone) = (Table::<4>::new(1000), RefCell::new(Vec::new()));
        let put = |number: usize, size: usize| {
            table.put(block(number), size, |address, size| {
                gone.borrow_mut().push((address, size));
            })
        };
        // By their bytes.
        assert!(put(1, 500) && put(2, 400) && gone.borrow().is_empty());
        assert!(put(3, 200));
        assert_eq!(gone.take(), [(block(1), 500)]);
        assert_eq!((table.take(500), table.take(200)), (None, Some(block(3))));
        assert!(put(3, 200));
        // By their number.
        assert!(put(4, 10) && put(5, 10) && gone.borrow().is_empty());
        assert!(put(6, 10));
        assert_eq!(gone.take(), [(block(2), 400)]);
        // Nobody leaves for a block that would not fit an empty table.
        assert!(!put(7, 1001) && gone.borrow().is_empty());
        let mut left: Vec<_> =
            std::iter::from_fn(|| table.take_any()).map(|(_, size)| size).collect();
        left.sort_unstable();
        assert_eq!((left, table.bytes.into_inner()), (vec![10, 10, 10, 200], 0));
    }

    #[test]
    fn the_least_memory_counts() {
        let of = |files: &'static [(&str, &str)]| {
            memory(&|path| {
                files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("/proc/meminfo", "odd")]), None);
        assert_eq!(of(&[("/proc/meminfo", "MemTotal:  24000000 kB\n")]), Some(24_576_000_000));
        assert_eq!(
            of(&[
                ("/proc/meminfo", "MemTotal:  24000000 kB\n"),
                ("/sys/fs/cgroup/memory.max", "max\n")
            ]),
            Some(24_576_000_000)
        );
        assert_eq!(
            of(&[
                ("/proc/meminfo", "MemTotal:  24000000 kB\n"),
                ("/sys/fs/cgroup/memory.max", "2147483648\n")
            ]),
            Some(2_147_483_648)
        );
    }
}
