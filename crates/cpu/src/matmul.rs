//! The `Matmul` request, handed to `gemm` in its own terms: base addresses, strides, batches.
//!
//! May assume shapes, dtypes and overlap that the contract settles. Called by the backend.

use tilework_backend::{Matmul, MatmulKernel, Session, try_room};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};
use tilework_ops::{DType, Element, Value, with_element};

use crate::gemm::{self, Parallel, Product, Terms, batched, batched_by_pieces, batched_sums};
use crate::isa::Isa;
use crate::pool;

/// The pool, as products see it.
struct Pool;

impl Parallel for Pool {
    fn threads(&self) -> usize {
        pool::threads()
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        pool::run(pieces, work);
    }
}

/// Does what a `Matmul` request asks.
pub(crate) fn run(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    if request.output.layout().is_empty() {
        return Ok(());
    }
    if request.kernel == MatmulKernel::Pieces && request.output.dtype() == DType::Float32 {
        return by_pieces(session, request);
    }
    with_element!(request.output.dtype(), T => {
        match request.kernel {
            MatmulKernel::Best | MatmulKernel::Pieces => best::<T>(session, request),
            MatmulKernel::Naive => naive::<T>(session, request),
            MatmulKernel::Tiled => tiled::<T>(session, request),
        }
    })
}

/// The axes before the last `keep`, as a layout of their own.
fn batch_axes(layout: &Layout, keep: usize) -> Result<Layout> {
    let axes = layout.ndim() - keep;
    Layout::new(&layout.shape()[..axes], &layout.strides()[..axes], layout.offset())
}

/// The first product of a request, without its place, and where each product of it begins.
struct Products<T> {
    product: Product<T>,
    starts: Vec<Start>,
}

/// The positions of A, B and C.
type Start = (isize, isize, isize);

fn products<T: Element>(session: &Session<'_>, request: &Matmul<'_>) -> Result<Products<T>> {
    let (a, b, c) = (request.a.layout(), request.b.layout(), request.output.layout());
    let axes = c.ndim();
    let last = |layout: &Layout| (layout.strides()[axes - 2], layout.strides()[axes - 1]);
    let ((a_rows, a_cols), (b_rows, b_cols), (c_rows, c_cols)) = (last(a), last(b), last(c));
    let product = Product {
        m: c.shape()[axes - 2],
        n: c.shape()[axes - 1],
        k: a.shape()[axes - 1],
        a: request.a.pointer(session).cast::<T>(),
        a_rows,
        a_cols,
        b: request.b.pointer(session).cast::<T>(),
        b_rows,
        b_cols,
        c: request.output.pointer(session).cast::<T>(),
        c_rows,
        c_cols,
        accumulate: false,
    };
    let batch = batch_axes(c, 2)?;
    // Empty operands reach nothing, and their strides may hold any number.
    let nest = match product.k {
        0 => LoopNest::new(&[&batch]),
        _ => LoopNest::new(&[&batch, &batch_axes(a, 2)?, &batch_axes(b, 2)?]),
    };
    let steps = nest.inner_strides();
    let mut starts = try_room("matmul", nest.len())?;
    nest.for_each_piece(0..nest.len(), |at, len| {
        let place = |operand: usize, i: isize| match at.get(operand) {
            Some(at) => at.cast_signed() + i * steps[operand],
            None => 0,
        };
        starts.extend((0..len.cast_signed()).map(|i| (place(1, i), place(2, i), place(0, i))));
    });
    Ok(Products { product, starts })
}

/// float32 by pieces, as the caller asks.
fn by_pieces(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    let Products { product, starts } = products::<f32>(session, request)?;
    // SAFETY: as in `best`.
    unsafe { batched_by_pieces(Isa::current(), &Pool, &product, &starts) }
}

fn best<T: Element + gemm::Element>(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    let Products { product, starts } = products::<T>(session, request)?;
    // SAFETY: all positions are those of views, inside their blocks (the invariant of views), which
    // the session holds; by contract the target overlaps itself and the operands nowhere.
    unsafe { batched(Isa::current(), &Pool, &product, &starts) }
}

/// Three loops, as the textbook has them; sums in what the dtype computes in.
fn naive<T: Element>(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    let Products { product: p, starts } = products::<T>(session, request)?;
    for (a, b, c) in starts {
        for i in 0..p.m.cast_signed() {
            pool::check();
            for j in 0..p.n.cast_signed() {
                let mut sum = T::V::ZERO;
                for k in 0..p.k.cast_signed() {
                    // SAFETY: positions of the operands' views, inside their blocks (the invariant
                    // of views), which the session holds.
                    unsafe {
                        let left = value(p.a.offset(a + i * p.a_rows + k * p.a_cols));
                        let right = value(p.b.offset(b + k * p.b_rows + j * p.b_cols));
                        sum = sum.plus(left.times(right));
                    }
                }
                // SAFETY: a position of the target's view, as above.
                unsafe { store(p.c.offset(c + i * p.c_rows + j * p.c_cols), sum) };
            }
        }
    }
    Ok(())
}

/// # Safety
/// `at` is an element that may be read.
unsafe fn value<T: Element>(at: *const T) -> T::V {
    // SAFETY: the caller's promise; an element lies in memory as its raw form.
    T::from_raw(unsafe { at.cast::<T::Raw>().read() }).widen()
}

/// # Safety
/// `at` is an element that may be written.
unsafe fn store<T: Element>(at: *mut T, value: T::V) {
    // SAFETY: the caller's promise; an element lies in memory as its raw form.
    unsafe { at.cast::<T::Raw>().write(T::narrow(value).to_raw()) }
}

/// Products of tiles, added up tile by tile: `[rows][inner][t][t]` by `[inner][columns][t][t]`.
fn tiled<T: Element + gemm::Element>(session: &Session<'_>, request: &Matmul<'_>) -> Result<()> {
    let (a, b, c) = (request.a.layout(), request.b.layout(), request.output.layout());
    let t = c.shape()[3];
    let inner = a.shape()[1];
    let product = Product {
        m: t,
        n: t,
        k: if inner == 0 { 0 } else { t },
        a: request.a.pointer(session).cast::<T>(),
        a_rows: a.strides()[2],
        a_cols: a.strides()[3],
        b: request.b.pointer(session).cast::<T>(),
        b_rows: b.strides()[2],
        b_cols: b.strides()[3],
        c: request.output.pointer(session).cast::<T>(),
        c_rows: c.strides()[2],
        c_cols: c.strides()[3],
        accumulate: false,
    };
    let (rows, columns) = (c.shape()[0], c.shape()[1]);
    let tiles = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let start = |layout: &Layout, row: usize, column: usize| {
        layout.position(&[row, column, 0, 0]).cast_signed()
    };
    if T::DTYPE.computes_in() != T::DTYPE {
        // Half types keep the sum of all tiles in float32, and round once.
        let mut sums: Vec<T::V> = try_room("matmul", t * t)?;
        for (row, column) in tiles {
            pool::check();
            sums.clear();
            sums.resize(t * t, T::V::ZERO);
            for k in 0..inner {
                let (left, right) = (start(a, row, k), start(b, k, column));
                aligned_dot(&product, (left, right), &mut sums);
            }
            for (place, &sum) in sums.iter().enumerate() {
                let (i, j) = ((place / t).cast_signed(), (place % t).cast_signed());
                let at = start(c, row, column) + i * product.c_rows + j * product.c_cols;
                // SAFETY: a position of the target's view, inside its block (the invariant of
                // views), which the session holds for writing.
                unsafe { store(product.c.offset(at), sum) };
            }
        }
        return Ok(());
    }
    let mut starts: Vec<Start> = try_room("matmul", rows * columns)?;
    starts.extend(tiles.map(|(row, column)| match inner {
        0 => (0, 0, start(c, row, column)),
        _ => (start(a, row, 0), start(b, 0, column), start(c, row, column)),
    }));
    let terms = Terms { count: inner.max(1), a_step: a.strides()[1], b_step: b.strides()[0] };
    // SAFETY: as in `best`.
    unsafe { batched_sums(Isa::current(), &Pool, &product, &starts, terms) }
}

/// The textbook's aligned inner product: adds that of the tiles that begin at these positions of A and
/// B. Dtypes that compute in themselves have it in registers, as the small products of `gemm`.
fn aligned_dot<T: Element>(p: &Product<T>, (a, b): (isize, isize), sums: &mut [T::V]) {
    for i in 0..p.m {
        for k in 0..p.k.cast_signed() {
            // SAFETY: positions of the operands' views, inside their blocks (the invariant of
            // views), which the session of the caller holds.
            let left = unsafe { value(p.a.offset(a + i.cast_signed() * p.a_rows + k * p.a_cols)) };
            for j in 0..p.n {
                let at = b + k * p.b_rows + j.cast_signed() * p.b_cols;
                // SAFETY: as above.
                let right = unsafe { value(p.b.offset(at)) };
                let sum = &mut sums[i * p.n + j];
                *sum = sum.plus(left.times(right));
            }
        }
    }
}
