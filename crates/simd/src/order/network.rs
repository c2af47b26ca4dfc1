//! Sorting networks over some registers, for what quicksort leaves.
//!
//! Generic over [`Keys`]; everything is inlined and unrolled, so that registers stay registers and
//! every shuffle is a constant. Called by `quick.rs`.

use super::{Integer, Keys};

/// Registers that a network sorts at once.
pub(super) const NETWORK: usize = 16;

/// Sorts what a network takes, from one place to the same or another.
///
/// # Safety
/// `count` integers may be read at `from` and written at `to`; no more than [`NETWORK`]
/// registers of them; the level is available.
#[inline(always)]
pub(super) unsafe fn small<V: Keys>(from: *const V::Elem, to: *mut V::Elem, count: usize) {
    // SAFETY: the same contract; what the networks before one take is less than its least.
    unsafe {
        match count.div_ceil(V::LANES) {
            0 => {}
            1 => network::<V, 1, 0>(from, to, count),
            2 => network::<V, 2, 1>(from, to, count),
            3..=4 => network::<V, 4, 2>(from, to, count),
            5..=8 => network::<V, 8, 4>(from, to, count),
            9..=10 => network::<V, 10, 8>(from, to, count),
            _ => network::<V, NETWORK, 10>(from, to, count),
        }
    }
}

/// Sorts `N` registers, of which `LEAST` are full.
///
/// # Safety
/// As [`small`]; `count` is at least `LEAST` and at most `N` registers' lanes.
#[inline(always)]
unsafe fn network<V: Keys, const N: usize, const LEAST: usize>(
    from: *const V::Elem,
    to: *mut V::Elem,
    count: usize,
) {
    // How many lanes of a register there are.
    let lanes = |row: usize| count.saturating_sub(row * V::LANES).min(V::LANES);
    // SAFETY: lanes below `count` exist; the level is available.
    unsafe {
        let mut rows = [V::splat(V::Elem::MAX); N];
        let mut row = 0;
        while row < N {
            let at = from.wrapping_add(row * V::LANES);
            rows[row] = if row < LEAST { V::load(at) } else { V::load_first(at, lanes(row)) };
            row += 1;
        }
        if N.is_power_of_two() && N > 2 {
            by_columns(&mut rows);
        } else {
            by_rows(&mut rows);
        }
        row = 0;
        while row < N {
            let at = to.wrapping_add(row * V::LANES);
            if row < LEAST {
                rows[row].store(at);
            } else {
                rows[row].store_first(at, lanes(row));
            }
            row += 1;
        }
    }
}

/// Sorts any number of registers up to 16: each by itself, then bitonic merges of more and more.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn by_rows<V: Keys, const N: usize>(rows: &mut [V; N]) {
    // SAFETY: the caller's promise.
    unsafe {
        for row in &mut *rows {
            *row = sorted(*row);
        }
        merge_runs::<V, N, 1>(rows);
        merge_runs::<V, N, 2>(rows);
        merge_runs::<V, N, 4>(rows);
        merge_runs::<V, N, 8>(rows);
    }
}

/// Sorts registers, a power of two of them: each lane by itself, then bitonic merges of more and
/// more lanes, and at last columns become rows. Comparing registers takes no shuffle, and the
/// lowest bits of the order, here the registers, are compared most often.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn by_columns<V: Keys, const N: usize>(rows: &mut [V; N]) {
    // SAFETY: the caller's promise.
    unsafe {
        odd_even::<V, N, 1>(rows);
        odd_even::<V, N, 2>(rows);
        odd_even::<V, N, 4>(rows);
        odd_even::<V, N, 8>(rows);
        merge_lanes::<V, N, 1>(rows);
        merge_lanes::<V, N, 2>(rows);
        merge_lanes::<V, N, 4>(rows);
        merge_lanes::<V, N, 8>(rows);
        turn(rows);
    }
}

/// The lesser of two registers' lanes in the first, the greater in the second.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn compare<V: Keys, const N: usize>(rows: &mut [V; N], low: usize, high: usize) {
    let (a, b) = (rows[low], rows[high]);
    // SAFETY: the caller's promise.
    unsafe { (rows[low], rows[high]) = (a.min(b), a.max(b)) }
}

/// Merges neighbouring runs of `RUN` registers, in every lane by itself (Batcher's odd-even
/// merge).
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn odd_even<V: Keys, const N: usize, const RUN: usize>(rows: &mut [V; N]) {
    // SAFETY: the caller's promise.
    unsafe {
        compare_all::<V, N, RUN>(rows, RUN, 0);
        compare_all::<V, N, RUN>(rows, RUN / 2, RUN / 2);
        compare_all::<V, N, RUN>(rows, RUN / 4, RUN / 4);
        compare_all::<V, N, RUN>(rows, RUN / 8, RUN / 8);
    }
}

/// Compares registers at a distance, inside of neighbouring pairs of runs, of which the number of
/// the first has the bits `has` of the distance.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn compare_all<V: Keys, const N: usize, const RUN: usize>(
    rows: &mut [V; N],
    distance: usize,
    has: usize,
) {
    if distance == 0 {
        return;
    }
    let mut low = 0;
    while low + distance < N {
        if low & distance == has && low / (2 * RUN) == (low + distance) / (2 * RUN) {
            // SAFETY: the caller's promise.
            unsafe { compare(rows, low, low + distance) };
        }
        low += 1;
    }
}

/// Merges neighbouring runs of `RUN` lanes, each lane a run of all registers.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn merge_lanes<V: Keys, const N: usize, const RUN: usize>(rows: &mut [V; N]) {
    if RUN >= V::LANES {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        // The second run backwards, against the first.
        for low in 0..N / 2 {
            let (a, b) = (rows[low], rows[N - 1 - low]);
            rows[low] = a.exchanged(b.swapped(2 * RUN - 1), RUN);
            rows[N - 1 - low] = b.exchanged(a.swapped(2 * RUN - 1), RUN);
        }
        for row in &mut *rows {
            *row = merged(*row, RUN);
        }
        compare_all::<V, N, N>(rows, N / 2, 0);
        compare_all::<V, N, N>(rows, N / 4, 0);
        compare_all::<V, N, N>(rows, N / 8, 0);
        compare_all::<V, N, N>(rows, N / 16, 0);
    }
}

/// Columns as rows: lane by lane, the elements of all registers, a power of two of them.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn turn<V: Keys, const N: usize>(rows: &mut [V; N]) {
    // SAFETY: the caller's promise.
    unsafe {
        // Squares of as many rows as lanes, or of fewer where there are fewer rows.
        let mut bit = 1;
        while bit < N && bit < V::LANES {
            turn_blocks(rows, bit, bit);
            bit *= 2;
        }
        // Squares lie side by side: rows of them that belong together go to one register.
        let mut row_bit = 1;
        while bit < V::LANES {
            turn_blocks(rows, row_bit, bit);
            (row_bit, bit) = (2 * row_bit, 2 * bit);
        }
    }
    // Squares lie one below the other, and their first rows belong together; or the second halves of
    // registers have come to lie between the first ones.
    let turned = *rows;
    let squares = if N >= V::LANES { N / V::LANES } else { 1 };
    let halves = if 2 * N == V::LANES { 2 } else { 1 };
    let mut row = 0;
    while row < N {
        rows[row] = turned[if halves == 2 {
            row % (N / 2) * 2 + row / (N / 2)
        } else {
            row % squares * V::LANES + row / squares
        }];
        row += 1;
    }
}

/// One step of [`turn`]: blocks of registers that one bit of their number parts, and of lanes, change
/// places.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn turn_blocks<V: Keys, const N: usize>(rows: &mut [V; N], row_bit: usize, bit: usize) {
    let mut low = 0;
    while low + row_bit < N {
        if low & row_bit == 0 {
            let high = low + row_bit;
            // SAFETY: the caller's promise.
            unsafe { (rows[low], rows[high]) = rows[low].turned(rows[high], bit) };
        }
        low += 1;
    }
}

/// Merges neighbouring ascending runs of `RUN` registers; of the last pair the second may be shorter,
/// or missing.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn merge_runs<V: Keys, const N: usize, const RUN: usize>(rows: &mut [V; N]) {
    if RUN >= N {
        return;
    }
    let mut start = 0;
    while start + RUN < N {
        // The first run backwards, against the second: registers that the second lacks, as if they
        // held the largest integer, then stay behind all others and need no comparison.
        rows[start..start + RUN].reverse();
        for row in &mut rows[start..start + RUN] {
            // SAFETY: the caller's promise.
            *row = unsafe { row.swapped(V::LANES - 1) };
        }
        start += 2 * RUN;
    }
    // SAFETY: the caller's promise.
    unsafe {
        compare_all::<V, N, RUN>(rows, RUN, 0);
        compare_all::<V, N, RUN>(rows, RUN / 2, 0);
        compare_all::<V, N, RUN>(rows, RUN / 4, 0);
        compare_all::<V, N, RUN>(rows, RUN / 8, 0);
    }
    // A last run without a second one is in order already.
    let merged_rows = if N % (2 * RUN) <= RUN { N - N % (2 * RUN) } else { N };
    for row in &mut rows[..merged_rows] {
        // SAFETY: the caller's promise.
        *row = unsafe { merged(*row, V::LANES) };
    }
}

/// The lesser half of the integers of two ascending registers and the greater, each ascending.
///
/// # Safety
/// The level is available.
#[inline(always)]
pub(super) unsafe fn merge_two<V: Keys>(a: V, b: V) -> (V, V) {
    // SAFETY: the caller's promise.
    unsafe {
        let b = b.swapped(V::LANES - 1);
        let (mut low, mut high) = (a.min(b), a.max(b));
        // Lanes that are compared come to lie in different registers, both halves side by side, so
        // that one comparison does for both.
        if V::LANES > 8 {
            (low, high) = low.turned(high, 8);
            (low, high) = (low.min(high), low.max(high));
        }
        (low, high) = low.turned(high, 4);
        (low, high) = (low.min(high), low.max(high));
        (low, high) = low.turned(high, 2);
        (low, high) = (low.min(high), low.max(high));
        (low, high) = low.turned(high, 1);
        (low, high) = (low.min(high), low.max(high));
        low.interleaved(high)
    }
}

/// Lanes against those `i ^ mask`: the lesser where the number lacks `bit`, else the greater.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn exchanged<V: Keys>(row: V, mask: usize, bit: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe { row.exchanged(row.swapped(mask), bit) }
}

/// All lanes in order. This and [`merged`] are written out, so that every shuffle is a constant.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn sorted<V: Keys>(mut row: V) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        // The far half of each run backwards against the near one, then as in merges.
        row = exchanged(row, 1, 1);
        row = merged(exchanged(row, 3, 2), 2);
        row = merged(exchanged(row, 7, 4), 4);
        if V::LANES > 8 {
            row = merged(exchanged(row, 15, 8), 8);
        }
        row
    }
}

/// Bitonic runs of `run` lanes (up to 16), in order.
///
/// # Safety
/// The level is available.
#[inline(always)]
unsafe fn merged<V: Keys>(mut row: V, run: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        if run > 8 {
            row = exchanged(row, 8, 8);
        }
        if run > 4 {
            row = exchanged(row, 4, 4);
        }
        if run > 2 {
            row = exchanged(row, 2, 2);
        }
        if run > 1 {
            row = exchanged(row, 1, 1);
        }
        row
    }
}
