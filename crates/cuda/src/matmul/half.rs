//! Half types on tensor cores, summed in float32: large products by Hopper's copy engine and groups of
//! warps, others by the instructions of every card since Ampere. Which of the two does not depend on
//! where operands lie, since they sum in different orders: one that does not lie as the engine wants it
//! is copied.

use tilework_error::Result;
use tilework_ops::DType;

use super::{MAX_BLOCKS, Product, SCRATCH, begin};
use crate::driver::{Address, TensorMap};
use crate::memory::Block;
use crate::source;

/// Rows and columns of the result that a block computes: as in `kernels/matmul_half.cu`.
const SIDE: usize = 128;
/// The same, and k of a stage: as in `kernels/matmul_half_hopper.cu`.
const ROWS: usize = 128;
const COLUMNS: usize = 256;
const STAGES: usize = 4;
const STAGE: usize = (ROWS + COLUMNS) * 128;

pub(super) fn suits(p: &Product<'_>) -> Result<bool> {
    let half = p.dtype.is_half();
    Ok(half && p.m.min(p.n) >= 64 && p.k >= 16 && p.cuda.facts()?.capability >= (8, 0))
}

pub(super) fn run(p: &Product<'_>) -> Result<()> {
    let facts = p.cuda.facts()?;
    let many = p.tiles(ROWS, COLUMNS) * p.batches * 2 >= facts.multiprocessors as usize;
    if facts.capability == (9, 0) && many {
        return hopper(p);
    }
    let module = p.module(b"H", || text(p.dtype))?;
    let [a, b, c] = p.blocks;
    let args = p.args(p.k).pointer(a).pointer(b).pointer(c);
    let grid = p.grid([p.tiles(SIDE, SIDE), p.batches, 1], 256, 0)?;
    // SAFETY: the source declares these arguments; elements beyond the edges of the matrices are
    // neither read nor written, and all others are positions of checked layouts.
    unsafe { p.launch(&module, c"tensor", grid, args) }
}

/// An operand as the copy engine reads it.
struct Operand {
    map: TensorMap,
    /// Whether neighbours in memory lie along the result, not along the sum.
    across: bool,
    /// Whether each batch has its own.
    moves: bool,
    /// What it was copied to: the batches of one launch. Otherwise all batches lie where they were.
    copied: Option<Block>,
}

impl Operand {
    /// As `moves` of the kernel: whether it moves, and whether batches are counted from the first of all.
    fn bits(&self) -> u64 {
        self.moves as u64 | (self.copied.is_none() as u64) << 2
    }
}

/// Rows and steps of the left or right operand: along the sum, and beside it.
fn lies(p: &Product<'_>, which: usize) -> (usize, isize, isize) {
    match which {
        0 => (p.m, p.a.column, p.a.row),
        _ => (p.n, p.b.row, p.b.column),
    }
}

/// The left or right operand; None where its elements or rows do not lie as the engine wants them:
/// neighbours side by side, everything else multiples of 16 bytes apart.
fn operand(p: &Product<'_>, which: usize) -> Option<Operand> {
    let (rows, along, beside) = lies(p, which);
    let across = beside == 1 && along != 1;
    let (near, far) = if across { (beside, along) } else { (along, beside) };
    let size = p.dtype.size();
    let begins = p.blocks[which].wrapping_add((p.batch.offsets[which] * size) as Address);
    let apart = |step: isize| usize::try_from(step * size as isize).ok().filter(|s| s % 16 == 0);
    if near != 1 || !begins.is_multiple_of(16) || p.batch.lens.len() != 1 {
        return None;
    }
    let (far, between) = (apart(far)?, apart(p.batch.strides[0][which])?);
    let sizes = if across { [rows, p.k] } else { [p.k, rows] };
    // Rows that are all the same one have no step.
    if far == 0 && sizes[1] > 1 {
        return None;
    }
    let moves = between != 0;
    let batches = if moves { p.batch.lens[0] } else { 1 };
    // A step of zero is no step for the engine, and none is taken where there is one matrix.
    let between = if moves { between } else { far.max(16) };
    let sizes = [sizes[0], sizes[1], batches].map(|size| size as u64);
    let map = p.cuda.driver().tensor_map(begins, sizes, [far.max(16), between].map(|s| s as u64));
    Some(Operand { map: map.ok()?, across, moves, copied: None })
}

/// Bytes of a copy of one matrix of an operand.
fn copy_bytes(p: &Product<'_>, which: usize) -> usize {
    let (rows, along, beside) = lies(p, which);
    let (outer, inner) = if beside == 1 && along != 1 { (p.k, rows) } else { (rows, p.k) };
    outer * inner.next_multiple_of(8) * p.dtype.size()
}

/// A copy of the left or right operand that lies as the engine wants it, of the batches of this launch.
fn copied(p: &Product<'_>, which: usize) -> Result<Operand> {
    let (rows, along, beside) = lies(p, which);
    let across = beside == 1 && along != 1;
    let (sizes, steps) =
        if across { ([rows, p.k], [beside, along]) } else { ([p.k, rows], [along, beside]) };
    let [inner, outer] = sizes;
    let moves = p.batch.strides.iter().any(|strides| strides[which] != 0);
    let batches = if moves { p.batches } else { 1 };
    let (pitch, size) = (inner.next_multiple_of(8), p.dtype.size());
    let block = p.cuda.allocate_block(copy_bytes(p, which) * batches)?;
    let numbers = [inner, outer, pitch, which].map(|number| (number as u64).to_le_bytes());
    let steps = steps.map(|step| (step as i64).to_le_bytes());
    let args = p
        .args(p.k)
        .bytes([numbers.as_flattened(), steps.as_flattened()].concat().as_slice())
        .pointer(p.blocks[which])
        .pointer(block.address);
    let module = p.module(b"C", || copy_text(p.dtype))?;
    let grid = p.grid([inner.div_ceil(256), outer.min(MAX_BLOCKS), batches], 256, 0)?;
    // SAFETY: the source declares these arguments; positions are those of checked layouts, and the
    // block has room for the copy.
    unsafe { p.launch(&module, c"copy", grid, args)? };
    let sizes = [inner, outer, batches].map(|size| size as u64);
    let between = [pitch * size, outer * pitch * size].map(|step| step as u64);
    let map = p.cuda.driver().tensor_map(block.address, sizes, between);
    let map = map.map_err(|fault| p.cuda.fault(p.name, fault))?;
    Ok(Operand { map, across, moves, copied: Some(block) })
}

fn hopper(p: &Product<'_>) -> Result<()> {
    let direct = [operand(p, 0), operand(p, 1)];
    if let [Some(a), Some(b)] = &direct {
        return multiply(p, a, b);
    }
    // Batches whose copies fit the scratch.
    let misfits = (0..2).filter(|&which| direct[which].is_none());
    let bytes: usize = misfits.map(|which| copy_bytes(p, which)).sum();
    let group = (SCRATCH / bytes.max(1)).clamp(1, p.batches);
    for first in (0..p.batches).step_by(group) {
        let mut part = p.part([0, 0], [p.m, p.n]);
        part.first += first;
        part.batches = group.min(p.batches - first);
        let get = |which| operand(p, which).map_or_else(|| copied(&part, which), Ok);
        multiply(&part, &get(0)?, &get(1)?)?;
    }
    Ok(())
}

fn multiply(p: &Product<'_>, a: &Operand, b: &Operand) -> Result<()> {
    let across = [a.across, b.across];
    let module =
        p.module(&[b'W', across[0] as u8, across[1] as u8], || hopper_text(p.dtype, across))?;
    let args = p
        .args(p.k)
        .bytes(&a.map.bytes())
        .bytes(&b.map.bytes())
        .number(a.bits() | b.bits() << 1)
        .pointer(p.blocks[2]);
    // Tiles begin at multiples of 1024.
    let grid = p.grid([p.tiles(ROWS, COLUMNS), p.batches, 1], 384, STAGES * STAGE + 1024)?;
    // SAFETY: the source declares these arguments; the engine reads zeros beyond the edges of the
    // matrices, and elements of the result beyond them are not written.
    unsafe { p.launch(&module, c"hopper", grid, args) }
}

pub(super) fn text(dtype: DType) -> String {
    let defines = [("HALF", format!("\"{}\"", source::storage(dtype)))];
    [begin(dtype, &defines).as_str(), include_str!("../kernels/matmul_half.cu"), source::END]
        .concat()
}

pub(super) fn copy_text(dtype: DType) -> String {
    let kernel = include_str!("../kernels/matmul_half_copy.cu");
    [begin(dtype, &[]).as_str(), kernel, source::END].concat()
}

pub(super) fn hopper_text(dtype: DType, across: [bool; 2]) -> String {
    let defines = [
        ("HALF", format!("\"{}\"", source::storage(dtype))),
        ("STAGES", STAGES.to_string()),
        ("ACROSS_A", (across[0] as u8).to_string()),
        ("ACROSS_B", (across[1] as u8).to_string()),
    ];
    [
        begin(dtype, &defines).as_str(),
        include_str!("../kernels/hopper.cu"),
        include_str!("../kernels/matmul_half_hopper.cu"),
        source::END,
    ]
    .concat()
}
