//! All the guards of one operation: each block once, in the order of addresses, all or none.
//!
//! May assume what [`BlockLock`] promises. Called by sessions, and by tests through [`acquire`].

use smallvec::SmallVec;

use super::{Access, BlockLock, Conflict, Holder, Waiting, generation};

/// A block that an operation wants, or holds.
#[derive(Debug, Clone, Copy)]
struct Wish<'a> {
    lock: &'a BlockLock,
    access: Access,
    index: u32,
}

impl<'a> Wish<'a> {
    #[inline]
    fn address(&self) -> usize {
        std::ptr::from_ref(self.lock).addr()
    }

    /// Takes the place of this wish for the same block if it wants more.
    #[inline]
    fn strengthen(&mut self, other: Wish<'a>) {
        if other.access > self.access {
            *self = other;
        }
    }
}

type Wishes<'a> = SmallVec<[Wish<'a>; 4]>;

/// The guards of one operation on all the blocks that it touches; dropping them releases these.
///
/// Guards are large: [`wish`](Self::wish) and [`take`](Self::take) work in place, which spares small
/// operations to move them.
#[derive(Debug)]
#[must_use = "dropping the guards releases the blocks"]
pub struct OpGuards<'a> {
    /// Each block once and in the order of addresses, as long as there are a [few](FEW).
    wishes: Wishes<'a>,
    /// How many wishes there have been.
    asked: u32,
    /// Whether the blocks are held.
    held: bool,
    /// Since which generation.
    generation: u32,
}

/// Up to so many blocks, wishes are put in order one by one, which beats sorting them.
const FEW: usize = 8;

impl Default for OpGuards<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> OpGuards<'a> {
    /// Guards on nothing, for [`wish`](Self::wish).
    #[inline]
    pub const fn new() -> Self {
        Self { wishes: Wishes::new_const(), asked: 0, held: false, generation: 0 }
    }

    /// Adds a block to those that [`take`](Self::take) will take.
    #[inline]
    pub fn wish(&mut self, lock: &'a BlockLock, access: Access) {
        debug_assert!(!self.held);
        let wish = Wish { lock, access, index: self.asked };
        self.asked += 1;
        // Mostly there is none yet, or the same again, or one that lies behind.
        match self.wishes.last_mut() {
            Some(last) if last.address() == wish.address() => last.strengthen(wish),
            Some(last) if last.address() > wish.address() => {
                self.wish_before(lock, access, wish.index);
            }
            _ => self.wishes.push(wish),
        }
    }

    /// [`wish`](Self::wish) for a block that lies before the last one.
    #[cold]
    fn wish_before(&mut self, lock: &'a BlockLock, access: Access, index: u32) {
        // In parts, since a wish that is handed on whole must first lie in memory.
        let wish = Wish { lock, access, index };
        if self.wishes.len() > FEW {
            return self.wishes.push(wish);
        }
        let before = |other: &Wish<'_>| other.address() < wish.address();
        let at = self.wishes.partition_point(before);
        if self.wishes[at].address() == wish.address() {
            self.wishes[at].strengthen(wish);
        } else {
            self.wishes.insert(at, wish);
        }
    }

    /// Takes all blocks that were wished for: each once, as written if it is both read and written,
    /// in the order of their addresses; `Ok(false)` if waiting was given up. Unless it is
    /// `Ok(true)`, nothing is held at the end.
    #[inline]
    pub fn take(&mut self, waiting: Waiting<'_>) -> Result<bool, Conflict> {
        debug_assert!(!self.held);
        if self.wishes.len() > FEW {
            sort(&mut self.wishes);
        }
        self.generation = generation::current();
        for (at, &Wish { lock, access, index }) in self.wishes.iter().enumerate() {
            let taken = lock.lock(Holder::Op, access, waiting);
            if matches!(waiting, Waiting::Asking { .. }) && self.generation != generation::current()
            {
                // Whoever was asked has forked, and the child holds this one block at most.
                if taken == Ok(true) {
                    lock.unlock_op(access);
                }
                return self.take(waiting);
            }
            if !matches!(taken, Ok(true)) {
                release(&self.wishes[..at]);
                return taken.map_err(|conflict| Conflict { index: index as usize, ..conflict });
            }
        }
        self.held = true;
        Ok(true)
    }

    /// Leaves out blocks that are wished for reading and had already; whether there was one.
    #[cold]
    pub fn leave_out(&mut self, had: impl Fn(&BlockLock) -> bool) -> bool {
        debug_assert!(!self.held);
        let before = self.wishes.len();
        self.wishes.retain(|wish| wish.access == Access::Write || !had(wish.lock));
        self.wishes.len() < before
    }

    /// Whether one of these blocks is wished for writing.
    pub fn writes_one(&self, of: impl Fn(&BlockLock) -> bool) -> bool {
        self.wishes.iter().any(|wish| wish.access == Access::Write && of(wish.lock))
    }

    /// What the operation may do with the block of this lock; None if it does not hold it.
    #[inline]
    pub fn access(&self, lock: &BlockLock) -> Option<Access> {
        let held = if self.held { &self.wishes[..] } else { &[] };
        held.iter().find(|wish| std::ptr::eq(wish.lock, lock)).map(|wish| wish.access)
    }

    /// How many different blocks are held.
    pub fn len(&self) -> usize {
        if self.held { self.wishes.len() } else { 0 }
    }

    /// Whether no block is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for OpGuards<'_> {
    #[inline]
    fn drop(&mut self) {
        // After a fork in the middle of the operation, the child holds nothing any more.
        if self.held && self.generation == generation::current() {
            release(&self.wishes);
        }
    }
}

/// [`OpGuards::take`] of a list of blocks, waiting for other operations.
#[inline]
pub fn acquire<'a>(locks: &[(&'a BlockLock, Access)]) -> Result<OpGuards<'a>, Conflict> {
    let mut guards = wished(locks);
    guards.take(Waiting::Always)?;
    Ok(guards)
}

/// As [`acquire`], but `Ok(None)`, with nothing held, where that would wait. This is what a thread
/// calls that must not wait for a block because of something else that it holds, such as the GIL.
#[inline]
pub fn try_acquire<'a>(
    locks: &[(&'a BlockLock, Access)],
) -> Result<Option<OpGuards<'a>>, Conflict> {
    let mut guards = wished(locks);
    Ok(if guards.take(Waiting::Never)? { Some(guards) } else { None })
}

#[inline]
fn wished<'a>(locks: &[(&'a BlockLock, Access)]) -> OpGuards<'a> {
    let mut guards = OpGuards::new();
    locks.iter().for_each(|&(lock, access)| guards.wish(lock, access));
    guards
}

#[inline]
fn release(held: &[Wish<'_>]) {
    for wish in held {
        wish.lock.unlock_op(wish.access);
    }
}

/// Sorts by address and merges what occurs twice, for long lists (joining many arrays).
#[cold]
fn sort(wishes: &mut Wishes<'_>) {
    // The strongest access of a block comes first, and the first of equals is kept.
    wishes.sort_unstable_by_key(|w| (w.address(), std::cmp::Reverse(w.access), w.index));
    wishes.dedup_by_key(|w| w.address());
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn order_and_merging() {
        let locks: Vec<BlockLock> = (0..20).map(|_| BlockLock::new()).collect();
        for count in [0, 1, 2, 3, 5, 8, 9, 20] {
            let mut wanted: Vec<_> = (0..count).rev().map(|k| (&locks[k], Access::Read)).collect();
            if count > 1 {
                wanted.push((&locks[count / 2], Access::Write));
                wanted.push((&locks[count / 2], Access::Read));
            }
            let guards = acquire(&wanted).unwrap();
            let wishes = &guards.wishes;
            assert_eq!(wishes.len(), count);
            assert!(wishes.windows(2).all(|w| w[0].address() < w[1].address()));
            let writes: Vec<_> = wishes.iter().filter(|w| w.access == Access::Write).collect();
            assert_eq!(writes.len(), usize::from(count > 1));
            assert!(writes.iter().all(|w| w.index as usize == count));
        }
    }
}
