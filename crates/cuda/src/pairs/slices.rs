//! Sums of many components, some of them at a time: no thread has registers for all, and computing the
//! pairs anew for every slice costs less than keeping sums in memory.
//!
//! A slice is the same request with a narrower tape, which begins elsewhere in one input and in the
//! output; or with some columns of its right-hand sides. Called by `pairs`.

use tilework_ops::pair_fold::Monoid;
use tilework_tape::Tape;

use super::folding::Folding;

/// Components of a slice that a thread has registers for.
pub(super) const FEW: usize = 16;

/// How a request is cut into slices of equal length.
#[derive(Debug)]
pub(super) struct Slices {
    /// The formula of a slice, and the input that has the components; none where columns of right-hand sides
    /// are left out instead.
    pub(super) narrow: Option<(Tape, usize)>,
    pub(super) len: usize,
    all: usize,
}

impl Slices {
    /// Slices of at most so many; none where there are not more, or they do not stand side by side.
    pub(super) fn new(tape: &Tape, folding: &Folding, most: usize) -> Option<Slices> {
        let all = folding.shape.dim;
        let sums = folding.monoid() == Monoid::Add && tape.outputs().len() == 1;
        if !sums || all <= most {
            return None;
        }
        let len = length(all, most);
        (0..tape.inputs().len()).find_map(|input| {
            let whole = tape.inputs()[input].slot.len as usize == all;
            let tape = tape.narrowed(input, len as u32).filter(|_| whole)?;
            Some(Slices { narrow: Some((tape, input)), len, all })
        })
    }

    /// Slices of at most so many columns of right-hand sides, of all components; none where there are not more.
    pub(super) fn of_columns(all: usize, most: usize) -> Option<Slices> {
        (all > most).then(|| Slices { narrow: None, len: length(all, most), all })
    }

    /// The formula of a slice, of that of all components.
    pub(super) fn tape<'t>(slices: Option<&'t Slices>, whole: &'t Tape) -> &'t Tape {
        slices.and_then(|slices| slices.narrow.as_ref()).map_or(whole, |(tape, _)| tape)
    }

    /// The first component of each; the last one begins early enough to be whole.
    pub(super) fn firsts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.all).step_by(self.len).map(|first| first.min(self.all - self.len))
    }
}

/// Components of a slice, where all have equally many.
fn length(all: usize, most: usize) -> usize {
    all.div_ceil(all.div_ceil(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_in_a_whole_slice() {
        for all in 17..400 {
            let len = length(all, FEW);
            let slices = Slices { narrow: None, len, all };
            let mut seen = vec![false; all];
            for first in slices.firsts() {
                seen[first..first + len].fill(true);
            }
            assert!(seen.iter().all(|seen| *seen) && len <= FEW, "{all}");
        }
    }
}
