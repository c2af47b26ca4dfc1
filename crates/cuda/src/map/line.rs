//! Maps over one loop, as most are: their arguments are gathered on the stack, since for a few elements
//! gathering takes longer than all else but the driver.

use std::ffi::c_void;

use smallvec::SmallVec;
use tilework_backend::Operand;
use tilework_error::Result;
use tilework_layout::LoopNest;

use super::print::{Kernels, Plan, pack};
use super::{Along, THREADS};
use crate::device::Cuda;
use crate::driver::Address;
use crate::launch::{self, MAX_AXES, Width};

/// The most operands, the output included, for which there is room.
const OPERANDS: usize = 4;

/// One loop over some operands, as kernels declare loops of narrow indices: their number, a size with what
/// divides by it for each, steps, offsets. Of the first loop only the steps are looked at.
type Nest = [u32; 1 + 3 * MAX_AXES + (MAX_AXES + 1) * OPERANDS];

/// Whether a map is one of these.
pub(super) fn suits(plan: &Plan<'_>, nest: &LoopNest) -> bool {
    nest.axes() == 1 && nest.offsets().len() <= OPERANDS && plan.width == Width::Narrow
}

/// One launch; the blocks of the output and of the arrays begin at `pointers`, and their elements have
/// `sizes`.
pub(super) fn run(
    cuda: &Cuda,
    name: &str,
    plan: &Plan<'_>,
    nest: &LoopNest,
    [sizes, pointers]: [&[usize]; 2],
    inputs: &[Operand<'_>],
) -> Result<()> {
    let (n, steps, offsets) = (nest.lens()[0], nest.inner_strides(), nest.offsets());
    let (mut kernels, mut pack) = (Kernels::Packed, pack(sizes));
    let mut same = 0u64;
    for (k, &step) in steps.iter().enumerate() {
        let along = Along::new(k, step, (pointers[k], offsets[k]), sizes[k], pack);
        match along {
            _ if pack == 1 || n < pack => kernels = Kernels::Strided,
            Some(Along::Same) => same |= 1 << k,
            Some(Along::Run) => {}
            None => kernels = Kernels::Strided,
        }
    }
    match kernels {
        Kernels::Strided => (pack, same) = (1, 0),
        _ if same != 0 => kernels = Kernels::Repeated,
        _ => {}
    }
    let function = if kernels == Kernels::Strided { c"strided" } else { c"packed" };
    let count = n / pack;
    let words = encode(count, steps, pack, offsets);
    let numbers = [count as u64, (n % pack) as u64, same];
    let addresses: SmallVec<[Address; OPERANDS]> =
        pointers.iter().map(|&pointer| pointer as Address).collect();
    let mut arguments: SmallVec<[*mut c_void; 12]> = SmallVec::new();
    arguments.push(words.as_ptr().cast_mut().cast());
    arguments.extend(numbers.iter().map(|number| std::ptr::from_ref(number).cast_mut().cast()));
    let mut arrays = addresses.iter().map(|address| std::ptr::from_ref(address).cast_mut().cast());
    arguments.extend(arrays.next());
    for operand in inputs {
        match operand {
            Operand::View(_) => arguments.extend(arrays.next()),
            Operand::Scalar(scalar) => arguments.push(scalar.bytes().as_ptr().cast_mut().cast()),
        }
    }
    let module = cuda.module(name, &plan.key(kernels), || plan.source(kernels))?;
    let function = cuda.function(name, &module, function)?;
    let grid = launch::grid(name, [count.div_ceil(THREADS * kernels.packs()), 1], THREADS)?;
    // SAFETY: the source of `plan` declares these arguments, which outlive the call and are only read;
    // every position that the loop reaches lies inside of its block, since it is that of checked layouts.
    unsafe { cuda.launch_with(name, function, grid, &mut arguments) }
}

/// A loop over so many packs.
fn encode(count: usize, steps: &[isize], pack: usize, offsets: &[usize]) -> Nest {
    let mut words: Nest = [0; _];
    (words[0], words[1]) = (1, count as u32);
    let (places, operands) = (&mut words[1 + 3 * MAX_AXES..], offsets.len());
    for k in 0..operands {
        places[k] = (steps[k] * pack as isize) as u32;
        places[MAX_AXES * operands + k] = offsets[k] as u32;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loop_lies_as_any_nest_does() {
        for (steps, offsets) in [(&[1, 0][..], &[3, 70][..]), (&[1, -1, 2, 0], &[0, 9, 8, 7])] {
            let nest = launch::Nest {
                lens: SmallVec::from_slice(&[1003]),
                strides: SmallVec::from_elem(steps.iter().map(|step| 4 * step).collect(), 1),
                offsets: offsets.into(),
            };
            let bytes = nest.encode(Width::Narrow);
            let mut words: Vec<u32> =
                bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
            // Nothing is divided by the length of the first loop.
            words[2..4].fill(0);
            assert_eq!(encode(1003, steps, 4, offsets)[..words.len()], words);
        }
    }
}
