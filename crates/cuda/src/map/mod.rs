//! Maps: one generated kernel for each tape, on packs of 16 bytes where layouts allow it.
//!
//! Sources are printed by `print.rs`. Their kernels: `packed` moves several elements at once and
//! needs an innermost loop along which every operand is contiguous or constant, and aligned;
//! `crossed` turns tiles of operands that lie across the output, as in a transpose; `strided` takes
//! any layout. Maps of contiguous operands go by `line.rs`. The tape and the kinds of its operands are the key; sizes and strides are arguments.
//! Called by `device.rs`.

mod cross;
mod line;
mod print;

use std::ffi::CStr;

use smallvec::SmallVec;
use tilework_backend::{Map, Operand, Session};
use tilework_error::Result;
use tilework_layout::LoopNest;

use crate::device::Cuda;
use crate::driver::Address;
use crate::launch::{self, Args, Nest, Width};
use print::{Kernels, Plan, pack};

/// Threads of a block, each of which moves a pack, and sides of a tile: as in `kernels/map.cu`.
const THREADS: usize = 256;
const SIDE: usize = 32;

pub(crate) fn run(cuda: &Cuda, session: &Session<'_>, request: &Map<'_>, name: &str) -> Result<()> {
    if let Some(line) = line::Line::new(session, request) {
        return line.run(cuda, request, name);
    }
    let views = request.inputs.iter().filter_map(|operand| match operand {
        Operand::View(view) => Some(*view),
        Operand::Scalar(_) => None,
    });
    let views: SmallVec<[_; 4]> = std::iter::once(request.output.view()).chain(views).collect();
    let layouts: SmallVec<[_; 4]> = views.iter().map(|view| view.layout()).collect();
    let nest = LoopNest::new(&layouts);
    if nest.is_empty() {
        return Ok(());
    }
    let plan = Plan::new(request, Width::of(nest.len(), views.iter().map(launch::elements)));
    let mut pointers: SmallVec<[Address; 4]> =
        std::iter::once(launch::target(&request.output, session)).collect();
    pointers.extend(views[1..].iter().map(|view| launch::source(view, session)));
    let sizes: SmallVec<[usize; 4]> = views.iter().map(|view| view.dtype().size()).collect();

    for nest in Nest::new(&nest).cut() {
        let (kernels, function, blocks, args) = match same(&nest, &sizes, &pointers) {
            Some(same) => Packs::new(nest, pack(&sizes), same).call(plan.width),
            None => match cross::Crossing::new(&nest) {
                Some(crossing) => crossing.call(SIDE, plan.width),
                None => single(nest, plan.width),
            },
        };
        let mut arrays = pointers.iter().copied();
        let mut args = args.pointer(arrays.next().unwrap_or(0));
        for operand in request.inputs {
            args = match operand {
                Operand::View(_) => args.pointer(arrays.next().unwrap_or(0)),
                Operand::Scalar(scalar) => args.bytes(scalar.bytes()),
            };
        }
        let module = cuda.module(name, &plan.key(kernels), || plan.source(kernels))?;
        let function = cuda.function(name, &module, function)?;
        let grid = launch::grid(name, [blocks, 1], THREADS)?;
        // SAFETY: the source of `plan` declares these arguments; every position that the loops
        // reach lies inside of its block, since they are those of checked layouts.
        unsafe { cuda.launch(name, function, grid, args)? };
    }
    Ok(())
}

/// A kernel and the source that holds it, how many blocks of it, and its first arguments.
type Call = (Kernels, &'static CStr, usize, Args);

/// What a kernel does in packs.
struct Packs {
    nest: Nest,
    /// How many there are.
    count: usize,
    /// Elements behind the last of them, where there is only one loop.
    rest: usize,
    /// As bits, which operands are constant along a pack.
    same: u64,
}

impl Packs {
    /// A nest in packs of so many elements, along whose last loop `same` operands are constant.
    fn new(mut nest: Nest, pack: usize, same: u64) -> Packs {
        let last = nest.lens.len() - 1;
        let rest = nest.lens[last] % pack;
        nest.lens[last] /= pack;
        nest.strides[last].iter_mut().for_each(|stride| *stride *= pack as isize);
        Packs { count: nest.len(), nest, rest, same }
    }

    /// The kernel, how many blocks of it, and its first arguments.
    fn call(&self, width: Width) -> Call {
        let kernels = if self.same != 0 { Kernels::Repeated } else { Kernels::Packed };
        self.call_of(kernels, c"packed", width)
    }

    fn call_of(&self, kernels: Kernels, function: &'static CStr, width: Width) -> Call {
        let args = Args::new()
            .bytes(&self.nest.encode(width))
            .number(self.count as u64)
            .number(self.rest as u64)
            .number(self.same);
        (kernels, function, self.count.div_ceil(THREADS * kernels.packs()), args)
    }
}

/// Packs of one element each.
fn single(nest: Nest, width: Width) -> Call {
    let packs = Packs { count: nest.len(), nest, rest: 0, same: 0 };
    packs.call_of(Kernels::Strided, c"strided", width)
}

/// As bits, which operands are constant along the packs of a nest; None where the layouts do not allow
/// packs.
fn same(nest: &Nest, sizes: &[usize], pointers: &[Address]) -> Option<u64> {
    let pack = pack(sizes);
    let (last, n) = (nest.lens.len() - 1, nest.lens[nest.lens.len() - 1]);
    if pack == 1 || n < pack || (last > 0 && !n.is_multiple_of(pack)) {
        return None;
    }
    let mut same = 0;
    for (k, (&size, &pointer)) in sizes.iter().zip(pointers).enumerate() {
        match nest.strides[last][k] {
            0 if k > 0 => same |= 1 << k,
            1 => {
                let bytes = (size * pack).min(16);
                let begins = (pointer as usize).wrapping_add(nest.offsets[k] * size);
                let even = |strides: &SmallVec<[isize; 4]>| {
                    (strides[k] * size as isize).unsigned_abs().is_multiple_of(bytes)
                };
                if !begins.is_multiple_of(bytes) || !nest.strides[..last].iter().all(even) {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_need_aligned_runs() {
        let nest = |lens: &[usize], strides: &[[isize; 2]], offsets: [usize; 2]| Nest {
            lens: lens.into(),
            strides: strides.iter().map(|row| row[..].into()).collect(),
            offsets: offsets[..].into(),
        };
        let base = [0x1000, 0x2000];
        let packs = |nest: &Nest| {
            let packs = Packs::new(nest.clone(), 4, same(nest, &[4, 4], &base)?);
            Some((packs.count, packs.rest, packs.same))
        };
        assert_eq!(packs(&nest(&[1003], &[[1, 1]], [0, 0])), Some((250, 3, 0)));
        assert_eq!(packs(&nest(&[1003], &[[1, 1]], [0, 1])), None, "not aligned");
        assert_eq!(packs(&nest(&[1003], &[[1, 0]], [4, 1])), Some((250, 3, 2)), "one for all");
        assert_eq!(packs(&nest(&[7, 8], &[[8, 8], [1, 1]], [0, 0])), Some((14, 0, 0)));
        assert_eq!(packs(&nest(&[7, 8], &[[8, 9], [1, 1]], [0, 0])), None, "uneven rows");
        assert_eq!(packs(&nest(&[7, 9], &[[12, 12], [1, 1]], [0, 0])), None, "a rest in each row");
        assert_eq!(packs(&nest(&[7, 8], &[[1, 8], [7, 1]], [0, 0])), None, "strided");
        assert_eq!(pack(&[1, 1]), 16);
        assert_eq!((pack(&[1, 8]), pack(&[4, 2, 2]), pack(&[16, 16])), (8, 8, 1));
    }
}
