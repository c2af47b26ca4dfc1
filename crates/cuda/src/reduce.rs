//! Reductions: lanes of a block share an output; long ones are cut into pieces and merged.
//!
//! How the elements are shared out depends on the sizes alone, so the same input gives the same
//! bits wherever it lies. Called by `device.rs`.

use tilework_backend::{Reduce, Session};
use tilework_error::Result;
use tilework_layout::ReduceNest;
use tilework_ops::{DType, FoldId};

use crate::compile::Room;
use crate::device::Cuda;
use crate::driver::{Address, Grid};
use crate::launch::{self, Args, Nest, Width};
use crate::source;

const THREADS: usize = 256;
/// Elements that a lane takes before its piece ends: the fewest and the most, the latter also where
/// neighbouring threads have neighbouring outputs.
const STEPS: [usize; 2] = [64, 256];
const STEPS_ACROSS: usize = 512;
/// Blocks that keep any card busy: with more of them, pieces may be longer.
const BUSY: usize = 2048;
/// Threads that merge pieces: as in `kernels/reduce.cu`.
const FINISHERS: usize = 1024;
/// Elements from which on one loop goes round a ring, and bytes of that, as in `kernels/reduce_ring.cu`.
const MANY: usize = 1 << 18;
const RING: usize = 8 << 14;
/// Pieces that a grid can have.
const MAX_PIECES: usize = 65_535;
/// What all reductions of blocks begin with.
const TREE: &str = include_str!("kernels/reduce_tree.cu");
/// Bytes of the largest state of a fold.
pub(crate) const STATE: usize = 32;

/// How a reduction is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    outputs: usize,
    count: usize,
    piece: usize,
    pieces: usize,
    lanes: usize,
}

impl Shape {
    /// `across` if neighbouring outputs lie nearer to each other than neighbouring elements do.
    fn new(outputs: usize, count: usize, across: bool) -> Shape {
        let most = if across { 8 } else { THREADS };
        let lanes = count.div_ceil(8).max(1).next_power_of_two().min(most);
        let most = if across { STEPS_ACROSS } else { STEPS[1] };
        let groups = outputs.div_ceil(THREADS / lanes);
        let steps = (groups.saturating_mul(count) / (lanes * BUSY)).clamp(STEPS[0], most);
        let piece = (lanes * steps.next_multiple_of(STEPS[0])).max(count.div_ceil(MAX_PIECES));
        Shape { outputs, count, piece, pieces: count.div_ceil(piece).max(1), lanes }
    }

    fn encode(&self, width: Width) -> Vec<u8> {
        let indices = [self.outputs, self.count, self.piece];
        let numbers = [self.pieces, self.lanes];
        let indices = indices.iter().flat_map(|&number| width.bytes(number as u64));
        let numbers = numbers.iter().flat_map(|&number| (number as u32).to_le_bytes());
        indices.chain(numbers).collect()
    }
}

pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Reduce<'_>,
    name: &str,
) -> Result<()> {
    let (input, output) = (request.input, request.output.view());
    let nest = ReduceNest::new(input.layout(), request.axes, output.layout())?;
    let (outputs, count) = (nest.kept().len(), nest.reduced_len());
    if outputs == 0 {
        return Ok(());
    }
    let reduced = nest.reduced_in_order();
    let nearer = |strides: &[isize]| strides[0].unsigned_abs();
    let across =
        outputs > 1 && nearer(nest.kept().inner_strides()) < nearer(reduced.inner_strides());
    let shape = Shape::new(outputs, count, across);
    let begin = launch::source(&input, session);
    let out = launch::target(&request.output, session);
    let folded = Folded { fold: request.fold, dtypes: (input.dtype(), output.dtype()) };
    if folded.suits_ring(cuda, &nest, begin)? {
        return folded.ring(cuda, name, &nest, [begin, out]);
    }
    let together = if across { together(&nest, begin, input.dtype().size()) } else { 0 };
    let width =
        Width::of(outputs.max(count), [launch::elements(&input), launch::elements(&output)])
            .for_axes(nest.kept().axes().max(reduced.axes()));
    let dtypes = folded.dtypes;
    // Across outputs the source of one loop is the slower: sums of columns 4.01 TB/s instead of 4.27.
    let (fold, one_loop) = (request.fold, together == 0 && reduced.axes() == 1);
    let key = [
        Room::Reduce as u8,
        width as u8,
        together as u8,
        one_loop as u8,
        fold as u8,
        dtypes.0 as u8,
        dtypes.1 as u8,
    ];
    let module = cuda.module(name, &key, || Ok(text(fold, dtypes, together, one_loop, width)))?;

    let kept = Nest::new(nest.kept()).encode(width);
    let partial = match shape.pieces {
        1 => None,
        pieces => Some(cuda.allocate_block(outputs * pieces * STATE)?),
    };
    let scratch = partial.as_ref().map_or(0, |block| block.address);
    let correction = request.correction.to_bits();
    let args = Args::new()
        .bytes(&kept)
        .bytes(&Nest::new(reduced).encode(width))
        .bytes(&shape.encode(width))
        .number(correction)
        .pointer(begin)
        .pointer(out)
        .pointer(scratch);
    let outputs_of_block = THREADS / shape.lanes * together.max(1);
    let blocks = [outputs.div_ceil(outputs_of_block), shape.pieces];
    let grid = launch::grid(name, blocks, THREADS)?;
    let function = cuda.function(name, &module, c"reduce")?;
    // SAFETY: the source declares these arguments; the loops are those of checked layouts, and the
    // scratch has room for a state of each piece.
    unsafe { cuda.launch(name, function, grid, args)? };
    if shape.pieces > 1 {
        let lanes = shape.pieces.next_power_of_two().min(FINISHERS);
        let args = Args::new()
            .bytes(&kept)
            .bytes(&shape.encode(width))
            .number(lanes as u64)
            .number(correction)
            .pointer(out)
            .pointer(scratch);
        let grid = launch::grid(name, [outputs.div_ceil(FINISHERS / lanes), 1], FINISHERS)?;
        let function = cuda.function(name, &module, c"finish")?;
        // SAFETY: as above.
        unsafe { cuda.launch(name, function, grid, args)? };
    }
    Ok(())
}

/// What is folded, from which dtype to which.
#[derive(Debug, Clone, Copy)]
struct Folded {
    fold: FoldId,
    dtypes: (DType, DType),
}

impl Folded {
    /// Whether all elements lie in one long run that the copy engine can fetch, and come to the same in any order.
    fn suits_ring(self, cuda: &Cuda, nest: &ReduceNest, begin: Address) -> Result<bool> {
        let any_order =
            matches!(self.fold, FoldId::Max | FoldId::Min | FoldId::ArgMax | FoldId::ArgMin);
        let (count, reduced) = (nest.reduced_len(), nest.reduced_in_order());
        let size = self.dtypes.0.size();
        Ok(any_order
            && size == 4
            && nest.kept().len() == 1
            && (MANY..1 << 31).contains(&count)
            && reduced.axes() == 1
            && reduced.inner_strides()[0] == 1
            && (begin + (first(nest) * size) as Address).is_multiple_of(16)
            && cuda.facts()?.capability == (9, 0))
    }

    /// The reduction of such a run, by a block for each multiprocessor.
    fn ring(
        self,
        cuda: &Cuda,
        name: &str,
        nest: &ReduceNest,
        [begin, out]: [Address; 2],
    ) -> Result<()> {
        let (from, to) = self.dtypes;
        let key = [Room::Reduce as u8, b'R', self.fold as u8, from as u8, to as u8];
        let module = cuda.module(name, &key, || Ok(self.ring_text()))?;
        let blocks = cuda.facts()?.multiprocessors as usize;
        let partial = cuda.allocate_block(blocks * STATE)?;
        let function = cuda.function(name, &module, c"ring")?;
        let grid = Grid::new(name, [blocks, 1, 1], THREADS + 32, RING)?;
        cuda.at_meeting(0, |place| {
            let args = Args::new()
                .number(nest.reduced_len() as u64)
                .pointer(begin + (first(nest) * from.size()) as Address)
                .pointer(out + (nest.kept().offsets()[1] * to.size()) as Address)
                .pointer(partial.address)
                .pointer(place);
            // SAFETY: the source declares these arguments; the run is that of a checked layout, and the scratch has
            // room for a state of each block.
            unsafe { cuda.launch(name, function, grid, args) }
        })
    }

    fn ring_text(self) -> String {
        [
            fold_text(self.fold, self.dtypes.0, self.dtypes.1, Width::Narrow).as_str(),
            TREE,
            include_str!("kernels/hopper.cu"),
            include_str!("kernels/reduce_ring.cu"),
            source::END,
        ]
        .concat()
    }
}

/// The number of the first element that is reduced, in its block.
fn first(nest: &ReduceNest) -> usize {
    nest.kept().offsets()[0] + nest.reduced_in_order().offsets()[0]
}

/// How many neighbouring outputs a thread takes at most: two, of elements up to 8 bytes.
fn most_together(size: usize) -> usize {
    if size > 8 { 1 } else { 2 }
}

/// How many neighbouring outputs a thread can take where threads lie across the sums: several if they
/// always lie together, and so that they can be fetched as one.
fn together(nest: &ReduceNest, begin: Address, size: usize) -> usize {
    let (kept, reduced) = (nest.kept(), nest.reduced_in_order());
    let wanted = most_together(size);
    let inner = kept.axes() - 1;
    let fits = |step: isize| step % wanted as isize == 0;
    let first = begin + (kept.offsets()[0] * size) as Address;
    let all = kept.strides(inner)[0] == 1
        && kept.lens()[inner].is_multiple_of(wanted)
        && first.is_multiple_of((wanted * size) as Address)
        && reduced.offsets()[0].is_multiple_of(wanted)
        && (0..inner).all(|axis| fits(kept.strides(axis)[0]))
        && (0..reduced.axes()).all(|axis| fits(reduced.strides(axis)[0]));
    if all { wanted } else { 1 }
}

/// What enters and leaves a fold, and its name: common to reductions and scans.
pub(crate) fn fold_text(fold: FoldId, input: DType, output: DType, width: Width) -> String {
    let row = fold.row();
    let inner = row.accumulates(input).unwrap_or(input);
    let result = row.result(inner);
    let (s, r, v) = (source::storage(input), source::storage(output), source::value(inner));
    let enter = match input == inner {
        true => "widen(x)".to_owned(),
        false => format!("widen(cast<{}>(widen(x)))", source::storage(inner)),
    };
    let leave = match output == result {
        true => format!("narrow<{r}>(x)"),
        false => format!("cast<{r}>(widen(narrow<{}>(x)))", source::storage(result)),
    };
    format!(
        "{}{}typedef {s} S;\ntypedef {r} R;\ntypedef {v} V;\ntypedef {fold:?}<V> F;\n\
         FN V enter(S x) {{ return {enter}; }}\nFN R leave({} x) {{ return {leave}; }}\n",
        source::begin(width, [input, inner, output]),
        include_str!("kernels/folds.cu"),
        source::value(result)
    )
}

fn text(
    fold: FoldId,
    dtypes: (DType, DType),
    together: usize,
    one_loop: bool,
    width: Width,
) -> String {
    let loops = if one_loop { 1 } else { 0 };
    let define = format!("#define ACROSS {together}\n#define LOOPS {loops}\n");
    let begin = fold_text(fold, dtypes.0, dtypes.1, width);
    [&begin, &define, TREE, include_str!("kernels/reduce.cu"), source::END].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_reductions_compiles() {
        let dtypes = [DType::BFloat16, DType::Int8, DType::Complex128, DType::Float64];
        let mut sources = Vec::new();
        for (k, fold) in FoldId::ALL.into_iter().enumerate() {
            let taken = |dtype: &DType| fold.row().accumulates(*dtype).is_some();
            let dtype = dtypes.into_iter().cycle().skip(k).find(taken).unwrap();
            let output = fold.row().result(fold.row().accumulates(dtype).unwrap());
            let width = [Width::Narrow, Width::Wide, Width::Deep][k % 3];
            for together in [0, most_together(dtype.size())] {
                let name = format!("{fold:?} of {dtype}, across: {together}");
                sources.push((name, text(fold, (dtype, output), together, together == 0, width)));
            }
        }
        crate::check::compiles(sources);
    }

    #[test]
    fn rings_compile() {
        let folds = [
            (FoldId::ArgMax, DType::Float32, DType::Int64),
            (FoldId::Min, DType::Int32, DType::Int32),
        ];
        let text = |(fold, from, to)| Folded { fold, dtypes: (from, to) }.ring_text();
        let sources = folds.map(|row| (format!("a ring of {row:?}"), text(row)));
        crate::check::compiles_for(&["sm_90a"], sources.into());
    }

    #[test]
    fn every_element_has_a_lane_and_a_piece() {
        for (outputs, count) in [(1, 0), (1, 1), (7, 9), (1, 1 << 28), (1 << 20, 3), (5, 100_000)] {
            for across in [false, true] {
                let shape = Shape::new(outputs, count, across);
                assert!(shape.lanes.is_power_of_two() && shape.lanes <= THREADS);
                assert!(shape.pieces * shape.piece >= count && shape.pieces <= MAX_PIECES);
            }
        }
    }
}
