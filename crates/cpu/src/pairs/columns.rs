//! Sums over j of a number of each pair times a long vector of j, as products of matrices.
//!
//! As many sums as such a vector has components would not fit into registers. Assembled code writes
//! the numbers of a panel of i and a block of j down, and tiles of products sum them: every sum takes
//! its j in the order of the block, fused or compensated, so that its bits are those of the fold.
//! Vectors of j are read where they are, if they lie well; else those of a block are packed row by row,
//! as wide as the sums, once for all tiles of i. May assume a job whose plan has `columns`; called by
//! `pairs::piece`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use tilework_simd::{Lanes, Real, TileWork};
use tilework_tape::Per;

use super::fold::States;
use super::jit::{Arguments, Compiled};
use super::lanes::Summed;
use super::piece::Block;
use super::plan::{Columns, GIVEN, PACK, PANEL, PANEL_ROWS, Plan};
use super::products::{self, MOST_LANES, Number, VECTORS, onto, tile_shape, with_tiles};
use super::tile::Frame;
use super::{Job, Operands, position};
use crate::isa::{Work, with_isa};
use crate::map::moves;

/// Bytes of which rows must not be a multiple apart: the numbers that a tile reads of a panel's rows
/// would all want the same few sets of the cache.
const CROWDED: usize = 512;

/// Bytes that packed rows which would be are further apart.
const BETWEEN: usize = 64;

/// The vectors of a block of j: rows of numbers as wide as the sums, `pitch` of them apart.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    first: *const u8,
    pitch: usize,
}

impl Vectors {
    /// Those of a block without any.
    pub(super) fn none() -> Vectors {
        Vectors { first: std::ptr::null(), pitch: 0 }
    }
}

impl Columns {
    /// Numbers from one packed vector to the next, in numbers of type `A`.
    fn pitch<A>(&self) -> usize {
        let crowded = (self.len * size_of::<A>()).is_multiple_of(CROWDED);
        self.len + if crowded { BETWEEN / size_of::<A>() } else { 0 }
    }

    /// Whether tiles of products can read the vectors where they are: rows of numbers side by side, as
    /// wide as the sums, and not too many of them in the same sets of the cache.
    fn lie_well<T: Number, A: Number>(&self, operands: &Operands<'_>, batch_axes: usize) -> bool {
        let Some(source) = operands.sources.get(usize::from(self.vector)) else { return false };
        let strides = &source.layout.strides()[batch_axes..];
        let row = strides[0].unsigned_abs() * size_of::<T>();
        T::DTYPE == A::DTYPE
            && strides[1] == 1
            && strides[0] >= 0
            && (row == 0 || !row.is_multiple_of(CROWDED))
            && source.base.align_offset(align_of::<T>()) == 0
    }
}

impl Plan<'_> {
    /// With columns only where their numbers are those of the formula, and room for what is packed.
    pub(super) fn with_columns<T: Number, A: Number>(
        mut self,
        operands: &Operands<'_>,
        batch_axes: usize,
    ) -> Self {
        let of_formula = |slot| operands.tape.slot(slot).dtype == T::DTYPE;
        self.columns = self
            .columns
            .filter(|columns| of_formula(columns.vector) && of_formula(columns.number))
            .map(|columns| {
                let packed = !columns.lie_well::<T, A>(operands, batch_axes);
                Columns { packed, ..columns }
            });
        if let Some(columns) = self.columns.filter(|columns| columns.packed) {
            let mut bytes = self.block * columns.pitch::<A>() * size_of::<A>();
            if T::DTYPE != A::DTYPE {
                bytes += self.block * columns.len * size_of::<T>();
                bytes += PANEL_ROWS * MOST_LANES * size_of::<A>();
            }
            self.bytes[PACK] = bytes.next_multiple_of(64);
        }
        self
    }
}

impl<T: Number + Summed<A>, A: Number> Job<'_, T, A> {
    /// What is summed by products, if it is: code writes the numbers down.
    pub(super) fn columns(&self) -> Option<Columns> {
        self.plan.columns.filter(|_| self.code.is_ok())
    }

    /// The vectors of a block of j, whose variables are loaded; nothing if there are no such vectors.
    pub(super) fn vectors(
        &self,
        frame: &Frame<'_, '_>,
        batch: &[usize],
        first: usize,
        count: usize,
    ) -> Vectors {
        let Some(columns) = self.columns() else { return Vectors::none() };
        let slot = usize::from(columns.vector);
        let (from, row, component) = match self.operands.sources.get(slot) {
            Some(source) => {
                let (strides, at) = (source.layout.strides(), position(&source.layout, batch));
                let (row, component) = (strides[batch.len()], strides[batch.len() + 1]);
                let at = at + first as isize * row;
                (source.base.cast::<T>().wrapping_offset(at), row, component)
            }
            None => {
                let place = self.plan.places[slot];
                let from = frame.regions[Per::J as usize].wrapping_add(place.offset);
                (from.cast::<T>().cast_const(), 1, (place.stride / place.size) as isize)
            }
        };
        if !columns.packed {
            return Vectors { first: from.cast(), pitch: row as usize };
        }
        let (len, pitch) = (columns.len, columns.pitch::<A>());
        let first = frame.regions[PACK];
        let (to, step) = match T::DTYPE == A::DTYPE {
            true => (first, pitch),
            false => (first.wrapping_add(self.plan.block * pitch * size_of::<A>()), len),
        };
        let steps = (step as isize, 1);
        // SAFETY: indices of a layout, which lie inside of the block (the invariant of views), whose
        // guard the session holds, or of a place; the region has room for the vectors of a block.
        unsafe {
            moves::block(size_of::<T>(), (count, len), (to, steps), (from.cast(), (row, component)))
        };
        if T::DTYPE != A::DTYPE {
            for row in 0..count {
                // SAFETY: the vector that has just been written, and room for it that is apart.
                let (from, to) = unsafe {
                    let from = to.cast::<T>().cast_const().add(row * len);
                    let to = first.cast::<A>().add(row * pitch);
                    (std::slice::from_raw_parts(from, len), std::slice::from_raw_parts_mut(to, len))
                };
                with_isa(self.isa, Widen { from, to, pitch: len, of: len });
            }
        }
        Vectors { first: first.cast_const(), pitch }
    }

    /// Takes all pairs of a block into the sums; how many j there were.
    pub(super) fn run_columns(
        &self,
        code: &Compiled,
        block: &Block<'_, '_, '_>,
        states: &mut States<T, A>,
    ) -> usize {
        let Some(columns) = self.columns() else { return 0 };
        let (tile, size, pitch) = (block.tile, size_of::<T>(), block.vectors.pitch);
        let (lanes, step) = (VECTORS * code.lanes(), tile.lanes * size);
        // Sums that are wider have fewer in a panel.
        let part = tile_shape::<A>(self.isa).1;
        let sums = states.rows();
        for lane in (0..tile.lanes).step_by(lanes) {
            let across = lane * size;
            for row in (0..block.rows).step_by(PANEL_ROWS) {
                let count = PANEL_ROWS.min(block.rows - row);
                let mut arguments = Arguments {
                    lanes: tile.regions[Per::I as usize].wrapping_add(across),
                    row: tile.regions[Per::J as usize].wrapping_add(row * size),
                    numbers: tile.regions[Per::Once as usize],
                    given: tile.regions[GIVEN].wrapping_add(across + row * step),
                    given_step: step,
                    count,
                    place: (block.place + row) as u64,
                    states: sums.as_ptr(),
                    hit: tile.regions[PANEL],
                    last_hit: std::ptr::null_mut(),
                };
                // SAFETY: regions have room for whole vectors, the panel for all rows of them; the
                // code was compiled for this plan.
                unsafe { code.run(VECTORS, &mut arguments) };
                // SAFETY: the panel has just been written. Vectors are rows of the layout, inside of
                // the block (the invariant of views), which `lie_well` found side by side and
                // aligned, or have been packed.
                let (panel, vectors) = unsafe {
                    let panel = tile.regions[PANEL].cast::<T>().cast_const();
                    let vectors = block.vectors.first.cast::<A>().add(row * pitch);
                    let numbers = (count - 1) * pitch + columns.len;
                    (
                        std::slice::from_raw_parts(panel, count * lanes),
                        std::slice::from_raw_parts(vectors, numbers),
                    )
                };
                let vectors = products::Columns { numbers: vectors, pitch };
                for first in (0..lanes).step_by(part) {
                    let panel = self.panel_of_sums(tile, &panel[first..], lanes, count * part);
                    let outer = Outer { panel, vectors, sums: &sums, lane: lane + first };
                    match self.folding.kahan {
                        true => with_tiles(self.isa, Compensated(outer)),
                        false => with_tiles(self.isa, outer),
                    }
                }
            }
        }
        block.rows
    }

    /// Some lanes of a panel, whose rows are `lanes` apart, as numbers that are summed.
    fn panel_of_sums<'a>(
        &self,
        tile: &Frame<'_, '_>,
        panel: &'a [T],
        lanes: usize,
        len: usize,
    ) -> &'a [A] {
        if T::DTYPE == A::DTYPE {
            // SAFETY: the same numbers, all of them.
            return unsafe { std::slice::from_raw_parts(panel.as_ptr().cast(), len) };
        }
        let (part, end) = (tile_shape::<A>(self.isa).1, self.plan.bytes[PACK]);
        let room = PANEL_ROWS * MOST_LANES * size_of::<A>();
        // SAFETY: the end of the region is room for a panel, which is this thread's, as the lanes of
        // the panel before are done with.
        let to = unsafe {
            let to = tile.regions[PACK].wrapping_add(end - room).cast::<A>();
            std::slice::from_raw_parts_mut(to, len)
        };
        with_isa(self.isa, Widen { from: panel, to, pitch: lanes, of: part });
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(to.as_ptr(), len) }
    }
}

/// Writes rows of numbers as numbers that are summed: `of` of each, from `pitch` apart to side by side.
struct Widen<'a, T, A> {
    from: &'a [T],
    to: &'a mut [A],
    pitch: usize,
    of: usize,
}

impl<T: Summed<A>, A: Number> Work for Widen<'_, T, A> {
    #[inline(always)]
    fn run(self) {
        for (from, to) in self.from.chunks(self.pitch).zip(self.to.chunks_exact_mut(self.of)) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.to_sum();
            }
        }
    }
}

/// A panel of numbers times the vectors of its j, onto the sums that are there.
struct Outer<'a, T> {
    panel: &'a [T],
    vectors: products::Columns<'a, T>,
    /// Where the sums of each component are; those of what compensated ones have lost follow them.
    sums: &'a [*mut u8],
    /// The first lane of the panel.
    lane: usize,
}

impl<T: Number> TileWork<T> for Outer<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) {
        let all = self.sums.len();
        let mut done = 0;
        while done < all {
            // Large tiles as long as what is left then is no small one.
            done = match all - done {
                1..=4 if ROWS > 8 => self.tile::<V, 4>(done),
                5..=8 | 13..=16 if ROWS > 8 => self.tile::<V, 8>(done),
                _ => self.tile::<V, ROWS>(done),
            };
        }
    }
}

impl<T: Number> Outer<'_, T> {
    /// Takes a tile of components into their sums; how many are done then. The last tile begins with
    /// some that are done already, which it leaves.
    #[inline(always)]
    fn tile<V: Lanes<Elem = T>, const ROWS: usize>(&self, done: usize) -> usize {
        let all = self.sums.len();
        assert!(all >= ROWS);
        let first = done.min(all - ROWS);
        // SAFETY: rows of states have room for whole panels.
        let tile = unsafe { self.load::<V, ROWS>(first) };
        let vectors = products::Columns { numbers: &self.vectors.numbers[first..], ..self.vectors };
        // SAFETY: every vector has `ROWS` components from here on, and there is one for each row of
        // the panel.
        let tile = unsafe { onto::<V, ROWS>(tile, self.panel, vectors) };
        // SAFETY: as above.
        unsafe { self.store(tile, first, done) };
        first + ROWS
    }

    /// Where some numbers of a row of the states are.
    #[inline(always)]
    fn at<V: Lanes<Elem = T>>(&self, row: usize, vector: usize) -> *mut T {
        self.sums[row].cast::<T>().wrapping_add(self.lane + vector * V::LANES)
    }

    /// A tile of rows of the states.
    ///
    /// # Safety
    /// There are so many rows from `first` on, with room for the whole panel.
    #[inline(always)]
    unsafe fn load<V: Lanes<Elem = T>, const ROWS: usize>(
        &self,
        first: usize,
    ) -> [[V; VECTORS]; ROWS] {
        let mut tile = [[V::lit(0.0); VECTORS]; ROWS];
        for r in 0..ROWS {
            for v in 0..VECTORS {
                // SAFETY: the caller's promise.
                tile[r][v] = unsafe { V::load(self.at::<V>(first + r, v)) };
            }
        }
        tile
    }

    /// Writes a tile, but for the rows before `done`.
    ///
    /// # Safety
    /// As [`Outer::load`].
    #[inline(always)]
    unsafe fn store<V: Lanes<Elem = T>, const ROWS: usize>(
        &self,
        tile: [[V; VECTORS]; ROWS],
        first: usize,
        done: usize,
    ) {
        for r in 0..ROWS {
            if first + r < done {
                continue;
            }
            for v in 0..VECTORS {
                // SAFETY: the caller's promise.
                unsafe { tile[r][v].store(self.at::<V>(first + r, v)) };
            }
        }
    }
}

/// The same with compensated sums of rounded products, whose steps are those of `fold`.
struct Compensated<'a, T>(Outer<'a, T>);

impl<T: Number> TileWork<T> for Compensated<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) {
        let mut done = 0;
        while done < self.0.sums.len() / 2 {
            // Sums and what they have lost share the registers.
            done = if ROWS > 8 { self.tile::<V, 4>(done) } else { self.tile::<V, 2>(done) };
        }
    }
}

impl<T: Number> Compensated<'_, T> {
    /// As [`Outer::tile`].
    #[inline(always)]
    fn tile<V: Lanes<Elem = T>, const ROWS: usize>(&self, done: usize) -> usize {
        let Compensated(outer) = self;
        let (all, lanes) = (outer.sums.len() / 2, VECTORS * V::LANES);
        assert!(all >= ROWS);
        let first = done.min(all - ROWS);
        // SAFETY: rows of states have room for whole panels.
        let (mut sums, mut lost) =
            unsafe { (outer.load::<V, ROWS>(first), outer.load::<V, ROWS>(all + first)) };
        let (mut x, mut y) = (outer.panel.as_ptr(), outer.vectors.numbers[first..].as_ptr());
        for _ in 0..outer.panel.len() / lanes {
            let mut of_x = [V::lit(0.0); VECTORS];
            for v in 0..VECTORS {
                // SAFETY: a row of the panel is so many numbers.
                of_x[v] = unsafe { V::load(x.add(v * V::LANES)) };
            }
            for r in 0..ROWS {
                // SAFETY: every vector has `ROWS` components from here on, and there is one for each
                // row of the panel.
                let of_y = V::lit(Real::to_f64(unsafe { *y.add(r) }));
                for v in 0..VECTORS {
                    let added = of_x[v] * of_y - lost[r][v];
                    let next = sums[r][v] + added;
                    // An infinity has lost nothing.
                    let is_finite = next.abs().lt(V::lit(f64::INFINITY));
                    let low = (next - sums[r][v]) - added;
                    lost[r][v] = V::select(is_finite, low, V::lit(0.0));
                    sums[r][v] = next;
                }
            }
            x = x.wrapping_add(lanes);
            y = y.wrapping_add(outer.vectors.pitch);
        }
        // SAFETY: as above.
        unsafe {
            outer.store(sums, first, done);
            outer.store(lost, all + first, all + done);
        }
        first + ROWS
    }
}
