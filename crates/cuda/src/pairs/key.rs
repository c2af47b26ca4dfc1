//! What kernels are known by: bytes that differ wherever their text does.
//!
//! Made at every call, so it is cheaper than printing. Called by `launching`.

use super::plan::Plan;
use super::print::Unit;
use super::right::Difference;
use super::sections::Sections;
use super::slices::Of;
use super::wide::Wide;
use crate::compile::Room;

/// The key of some of a plan's kernels: everything that their text depends on.
pub(super) fn of(plan: &Plan<'_>, unit: Unit) -> Vec<u8> {
    let (folding, tiling) = (&plan.folding, plan.tiling);
    let mut key = vec![
        Room::Pairs as u8,
        unit as u8,
        folding.fold as u8,
        folding.accumulates as u8,
        folding.compensated as u8,
        folding.strict as u8,
        folding.finish as u8,
        folding.logarithm as u8,
        folding.output as u8,
        tiling.team as u8,
    ];
    if unit == Unit::Merge {
        key.push(folding.computes as u8);
        let inputs = plan.sections.tape.inputs().len();
        let numbers = [folding.shape.dim, folding.shape.k, folding.shape.weights, inputs];
        extend(&mut key, &numbers);
        return key;
    }
    let square = plan.sections.square;
    key.extend(square.map_or(u16::MAX, |square| square.scaled).to_le_bytes());
    key.push(square.and_then(|square| square.outside).map_or(0, |sign| 1 + sign as u8));
    key.push(plan.sections.is_centred() as u8);
    let numbers = [
        folding.shape.k,
        tiling.threads,
        tiling.rows,
        tiling.tile,
        tiling.group,
        tiling.ahead,
        tiling.ranges_per_block,
    ];
    key.push(plan.shares_levels as u8);
    key.push(plan.skeleton() as u8);
    key.push(tiling.few_pairs as u8);
    key.push(plan.slices.is_some_and(|slices| slices.of == Of::Ranks) as u8);
    extend(&mut key, &numbers);
    if let Some(wide) = tiling.wide {
        let Wide { groups, stages, resident, depths, shallow, leaves_per_tile, right, .. } = wide;
        let numbers =
            [groups, stages, resident.into(), depths, shallow.into(), leaves_per_tile, right];
        extend(&mut key, &numbers);
    }
    if let Some(Difference { from, len, .. }) = plan.difference {
        let numbers = [plan.folding.shape.dim, from, len];
        extend(&mut key, &numbers);
    }
    sign(&plan.sections, &mut key);
    if let Some(right) = &plan.right {
        let difference = right.of.difference.map(|it| [it.from, it.len]);
        let numbers = [plan.folding.shape.dim].into_iter().chain(difference.into_iter().flatten());
        extend(&mut key, &numbers.collect::<Vec<usize>>());
        sign(&right.sections, &mut key);
    }
    key
}

/// Adds sizes to a key. All of them fit into 32 bits, so that none becomes another.
fn extend(key: &mut Vec<u8>, numbers: &[usize]) {
    key.extend(numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()));
}

/// Adds the tape to a key, but for the numbers that are arguments. Lengths stay, so that a kernel of long vectors is found by
/// each of them; its text is the same, so it is compiled once.
fn sign(sections: &Sections<'_>, key: &mut Vec<u8>) {
    sections.tape.sign_without(key, |slot| sections.arguments.binary_search(&slot).is_ok());
}
