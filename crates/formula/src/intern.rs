//! The one table of living nodes: what makes equality of expressions identity.
//!
//! The table holds weak references, so an expression that nobody uses any more is freed, also when
//! it is a chain of a million nodes: nodes are dropped in a loop. Only `build.rs` calls in here,
//! after the simplification rules had their say.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem;
use std::sync::{Arc, MutexGuard, Weak};

use smallvec::SmallVec;
use tilework_fork::ForkMutex;
use tilework_tape::Per;

use crate::expr::{Expr, Kind, Operands};

/// What an expression refers to.
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) operands: Operands,
    pub(crate) dim: usize,
    pub(crate) per: Per,
    pub(crate) hash: u64,
    pub(crate) depth: usize,
    pub(crate) tree_size: u64,
    pub(crate) work: u64,
}

/// A small hash function with a fixed start, so that hashes do not change from run to run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        // Multiply and fold the high half down: every input bit reaches the low bits that tables
        // use.
        let product = u128::from(self.0.rotate_left(23) ^ word ^ 0x9e37_79b9_7f4a_7c15)
            * 0xd6e8_feb8_6659_fd93;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word) ^ (chunk.len() as u64) << 56);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}

type Shard = HashMap<u64, SmallVec<[Weak<Node>; 1]>, BuildHasherDefault<Mixer>>;

const SHARDS: usize = 16;

static TABLE: [ForkMutex<Shard>; SHARDS] =
    [const { ForkMutex::new(HashMap::with_hasher(BuildHasherDefault::new())) }; SHARDS];

fn shard(hash: u64) -> MutexGuard<'static, Shard> {
    TABLE[(hash >> 60) as usize % SHARDS].lock()
}

/// The node of this kind on these operands, made now if it does not exist.
pub(crate) fn intern(kind: Kind, operands: Operands, dim: usize) -> Expr {
    let mut mixer = Mixer::default();
    kind.hash(&mut mixer);
    for operand in &operands {
        mixer.mix(operand.structural_hash());
    }
    let hash = mixer.finish();

    // References taken while looking are kept until the lock is released: the last one to go frees
    // its node, which takes the lock.
    let mut looked_at: SmallVec<[Arc<Node>; 2]> = SmallVec::new();
    let mut table = shard(hash);
    let bucket = table.entry(hash).or_default();
    for weak in bucket.iter() {
        let Some(node) = weak.upgrade() else { continue };
        if node.kind == kind && node.operands == operands {
            drop(table);
            return Expr(node);
        }
        looked_at.push(node);
    }
    let per = match &kind {
        Kind::Variable(variable) => variable.category.per(),
        _ => operands.iter().fold(Per::Once, |per, operand| per.union(operand.per())),
    };
    let depth = 1 + operands.iter().map(Expr::depth).max().unwrap_or(0);
    let tree_size =
        operands.iter().fold(1u64, |size, operand| size.saturating_add(operand.tree_size()));
    let work = operands
        .iter()
        .fold(own_work(&kind, &operands, dim), |work, operand| work.saturating_add(operand.work()));
    let node = Arc::new(Node { kind, operands, dim, per, hash, depth, tree_size, work });
    bucket.push(Arc::downgrade(&node));
    drop(table);
    drop(looked_at);
    Expr(node)
}

/// About how many operations a node is, without its operands: components that are read or computed.
fn own_work(kind: &Kind, operands: &Operands, dim: usize) -> u64 {
    let widest = operands.iter().map(Expr::dim).fold(dim, usize::max) as u64;
    match kind {
        Kind::Contract(contraction) => {
            // Each number of the result is a sum over the shared axes.
            let shared = contraction.over.iter().map(|&(l, _)| contraction.left.get(l as usize));
            let shared = shared.flatten().fold(1u64, |n, &axis| n.saturating_mul(axis.into()));
            widest.max((dim as u64).saturating_mul(shared))
        }
        _ => widest,
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut orphans: Vec<Expr> = mem::take(&mut self.operands).into_vec();
        while let Some(Expr(node)) = orphans.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                orphans.extend(mem::take(&mut node.operands));
            }
        }
        let mut table = shard(self.hash);
        if let Some(bucket) = table.get_mut(&self.hash) {
            bucket.retain(|weak| weak.strong_count() > 0);
            if bucket.is_empty() {
                table.remove(&self.hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_structures_are_one_node_across_threads() {
        let build = || {
            let x = Expr::vi(0, 3).unwrap();
            let y = Expr::vj(1, 3).unwrap();
            x.sqdist(&y).unwrap().exp().unwrap()
        };
        let here = build();
        let there: Vec<Expr> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(there.iter().all(|expr| *expr == here));
    }

    #[test]
    fn long_chains_are_built_walked_and_freed() {
        let mut f = Expr::vi(7, 1).unwrap();
        for _ in 0..200_000 {
            f = f.unary(tilework_ops::Id::Sin).unwrap();
        }
        assert_eq!(f.depth(), 200_001);
        assert_eq!(Expr::order(std::slice::from_ref(&f)).len(), 200_001);
        drop(f);
    }

    #[test]
    fn wide_pairs_and_long_formulas_are_much_work() {
        let (x, y) = (Expr::vi(0, 5000).unwrap(), Expr::vj(1, 5000).unwrap());
        // The difference, twice since it is a tree, from two vectors, and its square.
        assert_eq!(x.sqdist(&y).unwrap().work(), (2 * 3 + 1) * 5000);
        let mut f = Expr::vi(0, 1).unwrap();
        for _ in 0..100 {
            f = f.unary(tilework_ops::Id::Sin).unwrap();
        }
        assert_eq!(f.work(), 101);
        // Seven rows of a matrix with a vector of nine, and both are read.
        let (m, v) = (Expr::vj(1, 63).unwrap(), Expr::vi(0, 9).unwrap());
        assert_eq!(m.matvecmult(&v).unwrap().work(), 63 + 63 + 9);
        for _ in 0..64 {
            f = f.multiply(&f.exp().unwrap()).unwrap();
        }
        assert_eq!(f.work(), u64::MAX);
    }

    #[test]
    fn threads_that_build_and_drop_the_same_nodes_do_not_block() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for k in 0..2000 {
                        let c = Expr::constant(f64::from(k % 7) + 0.5);
                        let x = Expr::vi(11, 2).unwrap();
                        let f = x.multiply(&c).unwrap().exp().unwrap();
                        assert_eq!(f.dim(), 2);
                    }
                });
            }
        });
    }
}
