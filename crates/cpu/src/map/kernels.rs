//! One contiguous kernel for each operation, dtype and instruction set.
//!
//! A kernel is the plain loop over the meaning of a row, compiled behind `#[target_feature]` and
//! left to the compiler to vectorise; the table of them is made by const evaluation through
//! [`Column`], so that only what lands in a cell is compiled. Callers (`map::plan`, `map::run`, and
//! the reductions) see a full table; three things keep it small:
//! - float16 and bfloat16 have no cells: plans widen chunks to float32, compute, and narrow;
//! - integers whose sign does not matter for an operation share the unsigned kernel;
//! - loops that are calls or divisions gain nothing from vectors and are compiled once.
//!
//! What is better done by hand replaces cells when the table is first used (`by_hand`).

use tilework_fork::ForkOnce;
use tilework_ops::{
    COUNT, Class, Column, DType, Element, Entry, Gives, Id, Op, Row, Value, column,
};

use super::by_hand;
use crate::isa::Isa;

/// A loop over contiguous elements: `n`, the results, and up to three operands.
///
/// # Safety
/// A caller promises that the kernel's instruction set is available, that `out` is valid for
/// writing `n` results and the first operands, as many as the operation has, for reading `n`
/// elements each, that all are aligned to their elements, and that `out` overlaps no operand
/// (also not exactly: that would be sound, but an order of magnitude slower).
pub(crate) type Kernel = unsafe fn(usize, *mut u8, *const u8, *const u8, *const u8);

/// Kernels of one operation and dtype, by instruction set.
type ByIsa = [Option<Kernel>; Isa::ALL.len()];

struct Kernels;

impl Column for Kernels {
    type Cell = [ByIsa; DType::COUNT];
    type At<O: Op<N>, const N: usize> = At<O, N>;
}

struct At<O, const N: usize>(O);

impl<O: Op<N>, const N: usize> Entry<[ByIsa; DType::COUNT]> for At<O, N> {
    const VALUE: [ByIsa; DType::COUNT] = {
        let mut cells = [[None; Isa::ALL.len()]; DType::COUNT];
        let mut i = 0;
        while i < DType::COUNT {
            let dtype = DType::ALL[i];
            if O::ROW.takes(dtype) && !dtype.is_half() {
                cells[i] =
                    tilework_ops::with_element!(stand_in(&O::ROW, dtype), T => by_isa::<O, T, N>());
            }
            i += 1;
        }
        cells
    };
}

/// The dtype whose kernel also serves `dtype`.
const fn stand_in(row: &Row, dtype: DType) -> DType {
    if row.signless { dtype.unsigned() } else { dtype }
}

/// Whether the loop is function calls or scalar divisions in all instruction sets.
const fn is_scalar_anyway(row: &Row, class: Class) -> bool {
    row.calls & class as u8 != 0
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
const fn by_isa<O: Op<N>, E: Element, const N: usize>() -> ByIsa {
    if is_scalar_anyway(&O::ROW, E::DTYPE.class()) {
        return [Some(scalar::<O, E, N>); 3];
    }
    [Some(scalar::<O, E, N>), Some(avx2::<O, E, N>), Some(avx512::<O, E, N>)]
}

#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
const fn by_isa<O: Op<N>, E: Element, const N: usize>() -> ByIsa {
    [Some(scalar::<O, E, N>); 3]
}

/// The loop itself.
///
/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn body<O: Op<N>, E: Element, const N: usize>(
    n: usize,
    out: *mut u8,
    operands: [*const u8; 3],
) {
    type Result<O, E, const N: usize> = <<O as Op<N>>::Gives as Gives>::In<E>;
    let out = out.cast::<<Result<O, E, N> as Element>::Raw>();
    let x: [*const E::Raw; N] = std::array::from_fn(|k| operands[k].cast());
    for i in 0..n {
        // SAFETY: the caller vouches for `n` elements behind every pointer.
        unsafe {
            let values = std::array::from_fn(|k| E::from_raw(x[k].add(i).read()).widen());
            let result = <E::V as Value>::apply::<O, N>(values);
            out.add(i).write(<Result<O, E, N> as Element>::narrow(result).to_raw());
        }
    }
}

unsafe fn scalar<O: Op<N>, E: Element, const N: usize>(
    n: usize,
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
) {
    // SAFETY: the contract of `Kernel`.
    unsafe { body::<O, E, N>(n, out, [a, b, c]) }
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<O: Op<N>, E: Element, const N: usize>(
    n: usize,
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
) {
    // SAFETY: the contract of `Kernel`.
    unsafe { body::<O, E, N>(n, out, [a, b, c]) }
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn avx512<O: Op<N>, E: Element, const N: usize>(
    n: usize,
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
) {
    // SAFETY: the contract of `Kernel`.
    unsafe { body::<O, E, N>(n, out, [a, b, c]) }
}

static TABLE: [[ByIsa; DType::COUNT]; COUNT] = column::<Kernels>();

/// The kernel of an operation and a dtype in this process.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) kernel: Kernel,
    /// What an element costs beside its traffic, in bytes that could be moved meanwhile.
    pub(crate) cost: usize,
}

/// [`Chosen::cost`] of arithmetic, of a function in vectors, and of one that has no vector form.
pub(crate) const ARITHMETIC: usize = 4;
const FUNCTION: usize = 16;
pub(crate) const SLOW_FUNCTION: usize = 128;

/// What is chosen, by operation and dtype.
type Choices = [[Option<Chosen>; DType::COUNT]; COUNT];

fn choices() -> &'static Choices {
    static CHOICES: ForkOnce<Choices> = ForkOnce::new();
    CHOICES.get_or_make(|| {
        let isa = Isa::current();
        let mut choices = [[None; DType::COUNT]; COUNT];
        for id in Id::ALL {
            for dtype in DType::ALL {
                let (row, column) = (id as usize, dtype as usize);
                let Some(compiled) = TABLE[row][column][isa as usize] else { continue };
                let by_hand = by_hand::kernel(id, dtype, isa);
                let cost = match (is_scalar_anyway(id.row(), dtype.class()), by_hand) {
                    (false, _) => ARITHMETIC,
                    (true, Some(_)) => FUNCTION,
                    (true, None) => SLOW_FUNCTION,
                };
                choices[row][column] = Some(Chosen { kernel: by_hand.unwrap_or(compiled), cost });
            }
        }
        choices
    })
}

/// The kernel of an operation for this process; None where the operation has no meaning, and for
/// the half types.
#[inline]
pub(crate) fn chosen(id: Id, dtype: DType) -> Option<Chosen> {
    choices()[id as usize][dtype as usize]
}

/// The loop of [`chosen`].
#[inline]
pub(crate) fn kernel(id: Id, dtype: DType) -> Option<Kernel> {
    chosen(id, dtype).map(|chosen| chosen.kernel)
}
