//! What a kernel is launched with: its arguments, its grid, and loops over strided operands.
//!
//! The bytes written here are read by `kernels/types.cu`, which declares the same structures.

use std::ffi::c_void;

use smallvec::SmallVec;
use tilework_backend::{Session, Target, ViewRef};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};

use crate::driver::{Address, Grid};

/// The most loops that most kernels walk. Nests with more, which only curious views have, are cut up, or
/// walked by kernels that are made for as many as an array can have.
pub(crate) const MAX_AXES: usize = 8;

/// Arguments of a kernel, in order. They are on the heap, since what is gathered is handed on from one
/// to the next: to move half a kilobyte ten times took a third of a call.
#[derive(Debug)]
pub(crate) struct Args {
    words: Vec<u64>,
    starts: SmallVec<[u32; 12]>,
}

impl Args {
    pub(crate) fn new() -> Args {
        Args { words: Vec::with_capacity(96), starts: SmallVec::new() }
    }

    #[inline]
    pub(crate) fn number(mut self, number: u64) -> Args {
        self.starts.push(self.words.len() as u32);
        self.words.push(number);
        self
    }

    #[inline]
    pub(crate) fn pointer(self, address: Address) -> Args {
        self.number(address)
    }

    /// A structure, as it lies in memory.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Args {
        self.starts.push(self.words.len() as u32);
        let (words, rest) = bytes.as_chunks::<8>();
        self.words.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.words.push(u64::from_le_bytes(word));
        }
        self
    }

    /// A pointer to each argument.
    pub(crate) fn pointers(&mut self) -> SmallVec<[*mut c_void; 12]> {
        let words = self.words.as_mut_ptr();
        // Each argument began with a word of its own.
        self.starts.iter().map(|&start| words.wrapping_add(start as usize).cast()).collect()
    }
}

/// The width of a kernel's indices, and how many loops it walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Width {
    Narrow,
    Wide,
    /// As wide, and as many loops as an array has axes.
    Deep,
}

impl Width {
    /// 32 bits if `count` elements, and every position of blocks of `elements` elements, fit.
    pub(crate) fn of(count: usize, elements: impl IntoIterator<Item = usize>) -> Width {
        let fits = count < 1 << 31 && elements.into_iter().all(|n| n <= 1 << 32);
        if fits { Width::Narrow } else { Width::Wide }
    }

    /// For nests of so many loops.
    pub(crate) fn for_axes(self, axes: usize) -> Width {
        if axes > MAX_AXES { Width::Deep } else { self }
    }

    /// How many loops a nest has room for.
    pub(crate) fn axes(self) -> usize {
        if self == Width::Deep { tilework_layout::MAX_AXES } else { MAX_AXES }
    }

    /// The type's name in kernels.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Width::Narrow => "u32",
            Width::Wide | Width::Deep => "u64",
        }
    }

    /// An index as it lies in memory.
    pub(crate) fn bytes(self, number: u64) -> SmallVec<[u8; 8]> {
        match self {
            Width::Narrow => SmallVec::from_slice(&(number as u32).to_le_bytes()),
            Width::Wide | Width::Deep => SmallVec::from_slice(&number.to_le_bytes()),
        }
    }

    /// Bytes of an index.
    fn size(self) -> usize {
        if self == Width::Narrow { 4 } else { 8 }
    }

    /// Writes an index to the bytes that begin with its place.
    #[inline]
    fn put(self, bytes: &mut [u8], number: u64) {
        match self {
            Width::Narrow => bytes[..4].copy_from_slice(&(number as u32).to_le_bytes()),
            Width::Wide | Width::Deep => bytes[..8].copy_from_slice(&number.to_le_bytes()),
        }
    }
}

/// Loops over some operands; `Nest` of the kernels.
#[derive(Debug, Clone)]
pub(crate) struct Nest {
    pub(crate) lens: SmallVec<[usize; 8]>,
    /// For each loop the step of each operand.
    pub(crate) strides: SmallVec<[SmallVec<[isize; 4]>; 2]>,
    pub(crate) offsets: SmallVec<[usize; 4]>,
}

impl Nest {
    pub(crate) fn new(nest: &LoopNest) -> Nest {
        Nest {
            lens: nest.lens().iter().copied().collect(),
            strides: (0..nest.axes()).map(|axis| nest.strides(axis).into()).collect(),
            offsets: nest.offsets().into(),
        }
    }

    /// Joins loops that all operands walk as one, and drops those of length one; in order, and at
    /// least one loop is left.
    pub(crate) fn merge(&mut self) {
        let operands = self.offsets.len();
        let (lens, strides) = (std::mem::take(&mut self.lens), std::mem::take(&mut self.strides));
        for (len, row) in lens.into_iter().zip(strides).filter(|(len, _)| *len != 1) {
            if let (Some(outer), Some(steps)) = (self.lens.last_mut(), self.strides.last_mut())
                && steps.iter().zip(&row).all(|(outer, inner)| *outer == inner * len as isize)
            {
                *outer *= len;
                *steps = row;
            } else {
                self.lens.push(len);
                self.strides.push(row);
            }
        }
        if self.lens.is_empty() {
            self.lens.push(1);
            self.strides.push(SmallVec::from_elem(0, operands));
        }
    }

    /// The nest in pieces of as many loops as most kernels walk, for launches one by one.
    pub(crate) fn cut(self) -> SmallVec<[Nest; 1]> {
        let Some(outer) = self.lens.len().checked_sub(MAX_AXES).filter(|outer| *outer > 0) else {
            return SmallVec::from_buf([self]);
        };
        let runs: usize = self.lens[..outer].iter().product();
        let inner = Nest {
            lens: self.lens[outer..].into(),
            strides: self.strides[outer..].iter().cloned().collect(),
            offsets: self.offsets.clone(),
        };
        let piece = |run: usize| {
            let (mut piece, mut rest) = (inner.clone(), run);
            for axis in (0..outer).rev() {
                let index = rest % self.lens[axis];
                rest /= self.lens[axis];
                for (offset, stride) in piece.offsets.iter_mut().zip(&self.strides[axis]) {
                    *offset = offset.wrapping_add_signed(stride * index as isize);
                }
            }
            piece
        };
        (0..runs).map(piece).collect()
    }

    /// Element number `first`, and those that come after it, `count` in all, which the innermost loop has to have.
    pub(crate) fn run(&self, first: usize, count: usize) -> Nest {
        let (mut rest, mut offsets) = (first, self.offsets.clone());
        for (len, strides) in self.lens.iter().zip(&self.strides).rev() {
            let index = (rest % len) as isize;
            rest /= len;
            for (offset, stride) in offsets.iter_mut().zip(strides) {
                *offset = offset.wrapping_add_signed(index * stride);
            }
        }
        let strides = self.strides[self.strides.len() - 1..].iter().cloned().collect();
        Nest { lens: SmallVec::from_elem(count, 1), strides, offsets }
    }

    /// How many elements the loops visit.
    pub(crate) fn len(&self) -> usize {
        self.lens.iter().product()
    }

    /// As the kernels declare it. Most nests have one loop, and what is said of the others is zero.
    pub(crate) fn encode(&self, width: Width) -> Vec<u8> {
        let (axes, operands, index) = (width.axes(), self.offsets.len(), width.size());
        debug_assert!(self.lens.len() <= axes);
        let (division, row) = (index + 8, index * operands);
        let strides = index + axes * division;
        let mut bytes = vec![0; strides + (axes + 1) * row];
        width.put(&mut bytes, self.lens.len() as u64);
        for (axis, (&by, steps)) in self.lens.iter().zip(&self.strides).enumerate() {
            let size = &mut bytes[index + axis * division..];
            width.put(size, by as u64);
            // Wide nests are divided by it, too, where few elements are far apart.
            if let Ok(by) = u32::try_from(by) {
                let (magic, shift) = magic(by);
                size[index..index + 4].copy_from_slice(&magic.to_le_bytes());
                size[index + 4..index + 8].copy_from_slice(&shift.to_le_bytes());
            }
            for (k, &step) in steps.iter().enumerate() {
                width.put(&mut bytes[strides + axis * row + k * index..], step as i64 as u64);
            }
        }
        for (k, &offset) in self.offsets.iter().enumerate() {
            width.put(&mut bytes[strides + axes * row + k * index..], offset as u64);
        }
        bytes
    }
}

/// Rows of an input and an output along one axis, for kernels that take each row whole.
pub(crate) struct Rows {
    /// Loops over the rows, with the first element of each.
    pub(crate) nest: Nest,
    /// How many there are, and elements of each.
    pub(crate) count: usize,
    pub(crate) len: usize,
    /// Steps along the axis, of the input and of the output.
    pub(crate) steps: [isize; 2],
}

impl Rows {
    /// The rows of two layouts of one shape, in which no axis is empty.
    pub(crate) fn new(layouts: [&Layout; 2], axis: usize) -> Result<Rows> {
        let [from, to] = layouts;
        let first = |layout: &Layout| layout.index_axis(axis.cast_signed(), 0);
        let nest = LoopNest::new(&[&first(from)?, &first(to)?]);
        Ok(Rows {
            nest: Nest::new(&nest),
            count: nest.len(),
            len: to.shape()[axis],
            steps: layouts.map(|layout| layout.strides()[axis]),
        })
    }
}

/// What `Division` of the kernels divides by `d` with: for n < 2^31, n / d is
/// (umulhi(n, magic) + n) >> shift.
fn magic(d: u32) -> (u32, u32) {
    let (magic, shift) = magic_of(d.into(), 32);
    (magic as u32, shift)
}

/// The same for n < 2^63.
pub(crate) fn wide_magic(d: u64) -> (u64, u32) {
    magic_of(d, 64)
}

fn magic_of(d: u64, bits: u32) -> (u64, u32) {
    let d = u128::from(d.max(1));
    let shift = d.next_power_of_two().trailing_zeros();
    (((((1 << shift) - d) << bits) / d + 1) as u64, shift)
}

/// `blocks` blocks of `threads` threads each; an error where the device cannot have so many.
pub(crate) fn grid(operation: &str, [x, y]: [usize; 2], threads: usize) -> Result<Grid> {
    Grid::new(operation, [x, y, 1], threads, 0)
}

/// Where a view's block begins, to be read by a kernel within the session.
pub(crate) fn source(view: &ViewRef<'_>, session: &Session<'_>) -> Address {
    view.pointer(session) as Address
}

/// Where a target's block begins, to be written by a kernel within the session.
pub(crate) fn target(target: &Target<'_>, session: &Session<'_>) -> Address {
    target.pointer(session) as Address
}

/// How many elements the block of a view holds.
pub(crate) fn elements(view: &ViewRef<'_>) -> usize {
    view.block_elements()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_multiplication_is_exact() {
        for bits in [32, 64] {
            let top = (1u64 << (bits - 1)) - 1;
            let others = [255, 256, 257, 1000, 4095, 65537, 1 << 30, top / 3, top - 1, top];
            for d in (1..200).chain(others) {
                let (magic, shift) = magic_of(d, bits);
                assert!(magic >> (bits - 1) <= 1, "{d}");
                let near = [0, 1, d - 1, d, d.saturating_mul(2) - 1, top / 2, top - 1, top];
                let spread = (0..1000).map(|k| k * (top / 1000));
                for n in near.into_iter().filter(|n| *n <= top).chain(spread) {
                    let high = ((u128::from(n) * u128::from(magic)) >> bits) as u64;
                    assert_eq!((high + n) >> shift, n / d, "{n} / {d}");
                }
            }
        }
        assert_eq!(magic_of(0, 64), magic_of(1, 64));
    }

    #[test]
    fn loops_are_merged_where_all_operands_allow_it() {
        let mut nest = Nest {
            lens: SmallVec::from_slice(&[2, 1, 3, 4]),
            strides: [[12, 12], [7, 7], [4, 4], [1, 0]].iter().map(|row| row[..].into()).collect(),
            offsets: SmallVec::from_slice(&[0, 5]),
        };
        nest.merge();
        assert_eq!(nest.lens[..], [6, 4]);
        assert_eq!((&nest.strides[0][..], &nest.strides[1][..]), (&[4, 4][..], &[1, 0][..]));
        let mut single = Nest { lens: SmallVec::new(), strides: SmallVec::new(), ..nest };
        single.merge();
        assert_eq!((&single.lens[..], single.strides[0].len()), (&[1][..], 2));
    }

    #[test]
    fn grids_are_never_cut() {
        Grid::new("scan", Grid::MOST, 256, 0).expect("as many as there can be");
        for blocks in [[1 << 31, 1, 1], [(1 << 32) + 1, 1, 1], [1, 1 << 16, 1], [1, 1, 1 << 16]] {
            let message = Grid::new("scan", blocks, 256, 0).unwrap_err().to_string();
            assert!(message.starts_with("scan: "), "{message}");
        }
    }

    #[test]
    fn arguments_lie_where_kernels_look() {
        let mut args = Args::new().number(7).bytes(&[1, 2, 3]).bytes(&[9; 16]).pointer(11);
        assert_eq!(args.starts[..], [0, 1, 2, 4]);
        assert_eq!(args.words[..], [7, 0x030201, 0x0909090909090909, 0x0909090909090909, 11]);
        assert_eq!(args.pointers().len(), 4);
    }

    #[test]
    fn loops_beyond_those_of_a_kernel_are_cut() {
        let lens: SmallVec<[usize; 8]> = (0..10).map(|_| 2).collect();
        let strides = (0..10).map(|axis| SmallVec::from_slice(&[3isize.pow(9 - axis)])).collect();
        let pieces = Nest { lens, strides, offsets: SmallVec::from_slice(&[5]) }.cut();
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|piece| piece.lens.len() == MAX_AXES && piece.len() == 256));
        let offsets: Vec<usize> = pieces.iter().map(|piece| piece.offsets[0]).collect();
        assert_eq!(offsets, [5, 5 + 6561, 5 + 19683, 5 + 19683 + 6561]);
    }
}
