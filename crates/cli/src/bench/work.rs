//! The kinds of work that rows measure: our own call, what it asks of the machine, and the
//! names under which `bench/peers.py` knows it. Peers from Rust are in `rust_peers.rs`.

use tilework::{
    Array, DType, Direction, FoldId, Id, Indexer, KeepDims, PadMode, Result, Rng, apply,
    apply_into, concat, s,
};

use super::limit::Need;
use super::rows::Row;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// A product of two matrices; a transposed operand is a view.
    Matmul { a_transposed: bool, b_transposed: bool },
    /// An operation of the table with a new result, or into one that exists.
    Map { id: Id, out: bool },
    /// A copy of contiguous elements.
    Copy { out: bool },
    /// The same numbers in another dtype.
    Cast { to: DType },
    /// A matrix plus a row.
    AddRow,
    /// A matrix plus a column.
    AddColumn,
    /// Every second element of two vectors.
    AddSteps,
    /// A square matrix plus its transpose.
    AddTransposed,
    /// A compact copy of a transpose.
    Transpose { out: bool },
    /// Images (n, c, h, w) copied as (n, h, w, c).
    ChannelsLast { out: bool },
    /// The 3x3 windows of images, copied: im2col.
    Windows,
    /// Two matrices one below the other.
    Concat,
    /// A margin of one around a matrix.
    Pad,
    /// Elements at random positions.
    Take,
    /// Rows at random positions.
    TakeRows,
    /// Elements written to random positions.
    Put,
    /// The places of positive elements.
    Nonzero,
    /// The elements where a mask is true.
    MaskTake,
    /// One value written where a mask is true.
    MaskPut,
    /// A reduction over all axes or one.
    Reduce { fold: FoldId, axis: Option<isize> },
    /// A running sum.
    CumulativeSum { axis: isize },
    /// Sorted values; `few` different ones, or as many as there are random numbers.
    Sort { few: bool },
    /// The order that would sort.
    Argsort { few: bool },
    /// Sorted values, each once.
    Unique { few: bool },
}

/// A call to be timed.
pub(crate) type Call = Box<dyn FnMut() -> Result<()>>;

fn mode(out: bool) -> String {
    if out { "out" } else { "new" }.to_owned()
}

impl Work {
    /// The first word of a row's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Matmul { .. } => "matmul",
            Work::Map { id, .. } => id.row().name,
            Work::Copy { .. } => "copy",
            Work::Cast { .. } => "cast",
            Work::AddRow => "add_row",
            Work::AddColumn => "add_column",
            Work::AddSteps => "add_steps",
            Work::AddTransposed => "add_transposed",
            Work::Transpose { .. } => "transpose",
            Work::ChannelsLast { .. } => "channels_last",
            Work::Windows => "windows",
            Work::Concat => "concat",
            Work::Pad => "pad",
            Work::Take => "take",
            Work::TakeRows => "take_rows",
            Work::Put => "put",
            Work::Nonzero => "nonzero",
            Work::MaskTake => "mask_take",
            Work::MaskPut => "mask_put",
            Work::Reduce { fold, .. } => fold.row().name,
            Work::CumulativeSum { .. } => "cumulative_sum",
            Work::Sort { .. } => "sort",
            Work::Argsort { .. } => "argsort",
            Work::Unique { .. } => "unique",
        }
    }

    /// The last word of a row's name.
    pub(crate) fn variant(self) -> String {
        let letter = |transposed| if transposed { 't' } else { 'n' };
        match self {
            Work::Matmul { a_transposed, b_transposed } => {
                format!("{}{}", letter(a_transposed), letter(b_transposed))
            }
            Work::Map { out, .. }
            | Work::Copy { out }
            | Work::Transpose { out }
            | Work::ChannelsLast { out } => mode(out),
            Work::Cast { to } => to.to_string(),
            Work::Sort { few: true } | Work::Argsort { few: true } | Work::Unique { few: true } => {
                "few".to_owned()
            }
            Work::Reduce { axis: None, .. } => "all".to_owned(),
            Work::Reduce { axis: Some(axis), .. } | Work::CumulativeSum { axis } => {
                format!("axis{axis}")
            }
            _ => "new".to_owned(),
        }
    }
}

/// Uniform random numbers in a range where the operation is defined, or small integers.
pub(crate) fn operand(work: Work, dtype: DType, shape: &[usize], seed: u64) -> Result<Array> {
    let rng = Rng::new(seed);
    if !dtype.is_float() {
        return rng.integers(-9, 10, shape)?.astype(dtype);
    }
    let positive = matches!(work, Work::Map { id: Id::Log | Id::Pow, .. });
    let (low, width) = if positive { (0.1, 3.9) } else { (-4.0, 8.0) };
    let drawn = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let x = rng.uniform(shape, drawn)?;
    x.mul_assign(width)?;
    x.add_assign(low)?;
    let x = if work.variant() == "few" { x.round()? } else { x };
    if drawn == dtype { Ok(x) } else { x.astype(dtype) }
}

/// The two matrices of a product, as views of the layouts that the row asks for.
pub(crate) fn matrices(row: &Row) -> Result<(Array, Array)> {
    let (batch, [m, k, n]) = sizes(&row.shape);
    let Work::Matmul { a_transposed, b_transposed } = row.work else { unreachable!("a product") };
    let matrix = |rows: usize, columns: usize, transposed: bool, seed| {
        let (first, second) = if transposed { (columns, rows) } else { (rows, columns) };
        let shape = [batch, &[first, second]].concat();
        let x = operand(row.work, row.dtype, &shape, seed)?;
        if transposed { x.matrix_transpose() } else { Ok(x) }
    };
    Ok((matrix(m, k, a_transposed, 1)?, matrix(k, n, b_transposed, 2)?))
}

/// A product's batch and its three sizes.
pub(crate) fn sizes(shape: &[usize]) -> (&[usize], [usize; 3]) {
    let (batch, sizes) = shape.split_at(shape.len() - 3);
    (batch, [sizes[0], sizes[1], sizes[2]])
}

/// A call that makes a new array and drops it.
fn fresh(call: impl Fn() -> Result<Array> + 'static) -> Call {
    Box::new(move || call().map(drop))
}

/// Our own call for a row, its operands made.
pub(crate) fn ours(row: &Row) -> Result<Call> {
    let (work, shape) = (row.work, row.shape.as_slice());
    if let Work::Matmul { .. } = work {
        let (a, b) = matrices(row)?;
        return Ok(fresh(move || a.matmul(&b)));
    }
    let x = operand(work, row.dtype, shape, 1)?;
    let second = || operand(work, row.dtype, shape, 2);
    Ok(match work {
        Work::Matmul { .. } => unreachable!("made above"),
        Work::Map { id, out } => {
            let operands: Vec<Array> =
                if id.row().arity == 1 { vec![x] } else { vec![x, second()?] };
            if out {
                let target = Array::zeros(shape, row.dtype)?;
                Box::new(move || {
                    let args: Vec<_> = operands.iter().map(Into::into).collect();
                    apply_into(id, &args, &target)
                })
            } else {
                fresh(move || {
                    let args: Vec<_> = operands.iter().map(Into::into).collect();
                    apply(id, &args)
                })
            }
        }
        Work::Copy { out } => copy_of(x, out)?,
        Work::Cast { to } => fresh(move || x.astype(to)),
        Work::AddRow => {
            let line = operand(work, row.dtype, &shape[1..], 2)?;
            fresh(move || &x + &line)
        }
        Work::AddColumn => {
            let line = operand(work, row.dtype, &[shape[0], 1], 2)?;
            fresh(move || &x + &line)
        }
        Work::AddSteps => {
            let every_second = s![..;2];
            let (a, b) = (x.slice(&every_second)?, second()?.slice(&every_second)?);
            fresh(move || &a + &b)
        }
        Work::AddTransposed => {
            let transposed = x.transpose();
            fresh(move || &x + &transposed)
        }
        Work::Transpose { out } => copy_of(x.transpose(), out)?,
        Work::ChannelsLast { out } => copy_of(x.permute(&[0, 2, 3, 1])?, out)?,
        Work::Windows => fresh(move || {
            // (n, c, h', w', 3, 3) to (n, h', w', c, 3, 3), the rows of im2col.
            x.sliding_windows(&[3, 3], &[2, 3])?.permute(&[0, 2, 3, 1, 4, 5])?.copy()
        }),
        Work::Concat => {
            let y = second()?;
            fresh(move || concat(&[&x, &y], 0))
        }
        Work::Pad => fresh(move || x.pad(&[(1, 1), (1, 1)], PadMode::Constant(0.0.into()))),
        Work::Take | Work::TakeRows => {
            let picks = Rng::new(3).permutation(shape[0])?;
            fresh(move || x.take(&picks, 0))
        }
        Work::Put => {
            let (picks, y) = (Rng::new(3).permutation(shape[0])?, second()?);
            Box::new(move || x.index_set(&[Indexer::Array(&picks)], &y))
        }
        Work::Nonzero => {
            let mask = x.greater(0.0)?;
            Box::new(move || mask.nonzero().map(drop))
        }
        Work::MaskTake => {
            let mask = x.greater(0.0)?;
            fresh(move || x.index(&[Indexer::Array(&mask)]))
        }
        Work::MaskPut => {
            let mask = x.greater(0.0)?;
            Box::new(move || x.index_set(&[Indexer::Array(&mask)], 1.0))
        }
        Work::Reduce { fold, axis } => fresh(move || x.reduce(fold, axis, KeepDims::No, 0.0)),
        Work::CumulativeSum { axis } => fresh(move || x.cumulative_sum(axis)),
        Work::Sort { .. } => fresh(move || x.sort(0, Direction::Ascending)),
        Work::Argsort { .. } => fresh(move || x.argsort(0, Direction::Ascending)),
        Work::Unique { .. } => fresh(move || x.unique_values()),
    })
}

/// A compact copy of a view, new or into an array that exists.
fn copy_of(view: Array, out: bool) -> Result<Call> {
    if !out {
        return Ok(fresh(move || view.copy()));
    }
    let target = Array::zeros(view.shape(), view.dtype())?;
    Ok(Box::new(move || target.assign(&view)))
}

/// What a row asks of the machine, where that is known.
pub(crate) fn need(row: &Row) -> Option<Need> {
    let count: usize = row.shape.iter().product();
    let bytes = count * row.dtype.size();
    let streams = |sources, source_bytes, target_bytes| {
        Some(Need::Streams { sources, source_bytes, target_bytes })
    };
    match row.work {
        Work::Matmul { .. } if row.dtype == DType::Float32 || row.dtype == DType::Float64 => {
            let (batch, [m, k, n]) = sizes(&row.shape);
            if m == 1 || n == 1 {
                return streams(1, m.max(n) * k * row.dtype.size(), 0);
            }
            let flops = 2 * batch.iter().product::<usize>() * m * k * n;
            Some(Need::MultiplyAdds { double: row.dtype == DType::Float64, flops: flops as f64 })
        }
        Work::Map { id, .. } => streams(id.row().arity, bytes, bytes),
        Work::Cast { to } => streams(1, bytes, count * to.size()),
        Work::AddSteps => streams(2, bytes, bytes / 2),
        Work::AddTransposed => streams(2, bytes, bytes),
        Work::Copy { .. }
        | Work::AddRow
        | Work::AddColumn
        | Work::Transpose { .. }
        | Work::ChannelsLast { .. }
        | Work::Pad
        | Work::CumulativeSum { .. } => streams(1, bytes, bytes),
        Work::Concat => streams(1, 2 * bytes, 2 * bytes),
        Work::Windows => streams(1, bytes, 9 * bytes),
        Work::Reduce { .. } => streams(1, bytes, 0),
        _ => None,
    }
}
