//! Sums over j of a number of each pair times a long vector of j, as products of matrices.
//!
//! As many sums as such a vector has components would not fit into registers. Assembled code writes
//! the numbers of a panel of i and a block of j down, and tiles of products sum them: every sum takes
//! its j in the order of the block, fused, so that its bits are those of the fold. Vectors of j are
//! read where they are. May assume a job whose plan has `columns`; called by `pairs::piece`.

#![allow(clippy::needless_range_loop, reason = "loops over registers, unrolled by their bounds")]

use tilework_backend::Accumulator;
use tilework_simd::tiles::MOST_ROWS;
use tilework_simd::{Lanes, TileWork};
use tilework_tape::Per;

use super::fold::States;
use super::jit::{Arguments, Compiled};
use super::lanes::Summed;
use super::piece::Block;
use super::plan::{Columns, GIVEN, PANEL, PANEL_ROWS};
use super::products::{self, Number, VECTORS, onto, with_tiles};
use super::{Job, Operands, position};

impl Columns {
    /// Whether tiles of products can read the vectors where they are: rows of numbers side by side.
    pub(super) fn fits<T: Number>(&self, operands: &Operands<'_>, batch_axes: usize) -> bool {
        let source = &operands.sources[usize::from(self.vector)];
        let strides = &source.layout.strides()[batch_axes..];
        self.len >= MOST_ROWS
            && operands.tape.slot(self.vector).dtype == T::DTYPE
            && operands.tape.slot(self.number).dtype == T::DTYPE
            && strides[1] == 1
            && strides[0] >= self.len as isize
            && source.base.align_offset(align_of::<T>()) == 0
    }
}

impl<T: Number + Summed<A>, A: Accumulator> Job<'_, T, A> {
    /// What is summed by products, if it is: code writes the numbers down.
    pub(super) fn columns(&self) -> Option<Columns> {
        self.plan.columns.filter(|_| self.code.is_ok())
    }

    /// The vector of a j; nothing if there are no such vectors.
    pub(super) fn vector_of(&self, batch: &[usize], j: usize) -> *const u8 {
        let Some(columns) = self.columns() else { return std::ptr::null() };
        let source = &self.operands.sources[usize::from(columns.vector)];
        let row = source.layout.strides()[batch.len()];
        let at = position(&source.layout, batch) + j as isize * row;
        source.base.cast::<T>().wrapping_offset(at).cast()
    }

    /// Takes all pairs of a block into the sums; how many j there were.
    pub(super) fn run_columns(
        &self,
        code: &Compiled,
        block: &Block<'_, '_, '_>,
        states: &mut States<T, A>,
    ) -> usize {
        let Some(columns) = self.columns() else { return 0 };
        let (tile, size) = (block.tile, size_of::<T>());
        let source = &self.operands.sources[usize::from(columns.vector)];
        let pitch = source.layout.strides()[self.batch.len()] as usize;
        let (lanes, step) = (VECTORS * code.lanes(), tile.lanes * size);
        let mut sums = states.rows();
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
                // the block (the invariant of views), which `Columns::fits` found side by side and
                // aligned.
                let (panel, vectors) = unsafe {
                    let panel = tile.regions[PANEL].cast::<T>().cast_const();
                    let vectors = block.vector.cast::<T>().add(row * pitch);
                    let numbers = (count - 1) * pitch + columns.len;
                    (
                        std::slice::from_raw_parts(panel, count * lanes),
                        std::slice::from_raw_parts(vectors, numbers),
                    )
                };
                let vectors = products::Columns { numbers: vectors, pitch };
                with_tiles(self.isa, Outer { panel, vectors, sums: &sums[..columns.len] });
            }
            sums.iter_mut().for_each(|row| *row = row.wrapping_add(lanes * size));
        }
        block.rows
    }
}

/// A panel of numbers times the vectors of its j, onto the sums that are there.
struct Outer<'a, T> {
    panel: &'a [T],
    vectors: products::Columns<'a, T>,
    /// Where the sums of each component are.
    sums: &'a [*mut u8],
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
        let Outer { panel, vectors, sums } = *self;
        assert!(sums.len() >= ROWS);
        let first = done.min(sums.len() - ROWS);
        let mut tile = [[V::lit(0.0); VECTORS]; ROWS];
        for r in 0..ROWS {
            for v in 0..VECTORS {
                // SAFETY: rows of states have room for whole panels.
                tile[r][v] = unsafe { V::load(sums[first + r].cast::<T>().add(v * V::LANES)) };
            }
        }
        let vectors = products::Columns { numbers: &vectors.numbers[first..], ..vectors };
        // SAFETY: every vector has `ROWS` components from here on, and there is one for each row of
        // the panel.
        let tile = unsafe { onto::<V, ROWS>(tile, panel, vectors) };
        for r in 0..ROWS {
            if first + r < done {
                continue;
            }
            for v in 0..VECTORS {
                // SAFETY: as above.
                unsafe { tile[r][v].store(sums[first + r].cast::<T>().add(v * V::LANES)) };
            }
        }
        first + ROWS
    }
}
