//! Elements picked and placed by arrays of indices, and the indices of true elements.
//!
//! Kernels check every index and follow none that is outside of its axis; what they found is looked
//! at before anything that others see is written. Called by `device.rs`.

use smallvec::SmallVec;
use tilework_backend::{Gather, Indices, Nonzero, Scatter, Session, ViewRef};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};
use tilework_ops::DType;

use crate::compile::{Module, Room};
use crate::device::Cuda;
use crate::driver::Grid;
use crate::launch::{self, Args, Nest, Width};
use crate::memory::Block;
use crate::source;

const THREADS: usize = 256;
/// Elements that a thread looks at for their truth: as in `kernels/nonzero.cu`.
const EACH: usize = 8;

fn grid(name: &str, threads: usize) -> Result<Grid> {
    launch::grid(name, [threads.div_ceil(THREADS), 1], THREADS)
}

/// An array walked along with the indices that lead into another.
struct Walk {
    nest: Nest,
    width: Width,
    /// How many elements belong to one index.
    each: usize,
    /// Arguments of the kernels: the nest, the indexed axes, the arrays of indices.
    args: [Vec<u8>; 3],
    /// How many places the indexed axes have.
    places: usize,
}

impl Walk {
    /// `walked` has the axes of the indices, then those of `indexed` that are not indexed.
    fn new(
        session: &Session<'_>,
        walked: &ViewRef<'_>,
        indices: &Indices<'_>,
        indexed: &ViewRef<'_>,
    ) -> Result<Walk> {
        let indices = indices.arrays;
        let (own, axes) = (indices[0].layout().ndim(), indices.len());
        let (layout, to) = (walked.layout(), indexed.layout());
        let row = |axis: usize| {
            let mut row: SmallVec<[isize; 4]> = SmallVec::new();
            row.push(layout.strides()[axis]);
            let of =
                |view: &ViewRef<'_>| if axis < own { view.layout().strides()[axis] } else { 0 };
            row.extend(indices.iter().map(of));
            row.push(if axis < own { 0 } else { to.strides()[axes + axis - own] });
            row
        };
        let mut offsets: SmallVec<[usize; 4]> = SmallVec::new();
        offsets.push(layout.offset());
        offsets.extend(indices.iter().map(|view| view.layout().offset()));
        offsets.push(to.offset());
        let mut nest = Nest {
            lens: layout.shape().iter().copied().collect(),
            strides: (0..layout.ndim()).map(row).collect(),
            offsets,
        };
        nest.merge();
        let views = [walked, indexed].into_iter().chain(indices);
        let places = to.shape()[..axes].iter().product();
        let width = Width::of(layout.len(), views.map(launch::elements)).for_axes(nest.lens.len());
        let steps = to.strides()[..axes].iter().map(|&step| step as i64 as u64);
        let sizes = to.shape()[..axes].iter().map(|&size| size as u64);
        let axes = steps.chain(sizes).flat_map(|number| width.bytes(number)).collect();
        let arrays = indices.iter().flat_map(|view| launch::source(view, session).to_le_bytes());
        let args = [nest.encode(width), axes, arrays.collect()];
        let each = layout.shape()[own..].iter().product();
        Ok(Walk { nest, width, each, args, places })
    }

    fn args(&self) -> Args {
        self.args.iter().fold(Args::new(), |args, bytes| args.bytes(bytes))
    }
}

/// What kernels write of an index that is outside of its axis: the number of its array from 1 on,
/// and itself.
struct Outside(Block);

impl Outside {
    fn new(cuda: &Cuda) -> Result<Outside> {
        cuda.allocate_zeroed(16).map(Outside)
    }

    /// Waits for the kernels; an error if one of them found such an index.
    fn check(
        &self,
        cuda: &Cuda,
        session: &Session<'_>,
        indices: &Indices<'_>,
        indexed: &Layout,
    ) -> Result<()> {
        let (mut array, mut index) = ([0; 8], [0; 8]);
        cuda.copy_out(session.operation(), self.0.address, &mut array)?;
        let Some(array) = usize::from_le_bytes(array).checked_sub(1) else { return Ok(()) };
        cuda.copy_out(session.operation(), self.0.address + 8, &mut index)?;
        Err(indices.outside(session, array, i64::from_le_bytes(index), indexed))
    }
}

pub(crate) fn gather(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Gather<'_>,
    name: &str,
) -> Result<()> {
    let output = request.output.view();
    if output.layout().is_empty() {
        return Ok(());
    }
    let walk = Walk::new(session, &output, &request.indices, &request.source)?;
    let n = walk.nest.len();
    let outside = Outside::new(cuda)?;
    let args = walk
        .args()
        .number(n as u64)
        .pointer(launch::source(&request.source, session))
        .pointer(launch::target(&request.output, session))
        .pointer(outside.0.address);
    let module = module(cuda, name, output.dtype(), request.indices.arrays.len(), walk.width)?;
    let function = cuda.function(name, &module, c"gather")?;
    // SAFETY: the source declares these arguments; positions are those of checked layouts under
    // indices that the kernel checks.
    unsafe { cuda.launch(name, function, grid(name, n)?, args)? };
    outside.check(cuda, session, &request.indices, request.source.layout())
}

pub(crate) fn scatter(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Scatter<'_>,
    name: &str,
) -> Result<()> {
    let target = request.target.view();
    if request.source.layout().is_empty() {
        return Ok(());
    }
    let walk = Walk::new(session, &request.source, &request.indices, &target)?;
    let (n, each) = (walk.nest.len(), walk.each as u64);
    let count = n / walk.each;
    let (words, mask) = table(count, walk.places);
    let last = cuda.allocate_zeroed(words * 8)?;
    let outside = Outside::new(cuda)?;
    let module = module(cuda, name, target.dtype(), request.indices.arrays.len(), walk.width)?;
    let args = walk.args().number(count as u64).number(each);
    let args = args.pointer(last.address).number(mask).pointer(outside.0.address);
    let function = cuda.function(name, &module, c"claim")?;
    // SAFETY: as for `gather`; the table has room for every index.
    unsafe { cuda.launch(name, function, grid(name, count)?, args)? };
    outside.check(cuda, session, &request.indices, target.layout())?;
    let args = walk
        .args()
        .number(n as u64)
        .number(each)
        .pointer(launch::source(&request.source, session))
        .pointer(launch::target(&request.target, session))
        .pointer(last.address)
        .number(mask)
        .pointer(outside.0.address);
    let function = cuda.function(name, &module, c"scatter")?;
    // SAFETY: as above.
    unsafe { cuda.launch(name, function, grid(name, n)?, args) }
}

/// Words of the table that knows the last of `count` indices for each of so many places, and its mask:
/// see `last_of` of the kernels. What is written to few of many places takes memory for the few.
fn table(count: usize, places: usize) -> (usize, u64) {
    let pairs = (2 * count).next_power_of_two();
    if places <= 2 * pairs { (places, 0) } else { (2 * pairs, pairs as u64 - 1) }
}

fn module(
    cuda: &Cuda,
    name: &str,
    dtype: DType,
    arrays: usize,
    width: Width,
) -> Result<std::sync::Arc<Module>> {
    let key = [Room::Index as u8, width as u8, dtype as u8, arrays as u8];
    cuda.module(name, &key, || Ok(text(dtype, arrays, width)))
}

fn text(dtype: DType, arrays: usize, width: Width) -> String {
    [
        &source::begin(width, [dtype]),
        &format!("typedef {} S;\n#define K {arrays}\n", source::storage(dtype)),
        include_str!("kernels/index.cu"),
        source::END,
    ]
    .concat()
}

pub(crate) fn nonzero(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &Nonzero<'_>,
    name: &str,
) -> Result<()> {
    let layout = request.input.layout();
    if layout.is_empty() || request.output.layout().is_empty() {
        return Ok(());
    }
    let nest = LoopNest::in_order(&[layout]);
    let (n, elements) = (layout.len(), [launch::elements(&request.input)]);
    let width = Width::of(n, elements).for_axes(nest.axes().max(layout.ndim()));
    let module =
        cuda.module(name, &[Room::Nonzero as u8, width as u8], || Ok(nonzero_text(width)))?;
    let (nest, shape) = (Nest::new(&nest).encode(width), shape(layout).encode(width));
    let input = launch::source(&request.input, session);
    let threads = n.div_ceil(EACH);
    let blocks = threads.div_ceil(THREADS);
    let counts = cuda.allocate_block(blocks * 8)?;

    let count = cuda.function(name, &module, c"count")?;
    let args = Args::new().bytes(&nest).number(n as u64).pointer(input).pointer(counts.address);
    // SAFETY: the source declares these arguments; there is a count for each block.
    unsafe { cuda.launch(name, count, grid(name, threads)?, args)? };
    let places = cuda.function(name, &module, c"places")?;
    let args = Args::new().pointer(counts.address).number(blocks as u64);
    // SAFETY: as above.
    unsafe { cuda.launch(name, places, grid(name, THREADS)?, args)? };
    let out = request.output.layout();
    let first = launch::target(&request.output, session) + (out.offset() * 8) as u64;
    let args = Args::new()
        .bytes(&nest)
        .bytes(&shape)
        .number(n as u64)
        .pointer(input)
        .pointer(counts.address)
        .pointer(first)
        .number(out.shape()[0] as u64)
        .number(out.strides()[0] as u64)
        .number(out.strides()[1] as u64);
    let write = cuda.function(name, &module, c"write")?;
    // SAFETY: as above; nothing is written beyond the output's rows.
    unsafe { cuda.launch(name, write, grid(name, threads)?, args) }
}

/// The axes of a shape as loops, to take row-major numbers apart.
fn shape(layout: &Layout) -> Nest {
    Nest {
        lens: layout.shape().iter().copied().collect(),
        strides: layout.shape().iter().map(|_| SmallVec::from_slice(&[0])).collect(),
        offsets: SmallVec::from_slice(&[0]),
    }
}

fn nonzero_text(width: Width) -> String {
    [&source::begin(width, []), include_str!("kernels/nonzero.cu"), source::END].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_writes_take_little_memory() {
        assert_eq!(table(3, 10_000_000_000), (16, 7));
        assert_eq!(table(1, 5), (4, 1));
        assert_eq!((table(1, 4), table(1000, 1000)), ((4, 0), (1000, 0)));
        for count in [1, 2, 3, 1000, 1025] {
            let (words, mask) = table(count, usize::MAX);
            assert!(mask as usize >= count && words == 2 * (mask as usize + 1));
        }
    }

    #[test]
    fn kernels_of_indices_compile() {
        crate::check::compiles(vec![
            ("one array".to_owned(), text(DType::Float16, 1, Width::Narrow)),
            ("three arrays".to_owned(), text(DType::Complex128, 3, Width::Wide)),
            ("nonzero".to_owned(), nonzero_text(Width::Narrow)),
            ("nonzero of a large array".to_owned(), nonzero_text(Width::Wide)),
            ("many axes".to_owned(), text(DType::Float32, 2, Width::Deep)),
        ]);
    }
}
