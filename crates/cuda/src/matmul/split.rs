//! float32 on Hopper's tensor cores: operands are split into TF32 heads and tails beforehand, a panel
//! at a time, so that the scratch is bounded. Where a panel holds numbers that the split would get
//! wrong (infinities, NaN, very large and very small ones), a third kernel computes those tiles anew.
//! Each is a source of its own, and the three are compiled at once. Products of short sums, which are done
//! when their results are written, have a kernel that keeps rows in registers.

use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use tilework_error::Result;
use tilework_ops::DType;

use super::{Product, SCRATCH, begin, fused};
use crate::compile::Module;
use crate::driver::Address;
use crate::source;

/// As in `kernels/matmul_split.cu`: groups of warps in a block, stages, sides of a tile, and its
/// bytes.
const GROUPS: usize = 2;
const STAGES: usize = 4;
const SIDE: usize = 64;
const DEPTHS: usize = 32;
const TILE: usize = 2 * SIDE * DEPTHS * 4;
/// As in `kernels/matmul_mend.cu`: rows and columns of a tile that is mended, its threads, and bytes.
const MENDED: usize = 128;
const MENDERS: usize = 256;
const MEND_SHARED: usize = 3 * 2 * 16 * (MENDED + 4) * 4;
/// As in `kernels/matmul_short.cu`: tiles of k, stages, and bytes of results that leave.
const SHORT_DEEP: usize = 2;
const SHORT_STAGES: usize = 3;
const LEAVING: usize = GROUPS * SIDE * (SIDE + 8) * 4;
/// Tiles of columns from which rows are worth keeping.
const MANY_COLUMNS: usize = 8;
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
        return fused::run(p);
    };
    // Whatever can fail does so before the result is written.
    let parts = parts(p);
    let modules = modules(p, parts)?;
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
                panel(&part, &modules, parts[1], panels.deep, [scratch.address, marks.address])?;
            }
        }
    }
    Ok(())
}

fn panel(
    p: &Product<'_>,
    [splits, multiplies, mends]: &[Arc<Module>; 3],
    multiply: Part,
    deep: usize,
    [scratch, marks]: [Address; 2],
) -> Result<()> {
    let (rows, columns) = Panels::tiles(p);
    let tiles = rows + columns;
    let card = p.cuda.facts()?.multiprocessors as usize;
    let [a, b, c] = p.blocks;
    let split: Vec<u8> =
        [rows, tiles, deep].iter().flat_map(|&count| (count as u32).to_le_bytes()).collect();
    let args = p.args(p.k).bytes(&split).pointer(a).pointer(b).pointer(scratch).pointer(marks);
    let grid = p.grid([deep, tiles, p.batches], 256, 0)?;
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // not read, all others are positions of checked layouts, and the scratch has room for the
    // tiles, and the marks for one of each.
    unsafe { p.launch(splits, c"split", grid, args)? };

    let args = p.args(p.k).bytes(&split).pointer(scratch).pointer(c);
    let (function, shared) = match multiply {
        Part::Short => (c"short_sums", SHORT_STAGES * SHORT_DEEP * TILE + LEAVING),
        _ => (c"product", STAGES * (GROUPS + 1) * TILE),
    };
    let blocks = (rows / GROUPS * columns).min(card);
    // Tiles begin at multiples of 1024.
    let grid = p.grid([blocks, p.batches, 1], 128 * (GROUPS + 1), shared + 1024)?;
    // SAFETY: as above; elements beyond the edges of the result are not written.
    unsafe { p.launch(multiplies, function, grid, args)? };

    // Most tiles need no mending, and a few blocks find that out.
    let mut words = marks.to_le_bytes().to_vec();
    words.extend([rows, tiles, deep, 0].iter().flat_map(|&count| (count as u32).to_le_bytes()));
    let args = p.args(p.k).bytes(&words).pointer(a).pointer(b).pointer(c);
    let blocks = p.tiles(MENDED, MENDED).min(2 * card);
    let grid = p.grid([blocks, p.batches, 1], MENDERS, MEND_SHARED)?;
    // SAFETY: as above.
    unsafe { p.launch(mends, c"mend", grid, args) }
}

/// A source of a split product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Splits,
    Multiplies,
    /// The same for short sums.
    Short,
    Mends,
}

/// The sources that a product needs: what splits, what multiplies, and what mends.
fn parts(p: &Product<'_>) -> [Part; 3] {
    let short = p.k <= SHORT_DEEP * DEPTHS && p.n.div_ceil(SIDE) >= MANY_COLUMNS;
    [Part::Splits, if short { Part::Short } else { Part::Multiplies }, Part::Mends]
}

impl Part {
    #[cfg(test)]
    pub(super) const ALL: [Part; 4] = [Part::Splits, Part::Multiplies, Part::Short, Part::Mends];

    pub(super) fn text(self) -> String {
        if self == Part::Mends {
            let kernel = include_str!("../kernels/matmul_mend.cu");
            return [begin(DType::Float32, &[]).as_str(), kernel, source::END].concat();
        }
        let (stages, kernel) = match self {
            Part::Short => (SHORT_STAGES, include_str!("../kernels/matmul_short.cu")),
            _ => (STAGES, include_str!("../kernels/matmul_split.cu")),
        };
        let mut defines = vec![("GROUPS", GROUPS.to_string()), ("STAGES", stages.to_string())];
        if self == Part::Splits {
            defines.push(("SPLITS", String::new()));
        }
        [
            begin(DType::Float32, &defines).as_str(),
            include_str!("../kernels/hopper.cu"),
            include_str!("../kernels/matmul_tiles.cu"),
            include_str!("../kernels/matmul_heads.cu"),
            kernel,
            source::END,
        ]
        .concat()
    }
}

/// The kernels of sources; the first time all are compiled at once.
fn modules(p: &Product<'_>, parts: [Part; 3]) -> Result<[Arc<Module>; 3]> {
    let [splits, multiplies, mends] = parts;
    let module = |part: Part| p.module(&[b'S', part as u8], || part.text());
    let loaded = |part: &Part| p.cuda.is_loaded(&p.key(&[b'S', *part as u8]));
    if parts.iter().all(loaded) {
        return Ok([module(splits)?, module(multiplies)?, module(mends)?]);
    }
    std::thread::scope(|scope| {
        let start = |part| std::thread::Builder::new().spawn_scoped(scope, move || module(part));
        let beside = [start(splits), start(mends)];
        let own = module(multiplies)?;
        let [splits, mends] = beside.map(|started| started.ok().map(ScopedJoinHandle::join));
        let whole = |joined: Option<std::thread::Result<Result<Arc<Module>>>>, part| match joined {
            Some(done) => done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system had no thread to give.
            None => module(part),
        };
        Ok([whole(splits, parts[0])?, own, whole(mends, parts[2])?])
    })
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
