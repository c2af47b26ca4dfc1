//! Writes under a mask: a select between something and the target itself.
//!
//! What the mask leaves out is not written, not even with what it holds: it may belong to another library
//! that writes there at the same time, or be a page of a file that only this process has to copy when
//! it is written to. Called by `map::run`.

use tilework_backend::{Map, Operand, Session};
use tilework_layout::LoopNest;
use tilework_tape::{Action, Step};

use super::copy::Shared;
use super::{PIECE, moves};
use crate::isa::{Isa, Work, with_isa};
use crate::pool;

/// Runs a map that is such a select; false, with nothing done, if it is another.
pub(super) fn run(session: &Session<'_>, map: &Map<'_>) -> bool {
    let [Step { action: Action::Select, operands, .. }] = map.tape.steps() else { return false };
    let ([0, 1, 2], [Operand::View(mask), Operand::View(value), Operand::View(kept)]) =
        (&operands[..], map.inputs)
    else {
        return false;
    };
    let to = map.output.pointer(session);
    if kept.pointer(session) != to.cast_const() || kept.layout() != map.output.layout() {
        return false;
    }
    let nest = LoopNest::new(&[map.output.layout(), mask.layout(), value.layout()]);
    if nest.is_empty() {
        return true;
    }
    let size = map.output.dtype().size();
    let shared = |pointer: *const u8| Shared(pointer.cast_mut());
    let (mask, value) = (shared(mask.pointer(session)), shared(value.pointer(session)));
    let (to, isa) = (Shared(to), Isa::current());
    let steps = nest.inner_strides();
    pool::for_ranges(nest.len(), (PIECE / size).next_multiple_of(64), &|elements| {
        nest.for_each_piece(elements, |at, n| {
            let at = |operand: usize| at[operand].cast_signed();
            moves::by_width!(size, T => with_isa(isa, Line::<T> {
                n,
                to: (to.at(at(0), size).cast(), steps[0]),
                mask: (mask.at(at(1), 1), steps[1]),
                value: (value.at(at(2), size).cast(), steps[2]),
            }));
        });
    });
    true
}

/// A run of the innermost axis. Positions are those of the nest, hence of the layouts, inside their blocks (the
/// invariant of views), which the session holds, the target's for writing.
struct Line<T> {
    n: usize,
    to: (*mut T, isize),
    mask: (*const u8, isize),
    value: (*const T, isize),
}

impl<T: Copy> Work for Line<T> {
    #[inline(always)]
    fn run(self) {
        // The common steps apart, so that masked stores of whole vectors are made of them.
        match (self.to.1, self.mask.1, self.value.1) {
            (1, 1, 0) => self.write((1, 1, 0)),
            (1, 1, 1) => self.write((1, 1, 1)),
            steps => self.write(steps),
        }
    }
}

impl<T: Copy> Line<T> {
    #[inline(always)]
    fn write(&self, (to, mask, value): (isize, isize, isize)) {
        if value == 0 {
            // SAFETY: see the type; there is at least one element.
            let one = unsafe { self.value.0.read_unaligned() };
            return self.write_each((to, mask), |_| one);
        }
        // SAFETY: see the type.
        self.write_each((to, mask), |i| unsafe { self.value.0.offset(i * value).read_unaligned() });
    }

    #[inline(always)]
    fn write_each(&self, (to, mask): (isize, isize), value: impl Fn(isize) -> T) {
        for i in 0..self.n.cast_signed() {
            // SAFETY: see the type.
            unsafe {
                if self.mask.0.offset(i * mask).read() != 0 {
                    self.to.0.offset(i * to).write_unaligned(value(i));
                }
            }
        }
    }
}
