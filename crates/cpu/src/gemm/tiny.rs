//! Products of a few multiplications, most often thousands of them in one batch: plain loops over
//! elements, for any strides and every family.
//!
//! Vectors would be nearly empty, and a plan takes longer than the product. Each sum is one chain in
//! ascending k, as the rule of the module says, dot products included. Called by `plan`.

use super::family::{Elem, Family};
use super::lanes::{Job, Lanes, Level};
use super::matrix::LevelOf;
use super::{Parallel, Product};
use std::marker::PhantomData;

/// The most multiplications of a product here: about what a plan costs.
const MOST: usize = 128;

/// Multiplications, and as many for each product, that make a piece of a batch: some microseconds.
const PIECE: usize = 1 << 14;

/// Whether products are computed here: a matter of their sizes alone.
#[inline]
pub(super) fn serves<T>(p: &Product<T>) -> bool {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    (1..=MOST).contains(&work)
}

/// Computes the products at all of `offsets`.
///
/// # Safety
/// The contract of `batched`, for products that it [`serves`]; the family's level is available.
pub(super) unsafe fn products<F: Family>(
    parallel: &dyn Parallel,
    p: &Product<F::Store>,
    offsets: &[(isize, isize, isize)],
) {
    let each = (PIECE / (2 * p.m * p.n * p.k)).max(1);
    let pieces = offsets.len().div_ceil(each);
    let product = *p;
    let piece = move |index: usize| {
        let offsets = offsets.get(index * each..).unwrap_or_default();
        let offsets = &offsets[..offsets.len().min(each)];
        // SAFETY: the same contract; products do not share elements of C.
        unsafe { LevelOf::<F>::enter::<Chains<F>>(&ChainsArgs { product, offsets }) };
    };
    if parallel.threads() == 1 || pieces == 1 {
        (0..pieces).for_each(piece);
    } else {
        parallel.run(pieces, &piece);
    }
}

struct ChainsArgs<'a, S> {
    product: Product<S>,
    offsets: &'a [(isize, isize, isize)],
}

/// Some products of a batch.
struct Chains<'a, F>(PhantomData<(&'a (), F)>);

impl<'a, F: Family> Job for Chains<'a, F> {
    type Args = ChainsArgs<'a, F::Store>;

    #[inline(always)]
    unsafe fn run(args: &ChainsArgs<'a, F::Store>) {
        // SAFETY: the contract of `products`.
        unsafe {
            match args.product.k {
                1 => all::<F, 1>(args),
                2 => all::<F, 2>(args),
                3 => all::<F, 3>(args),
                4 => all::<F, 4>(args),
                _ => all::<F, 0>(args),
            }
        }
    }
}

/// All products, with sums of `K` terms, or of any number if that is 0.
///
/// # Safety
/// As [`products`].
#[inline(always)]
unsafe fn all<F: Family, const K: usize>(args: &ChainsArgs<'_, F::Store>) {
    let p = &args.product;
    for &(a, b, c) in args.offsets {
        let (a, b, c) = (p.a.wrapping_offset(a), p.b.wrapping_offset(b), p.c.wrapping_offset(c));
        for i in 0..p.m.cast_signed() {
            let (a, c) = (a.wrapping_offset(i * p.a_rows), c.wrapping_offset(i * p.c_rows));
            for j in 0..p.n.cast_signed() {
                let (b, c) = (b.wrapping_offset(j * p.b_cols), c.wrapping_offset(j * p.c_cols));
                // SAFETY: i, j and k are below the sizes, for which the caller vouches.
                unsafe {
                    let mut sum = F::Lanes::ZERO;
                    if K == 0 {
                        for k in 0..p.k.cast_signed() {
                            sum = step::<F>(p, a, b, k, sum);
                        }
                    } else {
                        for k in 0..K.cast_signed() {
                            sum = step::<F>(p, a, b, k, sum);
                        }
                    }
                    if p.accumulate {
                        sum = F::Lanes::add_elems(F::widen(c.read()), sum);
                    }
                    c.write(F::narrow(sum));
                }
            }
        }
    }
}

/// The sum with term `k` of a row of A and a column of B.
///
/// # Safety
/// The two elements may be read.
#[inline(always)]
unsafe fn step<F: Family>(
    p: &Product<F::Store>,
    a: *const F::Store,
    b: *const F::Store,
    k: isize,
    sum: Elem<F>,
) -> Elem<F> {
    // SAFETY: the same contract.
    let (left, right) =
        unsafe { (a.wrapping_offset(k * p.a_cols).read(), b.wrapping_offset(k * p.b_rows).read()) };
    F::Lanes::mul_add_elems(F::widen(left), F::widen(right), sum)
}
