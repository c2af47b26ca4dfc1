//! float32 on Hopper's tensor cores: operands are split into TF32 heads and tails beforehand, a panel
//! at a time, so that the scratch is bounded. Where a panel holds numbers that the split would get
//! wrong (infinities, NaN, very large and very small ones), `fused` computes those tiles anew.

use std::sync::Arc;

use tilework_error::Result;
use tilework_ops::DType;

use super::fused::{self, Marks};
use super::{Product, SCRATCH, begin};
use crate::compile::Module;
use crate::source;

/// As in `kernels/matmul_split.cu`: groups of warps in a block, stages, sides of a tile, and its
/// bytes.
const GROUPS: usize = 2;
const STAGES: usize = 4;
const SIDE: usize = 64;
const DEPTHS: usize = 32;
const TILE: usize = 2 * SIDE * DEPTHS * 4;
/// What the key of the module ends with.
const ROOM: &[u8] = b"S";
/// Tiles of rows and columns that a panel should have room for, or splitting takes too long.
const PANEL: usize = 16;
/// Fewer products than this, or shorter sums, are done before the operands are split.
const WORTH: usize = 600 * 600 * 600;
const SHORTEST: usize = 48;

/// How a product is cut into panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Panels {
    /// Tiles along k.
    deep: usize,
    /// Rows and columns of a panel.
    rows: usize,
    columns: usize,
    batches: usize,
}

impl Panels {
    /// Panels for which the scratch suffices; None if they would be too small.
    fn new([m, n, k]: [usize; 3], batches: usize) -> Option<Panels> {
        let deep = k.div_ceil(2 * DEPTHS) * 2;
        let room = SCRATCH / (deep * TILE);
        let (rows, columns) = (m.div_ceil(GROUPS * SIDE) * GROUPS, n.div_ceil(SIDE));
        if room < 2 * PANEL {
            return None;
        }
        if rows + columns <= room {
            let batches = (room / (rows + columns)).min(batches);
            return Some(Panels { deep, rows: rows * SIDE, columns: columns * SIDE, batches });
        }
        // Half of the room for each, and what one does not need for the other.
        let half = room / 2;
        let rows = rows.min(half.max(room.saturating_sub(columns))) / GROUPS * GROUPS;
        let columns = columns.min(room - rows);
        Some(Panels { deep, rows: rows * SIDE, columns: columns * SIDE, batches: 1 })
    }

    /// Tiles of rows and of columns of a part of the product.
    fn tiles(p: &Product<'_>) -> (usize, usize) {
        (p.m.div_ceil(GROUPS * SIDE) * GROUPS, p.n.div_ceil(SIDE))
    }
}

pub(super) fn suits(p: &Product<'_>) -> Result<bool> {
    let facts = p.cuda.facts()?;
    // Few blocks with long sums leave most of the card idle; `fused` cuts the sums.
    let blocks = p.tiles(GROUPS * SIDE, SIDE) * p.batches;
    Ok(p.dtype == DType::Float32
        && facts.capability == (9, 0)
        && 3 * blocks >= facts.multiprocessors as usize
        && p.m.min(p.n) >= SIDE
        && p.k >= SHORTEST
        && p.m.saturating_mul(p.n).saturating_mul(p.k).saturating_mul(p.batches) >= WORTH
        && Panels::new([p.m, p.n, p.k], p.batches).is_some())
}

pub(super) fn run(p: &Product<'_>) -> Result<()> {
    let Some(panels) = Panels::new([p.m, p.n, p.k], p.batches) else {
        return fused::run(p, None);
    };
    // Whatever can fail does so before the result is written; the first time, both sources are
    // compiled at once.
    if !p.cuda.is_loaded(&p.key(ROOM)) {
        std::thread::scope(|scope| {
            // Where the system has no thread to give, the other source waits its turn below.
            let mends = || fused::module(p, true);
            let mends = std::thread::Builder::new().spawn_scoped(scope, mends);
            let own = module(p);
            if let Ok(mends) = mends {
                mends.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            own
        })?;
    }
    fused::module(p, true)?;
    let most = p.part([0, 0], [panels.rows, panels.columns]);
    let (rows, columns) = Panels::tiles(&most);
    let tiles = (rows + columns) * panels.deep * panels.batches;
    let scratch = p.cuda.allocate_block(tiles * TILE)?;
    let marks = p.cuda.allocate_block(tiles)?;
    for first in (0..p.batches).step_by(panels.batches) {
        for row in (0..p.m).step_by(panels.rows) {
            for column in (0..p.n).step_by(panels.columns) {
                let mut part = p.part([row, column], [panels.rows, panels.columns]);
                part.first += first;
                part.batches = panels.batches.min(p.batches - first);
                panel(&part, panels.deep, scratch.address, marks.address)?;
            }
        }
    }
    Ok(())
}

fn panel(p: &Product<'_>, deep: usize, scratch: u64, marks: u64) -> Result<()> {
    let (rows, columns) = Panels::tiles(p);
    let tiles = rows + columns;
    let module = module(p)?;
    let [a, b, c] = p.blocks;
    let split: Vec<u8> =
        [rows, tiles, deep].iter().flat_map(|&count| (count as u32).to_le_bytes()).collect();
    let args = p.args(p.k).bytes(&split).pointer(a).pointer(b).pointer(scratch).pointer(marks);
    let grid = p.grid([deep, tiles, p.batches], 256, 0)?;
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // not read, all others are positions of checked layouts, and the scratch has room for the
    // tiles, and the marks for one of each.
    unsafe { p.launch(&module, c"split", grid, args)? };

    let args = p.args(p.k).bytes(&split).pointer(scratch).pointer(c);
    let blocks = (rows / GROUPS * columns).min(p.cuda.facts()?.multiprocessors as usize);
    // Tiles begin at multiples of 1024.
    let shared = STAGES * (GROUPS + 1) * TILE + 1024;
    let grid = p.grid([blocks, p.batches, 1], 128 * (GROUPS + 1), shared)?;
    // SAFETY: as above; elements beyond the edges of the result are not written.
    unsafe { p.launch(&module, c"product", grid, args)? };
    fused::run(p, Some(Marks { at: marks, rows, tiles, deep }))
}

fn module(p: &Product<'_>) -> Result<Arc<Module>> {
    p.module(ROOM, text)
}

pub(super) fn text() -> String {
    let defines = [("GROUPS", GROUPS.to_string()), ("STAGES", STAGES.to_string())];
    [
        begin(DType::Float32, &defines).as_str(),
        include_str!("../kernels/hopper.cu"),
        include_str!("../kernels/matmul_split.cu"),
        source::END,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_fit_the_scratch() {
        for (m, n, k, batches) in [
            (1024, 1024, 1024, 1),
            (8192, 8192, 8192, 1),
            (64, 1 << 20, 8192, 1),
            (1 << 20, 64, 30_000, 3),
            (100_000, 100_000, 64, 1),
            (64, 64, 64, 40_000),
        ] {
            let panels = Panels::new([m, n, k], batches).unwrap();
            let tiles = (panels.rows + panels.columns) / SIDE * panels.batches;
            assert!(tiles * panels.deep * TILE <= SCRATCH, "{panels:?}");
            assert!(panels.rows > 0 && panels.columns > 0 && panels.batches > 0, "{panels:?}");
            assert!(panels.rows.is_multiple_of(GROUPS * SIDE) && panels.deep.is_multiple_of(2));
        }
        assert_eq!(Panels::new([1024, 1024, 1 << 22], 1), None, "k is too long");
    }
}
