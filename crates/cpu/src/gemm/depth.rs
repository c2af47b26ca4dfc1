//! Products of few results and long sums: blocks of K go to the threads, in place of pieces of C.
//!
//! Each block has a result of its own, and results are added in the order of K, so that they are what
//! one thread gives. Called by `matrix`, whose loops do the blocks.

use super::blocking::Blocking;
use super::family::{Elem, Family, Same};
use super::finish::{Finish, FinishArgs, Shared, finish};
use super::lanes::{Lanes, Level};
use super::matrix::{LevelOf, Part, Target, region};
use super::scratch::{Area, room};
use super::{Parallel, Product};

/// The results of K's blocks, where these go to several threads.
struct Results {
    /// Blocks of K.
    blocks: usize,
    /// Blocks that are computed before their results are added up.
    at_once: usize,
    /// From one row of a result to the next.
    pitch: usize,
    /// Elements of a result.
    one: usize,
}

impl Results {
    fn new<F: Family>(p: &Product<F::Store>, blocking: &Blocking) -> Results {
        let blocks = p.k.div_ceil(blocking.kc);
        let pitch = p.n.next_multiple_of(F::Lanes::WIDTH);
        Results { blocks, at_once: blocking.k_at_once.min(blocks), pitch, one: pitch * p.m }
    }
}

/// Bytes of all results that there are at a time, and of their sum.
pub(super) fn results_room<F: Family>(p: &Product<F::Store>, blocking: &Blocking) -> usize {
    let results = Results::new::<F>(p, blocking);
    room::<Elem<F>>(results.one * (results.at_once + 1))
}

/// Blocks of K on several threads, each with a result of its own; added in order.
///
/// # Safety
/// The contract of `gemm`; the area has the room that `matrix::need` says.
pub(super) unsafe fn cut_k<F: Family>(
    parallel: &dyn Parallel,
    p: &Product<F::Store>,
    blocking: &Blocking,
    area: &Area,
) {
    let kc = blocking.kc;
    let Results { blocks, at_once, pitch, one } = Results::new::<F>(p, blocking);
    let in_place = F::DIRECT && p.c_cols == 1;
    // The first of the results is the sum so far, where C cannot hold it.
    let base = Shared(area.whole().cast::<Elem<F>>());
    let slots = &area.slots;
    let mut done = 0;
    while done < blocks {
        let now = at_once.min(blocks - done);
        parallel.run(now, &|index| {
            let k = (done + index) * kc;
            let part = Part { rows: 0..p.m, columns: 0..p.n, depth: k..(k + kc).min(p.k) };
            let target = Target {
                at: base.get().wrapping_add(one * (index + 1)),
                rows: pitch as isize,
                accumulate: false,
            };
            // SAFETY: every block has its own result; the rest is the caller's contract.
            slots.with(|slot| unsafe { region::<F>(p, blocking, &part, target, slot) });
        });
        for index in 0..now {
            let first = done + index == 0;
            let (c, c_rows, accumulate) = if in_place {
                (p.c.cast(), p.c_rows, p.accumulate || !first)
            } else {
                (base.get(), pitch as isize, !first)
            };
            // SAFETY: result `index` is complete, and C or the sum is as large.
            unsafe {
                LevelOf::<F>::enter::<Finish<Same<F::Lanes>>>(&FinishArgs {
                    sums: base.get().wrapping_add(one * (index + 1)),
                    pitch,
                    height: p.m,
                    width: p.n,
                    c,
                    c_rows,
                    c_cols: 1,
                    accumulate,
                });
            }
        }
        done += now;
    }
    if !in_place {
        // SAFETY: the sum is complete; C is the caller's.
        unsafe { finish::<F>(p, base.get(), pitch) };
    }
}
