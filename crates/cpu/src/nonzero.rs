//! The places of true elements.
//!
//! Two passes over pieces of the mask, in row-major order: what each piece has is counted, and then
//! each writes its places from where those of the pieces before it end. May assume nothing of the
//! mask but its layout: whoever changes it behind our back between the passes makes us write other
//! places, and none beyond the output. Called by the backend.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use tilework_backend::{Nonzero, Session, try_zeroed};
use tilework_error::Result;
use tilework_layout::{Layout, LoopNest};

use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// Elements of one piece of work.
const PIECE: usize = 1 << 14;

/// Elements that are looked at before the places among them are written.
const BATCH: usize = 256;

/// Lists the indices of true elements.
pub(crate) fn nonzero(session: &Session<'_>, request: &Nonzero<'_>) -> Result<()> {
    let (input, output) = (request.input.layout(), request.output.layout());
    if input.is_empty() || output.is_empty() {
        return Ok(());
    }
    let mask = Mask { first: request.input.pointer(session), nest: &LoopNest::in_order(&[input]) };
    let list = List::new(request.output.pointer(session).cast(), output);
    let pieces = input.len().div_ceil(PIECE);
    let piece = |number: usize| number * PIECE..input.len().min((number + 1) * PIECE);
    let write = |number: usize, start: usize, end: usize| {
        let mut row = start;
        let mut index = Unraveled::new(input.shape());
        mask.places(piece(number), |places| {
            let places = &places[..places.len().min(end - row)];
            // SAFETY: rows up to the end of the piece, which is at most that of the output, and
            // nobody else's.
            unsafe { list.write(row, places, &mut index) };
            row += places.len();
        });
    };
    if pieces == 1 {
        // The only piece begins with the first row.
        write(0, 0, output.shape()[0]);
        return Ok(());
    }
    let mut ends = try_zeroed::<usize>("nonzero", pieces)?;
    let counts = Counts(ends.as_mut_ptr());
    pool::run(pieces, &|number| {
        let counts = &counts;
        // SAFETY: every piece has a count of its own.
        unsafe { counts.0.add(number).write(mask.count(piece(number))) };
    });
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum.min(output.shape()[0]);
    }
    pool::run(pieces, &|number| {
        write(number, if number == 0 { 0 } else { ends[number - 1] }, ends[number]);
    });
    Ok(())
}

/// A count for each piece.
struct Counts(*mut usize);
// SAFETY: each piece writes its own.
unsafe impl Sync for Counts {}

/// The bools, in order. Its positions lie inside of a block that the session holds (the invariant of
/// views).
struct Mask<'a> {
    first: *const u8,
    nest: &'a LoopNest,
}
// SAFETY: nobody writes what the session holds for reading.
unsafe impl Sync for Mask<'_> {}

impl Mask<'_> {
    /// How many of these elements are true.
    fn count(&self, elements: Range<usize>) -> usize {
        let step = self.nest.inner_strides()[0];
        let mut count = 0;
        self.nest.for_each_piece(elements, |at, len| {
            let first = self.first.wrapping_add(at[0]);
            // SAFETY: a run of the nest, so elements of the mask.
            let is_true = |i: usize| unsafe { *first.offset(i.cast_signed() * step) != 0 };
            // A step that the compiler knows is vectorised.
            count += match step {
                // SAFETY: as above; without steps between them they are a slice.
                1 => unsafe { std::slice::from_raw_parts(first, len) }
                    .chunks(255)
                    .map(|some| usize::from(some.iter().map(|&b| u8::from(b != 0)).sum::<u8>()))
                    .sum(),
                _ => (0..len).filter(|&i| is_true(i)).count(),
            };
        });
        count
    }

    /// Hands the places of those that are true to `take`, in order, some at a time.
    fn places(&self, elements: Range<usize>, mut take: impl FnMut(&[usize])) {
        let step = self.nest.inner_strides()[0];
        let mut place = elements.start;
        let mut found = [0; BATCH + EIGHT];
        self.nest.for_each_piece(elements, |at, len| {
            for start in (0..len).step_by(BATCH) {
                let first = at[0].cast_signed() + start.cast_signed() * step;
                let batch = BATCH.min(len - start);
                let mut are_true = [0; BATCH];
                if step == 1 {
                    // SAFETY: elements of a run of the nest; without steps between them they are a
                    // slice.
                    let some =
                        unsafe { std::slice::from_raw_parts(self.first.offset(first), batch) };
                    for (to, &value) in are_true.iter_mut().zip(some) {
                        *to = u8::from(value != 0);
                    }
                } else {
                    for (i, to) in are_true[..batch].iter_mut().enumerate() {
                        // SAFETY: an element of a run of the nest, so of the mask.
                        let value = unsafe { *self.first.offset(first + i.cast_signed() * step) };
                        *to = u8::from(value != 0);
                    }
                }
                let mut count = 0;
                with_isa(
                    Isa::current(),
                    Find { are_true, place, found: &mut found, count: &mut count },
                );
                place += batch;
                if count > 0 {
                    take(&found[..count]);
                }
            }
        });
    }
}

/// Elements whose places are found at once.
const EIGHT: usize = 8;

/// For each set of eight elements: which are in it, in order, and then anything.
static MEMBERS: [[u8; EIGHT]; 256] = {
    let mut table = [[0; EIGHT]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut count, mut member) = (0, 0);
        while member < EIGHT {
            if set >> member & 1 == 1 {
                table[set][count] = member as u8;
                count += 1;
            }
            member += 1;
        }
        set += 1;
    }
    table
};

/// Finds the places of ones among zeros.
struct Find<'a> {
    are_true: [u8; BATCH],
    /// That of the first.
    place: usize,
    found: &'a mut [usize; BATCH + EIGHT],
    count: &'a mut usize,
}

impl Work for Find<'_> {
    #[inline(always)]
    fn run(self) {
        let mut count = 0;
        for (i, eight) in self.are_true.as_chunks::<EIGHT>().0.iter().enumerate() {
            // Each of the eight bits comes to lie in the highest byte, in order.
            let word = u64::from_le_bytes(*eight);
            let set = (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize;
            // All eight are written, and those that are not in the set overwritten by the next ones:
            // no branch could foresee how many are.
            let place = self.place + EIGHT * i;
            let to = &mut self.found[count..count + EIGHT];
            for (to, &member) in to.iter_mut().zip(&MEMBERS[set]) {
                *to = place + usize::from(member);
            }
            count += set.count_ones() as usize;
        }
        *self.count = count;
    }
}

/// The rows of the output, inside of a block that the session holds (the invariant of views).
struct List {
    first: *mut i64,
    /// From row to row, and from axis to axis.
    steps: (isize, isize),
}
// SAFETY: pieces write different rows.
unsafe impl Sync for List {}

impl List {
    fn new(block: *mut i64, layout: &Layout) -> List {
        let first = block.wrapping_add(layout.offset());
        List { first, steps: (layout.strides()[0], layout.strides()[1]) }
    }

    /// Writes places to the rows from `row` on.
    ///
    /// # Safety
    /// They are rows of the output, with as many columns as indices have axes.
    unsafe fn write(&self, row: usize, places: &[usize], index: &mut Unraveled<'_>) {
        let mut to = self.first.wrapping_offset(row.cast_signed() * self.steps.0);
        if index.shape.len() == 1 && self.steps.0 == 1 {
            // SAFETY: the caller's promise.
            let to = unsafe { std::slice::from_raw_parts_mut(to, places.len()) };
            to.iter_mut().zip(places).for_each(|(to, &place)| *to = place as i64);
            return;
        }
        for &place in places {
            for (axis, &i) in index.of(place).iter().enumerate() {
                // SAFETY: as above.
                unsafe { to.offset(axis.cast_signed() * self.steps.1).write(i as i64) };
            }
            to = to.wrapping_offset(self.steps.0);
        }
    }
}

/// Places as indices. Those of one row follow each other, so that there is seldom anything to divide.
struct Unraveled<'a> {
    shape: &'a [usize],
    index: SmallVec<[usize; 6]>,
    /// The places of the row that `index` is in.
    row: Range<usize>,
}

impl<'a> Unraveled<'a> {
    fn new(shape: &'a [usize]) -> Unraveled<'a> {
        Unraveled { shape, index: smallvec![0; shape.len()], row: 0..0 }
    }

    /// The index of a place.
    #[inline]
    fn of(&mut self, place: usize) -> &[usize] {
        let last = self.shape.len() - 1;
        if !self.row.contains(&place) {
            let mut rest = place / self.shape[last];
            self.row = rest * self.shape[last]..(rest + 1) * self.shape[last];
            for axis in (0..last).rev() {
                self.index[axis] = rest % self.shape[axis];
                rest /= self.shape[axis];
            }
        }
        self.index[last] = place - self.row.start;
        &self.index
    }
}
