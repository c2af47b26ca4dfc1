//! Maps of contiguous operands, as most are: their arguments are gathered on the stack, since for a few
//! elements gathering takes longer than all else but the driver.

use std::ffi::c_void;

use smallvec::SmallVec;
use tilework_backend::{Map, Operand, Session, ViewRef};
use tilework_error::Result;

use super::THREADS;
use super::print::{Kernels, Plan, pack};
use crate::device::Cuda;
use crate::driver::Address;
use crate::launch::{self, MAX_AXES, Width};

/// The most operands, the output included, for which there is room.
const OPERANDS: usize = 4;

/// One loop over some operands, as kernels declare loops of narrow indices: their number, a size with what
/// divides by it for each, steps, offsets. Of the first loop only the steps are looked at.
type Nest = [u32; 1 + 3 * MAX_AXES + (MAX_AXES + 1) * OPERANDS];

/// A map of contiguous operands, the output first.
pub(super) struct Line {
    len: usize,
    operands: usize,
    addresses: [Address; OPERANDS],
    sizes: [usize; OPERANDS],
    offsets: [usize; OPERANDS],
}

impl Line {
    /// None for other maps, and for more operands or wider indices than there is room for.
    pub(super) fn new(session: &Session<'_>, request: &Map<'_>) -> Option<Line> {
        let none = [0; OPERANDS];
        let len = request.output.view().layout().len();
        let mut line =
            Line { len, operands: 0, addresses: [0; OPERANDS], sizes: none, offsets: none };
        if len == 0 || len >= 1 << 31 {
            return None;
        }
        line.add(&request.output.view(), launch::target(&request.output, session))?;
        for operand in request.inputs {
            if let Operand::View(view) = operand {
                line.add(view, launch::source(view, session))?;
            }
        }
        Some(line)
    }

    fn add(&mut self, view: &ViewRef<'_>, address: Address) -> Option<()> {
        let (k, layout) = (self.operands, view.layout());
        let fits = k < OPERANDS && layout.is_contiguous() && launch::elements(view) <= 1 << 32;
        if !fits {
            return None;
        }
        self.operands += 1;
        (self.addresses[k], self.sizes[k]) = (address, view.dtype().size());
        self.offsets[k] = layout.offset();
        Some(())
    }

    /// Elements of a pack; one where some operand cannot be moved in packs.
    fn pack(&self) -> usize {
        let pack = pack(&self.sizes[..self.operands]);
        let even = |k: usize| {
            let begins = self.addresses[k] + (self.offsets[k] * self.sizes[k]) as Address;
            begins.is_multiple_of((self.sizes[k] * pack).min(16) as Address)
        };
        if self.len >= pack && (0..self.operands).all(even) { pack } else { 1 }
    }

    /// The loop over packs.
    fn encode(&self, pack: usize) -> Nest {
        let mut words: Nest = [0; _];
        (words[0], words[1]) = (1, (self.len / pack) as u32);
        let places = &mut words[1 + 3 * MAX_AXES..];
        for k in 0..self.operands {
            places[k] = pack as u32;
            places[MAX_AXES * self.operands + k] = self.offsets[k] as u32;
        }
        words
    }

    /// The map, by one launch.
    pub(super) fn run(&self, cuda: &Cuda, request: &Map<'_>, name: &str) -> Result<()> {
        let pack = self.pack();
        let (kernels, function) = match pack {
            1 => (Kernels::Strided, c"strided"),
            _ => (Kernels::Packed, c"packed"),
        };
        let words = self.encode(pack);
        let count = self.len / pack;
        let numbers = [count as u64, (self.len % pack) as u64, 0];
        let mut arguments: SmallVec<[*mut c_void; 12]> = SmallVec::new();
        arguments.push(words.as_ptr().cast_mut().cast());
        arguments.extend(numbers.iter().map(|number| std::ptr::from_ref(number).cast_mut().cast()));
        let mut arrays =
            self.addresses.iter().map(|address| std::ptr::from_ref(address).cast_mut().cast());
        arguments.extend(arrays.next());
        for operand in request.inputs {
            match operand {
                Operand::View(_) => arguments.extend(arrays.next()),
                Operand::Scalar(scalar) => {
                    arguments.push(scalar.bytes().as_ptr().cast_mut().cast())
                }
            }
        }
        let plan = Plan::new(request, Width::Narrow);
        let module = cuda.module(name, &plan.key(kernels), || plan.source(kernels))?;
        let function = cuda.function(name, &module, function)?;
        let grid = launch::grid(name, [count.div_ceil(THREADS * kernels.packs()), 1], THREADS)?;
        // SAFETY: the source of `plan` declares these arguments, which outlive the call and are only
        // read; every position that the loop reaches lies inside of its block, since it is that of
        // checked layouts.
        unsafe { cuda.launch_with(name, function, grid, &mut arguments) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loop_lies_as_any_nest_does() {
        for (sizes, offsets) in [([4, 8, 0, 0], [4, 70, 0, 0]), ([4, 4, 4, 4], [0, 9, 8, 7])] {
            let operands = sizes.iter().filter(|size| **size > 0).count();
            let line = Line { len: 1003, operands, addresses: [4096; 4], sizes, offsets };
            let pack = line.pack();
            assert_eq!(pack, if operands == 2 { 4 } else { 1 }, "where all begin at 16 bytes");
            let nest = launch::Nest {
                lens: SmallVec::from_slice(&[1003 / pack]),
                strides: SmallVec::from_elem(SmallVec::from_elem(pack as isize, operands), 1),
                offsets: offsets[..operands].into(),
            };
            let bytes = nest.encode(Width::Narrow);
            let mut words: Vec<u32> =
                bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
            // Nothing is divided by the length of the first loop.
            words[2..4].fill(0);
            assert_eq!(line.encode(pack)[..words.len()], words);
        }
    }
}
