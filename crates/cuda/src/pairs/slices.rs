//! Results of many components, some of them at a time: no thread has registers for all, and computing the
//! pairs anew for every slice costs less than keeping all in memory.
//!
//! A slice is the same request with a narrower tape, which begins elsewhere in some inputs and in the
//! outputs; or with some columns of its right-hand sides; or with the ranks that come after those of the slice before.
//! Called by `pairs`.

use smallvec::SmallVec;
use tilework_ops::Id;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::{Action, Again, Builder, Slice, Tape};

use super::folding::Folding;
use super::sections::LONG;
use super::tiling::{FEW_RANKS, RANKS_OF_TEAM};

/// The most components of a slice for which a thread of several rows has registers.
pub(super) const FEW: usize = 16;

/// Words of registers that all components may take of a thread with one row.
pub(super) const MOST_WORDS: usize = 64;

/// Components of a slice, at most, where all take more than `MOST_WORDS`: in float32, and in float64.
const SLICE: [usize; 2] = [48, 16];

/// Components of a slice, at most, that is whole rows of an outer product in float32: these have no place but their sums.
const OUTER: usize = 50;

/// The time that a slice takes beside that of its components, in components: it makes its pairs anew.
const ONE_MORE: usize = 16;

/// What slices are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Components,
    /// Components one by one, each with all its ranks.
    Each,
    /// Weights of exponentials, of which results have a number each, behind those that belong to all.
    Weights,
    /// Columns of right-hand sides, of a formula that stays as it is.
    Columns,
    Ranks,
}

/// How a part of a request is cut into slices of equal length.
#[derive(Debug)]
pub(super) struct Slices {
    pub(super) of: Of,
    /// The formula of a slice, where that is another one.
    tape: Option<Tape>,
    /// The request's inputs that a slice's formula has once more, behind all.
    pub(super) again: SmallVec<[usize; 2]>,
    /// The inputs of a slice's formula that begin elsewhere for every slice, and where.
    pub(super) moved: SmallVec<[(usize, Again); 2]>,
    /// The first component of the part.
    pub(super) from: usize,
    /// Components (or weights, columns, ranks) of a slice.
    pub(super) len: usize,
    /// The same of the part.
    all: usize,
    /// Components of a row that slices lie inside of.
    row: usize,
}

impl Slices {
    fn new(of: Of, len: usize, all: usize) -> Slices {
        let (again, moved) = (SmallVec::new(), SmallVec::new());
        Slices { of, tape: None, again, moved, from: 0, len, all, row: all }
    }

    /// These slices with the formula of each, which is made of the whole one.
    fn with(self, whole: &Tape, Slice { tape, again, row }: Slice) -> Slices {
        let moved = (whole.inputs().len()..).zip(again.iter().copied()).collect();
        let again = again.iter().map(|again| again.input).collect();
        Slices { tape: Some(tape), again, moved, row: row.unwrap_or(self.all), ..self }
    }

    /// Slices of at most so many components; none where there are not more, or where they do not stand side by side in one
    /// input.
    pub(super) fn of_input(tape: &Tape, folding: &Folding, most: usize) -> Option<Slices> {
        let all = folding.shape.dim;
        let sums = folding.monoid() == Monoid::Add && tape.outputs().len() == 1;
        if !sums || all <= most {
            return None;
        }
        let len = length(all, most);
        (0..tape.inputs().len()).find_map(|input| {
            let whole = tape.inputs()[input].slot.len as usize == all;
            let tape = tape.narrowed(input, len as u32).filter(|_| whole)?;
            let moved = SmallVec::from_slice(&[(input, Again::alike(input))]);
            Some(Slices { tape: Some(tape), moved, ..Slices::new(Of::Components, len, all) })
        })
    }

    /// Slices of at most so many columns of right-hand sides, of all components; none where there are not more.
    pub(super) fn of_columns(all: usize, most: usize) -> Option<Slices> {
        (all > most).then(|| Slices::new(Of::Columns, length(all, most), all))
    }

    /// Slices of at most so many ranks; none where there are not more.
    pub(super) fn of_ranks(all: usize, most: usize) -> Option<Slices> {
        (all > most).then(|| Slices::new(Of::Ranks, length(all, most), all))
    }

    /// Slices of the weights of exponentials; none where a thread has registers for all, or where they do not stand side by
    /// side.
    pub(super) fn of_weights(tape: &Tape, folding: &Folding) -> Option<Slices> {
        let (all, most) = (folding.shape.weights, FEW * 4 / folding.accumulates.size());
        let (&[exponent, weight], true) = (tape.outputs(), all > most) else { return None };
        let len = length(all, most);
        let slice = tape.slice(&[exponent], weight, len as u32)?;
        Some(Slices::new(Of::Weights, len, all).with(tape, slice))
    }

    /// The parts that many components are put together from, in slices or as they are, each of at most so many words. None
    /// where all together have no more, where components are not folded each for itself, or where those of a long part do
    /// not stand side by side.
    pub(super) fn of_parts(tape: &Tape, folding: &Folding, words: usize) -> Vec<Slices> {
        let (shape, single) = (folding.shape, folding.accumulates.size() <= 4);
        let most = match most_components(folding, words) {
            // These are more ranks than a slice has a place for in its results.
            Some(_) if shape.k > RANKS_OF_TEAM => return Vec::new(),
            Some(most) => most,
            None => return Vec::new(),
        };
        let of = if shape.k > 1 { Of::Each } else { Of::Components };
        let spread = spread(tape);
        let tape = spread.as_ref().unwrap_or(tape);
        parts(tape, of, most, most.min(SLICE[usize::from(!single)])).unwrap_or_default()
    }

    /// The formula of a slice, or the whole one where slices have none of their own.
    pub(super) fn tape<'t>(slices: Option<&'t Slices>, whole: &'t Tape) -> &'t Tape {
        slices.and_then(|slices| slices.tape.as_ref()).unwrap_or(whole)
    }

    /// The first component of each slice, counted from that of the part; the last slice of a row begins early enough to be
    /// whole. Slices of weights come last first: a row has its exponent and its plain sum before its weighted sums, and
    /// each slice writes these two where weighted sums of the next one stand, but the very first slice, which comes last,
    /// where they belong.
    pub(super) fn firsts(&self) -> impl Iterator<Item = usize> {
        let (len, of, row) = (self.len, self.of, self.row);
        let count = row.div_ceil(len);
        let of_row = move |k: usize| {
            let place = if of == Of::Weights { count - 1 - k } else { k };
            (place * len).min(row - len)
        };
        let rows = (0..self.all).step_by(row);
        rows.flat_map(move |before| (0..count).map(move |k| before + of_row(k)))
    }
}

/// The most components that a thread has so many words for; none where there are no more, or where they are not folded each
/// for itself.
pub(super) fn most_components(folding: &Folding, words: usize) -> Option<usize> {
    let (size, shape) = (folding.accumulates.size() / 4, folding.shape);
    let (fits, most) = match folding.monoid() {
        Monoid::Smallest | Monoid::Largest if shape.k > 1 => (FEW_RANKS / shape.k, 1),
        // With their indices.
        Monoid::Smallest | Monoid::Largest => (words / (2 * size), words / (2 * size)),
        Monoid::Shifted => return None,
        _ => (words / size, words / size),
    };
    (shape.dim > fits.max(1)).then_some(most)
}

/// A formula that is a number times vectors side by side, as products side by side; none where it is something else.
fn spread(tape: &Tape) -> Option<Tape> {
    let step = tape.step_of(tape.outputs()[0])?;
    let (&[a, b], Action::Apply(Id::Multiply)) = (&step.operands[..], &step.action) else {
        return None;
    };
    let (number, all) = if tape.slot(a).len == 1 { (a, b) } else { (b, a) };
    let vectors = tape.step_of(all).filter(|step| step.action == Action::Concat)?;
    let mut build = Builder::continuing(tape);
    let products = vectors.operands.iter().map(|&each| build.apply(Id::Multiply, &[number, each]));
    let products = products.collect::<Result<Vec<_>, _>>().ok()?;
    let all = build.concat(&products).ok()?;
    Some(build.finish(&[all]).ok()?.only(&[all]))
}

/// The parts of a formula. Of at most `most` components they stay as they are, and short neighbours are joined; longer ones
/// are cut into slices of about `len`.
fn parts(tape: &Tape, of: Of, most: usize, len: usize) -> Option<Vec<Slices>> {
    let mut parts: Vec<Slices> = Vec::new();
    let (mut near, mut from) = (Vec::new(), 0);
    let together = |near: &mut Vec<u16>, end: usize, parts: &mut Vec<Slices>| {
        let all: usize = near.iter().map(|&slot| tape.slot(slot).len as usize).sum();
        if all == 0 {
            return Some(());
        }
        let mut build = Builder::continuing(tape);
        let slot = if near.len() == 1 { near[0] } else { build.concat(near).ok()? };
        let tape = Some(build.finish(&[slot]).ok()?.only(&[slot]));
        parts.push(Slices { tape, from: end - all, ..Slices::new(of, all, all) });
        near.clear();
        Some(())
    };
    for slot in tape.parts()? {
        let all = tape.slot(slot).len as usize;
        let before: usize = near.iter().map(|&slot| tape.slot(slot).len as usize).sum();
        if before + all > most {
            together(&mut near, from, &mut parts)?;
        }
        match all > most {
            false => near.push(slot),
            true => {
                let slices = |len: usize| {
                    let slices = Slices { from, ..Slices::new(of, len, all) };
                    Some(slices.with(tape, tape.slice(&[], slot, len as u32)?))
                };
                // Slices of equal length, or of whole rows of an outer product, or of parts of these.
                let equal = slices(length_in_fours(all, len)).filter(|slices| slices.row == all);
                let rows = || {
                    let row = slices(1)?.row;
                    let count = |len: usize| match len.is_multiple_of(row) {
                        true => all.div_ceil(len),
                        false => all / row * row.div_ceil(len),
                    };
                    let most = if len == SLICE[0] { OUTER } else { len };
                    let fits = |len: &usize| *len < row || len.is_multiple_of(row);
                    let mut lengths: Vec<usize> = (1..=most).rev().filter(fits).collect();
                    lengths.sort_by_key(|&len| count(len) * (len + ONE_MORE));
                    lengths.into_iter().find_map(slices)
                };
                parts.push(equal.or_else(rows)?);
            }
        }
        from += all;
    }
    together(&mut near, from, &mut parts)?;
    Some(parts)
}

/// Components of a slice where all slices are about as long, and none longer than `most`.
fn length(all: usize, most: usize) -> usize {
    all.div_ceil(all.div_ceil(most))
}

/// [`length`], but in whole fours of long vectors, so that few texts serve all lengths.
fn length_in_fours(all: usize, most: usize) -> usize {
    let len = length(all, most);
    if all > LONG as usize { len.next_multiple_of(4).min(most) } else { len }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_formula::parse::formula;
    use tilework_formula::{Axis, Purpose, Reduction, lower_for};
    use tilework_ops::DType;

    #[test]
    fn every_component_is_in_a_whole_slice() {
        for all in 17..400 {
            let len = length(all, FEW);
            let slices = Slices::new(Of::Columns, len, all);
            let mut seen = vec![false; all];
            for first in slices.firsts() {
                seen[first..first + len].fill(true);
            }
            assert!(seen.iter().all(|seen| *seen) && len <= FEW, "{all}");
        }
    }

    #[test]
    fn what_stands_before_weights_is_written_last() {
        for (all, before) in (17..400).flat_map(|all| [(all, 1), (all, 2)]) {
            let slices = Slices::new(Of::Weights, length(all, FEW), all);
            let mut row = vec![None; before + all];
            for first in slices.firsts() {
                for place in 0..before + slices.len {
                    row[first + place] = Some(if place < before { place } else { first + place });
                }
            }
            assert!(row.iter().enumerate().all(|(place, found)| *found == Some(place)), "{row:?}");
        }
    }

    #[test]
    fn parts_have_all_components_and_are_small() {
        for (text, all) in [
            ("Grad(Exp(-SqDist(x,y)) * b, x, b)", 90),
            ("Concat(Exp(-SqDist(x,y)) * b, Grad(Exp(-SqDist(x,y)) * b, x, b))", 91),
            (
                "Concat(Concat(Exp(-SqDist(x,y)), b), Concat(Grad(Exp(-SqDist(x,y)), x, b), b * c))",
                132,
            ),
            ("Exp(-SqDist(x,y)) * Concat(y, b)", 91),
            ("TensorProd(x - y, x - y)", 8100),
            ("Concat(Exp(-SqDist(x,y)) * TensorProd(x - y, c), b)", 3601),
        ] {
            let aliases = ["x = Vi(90)", "y = Vj(90)", "b = Vj(1)", "c = Vi(40)"];
            let parsed = formula(text, &aliases).unwrap();
            let reduction = Reduction::new("Sum", &parsed, Axis::J, None, None).unwrap();
            let purpose = Purpose { dtype: DType::Float32, cheap: true };
            let tape = lower_for(&reduction.outputs(), purpose).unwrap().tape;
            let tape = spread(&tape).unwrap_or(tape);
            let parts = parts(&tape, Of::Components, 64, 48).unwrap();
            let mut seen = vec![false; all];
            for part in &parts {
                let of = Slices::tape(Some(part), &tape);
                of.check().unwrap();
                assert_eq!(of.slot(of.outputs()[0]).len as usize, part.len, "{text}");
                assert_eq!(of.inputs().len(), tape.inputs().len() + part.again.len());
                assert!(part.len <= 64, "{part:?}");
                for first in part.firsts() {
                    seen[part.from + first..][..part.len].fill(true);
                }
            }
            assert!(seen.iter().all(|seen| *seen), "{text}: {parts:?}");
        }
    }
}
