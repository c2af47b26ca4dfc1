//! One kernel over contiguous arrays: no loops over axes, no plan.
//!
//! Results that stay in the caches are written by the kernel itself, piece by piece. Larger ones go
//! past the caches (`stream`), in bursts so short that the stores of one are under way while the
//! next is computed. Called by `map::run`, which takes the general way for whatever [`run`] declines.

use std::mem::MaybeUninit;
use std::ops::Range;

use tilework_backend::{Map, Operand, Session};

use super::arena::CHUNK;
use super::kernels::Kernel;
use super::stream::{self, BURST};
use super::{OnlyCall, moves, piece_elements};
use crate::pool;

/// Elements of the largest work that needs no more than its kernel and a few buffers.
const SMALL: usize = CHUNK / 16;

/// A line of buffers, aligned for kernels.
#[repr(align(64))]
struct Buffers(MaybeUninit<[[u8; CHUNK]; 4]>);

/// Does the work of one kernel on contiguous arrays and values. False, with nothing done, if it is
/// anything else.
pub(super) fn run(session: &Session<'_>, map: &Map<'_>, only: OnlyCall) -> bool {
    let layout = map.output.layout();
    if !layout.is_contiguous() {
        return false;
    }
    match layout.len() {
        n @ ..=SMALL => few(session, map, only, n),
        n => many(session, map, only, n),
    }
}

/// The address of an operand that is a contiguous array.
#[inline(always)]
fn contiguous(session: &Session<'_>, input: &Operand<'_>, size: usize) -> Option<*const u8> {
    match input {
        Operand::View(view) if view.layout().is_contiguous() => {
            Some(view.pointer(session).wrapping_add(view.layout().offset() * size))
        }
        _ => None,
    }
}

/// The address of the first result.
#[inline(always)]
fn target(session: &Session<'_>, map: &Map<'_>) -> *mut u8 {
    let offset = map.output.layout().offset() * map.output.dtype().size();
    map.output.pointer(session).wrapping_add(offset)
}

/// Elements so few that the call around them is what takes time: one call of the kernel, and values
/// are laid out for all of them.
fn few(session: &Session<'_>, map: &Map<'_>, only: OnlyCall, n: usize) -> bool {
    let OnlyCall { kernel, sizes, .. } = only;
    let (out, out_size) = (target(session, map), map.output.dtype().size());
    let mut buffers = Buffers(MaybeUninit::uninit());
    let mut buffer = |k: usize| buffers.0.as_mut_ptr().cast::<u8>().wrapping_add(k * CHUNK);
    let mut operands = [out.cast_const(); 3];
    let mut in_place = false;
    for (k, input) in map.inputs.iter().enumerate() {
        operands[k] = match (contiguous(session, input, sizes[k]), input) {
            (Some(from), _) => from,
            (None, Operand::Scalar(scalar)) => {
                let to = buffer(k);
                // SAFETY: a buffer holds 16 bytes for each of a few elements.
                unsafe { moves::fill(sizes[k], n, (to, 1), scalar.bytes().as_ptr()) };
                to.cast_const()
            }
            _ => return false,
        };
        in_place |= operands[k] == out.cast_const();
    }
    let to = if in_place { buffer(3) } else { out };
    // SAFETY: all views have `n` elements inside their blocks (the invariant of views), one after the
    // other; the session holds the blocks. Buffers hold a few elements, and results go where no operand
    // is. The kernel is one of the current instruction set.
    unsafe {
        kernel(n, to, operands[0], operands[1], operands[2]);
        if in_place {
            out.copy_from_nonoverlapping(to, n * out_size);
        }
    }
    true
}

/// Any number of elements.
#[inline(never)]
fn many(session: &Session<'_>, map: &Map<'_>, only: OnlyCall, n: usize) -> bool {
    let OnlyCall { kernel, sizes, cost } = only;
    let (out, out_size) = (target(session, map), map.output.dtype().size());
    let views = map.inputs.iter().zip(sizes).filter(|(input, _)| matches!(input, Operand::View(_)));
    let traffic = views.fold(out_size, |traffic, (_, size)| traffic + size);
    let streams = stream::pays(n.saturating_mul(traffic));
    let widest = sizes[..map.inputs.len()].iter().fold(out_size, |widest, &size| widest.max(size));
    let burst = BURST / widest;
    let mut buffers = Buffers(MaybeUninit::uninit());
    let mut operands = [out.cast_const(); 3];
    let mut steps = [0; 3];
    let mut in_place = false;
    for (k, input) in map.inputs.iter().enumerate() {
        operands[k] = match (contiguous(session, input, sizes[k]), input) {
            (Some(from), _) => {
                steps[k] = sizes[k];
                from
            }
            (None, Operand::Scalar(scalar)) if streams => {
                let to = buffers.0.as_mut_ptr().cast::<u8>().wrapping_add(k * CHUNK);
                // SAFETY: a buffer holds a burst.
                unsafe { moves::fill(sizes[k], burst, (to, 1), scalar.bytes().as_ptr()) };
                to.cast_const()
            }
            _ => return false,
        };
        in_place |= operands[k] == out.cast_const();
    }
    if in_place && !streams {
        return false;
    }
    let whole = Whole { kernel, operands, steps, out, out_size };
    let grain = piece_elements(traffic + cost);
    if streams {
        pool::for_ranges(n, grain * stream::PIECES, &|elements| {
            // SAFETY: as below, but an operand may be where the results go: by contract one that
            // overlaps them is. Values fill a burst.
            unsafe { whole.part_past_caches(elements, burst) }
        });
        return true;
    }
    pool::for_ranges(n, even(n, grain), &|elements| {
        // SAFETY: all views have `n` elements inside their blocks (the invariant of views), one
        // after the other; the session holds the blocks. No operand is where the results go, so
        // none overlaps it.
        unsafe { whole.part(elements) }
    });
    true
}

/// The elements of a piece where one has about `grain`: as many pieces for one of two threads as for
/// the other, and of one size as far as cache lines allow.
fn even(n: usize, grain: usize) -> usize {
    let pieces = n.div_ceil(grain).next_multiple_of(2);
    // What hardly exceeds a piece stays on one thread.
    if n < grain + grain / 2 { grain } else { n.div_ceil(pieces).next_multiple_of(64) }
}

/// A kernel and what it runs over.
struct Whole {
    kernel: Kernel,
    operands: [*const u8; 3],
    /// Bytes from an operand's element to the next; 0 where one buffer serves all.
    steps: [usize; 3],
    out: *mut u8,
    out_size: usize,
}

// SAFETY: an address book; the session that it was made under outlives all work on it, and parts
// that are run at a time write different elements.
unsafe impl Sync for Whole {}

impl Whole {
    fn operand(&self, k: usize, element: usize) -> *const u8 {
        self.operands[k].wrapping_add(element * self.steps[k])
    }

    /// Some of the elements.
    ///
    /// # Safety
    /// They are inside of the arrays, whose blocks are held, and `out` is none of the operands.
    unsafe fn part(&self, elements: Range<usize>) {
        let at = |k: usize| self.operand(k, elements.start);
        let out = self.out.wrapping_add(elements.start * self.out_size);
        // SAFETY: the caller's promise; the kernel is one of the current instruction set.
        unsafe { (self.kernel)(elements.len(), out, at(0), at(1), at(2)) }
    }

    /// Some of the elements, whose results go past the caches, at most `burst` of them at a time,
    /// which are at most [`BURST`] bytes. Where an operand is `out`, each is read before it is
    /// written.
    ///
    /// # Safety
    /// As [`Whole::part`], but `out` may be an operand.
    unsafe fn part_past_caches(&self, elements: Range<usize>, burst: usize) {
        let mut results = MaybeUninit::<[moves::Line; BURST / stream::LINE]>::uninit();
        let results = results.as_mut_ptr().cast::<u8>();
        let mut next = elements.start;
        // What comes before the first whole line is a burst of its own, so that the others begin
        // with a line.
        let start = self.out.wrapping_add(next * self.out_size);
        let mut end = next + start.align_offset(stream::LINE) / self.out_size;
        while next < elements.end {
            if end == next {
                end = next + burst;
            }
            let n = end.min(elements.end) - next;
            let at = |k: usize| self.operand(k, next);
            for k in 0..3 {
                stream::fetch(at(k), n, self.steps[k].cast_signed());
            }
            // SAFETY: the caller's promise; the kernel is one of the current instruction set, and a
            // burst of results has room.
            unsafe {
                (self.kernel)(n, results, at(0), at(1), at(2));
                stream::copy(
                    self.out.wrapping_add(next * self.out_size),
                    results,
                    n * self.out_size,
                );
            }
            next = end;
        }
        stream::finish();
    }
}
