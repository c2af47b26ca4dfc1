//! The source of a map: its tape as a function, and the kernels that apply it.

use smallvec::SmallVec;
use tilework_backend::{Map, Operand};
use tilework_error::Result;
use tilework_ops::DType;
use tilework_tape::Tape;

use crate::compile::Room;
use crate::launch::Width;
use crate::source;

/// Which kernel a source holds: one, since most maps need no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernels {
    Packed,
    Strided,
    Repeated,
    Crossed,
}

impl Kernels {
    #[cfg(test)]
    const ALL: [Kernels; 4] =
        [Kernels::Packed, Kernels::Strided, Kernels::Repeated, Kernels::Crossed];

    /// Packs of a thread. Where an operand repeats one element, a pack alone is too little on its way.
    pub(super) fn packs(self) -> usize {
        if self == Kernels::Repeated { 2 } else { 1 }
    }
}

/// A map, ready to be launched.
pub(super) struct Plan<'a> {
    pub(super) tape: &'a Tape,
    /// For each input whether it is an array.
    pub(super) arrays: SmallVec<[bool; 4]>,
    pub(super) width: Width,
}

/// How many elements a pack holds: 16 bytes of the narrowest operand, but no more than 64 of the
/// widest.
pub(super) fn pack(sizes: &[usize]) -> usize {
    let narrowest = sizes.iter().min().copied().unwrap_or(16);
    let widest = sizes.iter().max().copied().unwrap_or(16);
    (16 / narrowest).min(64 / widest).max(1)
}

impl<'a> Plan<'a> {
    pub(super) fn new(request: &Map<'a>, width: Width) -> Plan<'a> {
        let arrays = request.inputs.iter().map(|x| matches!(x, Operand::View(_))).collect();
        Plan { tape: request.tape, arrays, width }
    }

    /// What the source depends on, exactly.
    pub(super) fn key(&self, kernels: Kernels) -> Vec<u8> {
        let mut key = Vec::with_capacity(128);
        key.extend([Room::Map as u8, kernels as u8, self.width as u8]);
        key.extend(self.arrays.iter().map(|&array| array as u8));
        self.tape.sign(&mut key);
        key
    }

    pub(super) fn source(&self, kernels: Kernels) -> Result<String> {
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
            .map(|k| if self.arrays[k] { format!("x{k}[q].at[e]") } else { format!("p{k}") })
            .collect();
        let packs: String = arrays
            .iter()
            .map(|&k| format!("    Pack<{}, V> x{k}[TIMES];\n", source::storage(inputs[k])))
            .collect();
        let fetches: String = arrays
            .iter()
            .enumerate()
            .map(|(operand, &k)| {
                let operand = operand + 1;
                format!(
                    "        x{k}[q] = fetch<V>(p{k} + at[q][{operand}], same >> {operand} & 1);\n"
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
        // Where an operand lies across, its tile is turned once all operands are on their way.
        let tiles: String = arrays
            .iter()
            .enumerate()
            .map(|(operand, &k)| {
                let (s, operand) = (source::storage(inputs[k]), operand + 1);
                format!(
                    "    {s} x{k}[TURNS];\n    fetch_tile(x{k}, p{k}, at[{operand}], x, {operand}, \
                     across >> {operand} & 1, row, column);\n"
                )
            })
            .collect();
        let turns: String = arrays
            .iter()
            .enumerate()
            .map(|(operand, &k)| {
                format!("    if (across >> {} & 1) turn(x{k}, memory);\n", operand + 1)
            })
            .collect();
        let turned: Vec<String> = (0..inputs.len())
            .map(|k| if self.arrays[k] { format!("x{k}[q]") } else { format!("p{k}") })
            .collect();
        let (count, result) = (sizes.len(), source::storage(output));
        let parameters = format!("I packs, u32 rest, u32 same, {result}* out{declared}");
        let times = kernels.packs();
        let kernel = |name: &str, pack: usize| {
            format!(
                "extern \"C\" __global__ void __launch_bounds__(THREADS) {name}(\
                 const __grid_constant__ Nest<I, {count}> nest, {parameters}) {{\n    \
                 map<{pack}, {times}>(nest, packs, rest, same, out{passed});\n}}\n"
            )
        };
        let map = format!(
            "template <int V, int TIMES> FN void map(const Nest<I, {count}>& nest, {parameters}) {{
    I first = (I)blockIdx.x * (THREADS * TIMES) + threadIdx.x, at[TIMES][{count}];
{packs}#pragma unroll
    for (int q = 0; q < TIMES; q++) {{
        if (first + q * THREADS >= packs) continue;
        locate(nest, first + q * THREADS, at[q]);
{fetches}    }}
#pragma unroll
    for (int q = 0; q < TIMES; q++) {{
        if (first + q * THREADS >= packs) continue;
        Pack<{result}, V> y;
#pragma unroll
        for (int e = 0; e < V; e++) y.at[e] = body({});
        *(Pack<{result}, V>*)(out + at[q][0]) = y;
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
        let crossed = format!(
            "extern \"C\" __global__ void __launch_bounds__(THREADS) crossed(\
             const __grid_constant__ Nest<I, {count}> nest, \
             const __grid_constant__ Cross<{count}> x, u32 across, {result}* out{declared}) {{
    __shared__ __align__(16) unsigned char memory[SIDE * (SIDE + 1) * {}];
    I at[{count}], row, column;
    corner(nest, x, at, row, column);
{tiles}{turns}#pragma unroll
    for (int q = 0; q < TURNS; q++) {{
        I r = row + tile_row(q), c = column + tile_column(q);
        if (r < x.lens[0] && c < x.lens[1])
            out[at[0] + r * x.steps[0][0] + c * x.steps[1][0]] = body({});
    }}
}}
",
            sizes[1..].iter().max().copied().unwrap_or(1),
            turned.join(", ")
        );
        let kernels = match kernels {
            Kernels::Packed | Kernels::Repeated => [map, kernel("packed", pack(&sizes))].concat(),
            Kernels::Strided => [map, kernel("strided", 1)].concat(),
            Kernels::Crossed => crossed,
        };
        let text = [
            include_str!("../kernels/map.cu"),
            &source::tape::function(tape)?,
            &kernels,
            source::END,
        ]
        .concat();
        Ok(source::begin_for(self.width, dtypes, &text) + &text)
    }
}

#[cfg(test)]
mod tests {
    use tilework_ops::Id;
    use tilework_tape::Action;

    use super::*;

    #[test]
    fn a_sample_of_maps_compiles() {
        let mut sources = Vec::new();
        let mut add = |name: &str, tape: &Tape, arrays: &[bool], width| {
            let plan = Plan { tape, arrays: arrays.into(), width };
            for kernels in Kernels::ALL {
                let source = plan.source(kernels).unwrap();
                sources.push((format!("{name}, {kernels:?}"), source));
            }
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
}
