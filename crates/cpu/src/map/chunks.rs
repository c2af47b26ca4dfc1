//! Runs a program over arrays with any strides.
//!
//! Kernels see contiguous memory only. An operand that is contiguous where a kernel runs is read in
//! place; any other is gathered into a buffer of a chunk first, a value that is the same everywhere
//! is written to its buffer once, and a result that cannot be written in place (strided, or an
//! operand of the program itself, or large enough for `stream`) is moved out of a buffer. Three ways
//! to cut the work:
//! - *runs*: long innermost axes are cut into chunks;
//! - *rows*: several rows of a short innermost axis make a chunk together;
//! - *panels*: where an operand runs across the output (it is transposed), some hundred rows of it
//!   are turned around first, part by part, and then used row by row.
//!
//! May assume what a `Map` request promises; called by `map::run`.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use tilework_layout::LoopNest;
use tilework_ops::Scalar;

use super::arena::{Arena, CHUNK};
use super::copy::COLLECTED_ROW;
use super::plan::Program;
use super::walk::Walk;
use super::{moves, piece_elements, stream};
use crate::pool;

/// Rows of fewer elements than this share a chunk.
const SHORT_ROW: usize = 96;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Rows of a panel.
const PANEL_ROWS: usize = 256;

/// Where the values of a place come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Feed {
    /// An operand of the nest: the block it lies in, and the bytes of an element.
    Array { base: *const u8, size: usize, operand: usize },
    /// The same value everywhere.
    Value(Scalar),
}

/// A program and all it works on.
pub(super) struct Job<'a> {
    pub(super) program: &'a Program,
    /// The output is operand 0.
    pub(super) nest: &'a LoopNest,
    /// One for each input of the program.
    pub(super) feeds: SmallVec<[Feed; 4]>,
    /// The output's block, and the bytes of an element.
    pub(super) output: (*mut u8, usize),
    /// Whether the output is also an input.
    pub(super) in_place: bool,
    /// What an element costs, in bytes of traffic.
    pub(super) cost: usize,
}

// SAFETY: a job is an address book. The session that it was made under outlives all work on it,
// and pieces of work write different elements.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Does all of it, on as many threads as it is worth.
    ///
    /// # Safety
    /// Feeds and output belong to the nest's operands: every position of the nest is an element
    /// that may be read, or written, until this returns. The output overlaps no feed, unless both
    /// are the same elements in the same order and `in_place` says so.
    pub(super) unsafe fn run(&self) {
        let (inner, outer) = (self.nest.inner_len(), self.nest.outer_len());
        let across = self.across();
        let grain = piece_elements(self.cost);
        if across.is_none() && (outer == 1 || inner >= SHORT_ROW) {
            let grain = if self.streams() { grain * stream::PIECES } else { grain };
            pool::for_ranges(self.nest.len(), grain, &|elements| {
                // SAFETY: the caller's promise; elements of different ranges are different.
                unsafe { self.over_elements(elements) }
            });
            return;
        }
        let walk = Walk::new(self.nest, across);
        let grain = (grain / inner).max(1);
        if across.is_some() {
            pool::for_ranges(walk.rows(), grain.max(PANEL_ROWS), &|rows| {
                // SAFETY: the caller's promise; elements of different ranges are different.
                unsafe { self.over_panels(&walk, rows, true) }
            });
            return;
        }
        let rows_at_once = (CHUNK / self.program.widest / inner).max(1);
        pool::for_ranges(walk.rows(), grain.next_multiple_of(rows_at_once), &|rows| {
            // SAFETY: as above.
            unsafe { self.over_rows(&walk, rows) }
        });
    }

    /// Whether the results of runs go past the caches.
    fn streams(&self) -> bool {
        let strides = self.nest.inner_strides();
        // Lines come whole: what lies between the elements is read too.
        let reads = |feed: &Feed| match *feed {
            Feed::Array { size, operand, .. } => {
                (strides[operand].unsigned_abs() * size).min(stream::LINE)
            }
            Feed::Value(_) => 0,
        };
        let traffic = self.output.1 + self.feeds.iter().map(reads).sum::<usize>();
        strides[0] == 1 && stream::pays(self.nest.len().saturating_mul(traffic))
    }

    /// The axis along which an operand is contiguous that takes long steps along the innermost
    /// axis, if the arrays are large enough for that to matter, and rows not so short that they had
    /// better share chunks.
    fn across(&self) -> Option<usize> {
        let nest = self.nest;
        if nest.axes() < 2 || nest.inner_len() < 64 || nest.len() * self.program.widest < (32 << 10)
        {
            return None;
        }
        let bytes = |axis: usize, feed: &Feed| match feed {
            Feed::Array { size, operand, .. } => {
                nest.strides(axis)[*operand].unsigned_abs() * *size
            }
            Feed::Value(_) => 0,
        };
        let feed = self.feeds.iter().find(|feed| bytes(nest.axes() - 1, feed) >= LINE)?;
        let near =
            |axis: &usize| (1..LINE).contains(&bytes(*axis, feed)) && nest.lens()[*axis] >= 8;
        (0..nest.axes() - 1).filter(near).min_by_key(|&axis| bytes(axis, feed))
    }

    /// The buffers and places of one piece of work, in which up to `elements` are handled, with
    /// everything done that is done once. `direct` says of each input, and of the output last,
    /// whether it is read or written where it lies. Gives the places, and the chunk.
    ///
    /// # Safety
    /// As [`Job::run`]; the arena outlives the places.
    unsafe fn prepare(
        &self,
        arena: &mut Arena,
        direct: &[bool],
        elements: usize,
    ) -> (SmallVec<[*mut u8; 12]>, usize) {
        let program = self.program;
        let inputs = program.inputs;
        let wanting = direct.iter().filter(|direct| !**direct).count();
        let needed = wanting + program.constants.len() + program.buffers;
        let chunk = if needed == 0 { usize::MAX } else { CHUNK / program.widest };
        let mut next = arena.take(needed);
        let mut buffer = || {
            let here = next;
            next = next.wrapping_add(CHUNK);
            here
        };
        let mut places: SmallVec<[*mut u8; 12]> =
            smallvec![std::ptr::dangling_mut::<u8>(); program.output() as usize + 1];
        let n = chunk.min(elements);
        for k in 0..places.len() {
            let value = match k.checked_sub(inputs) {
                None => match &self.feeds[k] {
                    Feed::Value(scalar) => Some(scalar),
                    Feed::Array { .. } => None,
                },
                Some(constant) => program.constants.get(constant),
            };
            let is_output = k + 1 == places.len();
            let in_place = if is_output { direct[inputs] } else { k < inputs && direct[k] };
            if in_place {
                continue;
            }
            places[k] = buffer();
            if let Some(value) = value {
                // SAFETY: a buffer holds a chunk of the widest elements of the program.
                unsafe {
                    moves::fill(value.bytes().len(), n, (places[k], 1), value.bytes().as_ptr())
                };
            }
        }
        for call in &program.once {
            // SAFETY: all operands are buffers that have been filled.
            unsafe { self.call(call, n, &places) };
        }
        (places, chunk)
    }

    /// # Safety
    /// The places of the call hold `n` elements.
    #[inline]
    unsafe fn call(&self, call: &super::plan::Call, n: usize, places: &[*mut u8]) {
        let [a, b, c] = call.operands.map(|place| places[place as usize].cast_const());
        // SAFETY: the caller's promise; the plan keeps results and operands apart, and kernels
        // are those of the current instruction set.
        unsafe { (call.kernel)(n, places[call.out as usize], a, b, c) }
    }

    /// Elements of the nest, run by run.
    ///
    /// # Safety
    /// As [`Job::run`], for these elements.
    unsafe fn over_elements(&self, elements: Range<usize>) {
        let (program, strides) = (self.program, self.nest.inner_strides());
        let output = program.output();
        let mut direct: SmallVec<[bool; 8]> = self
            .feeds
            .iter()
            .map(|feed| matches!(feed, Feed::Array { operand, .. } if strides[*operand] == 1))
            .collect();
        let streams = self.streams();
        let out_direct = strides[0] == 1 && !self.in_place && !streams && program.result == output;
        // Where no call computes the result, its place is copied out, and no buffer is needed.
        direct.push(out_direct || program.result != output);
        let longest = (elements.end - elements.start).min(self.nest.inner_len());
        let mut arena = Arena::new();
        // SAFETY: the caller's promise.
        let (mut places, mut chunk) = unsafe { self.prepare(&mut arena, &direct, longest) };
        if streams {
            let step = strides.iter().fold(1, |most, step| most.max(step.unsigned_abs()));
            chunk = chunk.min(stream::burst(program.widest, step, self.output.1));
        }
        let (out_base, out_size) = self.output;
        self.nest.for_each_piece(elements, |at, len| {
            let mut done = 0;
            while done < len {
                let n = chunk.min(len - done);
                // SAFETY: `done + i` for `i < n` is an element of the run, so all positions are
                // those of the nest, for which the caller vouches; buffers hold a chunk.
                unsafe {
                    for (k, feed) in self.feeds.iter().enumerate() {
                        let Feed::Array { base, size, operand } = *feed else { continue };
                        let stride = strides[operand];
                        let position = at[operand].cast_signed() + done.cast_signed() * stride;
                        let from = base.offset(position * size.cast_signed());
                        if streams {
                            stream::fetch(from, n, stride * size.cast_signed());
                        }
                        match stride {
                            1 => places[k] = from.cast_mut(),
                            0 if done > 0 => {}
                            0 => moves::fill(size, chunk.min(len), (places[k], 1), from),
                            _ => moves::line(size, n, (places[k], 1), (from, stride)),
                        }
                    }
                    let position = at[0].cast_signed() + done.cast_signed() * strides[0];
                    let to = out_base.offset(position * out_size.cast_signed());
                    if out_direct {
                        places[output as usize] = to;
                    }
                    for call in &program.calls {
                        self.call(call, n, &places);
                    }
                    let from = places[program.result as usize].cast_const();
                    if streams {
                        stream::copy(to, from, n * out_size);
                    } else if !out_direct {
                        moves::line(out_size, n, (to, strides[0]), (from, 1));
                    }
                }
                done += n;
            }
        });
        if streams {
            stream::finish();
        }
    }

    /// Some rows, several to a chunk.
    ///
    /// # Safety
    /// As [`Job::run`], for these elements.
    unsafe fn over_rows(&self, walk: &Walk, rows: Range<usize>) {
        let program = self.program;
        let output = program.output();
        let width = walk.columns();
        let mut direct: SmallVec<[bool; 8]> = self
            .feeds
            .iter()
            .map(|feed| matches!(feed, Feed::Array { operand, .. } if walk.is_dense(*operand)))
            .collect();
        let out_direct = walk.is_dense(0) && !self.in_place && program.result == output;
        direct.push(out_direct || program.result != output);
        let chunk_rows = (CHUNK / program.widest / width).max(1).min(rows.end - rows.start);
        let mut arena = Arena::new();
        let (out_base, out_size) = self.output;
        // SAFETY: rows and columns are inside of the walk, so all positions are those of the nest,
        // for which the caller vouches; a chunk of rows fits a buffer.
        unsafe {
            let (mut places, _) = self.prepare(&mut arena, &direct, chunk_rows * width);
            for (k, feed) in self.feeds.iter().enumerate() {
                if let Feed::Array { base, size, operand } = *feed
                    && !direct[k]
                    && walk.is_still(operand)
                {
                    let (_, step) = walk.steps(operand);
                    let from = base.add(walk.offset(operand) * size);
                    let to = (places[k], (width.cast_signed(), 1));
                    moves::block(size, (chunk_rows, width), to, (from, (0, step)));
                }
            }
            let mut row = rows.start;
            while row < rows.end {
                let count = chunk_rows.min(rows.end - row);
                for (k, feed) in self.feeds.iter().enumerate() {
                    let Feed::Array { base, size, operand } = *feed else { continue };
                    if direct[k] {
                        let position = walk.offset(operand) + row * width;
                        places[k] = base.add(position * size).cast_mut();
                    } else if !walk.is_still(operand) {
                        let steps = walk.steps(operand);
                        let mut to = places[k];
                        walk.bursts(operand, row..row + count, |position, burst| {
                            let from = base.offset(position * size.cast_signed());
                            let into = (to, (width.cast_signed(), 1));
                            moves::block(size, (burst, width), into, (from, steps));
                            to = to.add(burst * width * size);
                        });
                    }
                }
                if out_direct {
                    let position = walk.offset(0) + row * width;
                    places[output as usize] = out_base.add(position * out_size);
                }
                for call in &program.calls {
                    self.call(call, count * width, &places);
                }
                if !out_direct {
                    let steps = walk.steps(0);
                    let mut from = places[program.result as usize].cast_const();
                    walk.bursts(0, row..row + count, |position, burst| {
                        let to = out_base.offset(position * out_size.cast_signed());
                        let source = (from, (width.cast_signed(), 1));
                        moves::block(out_size, (burst, width), (to, steps), source);
                        from = from.add(burst * width * out_size);
                    });
                }
                row += count;
            }
        }
    }

    /// Some rows, row by row, where operands run across the output: those are turned around for a
    /// panel of rows and columns at a time, or gathered element by element unless `turning`.
    ///
    /// # Safety
    /// As [`Job::run`], for these elements.
    unsafe fn over_panels(&self, walk: &Walk, rows: Range<usize>, turning: bool) {
        let program = self.program;
        let output = program.output() as usize;
        let strip = (COLLECTED_ROW / program.widest).min(walk.columns());
        // A line more than what a row holds, so that columns do not fall into one set of a cache.
        let pitch = strip + LINE / program.widest;
        let is_turned = |feed: &Feed| {
            matches!(feed, Feed::Array { size, operand, .. }
                if turning && walk.steps(*operand).1.unsigned_abs() * size >= LINE)
        };
        let turned = self.feeds.iter().filter(|feed| is_turned(feed)).count();
        let is_direct = |feed: &Feed| {
            let next = |operand: usize| walk.steps(operand).1 == 1;
            is_turned(feed) || matches!(feed, Feed::Array { operand, .. } if next(*operand))
        };
        let mut direct: SmallVec<[bool; 8]> = self.feeds.iter().map(is_direct).collect();
        let out_direct = walk.steps(0).1 == 1 && !self.in_place && program.result == output as u16;
        direct.push(out_direct || program.result != output as u16);
        let mut arena = Arena::new();
        let panel_bytes = PANEL_ROWS * pitch * program.widest;
        let operands = self.nest.operands();
        // Where each row of a panel begins, operand by operand.
        let mut starts: Vec<isize> = vec![0; operands * PANEL_ROWS];
        // SAFETY: rows and columns are inside of the walk, so all positions are those of the nest,
        // for which the caller vouches; strips fit buffers, and panels have room for their rows.
        let done = moves::with_scratch("map", turned * panel_bytes, |panels| unsafe {
            let (mut places, _) = self.prepare(&mut arena, &direct, strip);
            for top in rows.clone().step_by(PANEL_ROWS) {
                let high = PANEL_ROWS.min(rows.end - top);
                for operand in 0..operands {
                    let mut row = operand * PANEL_ROWS;
                    walk.bursts(operand, top..top + high, |position, burst| {
                        for i in 0..burst.cast_signed() {
                            starts[row] = position + i * walk.steps(operand).0;
                            row += 1;
                        }
                    });
                }
                for first in (0..walk.columns()).step_by(strip) {
                    let wide = strip.min(walk.columns() - first);
                    let first = first.cast_signed();
                    let mut panel = panels;
                    for feed in self.feeds.iter().filter(|feed| is_turned(feed)) {
                        let Feed::Array { base, size, operand } = *feed else { continue };
                        let steps = walk.steps(operand);
                        let mut to = panel;
                        walk.bursts(operand, top..top + high, |position, burst| {
                            let position = position + first * steps.1;
                            let from = base.offset(position * size.cast_signed());
                            let into = (to, (pitch.cast_signed(), 1));
                            moves::block(size, (burst, wide), into, (from, steps));
                            to = to.add(burst * pitch * size);
                        });
                        panel = panel.add(panel_bytes);
                    }
                    for row in 0..high {
                        let start = |operand: usize| {
                            starts[operand * PANEL_ROWS + row] + first * walk.steps(operand).1
                        };
                        let mut panel = panels;
                        for (k, feed) in self.feeds.iter().enumerate() {
                            let Feed::Array { base, size, operand } = *feed else { continue };
                            if is_turned(feed) {
                                places[k] = panel.add(row * pitch * size);
                                panel = panel.add(panel_bytes);
                                continue;
                            }
                            let from = base.offset(start(operand) * size.cast_signed());
                            match walk.steps(operand).1 {
                                1 => places[k] = from.cast_mut(),
                                step => moves::line(size, wide, (places[k], 1), (from, step)),
                            }
                        }
                        let (out_base, out_size) = self.output;
                        let to = out_base.offset(start(0) * out_size.cast_signed());
                        if out_direct {
                            places[output] = to;
                        }
                        for call in &program.calls {
                            self.call(call, wide, &places);
                        }
                        if !out_direct {
                            let from = places[program.result as usize].cast_const();
                            moves::line(out_size, wide, (to, walk.steps(0).1), (from, 1));
                        }
                    }
                }
            }
        });
        if done.is_err() {
            // SAFETY: the caller's promise. Without panels it needs no memory.
            unsafe { self.over_panels(walk, rows, false) }
        }
    }
}
