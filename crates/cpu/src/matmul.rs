//! The `Matmul` request, handed to `gemm` in its own terms: base addresses, strides, batches.
//!
//! May assume shapes, dtypes and overlap that the contract settles. Called by the backend.

use std::ops::Deref;

use tilework_backend::{Matmul, MatmulKernel, Session};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};
use tilework_ops::{DType, Element, with_element};

use crate::gemm::{self, Parallel, Product, batched, batched_by_pieces};
use crate::isa::Isa;
use crate::pool;
use crate::scratch::Scratch;
use crate::textbook;

/// The pool, as products see it.
struct Pool;

impl Parallel for Pool {
    fn threads(&self) -> usize {
        pool::threads()
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        pool::run(pieces, work);
    }

    fn run_brief(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        pool::run_brief(pieces, work);
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
            MatmulKernel::Naive | MatmulKernel::Tiled => textbook::run::<T>(session, request),
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
    starts: Starts,
}

/// The positions of A, B and C.
type Start = (isize, isize, isize);

/// The positions of all products: usually of one, which takes no memory.
enum Starts {
    One([Start; 1]),
    /// A list in memory that is recycled: small products take less time than fresh pages.
    Many(List),
}

impl Deref for Starts {
    type Target = [Start];

    fn deref(&self) -> &[Start] {
        match self {
            Starts::One(one) => one,
            Starts::Many(many) => many.starts(),
        }
    }
}

/// Positions in memory of their own.
struct List {
    memory: Scratch,
    count: usize,
}

impl List {
    fn starts(&self) -> &[Start] {
        // SAFETY: memory starts at a cache line; `List::new` has written so many positions.
        unsafe { std::slice::from_raw_parts(self.memory.start().cast(), self.count) }
    }

    /// The positions in the order of `nest`, whose operands are C, A and B, or C alone.
    fn new(nest: &LoopNest) -> Result<List> {
        let count = nest.len();
        let mut memory = Scratch::new("matmul", count.saturating_mul(size_of::<Start>()))?;
        let mut next = memory.pointer().cast::<Start>();
        let steps = nest.inner_strides();
        nest.for_each_piece(0..count, |at, len| {
            let place = |operand: usize, i: isize| match at.get(operand) {
                Some(at) => at.cast_signed() + i * steps[operand],
                None => 0,
            };
            for i in 0..len.cast_signed() {
                // SAFETY: a nest has pieces of `count` positions in all, for which there is room.
                unsafe {
                    next.write((place(1, i), place(2, i), place(0, i)));
                    next = next.add(1);
                }
            }
        });
        Ok(List { memory, count })
    }
}

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
    if axes == 2 {
        let [a, b, c] = [a, b, c].map(|layout| layout.offset().cast_signed());
        return Ok(Products { product, starts: Starts::One([(a, b, c)]) });
    }
    let batch = batch_axes(c, 2)?;
    // Empty operands reach nothing, and their strides may hold any number.
    let nest = match product.k {
        0 => LoopNest::new(&[&batch]),
        _ => LoopNest::new(&[&batch, &batch_axes(a, 2)?, &batch_axes(b, 2)?]),
    };
    Ok(Products { product, starts: Starts::Many(List::new(&nest)?) })
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
