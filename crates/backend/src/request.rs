//! What a backend can be asked: plain data with names, complete and valid.
//!
//! Shapes, dtypes, bounds and overlap are settled before a request is made; below the contract
//! nothing is checked again, except for what only a session can know ([`Indices`]). A new operation
//! is a new row in a table and never a new request.
//!
//! Sources and target of a request never overlap, except that a source of a [`Map`] may be the
//! target itself (same block, same layout, same element size), which is then updated in place.

use tilework_error::Error;
use tilework_layout::{Layout, out_of_bounds};
use tilework_ops::{Distribution, FoldId, Scalar};
use tilework_tape::Tape;

use crate::lock::Access;
use crate::pairs::PairReduce;
use crate::session::Session;
use crate::storage::Storage;
use crate::view::{Target, ViewRef};

/// An input of a map.
#[derive(Debug, Clone, Copy)]
pub enum Operand<'a> {
    /// An array with the shape of the target (broadcast by strides of zero).
    View(ViewRef<'a>),
    /// The same value everywhere.
    Scalar(Scalar),
}

/// A tape, element by element. Copy, cast, fill, compact and setitem are maps of the identity. A select
/// whose last operand is the output itself is a write under a mask; the CPU, whose memory others may write to
/// at the same time, does not write what the mask leaves.
#[derive(Debug)]
pub struct Map<'a> {
    /// A tape with one output, all of whose slots have length 1.
    pub tape: &'a Tape,
    /// One operand for each input of the tape.
    pub inputs: &'a [Operand<'a>],
    /// Where the results go.
    pub output: Target<'a>,
}

/// A reduction over some axes.
#[derive(Debug)]
pub struct Reduce<'a> {
    /// Which one. Elements are cast to what its row accumulates in, and the result is cast to the
    /// output's dtype.
    pub fold: FoldId,
    /// What is reduced.
    pub input: ViewRef<'a>,
    /// The axes that are reduced, ascending.
    pub axes: &'a [usize],
    /// What variances subtract from the count.
    pub correction: f64,
    /// Has the other axes, in order.
    pub output: Target<'a>,
}

/// A running reduction along one axis: each element becomes the result of all up to it.
#[derive(Debug)]
pub struct Scan<'a> {
    /// Which one, whose row has a running form.
    pub fold: FoldId,
    /// What is scanned.
    pub input: ViewRef<'a>,
    /// Along which axis.
    pub axis: usize,
    /// Has the input's shape.
    pub output: Target<'a>,
}

/// Which kernel a product uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatmulKernel {
    /// Whatever is best.
    Best,
    /// The textbook's three loops.
    Naive,
    /// The textbook's tiles: operands and result are arrays of tiles, `[rows][columns][t][t]`,
    /// with t the size of the last axis.
    Tiled,
    /// float32 from products of bfloat16 pieces, where the device has a unit for these that is
    /// faster: as accurate as float32, but with other last bits. Otherwise whatever is best.
    Pieces,
}

/// Products of matrices: `[batch.., m, k]` by `[batch.., k, n]`.
#[derive(Debug)]
pub struct Matmul<'a> {
    /// Left operand, with the batch axes of the output.
    pub a: ViewRef<'a>,
    /// Right operand, of the same dtype and batch axes.
    pub b: ViewRef<'a>,
    /// `[batch.., m, n]`, of the same dtype.
    pub output: Target<'a>,
    /// By which kernel.
    pub kernel: MatmulKernel,
}

/// The first axes of an array, indexed by arrays.
///
/// Negative indices count from the end. What the arrays hold is known only while their guards are
/// held, so this is the one thing that a backend checks: an index that is outside of its axis is an
/// error ([`Indices::outside`]), and nothing that others see has been written then.
#[derive(Debug, Clone, Copy)]
pub struct Indices<'a> {
    /// For each indexed axis, an int64 array; all have one shape.
    pub arrays: &'a [ViewRef<'a>],
    /// What the caller calls these axes, for messages.
    pub axes: &'a [usize],
}

impl Indices<'_> {
    /// The error of an index that is outside of the axis that array number `array` indexes.
    #[cold]
    pub fn outside(
        &self,
        session: &Session<'_>,
        array: usize,
        index: i64,
        indexed: &Layout,
    ) -> Error {
        let axis = self.axes.get(array).copied().unwrap_or(array);
        out_of_bounds(session.operation(), index, axis, indexed.shape()[array])
    }
}

/// Elements picked by arrays of indices.
#[derive(Debug)]
pub struct Gather<'a> {
    /// What is picked from; its first axes are the indexed ones.
    pub source: ViewRef<'a>,
    /// Which; they reach the source's first axes.
    pub indices: Indices<'a>,
    /// The shape of the indices, then the source's other axes; of the source's dtype. New, since it
    /// may be written to before an index is found to be outside.
    pub output: Target<'a>,
}

/// Elements written to places given by arrays of indices; the last of several writes stays.
#[derive(Debug)]
pub struct Scatter<'a> {
    /// What is written; the shape of the indices, then the target's other axes.
    pub source: ViewRef<'a>,
    /// Where to; they reach the target's first axes.
    pub indices: Indices<'a>,
    /// Its first axes are the indexed ones; of the source's dtype.
    pub target: Target<'a>,
}

/// The indices of true elements, in row-major order.
#[derive(Debug)]
pub struct Nonzero<'a> {
    /// bool.
    pub input: ViewRef<'a>,
    /// int64, `[count, axes]`, where count is the number of true elements.
    pub output: Target<'a>,
}

/// Elements in order along one axis; NaN come last.
#[derive(Debug)]
pub struct Sort<'a> {
    /// What is sorted.
    pub input: ViewRef<'a>,
    /// Along which axis.
    pub axis: usize,
    /// Largest first.
    pub descending: bool,
    /// The sorted elements (equal ones keep their order), or, if int64 and `indices`, where they
    /// were.
    pub output: Target<'a>,
    /// Whether the output is indices.
    pub indices: bool,
}

/// Where values would be inserted into a sorted array.
#[derive(Debug)]
pub struct Search<'a> {
    /// One axis, ascending.
    pub sorted: ViewRef<'a>,
    /// Of the same dtype.
    pub values: ViewRef<'a>,
    /// After equal elements, not before.
    pub right: bool,
    /// int64, of the values' shape.
    pub output: Target<'a>,
}

/// Random numbers: element number k, in row-major order, is a function of key and k alone.
#[derive(Debug)]
pub struct Random<'a> {
    /// How they are distributed.
    pub distribution: Distribution,
    /// The seed.
    pub key: u64,
    /// The first element's number.
    pub counter: u64,
    /// Row-major.
    pub output: Target<'a>,
}

/// Everything that a backend can be asked.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant is the request of its name")]
pub enum Request<'a> {
    Map(Map<'a>),
    Reduce(Reduce<'a>),
    Scan(Scan<'a>),
    Matmul(Matmul<'a>),
    Gather(Gather<'a>),
    Scatter(Scatter<'a>),
    Nonzero(Nonzero<'a>),
    Sort(Sort<'a>),
    Search(Search<'a>),
    Random(Random<'a>),
    PairReduce(PairReduce<'a>),
}

impl<'a> Map<'a> {
    /// Every block it touches, how, and whether nobody else knows it.
    #[inline]
    pub(crate) fn each_view(&self, mut f: impl FnMut(&'a Storage, Access, bool)) {
        for input in self.inputs {
            if let Operand::View(view) = input {
                f(view.storage(), Access::Read, false);
            }
        }
        f(self.output.view().storage(), Access::Write, self.output.is_fresh());
    }
}

impl<'a> Matmul<'a> {
    /// Every block it touches, how, and whether nobody else knows it.
    #[inline]
    pub(crate) fn each_view(&self, mut f: impl FnMut(&'a Storage, Access, bool)) {
        f(self.a.storage(), Access::Read, false);
        f(self.b.storage(), Access::Read, false);
        f(self.output.view().storage(), Access::Write, self.output.is_fresh());
    }
}

impl<'a> Request<'a> {
    /// Every block it touches, how, and whether nobody else knows it.
    pub(crate) fn each_view(&self, f: &mut impl FnMut(&'a Storage, Access, bool)) {
        let mut read = |view: &ViewRef<'a>| f(view.storage(), Access::Read, false);
        let target = match self {
            Request::Map(map) => return map.each_view(f),
            Request::Reduce(reduce) => {
                read(&reduce.input);
                &reduce.output
            }
            Request::Scan(scan) => {
                read(&scan.input);
                &scan.output
            }
            Request::Matmul(matmul) => return matmul.each_view(f),
            Request::Gather(gather) => {
                read(&gather.source);
                gather.indices.arrays.iter().for_each(read);
                &gather.output
            }
            Request::Scatter(scatter) => {
                read(&scatter.source);
                scatter.indices.arrays.iter().for_each(read);
                &scatter.target
            }
            Request::Nonzero(nonzero) => {
                read(&nonzero.input);
                &nonzero.output
            }
            Request::Sort(sort) => {
                read(&sort.input);
                &sort.output
            }
            Request::Search(search) => {
                read(&search.sorted);
                read(&search.values);
                &search.output
            }
            Request::Random(random) => &random.output,
            Request::PairReduce(pairs) => {
                pairs.inputs.iter().for_each(read);
                for target in [&pairs.values, &pairs.indices].into_iter().flatten() {
                    f(target.view().storage(), Access::Write, target.is_fresh());
                }
                return;
            }
        };
        f(target.view().storage(), Access::Write, target.is_fresh());
    }
}
