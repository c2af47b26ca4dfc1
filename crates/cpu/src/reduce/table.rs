//! What the driver of reductions calls: for every fold and dtype a [`Cell`] of functions.
//!
//! The table is made by const evaluation from the rows of `tilework_ops::fold` with the kernels of
//! `define.rs`, which say what a fold means and are right for every row; rows whose speed matters
//! are then replaced by the kernels of `lanes.rs`, `arg.rs` and `moments.rs`. A new fold needs
//! nothing here.
//!
//! Kernels see *loaded* elements: those of the array, but float32 for the half types, whose chunks
//! the driver widens beforehand, unless a kernel takes these as they are. States are opaque bytes to the driver. Called by `drive.rs`.

use std::marker::PhantomData;

use tilework_ops::fold::{
    Accumulate, All, Any, ArgMax, ArgMin, CountNonzero, FOLD_COUNT, LogSumExp, Max, Mean, Min,
    Norm, Prod, Sum, Var,
};
use tilework_ops::{
    Complex, DType, Element, Entry, Fold, FoldColumn, FoldId, Rule, bf16, f16, fold_column,
};

use super::arg::Arg;
use super::lanes::{Lanes, LanesOfSum};
use super::moments::InTwoPasses;
use super::{define, halves};

/// Rows of `len` contiguous loaded elements each, `stride` elements apart.
///
/// Who makes one vouches that all these elements may be read; `len` is neither zero nor more than
/// [`MAX_RUN`].
pub(super) struct Rows {
    pub(super) src: *const u8,
    pub(super) len: usize,
    pub(super) rows: usize,
    pub(super) stride: isize,
    /// The index of the first element of each row.
    pub(super) index: i64,
}

/// `columns` side by side, each of `rows` loaded elements that are `stride` elements apart.
///
/// Who makes one vouches that all these elements may be read; `rows` is not zero.
pub(super) struct Columns {
    pub(super) src: *const u8,
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) stride: isize,
    /// The index of the first element of each column.
    pub(super) index: i64,
}

/// The longest row that a kernel is given, so that its own bookkeeping is bounded.
pub(super) const MAX_RUN: usize = 1 << 16;

/// How many rows an outer kernel folds one after another where rounding errors add up.
const ROWS: usize = 32;

/// The most bytes that a state has.
pub(crate) const MAX_STATE: usize = 32;

/// Folds rows: one state for each row is written (not updated).
pub(super) type Inner = unsafe fn(&Rows, *mut u8);

/// Folds columns: one state for each column is written (not updated).
pub(super) type Outer = unsafe fn(&Columns, *mut u8);

/// Everything that is known about one fold on one dtype.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    /// Bytes of a state; at most [`MAX_STATE`], and an alignment of 16 suits it.
    pub(super) state: usize,
    pub(super) inner: [Inner; 3],
    /// For rows of half floats as they lie in the array, where that is faster.
    pub(super) inner_of_halves: Option<[Inner; 3]>,
    pub(super) outer: [Outer; 3],
    /// `(n, states)`: the states of no elements.
    pub(super) init: unsafe fn(usize, *mut u8),
    /// `(n, into, from)`: each of `into` followed by each of `from`.
    pub(super) merge: unsafe fn(usize, *mut u8, *const u8),
    /// `(n, states, count, correction, results)`: contiguous results of dtype `gives`.
    pub(super) finish: unsafe fn(usize, *const u8, usize, f64, *mut u8),
    /// The dtype of results before they are cast to the output's.
    pub(super) gives: DType,
    /// The most rows that an outer kernel is given at once; what lies beyond is merged in pairs.
    pub(super) rows: usize,
    /// Whether elements must come in order with their indices.
    pub(super) ordered: bool,
}

/// What an element type is loaded as, and the two wider types that rows may accumulate in.
pub(crate) trait Source: Element {
    type Loaded: Element<V = Self::V>;
    type Wide: Source;
    type Inexact: Source;
}

macro_rules! sources {
    ($($type:ty, $loaded:ty, $wide:ty, $inexact:ty;)*) => {$(
        impl Source for $type {
            type Loaded = $loaded;
            type Wide = $wide;
            type Inexact = $inexact;
        }
    )*};
}

sources! {
    bool, bool, i64, f64;
    i8, i8, i64, f64;
    i16, i16, i64, f64;
    i32, i32, i64, f64;
    i64, i64, i64, f64;
    u8, u8, u64, f64;
    u16, u16, u64, f64;
    u32, u32, u64, f64;
    u64, u64, u64, f64;
    f16, f32, f16, f16;
    bf16, f32, bf16, bf16;
    f32, f32, f32, f32;
    f64, f64, f64, f64;
    Complex<f32>, Complex<f32>, Complex<f32>, Complex<f32>;
    Complex<f64>, Complex<f64>, Complex<f64>, Complex<f64>;
}

/// One fold, all dtypes.
pub(super) type Row = [Option<Cell>; DType::COUNT];

/// Kernels of fold `F` for loaded elements `L` that are computed in as `C`.
pub(super) trait Kernels<F: Fold, L: Element, C: Element> {
    const INNER: [Inner; 3];
    const OUTER: [Outer; 3];
}

/// The cell of fold `F` on elements `S` with kernels of `K`; None where the row has no meaning.
const fn cell<F: Fold, S: Source, K>() -> Option<Cell>
where
    K: Kernels<F, S::Loaded, S::Loaded>,
    K: Kernels<F, S::Loaded, <S::Wide as Source>::Loaded>,
    K: Kernels<F, S::Loaded, <S::Inexact as Source>::Loaded>,
{
    if F::ROW.accumulates(S::DTYPE).is_none() {
        return None;
    }
    Some(match F::ROW.accumulate {
        Accumulate::Same => typed::<F, S, S, K>(),
        Accumulate::Wide => typed::<F, S, S::Wide, K>(),
        Accumulate::Inexact => typed::<F, S, S::Inexact, K>(),
    })
}

const fn typed<F: Fold, S: Source, A: Source, K>() -> Cell
where
    K: Kernels<F, S::Loaded, A::Loaded>,
{
    with_kernels::<F, A>(K::INNER, K::OUTER)
}

const fn with_kernels<F: Fold, A: Element>(inner: [Inner; 3], outer: [Outer; 3]) -> Cell {
    assert!(size_of::<F::State<A::V>>() <= MAX_STATE && align_of::<F::State<A::V>>() <= 16);
    Cell {
        state: size_of::<F::State<A::V>>(),
        inner,
        inner_of_halves: None,
        outer,
        init: define::init::<F, A>,
        merge: define::merge::<F, A>,
        finish: define::finish::<F, A>,
        gives: F::ROW.result(A::DTYPE),
        rows: ROWS,
        ordered: matches!(F::ROW.gives, Rule::Index),
    }
}

/// The row of fold `$F` with kernels of `$K`.
macro_rules! row {
    ($F:ty, $K:ty) => {
        [
            cell::<$F, bool, $K>(),
            cell::<$F, i8, $K>(),
            cell::<$F, i16, $K>(),
            cell::<$F, i32, $K>(),
            cell::<$F, i64, $K>(),
            cell::<$F, u8, $K>(),
            cell::<$F, u16, $K>(),
            cell::<$F, u32, $K>(),
            cell::<$F, u64, $K>(),
            cell::<$F, f16, $K>(),
            cell::<$F, bf16, $K>(),
            cell::<$F, f32, $K>(),
            cell::<$F, f64, $K>(),
            cell::<$F, Complex<f32>, $K>(),
            cell::<$F, Complex<f64>, $K>(),
        ]
    };
}

/// The row of a fold that only asks what is true, and whose state does not depend on the dtype:
/// integers of one width, and bool, share their kernels.
macro_rules! truth_row {
    ($F:ty; $($dtype:ident $type:ty, $like:ty;)*) => {{
        let mut row: Row = [None; DType::COUNT];
        $(row[DType::$dtype as usize] = Some(with_kernels::<$F, $type>(
            <Lanes as Kernels<$F, $like, $like>>::INNER,
            <Lanes as Kernels<$F, $like, $like>>::OUTER,
        ));)*
        row
    }};
    ($F:ty) => {
        truth_row! { $F;
            Bool bool, u8;
            Int8 i8, u8;
            Int16 i16, u16;
            Int32 i32, u32;
            Int64 i64, u64;
            UInt8 u8, u8;
            UInt16 u16, u16;
            UInt32 u32, u32;
            UInt64 u64, u64;
            Float16 f16, f32;
            BFloat16 bf16, f32;
            Float32 f32, f32;
            Float64 f64, f64;
            Complex64 Complex<f32>, Complex<f32>;
            Complex128 Complex<f64>, Complex<f64>;
        }
    };
}

struct Definitions;
struct At<F>(PhantomData<F>);

impl FoldColumn for Definitions {
    type Cell = Row;
    type At<F: Fold> = At<F>;
}

impl<F: Fold> Entry<Row> for At<F> {
    const VALUE: Row = row!(F, define::Define);
}

static TABLE: [Row; FOLD_COUNT] = {
    let mut table = fold_column::<Definitions>();
    table[FoldId::Sum as usize] = of_halves(row!(Sum, Lanes));
    table[FoldId::Mean as usize] = of_halves(row!(Mean, LanesOfSum));
    table[FoldId::Norm as usize] = row!(Norm, Lanes);
    table[FoldId::Prod as usize] = row!(Prod, Lanes);
    table[FoldId::Max as usize] = with_rows(row!(Max, Lanes), MANY_ROWS);
    table[FoldId::Min as usize] = with_rows(row!(Min, Lanes), MANY_ROWS);
    table[FoldId::Any as usize] = with_rows(truth_row!(Any), MANY_ROWS);
    table[FoldId::All as usize] = with_rows(truth_row!(All), MANY_ROWS);
    table[FoldId::CountNonzero as usize] =
        in_any_order(with_rows(truth_row!(CountNonzero), MANY_ROWS));
    table[FoldId::ArgMax as usize] = with_rows(row!(ArgMax, Arg), MANY_ROWS);
    table[FoldId::ArgMin as usize] = with_rows(row!(ArgMin, Arg), MANY_ROWS);
    table[FoldId::Var as usize] = with_rows(row!(Var, InTwoPasses), 128);
    table[FoldId::LogSumExp as usize] = row!(LogSumExp, InTwoPasses);
    table
};

/// The row of sums, with kernels that widen half floats themselves.
const fn of_halves(mut row: Row) -> Row {
    if let Some(cell) = &mut row[DType::Float16 as usize] {
        cell.inner_of_halves = Some(halves::FLOAT16);
    }
    if let Some(cell) = &mut row[DType::BFloat16 as usize] {
        cell.inner_of_halves = Some(halves::BFLOAT16);
    }
    row
}

/// Rows that an outer kernel takes at once where nothing is rounded: merging costs time only.
const MANY_ROWS: usize = 1 << 12;

/// The row, with another number of rows for its outer kernels.
const fn with_rows(mut row: Row, rows: usize) -> Row {
    let mut i = 0;
    while i < row.len() {
        if let Some(cell) = &mut row[i] {
            cell.rows = rows;
        }
        i += 1;
    }
    row
}

/// The row of a fold whose result is a count, not an index.
const fn in_any_order(mut row: Row) -> Row {
    let mut i = 0;
    while i < row.len() {
        if let Some(cell) = &mut row[i] {
            cell.ordered = false;
        }
        i += 1;
    }
    row
}

/// The functions of a fold on a dtype.
pub(super) fn lookup(fold: FoldId, dtype: DType) -> Option<&'static Cell> {
    TABLE[fold as usize][dtype as usize].as_ref()
}
