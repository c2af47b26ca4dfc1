//! Maps: one generated kernel for each tape, on packs of 16 bytes where layouts allow it.
//!
//! A source holds two kernels over the same loops: `packed` moves several elements at once and
//! needs an innermost loop along which every operand is contiguous or constant, and aligned;
//! `strided` takes any layout. The tape and the kinds of its operands are the key; sizes and
//! strides are arguments. Called by `device.rs`.

use smallvec::SmallVec;
use tilework_backend::{Map, Operand, Session};
use tilework_error::Result;
use tilework_layout::LoopNest;
use tilework_ops::DType;
use tilework_tape::{Action, Tape};

use crate::device::Cuda;
use crate::driver::Address;
use crate::launch::{self, Args, MAX_AXES, Nest, Width};
use crate::source;

/// Threads of a block, and packs that each of them moves: as in `kernels/map.cu`.
const THREADS: usize = 256;
const UNROLL: usize = 2;
/// Sides of the tiles that transposing maps walk.
const TILE: usize = 32;

/// A map, ready to be launched.
struct Plan<'a> {
    tape: &'a Tape,
    /// For each input whether it is an array.
    arrays: SmallVec<[bool; 4]>,
    width: Width,
}

pub(crate) fn run(cuda: &Cuda, session: &Session<'_>, request: &Map<'_>, name: &str) -> Result<()> {
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
    let plan = Plan {
        tape: request.tape,
        arrays: request.inputs.iter().map(|x| matches!(x, Operand::View(_))).collect(),
        width: Width::of(nest.len(), views.iter().map(launch::elements)),
    };
    let module = cuda.module(name, &plan.key(), || plan.source())?;
    let mut pointers: SmallVec<[Address; 4]> =
        std::iter::once(launch::target(&request.output, session)).collect();
    pointers.extend(views[1..].iter().map(|view| launch::source(view, session)));
    let sizes: SmallVec<[usize; 4]> = views.iter().map(|view| view.dtype().size()).collect();

    for (function, packs) in
        cut(Nest::new(&nest)).into_iter().flat_map(|nest| match packed(&nest, &sizes, &pointers) {
            Some(packs) => vec![(c"packed", packs)],
            None => tiles(nest).into_iter().map(|nest| (c"strided", Packs::single(nest))).collect(),
        })
    {
        let function = cuda.function(name, &module, function)?;
        let mut args = Args::new()
            .bytes(&packs.nest.encode(plan.width))
            .number(packs.count as u64)
            .number(packs.rest as u64)
            .number(packs.same);
        let mut arrays = pointers.iter();
        args = args.pointer(arrays.next().copied().unwrap_or(0));
        for operand in request.inputs {
            args = match operand {
                Operand::View(_) => args.pointer(arrays.next().copied().unwrap_or(0)),
                Operand::Scalar(scalar) => args.bytes(scalar.bytes()),
            };
        }
        let blocks = packs.count.div_ceil(THREADS * UNROLL);
        let grid = launch::grid(name, [blocks, 1], THREADS)?;
        // SAFETY: the source of `plan` declares these arguments; every position that the loops
        // reach lies inside of its block, since they are those of checked layouts.
        unsafe { cuda.launch(name, function, grid, args)? };
    }
    Ok(())
}

/// The nest in pieces of as many loops as a kernel walks: more than that do not merge but in
/// curious views, whose outermost loops are launched one by one.
fn cut(nest: Nest) -> Vec<Nest> {
    let Some(outer) = nest.lens.len().checked_sub(MAX_AXES).filter(|outer| *outer > 0) else {
        return vec![nest];
    };
    let runs: usize = nest.lens[..outer].iter().product();
    let inner = Nest {
        lens: nest.lens[outer..].into(),
        strides: nest.strides[outer..].iter().cloned().collect(),
        offsets: nest.offsets.clone(),
    };
    let piece = |run: usize| {
        let (mut piece, mut rest) = (inner.clone(), run);
        for axis in (0..outer).rev() {
            let index = rest % nest.lens[axis];
            rest /= nest.lens[axis];
            for (offset, stride) in piece.offsets.iter_mut().zip(&nest.strides[axis]) {
                *offset = offset.wrapping_add_signed(stride * index as isize);
            }
        }
        piece
    };
    (0..runs).map(piece).collect()
}

/// The nest in square tiles where an operand lies across the output, as a transpose does: a block
/// then uses what it reads whole, while it is in the cache. What is left at the edges comes as
/// pieces of its own; a nest that needs no tiles comes back as it is.
fn tiles(nest: Nest) -> Vec<Nest> {
    let last = nest.lens.len() - 1;
    let across = |axis: &usize| {
        let (far, near) = (&nest.strides[last], &nest.strides[*axis]);
        far.iter().zip(near).any(|(far, near)| near.unsigned_abs() == 1 && far.unsigned_abs() > 1)
    };
    let long = |axis: usize| nest.lens[axis] >= TILE;
    let Some(axis) = (0..last)
        .find(across)
        .filter(|&axis| long(axis) && long(last) && nest.lens.len() + 2 <= MAX_AXES)
    else {
        return vec![nest];
    };
    let parts = |axis: usize| {
        let whole = nest.lens[axis] / TILE * TILE;
        [(0, whole), (whole, nest.lens[axis] - whole)].into_iter().filter(|(_, len)| *len > 0)
    };
    let mut pieces = Vec::new();
    for (first, len) in parts(axis) {
        for (last_first, last_len) in parts(last) {
            let mut piece = nest.clone();
            for (k, offset) in piece.offsets.iter_mut().enumerate() {
                let steps = (nest.strides[axis][k], nest.strides[last][k]);
                let moved = steps.0 * first as isize + steps.1 * last_first as isize;
                *offset = offset.wrapping_add_signed(moved);
            }
            (piece.lens[axis], piece.lens[last]) = (len, last_len);
            if len >= TILE && last_len >= TILE {
                let inner = [axis, last].map(|axis| nest.strides[axis].clone());
                for axis in [axis, last] {
                    piece.lens[axis] /= TILE;
                    piece.strides[axis].iter_mut().for_each(|stride| *stride *= TILE as isize);
                }
                piece.lens.extend([TILE, TILE]);
                piece.strides.extend(inner);
            }
            pieces.push(piece);
        }
    }
    pieces
}

/// How many elements a pack holds: 16 bytes of the narrowest operand, but no more than 64 of the
/// widest.
fn pack(sizes: &[usize]) -> usize {
    let narrowest = sizes.iter().min().copied().unwrap_or(16);
    let widest = sizes.iter().max().copied().unwrap_or(16);
    (16 / narrowest).min(64 / widest).max(1)
}

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
    /// Packs of one element each.
    fn single(nest: Nest) -> Packs {
        Packs { count: nest.len(), nest, rest: 0, same: 0 }
    }
}

/// The nest in packs; None where the layouts do not allow it.
fn packed(nest: &Nest, sizes: &[usize], pointers: &[Address]) -> Option<Packs> {
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
    let mut packs = nest.clone();
    packs.lens[last] = n / pack;
    packs.strides[last].iter_mut().for_each(|stride| *stride *= pack as isize);
    Some(Packs { count: packs.len(), nest: packs, rest: n % pack, same })
}

impl Plan<'_> {
    /// What the source depends on, exactly.
    fn key(&self) -> Vec<u8> {
        let mut key = vec![b'M', self.width as u8, self.tape.inputs().len() as u8];
        for (input, array) in self.tape.inputs().iter().zip(&self.arrays) {
            key.extend([input.slot.dtype as u8, *array as u8]);
        }
        for step in self.tape.steps() {
            let (code, detail) = match &step.action {
                Action::Apply(id) => (0, *id as u8),
                Action::Cast => (1, 0),
                Action::Select => (2, 0),
                Action::Constant(value) => {
                    key.extend(value.bytes());
                    (3, 0)
                }
                // Not steps of maps: printing the source refuses them.
                _ => (255, 0),
            };
            key.extend([code, detail, step.slot.dtype as u8, step.operands.len() as u8]);
            key.extend(step.operands.iter().flat_map(|operand| operand.to_le_bytes()));
        }
        key.extend(self.tape.outputs()[0].to_le_bytes());
        key
    }

    fn source(&self) -> Result<String> {
        let tape = self.tape;
        let inputs: Vec<DType> = tape.inputs().iter().map(|input| input.slot.dtype).collect();
        let output = tape.slot(tape.outputs()[0]).dtype;
        let dtypes = inputs.iter().copied().chain(tape.steps().iter().map(|step| step.slot.dtype));
        let arrays: Vec<usize> = (0..inputs.len()).filter(|&k| self.arrays[k]).collect();
        let sizes: Vec<usize> = std::iter::once(output)
            .chain(arrays.iter().map(|&k| inputs[k]))
            .map(DType::size)
            .collect();

        let declare = |k: usize| match self.arrays[k] {
            true => format!(", const {}* p{k}", source::storage(inputs[k])),
            false => format!(", {} p{k}", source::storage(inputs[k])),
        };
        let declared: String = (0..inputs.len()).map(declare).collect();
        let passed: String = (0..inputs.len()).map(|k| format!(", p{k}")).collect();
        let numbers: Vec<String> = (0..inputs.len())
            .map(|k| if self.arrays[k] { format!("x{k}[u].at[e]") } else { format!("p{k}") })
            .collect();
        let packs: String = arrays
            .iter()
            .map(|&k| format!("    Pack<{}, V> x{k}[UNROLL];\n", source::storage(inputs[k])))
            .collect();
        let fetches: String = arrays
            .iter()
            .enumerate()
            .map(|(operand, &k)| {
                let operand = operand + 1;
                format!(
                    "        x{k}[u] = fetch<V>(p{k} + at[{operand}], same >> {operand} & 1);\n"
                )
            })
            .collect();
        // Of what lies behind the last pack, each operand has the next element or the same again.
        let singles: Vec<String> = (0..inputs.len())
            .map(|k| match arrays.iter().position(|&array| array == k) {
                Some(operand) => {
                    let operand = operand + 1;
                    format!("p{k}[nest.offsets[{operand}] + (same >> {operand} & 1 ? 0 : next)]")
                }
                None => format!("p{k}"),
            })
            .collect();
        let (count, result) = (sizes.len(), source::storage(output));
        let parameters = format!("I packs, u32 rest, u32 same, {result}* out{declared}");
        let kernel = |name: &str, pack: usize| {
            format!(
                "extern \"C\" __global__ void __launch_bounds__(THREADS) {name}(\
                 const __grid_constant__ Nest<I, {count}> nest, {parameters}) {{\n    \
                 map<{pack}>(nest, packs, rest, same, out{passed});\n}}\n"
            )
        };
        let map = format!(
            "template <int V> FN void map(const Nest<I, {count}>& nest, {parameters}) {{
{packs}    I to[UNROLL], first = (I)blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {{
        I pack = first + u * THREADS;
        if (pack >= packs) break;
        I at[{count}];
        locate(nest, pack, at);
        to[u] = at[0];
{fetches}    }}
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {{
        I pack = first + u * THREADS;
        if (pack >= packs) break;
        Pack<{result}, V> y;
#pragma unroll
        for (int e = 0; e < V; e++) y.at[e] = body({});
        *(Pack<{result}, V>*)(out + to[u]) = y;
    }}
    if (V > 1 && blockIdx.x == 0 && threadIdx.x < rest) {{
        I next = packs * V + threadIdx.x;
        out[nest.offsets[0] + next] = body({});
    }}
}}
",
            numbers.join(", "),
            singles.join(", ")
        );
        Ok([
            source::begin(self.width.name(), dtypes),
            include_str!("kernels/map.cu").to_owned(),
            source::tape::function(tape)?,
            map,
            kernel("packed", pack(&sizes)),
            kernel("strided", 1),
            source::END.to_owned(),
        ]
        .concat())
    }
}

#[cfg(test)]
mod tests {
    use tilework_ops::Id;

    use super::*;

    fn source(tape: &Tape, arrays: &[bool], width: Width) -> String {
        Plan { tape, arrays: arrays.into(), width }.source().unwrap()
    }

    #[test]
    fn a_sample_of_maps_compiles() {
        let mut sources = Vec::new();
        let mut add = |name: &str, tape: &Tape, arrays: &[bool], width| {
            sources.push((name.to_owned(), source(tape, arrays, width)));
        };
        let add_f32 = Tape::apply(Id::Add, DType::Float32);
        add("add", &add_f32, &[true, true], Width::Narrow);
        add("add with 64-bit indices", &add_f32, &[true, true], Width::Wide);
        add("add of a number", &add_f32, &[true, false], Width::Narrow);
        add("fill", &Tape::copy(DType::Complex128), &[false], Width::Narrow);
        add("where", &Tape::select(DType::BFloat16), &[true; 3], Width::Narrow);
        let mixed = Tape::apply_to(Id::Pow, &[DType::Int8, DType::Float64], DType::Float64);
        add("power of mixed dtypes", &mixed, &[true, true], Width::Narrow);
        let constant = Action::Constant(tilework_ops::Scalar::new(tilework_ops::f16::ONE));
        let half = Tape::apply(Id::Exp, DType::Float16).then(constant, DType::Float16);
        add("a constant", &half, &[true], Width::Narrow);
        crate::check::compiles(sources);
    }

    #[test]
    fn packs_need_aligned_runs() {
        let nest = |lens: &[usize], strides: &[[isize; 2]], offsets: [usize; 2]| Nest {
            lens: lens.into(),
            strides: strides.iter().map(|row| row[..].into()).collect(),
            offsets: offsets[..].into(),
        };
        let base = [0x1000, 0x2000];
        let packs = |nest: &Nest| packed(nest, &[4, 4], &base).map(|p| (p.count, p.rest, p.same));
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

    #[test]
    fn tiles_visit_every_element_once() {
        let visited = |nest: &Nest| {
            let mut seen: Vec<(isize, isize)> = Vec::new();
            for number in 0..nest.len() {
                let (mut rest, mut at) =
                    (number, [nest.offsets[0] as isize, nest.offsets[1] as isize]);
                for axis in (0..nest.lens.len()).rev() {
                    let index = (rest % nest.lens[axis]) as isize;
                    rest /= nest.lens[axis];
                    at[0] += index * nest.strides[axis][0];
                    at[1] += index * nest.strides[axis][1];
                }
                seen.push((at[0], at[1]));
            }
            seen
        };
        for (rows, columns) in [(64, 96), (65, 33), (32, 100), (31, 64)] {
            let nest = Nest {
                lens: SmallVec::from_slice(&[3, rows, columns]),
                strides: [[rows * columns; 2], [columns, 1], [1, rows]]
                    .iter()
                    .map(|row| row.iter().map(|&step| step as isize).collect())
                    .collect(),
                offsets: SmallVec::from_slice(&[7, 5]),
            };
            let mut expected = visited(&nest);
            let pieces = tiles(nest);
            assert_eq!(
                pieces.len() > 1,
                rows > 32 && (rows % 32, columns % 32) != (0, 0) || columns == 100
            );
            let mut seen: Vec<_> = pieces.iter().flat_map(visited).collect();
            expected.sort();
            seen.sort();
            assert!(seen == expected, "{rows} x {columns}");
        }
    }

    #[test]
    fn loops_beyond_those_of_a_kernel_are_cut() {
        let lens: SmallVec<[usize; 8]> = (0..10).map(|_| 2).collect();
        let strides = (0..10).map(|axis| SmallVec::from_slice(&[3isize.pow(9 - axis)])).collect();
        let pieces = cut(Nest { lens, strides, offsets: SmallVec::from_slice(&[5]) });
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|piece| piece.lens.len() == MAX_AXES && piece.len() == 256));
        let offsets: Vec<usize> = pieces.iter().map(|piece| piece.offsets[0]).collect();
        assert_eq!(offsets, [5, 5 + 6561, 5 + 19683, 5 + 19683 + 6561]);
    }
}
