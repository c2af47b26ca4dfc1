//! The two products of the textbook, for comparison and for teaching: three loops, and tiles.
//!
//! Sums are taken in ascending order of k, in what [`DType::sums_in`](tilework_ops::DType::sums_in)
//! says, and rounded once: as the definition has it, bit for bit. May assume shapes, dtypes and
//! overlap that the contract settles, and a result that is not empty. Called by `matmul`.

use tilework_backend::{Matmul, MatmulKernel, Session, try_filled};
use tilework_error::Result;
use tilework_layout::{Layout, positions};
use tilework_ops::{Complex, Element, Value, bf16, f16};

use crate::pool;

/// What tiles begin at multiples of, in bytes.
const LINE: usize = 64;

/// An element, and what its products are summed in.
pub(crate) trait Summed: Element {
    type Sum: Element;
}

macro_rules! sums {
    ($($element:ty: $sum:ty),* $(,)?) => {$(
        impl Summed for $element {
            type Sum = $sum;
        }
    )*};
}

sums! {
    bool: bool, i8: i8, i16: i16, i32: i32, i64: i64, u8: u8, u16: u16, u32: u32, u64: u64,
    f16: f64, bf16: f64, f32: f64, f64: f64,
    Complex<f32>: Complex<f64>, Complex<f64>: Complex<f64>,
}

/// A number on its way into a sum.
type Wide<T> = <<T as Summed>::Sum as Element>::V;

/// Does what a request for one of the two asks.
pub(crate) fn run<T: Summed>(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    let operands = Operands {
        a: request.a.pointer(session).cast::<T>(),
        b: request.b.pointer(session).cast::<T>(),
        c: request.output.pointer(session).cast::<T>(),
    };
    let c = request.output.layout();
    if request.a.layout().is_empty() {
        positions(c).for_each(|at| operands.store(at, Wide::<T>::ZERO));
        return Ok(());
    }
    match request.kernel {
        MatmulKernel::Tiled => tiled(&operands, request.a.layout(), request.b.layout(), c),
        _ => naive(&operands, request.a.layout(), request.b.layout(), c),
    }
}

/// The blocks of the operands and of the result, while the session holds them.
///
/// The functions here reach only positions of the request's layouts, which lie inside of these blocks
/// (the invariant of views).
struct Operands<T> {
    a: *const T,
    b: *const T,
    c: *mut T,
}

impl<T: Summed> Operands<T> {
    fn left(&self, at: usize) -> Wide<T> {
        // SAFETY: a position of A's layout, by the promise of the structure.
        unsafe { load(self.a.add(at)) }
    }

    fn right(&self, at: usize) -> Wide<T> {
        // SAFETY: as above, of B's.
        unsafe { load(self.b.add(at)) }
    }

    fn store(&self, at: usize, sum: Wide<T>) {
        let element: T = sum.cast();
        // SAFETY: as above, of C's, which the session holds for writing; an element lies in memory as
        // its raw form.
        unsafe { self.c.add(at).cast::<T::Raw>().write(element.to_raw()) };
    }
}

/// # Safety
/// `at` is an element that may be read.
unsafe fn load<T: Summed>(at: *const T) -> Wide<T> {
    // SAFETY: the caller's promise; an element lies in memory as its raw form.
    let element = T::from_raw(unsafe { at.cast::<T::Raw>().read() });
    element.widen().cast::<T::Sum>().widen()
}

/// Three loops over the matrices of each batch.
fn naive<T: Summed>(operands: &Operands<T>, a: &Layout, b: &Layout, c: &Layout) -> Result<()> {
    let batch = |layout: &Layout| {
        let axes = layout.ndim() - 2;
        Layout::new(&layout.shape()[..axes], &layout.strides()[..axes], layout.offset())
    };
    let steps = |layout: &Layout| [1, 2].map(|k| layout.strides()[layout.ndim() - k]);
    let ([a_column, a_row], [b_column, b_row], [c_column, c_row]) = (steps(a), steps(b), steps(c));
    let axes = c.ndim();
    let [m, n, inner] = [c.shape()[axes - 2], c.shape()[axes - 1], a.shape()[axes - 1]];
    let at = |start: usize, i: usize, row: isize, j: usize, column: isize| {
        let (i, j) = (i.cast_signed(), j.cast_signed());
        start.wrapping_add_signed(i.wrapping_mul(row)).wrapping_add_signed(j.wrapping_mul(column))
    };
    let (a, b, c) = (batch(a)?, batch(b)?, batch(c)?);
    for ((a, b), c) in positions(&a).zip(positions(&b)).zip(positions(&c)) {
        for i in 0..m {
            pool::check();
            for j in 0..n {
                let sum = (0..inner).fold(Wide::<T>::ZERO, |sum, k| {
                    let left = operands.left(at(a, i, a_row, k, a_column));
                    sum.plus(left.times(operands.right(at(b, k, b_row, j, b_column))))
                });
                operands.store(at(c, i, c_row, j, c_column), sum);
            }
        }
    }
    Ok(())
}

/// Products of tiles, added up tile by tile: `[rows][inner][t][t]` by `[inner][columns][t][t]`.
fn tiled<T: Summed>(operands: &Operands<T>, a: &Layout, b: &Layout, c: &Layout) -> Result<()> {
    let (rows, columns, inner, t) = (c.shape()[0], c.shape()[1], a.shape()[1], c.shape()[3]);
    // Three tiles, each from the beginning of a cache line.
    let line = LINE / size_of::<Wide<T>>();
    let each = (t * t).next_multiple_of(line);
    let mut memory = try_filled("matmul", Wide::<T>::ZERO, each.saturating_mul(3) + line)?;
    let skip = memory.as_ptr().align_offset(LINE);
    let (left, rest) = memory[skip..].split_at_mut(each);
    let (right, sums) = rest.split_at_mut(each);
    let (left, right, sums) = (&mut left[..t * t], &mut right[..t * t], &mut sums[..t * t]);
    for row in 0..rows {
        for column in 0..columns {
            pool::check();
            sums.fill(Wide::<T>::ZERO);
            for k in 0..inner {
                fetch(left, t, a, [row, k], |at| operands.left(at));
                fetch(right, t, b, [k, column], |at| operands.right(at));
                aligned_dot(left, right, sums, t);
            }
            for (place, sum) in sums.iter().enumerate() {
                operands.store(c.position(&[row, column, place / t, place % t]), *sum);
            }
        }
    }
    Ok(())
}

/// Brings a tile to the numbers that are computed with, row after row.
fn fetch<V>(
    tile: &mut [V],
    t: usize,
    layout: &Layout,
    [row, column]: [usize; 2],
    load: impl Fn(usize) -> V,
) {
    for (i, numbers) in tile.chunks_exact_mut(t).enumerate() {
        let mut at = layout.position(&[row, column, i, 0]);
        for number in numbers {
            *number = load(at);
            at = at.wrapping_add_signed(layout.strides()[3]);
        }
    }
}

/// The textbook's aligned inner product: adds that of two tiles of `t` rows and columns to a third. All
/// begin at cache lines and lie row after row, so that the inner loop walks vectors.
fn aligned_dot<V: Value>(a: &[V], b: &[V], sums: &mut [V], t: usize) {
    for (left, sums) in a.chunks_exact(t).zip(sums.chunks_exact_mut(t)) {
        for (&left, right) in left.iter().zip(b.chunks_exact(t)) {
            for (sum, &right) in sums.iter_mut().zip(right) {
                *sum = sum.plus(left.times(right));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tilework_ops::{DType, with_element};

    use super::*;

    #[test]
    fn sums_are_those_of_the_definition() {
        for dtype in DType::ALL {
            with_element!(dtype, T => {
                assert_eq!(<T as Summed>::Sum::DTYPE, dtype.sums_in(), "{dtype}");
            });
        }
    }
}
