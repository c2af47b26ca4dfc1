//! Maps whose operands lie across their output, as transposes do: squares of the two loops along
//! which one and the other are contiguous. See `crossed` of the kernels.

use smallvec::SmallVec;

use super::Call;
use super::print::Kernels;
use crate::launch::{Args, Nest, Width};

/// Loops shorter than this are not worth a tile.
const SHORTEST: usize = 16;

/// Two loops of a nest that are walked in tiles, and the others.
#[derive(Debug)]
pub(super) struct Crossing {
    outer: Nest,
    /// Of the loop along which crossing operands are contiguous, and of the output's.
    lens: [usize; 2],
    steps: [SmallVec<[isize; 4]>; 2],
    /// As bits, which operands are contiguous along the first.
    across: u64,
}

impl Crossing {
    /// None where no operand lies across the output.
    pub(super) fn new(nest: &Nest) -> Option<Crossing> {
        let last = nest.lens.len() - 1;
        let crosses = |axis: usize, operand: usize| {
            nest.strides[axis][operand].unsigned_abs() == 1
                && nest.strides[last][operand].unsigned_abs() > 1
        };
        let operands = nest.offsets.len();
        let axis = (0..last).find(|&axis| {
            nest.lens[axis] >= SHORTEST && (1..operands).any(|operand| crosses(axis, operand))
        })?;
        if nest.lens[last] < SHORTEST {
            return None;
        }
        let across = (1..operands)
            .filter(|&operand| crosses(axis, operand))
            .fold(0, |bits, operand| bits | 1 << operand);
        let mut outer = nest.clone();
        let mut take = |axis: usize| (outer.lens.remove(axis), outer.strides.remove(axis));
        let (far, near) = (take(last), take(axis));
        outer.merge();
        Some(Crossing { outer, lens: [near.0, far.0], steps: [near.1, far.1], across })
    }

    /// The kernel, how many blocks of it, and its first arguments.
    pub(super) fn call(&self, side: usize, width: Width) -> Call {
        let tiles = self.lens.map(|len| len.div_ceil(side));
        let numbers = self.lens.into_iter().chain(tiles).map(|number| number as u64);
        let steps = self.steps.iter().flatten().map(|&step| step as i64 as u64);
        let cross: Vec<u8> = numbers.chain(steps).flat_map(|word| width.bytes(word)).collect();
        let args = Args::new().bytes(&self.outer.encode(width)).bytes(&cross).number(self.across);
        (Kernels::Crossed, c"crossed", self.outer.len() * tiles[0] * tiles[1], args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(lens: &[usize], strides: &[[isize; 3]]) -> Nest {
        Nest {
            lens: lens.into(),
            strides: strides.iter().map(|row| row[..].into()).collect(),
            offsets: SmallVec::from_slice(&[0, 7, 9]),
        }
    }

    #[test]
    fn operands_that_lie_across_are_found() {
        // x + y.T with a batch, whose loop stays outside.
        let crossing = Crossing::new(&nest(
            &[3, 100, 200],
            &[[20_000, 20_000, 20_000], [200, 200, 1], [1, 1, 100]],
        ));
        let crossing = crossing.unwrap();
        assert_eq!((crossing.lens, crossing.across), ([100, 200], 0b100));
        assert_eq!((&crossing.outer.lens[..], crossing.outer.offsets[1]), (&[3][..], 7));
        let (_, _, blocks, _) = crossing.call(64, Width::Narrow);
        assert_eq!(blocks, 3 * 2 * 4);
        // Contiguous, reversed and too short ones need no tiles.
        assert!(Crossing::new(&nest(&[100, 200], &[[200, 200, 0], [1, 2, 1]])).is_none());
        assert!(Crossing::new(&nest(&[100, 8], &[[8, 8, 1], [1, 1, 100]])).is_none());
        assert!(Crossing::new(&nest(&[300], &[[1, 2, 3]])).is_none());
    }
}
