//! How a product is cut: a pure function of its sizes, the caches and the number of threads.
//!
//! [`Blocking`], read from top to bottom, is the picture of the loops in `matrix`. Nothing here
//! touches operands. The one cut that decides results, that of K, depends on K and the size of an
//! element alone; all the others only move work between loops and threads.

use std::sync::OnceLock;

/// Data caches of one core (the last one possibly shared), in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSizes {
    /// First level.
    pub l1: usize,
    /// Second level.
    pub l2: usize,
    /// Last level.
    pub l3: usize,
}

impl CacheSizes {
    /// What is assumed where the system does not say: the smallest caches of the last ten years.
    pub const FALLBACK: CacheSizes = CacheSizes { l1: 32 << 10, l2: 256 << 10, l3: 4 << 20 };

    /// The caches of this machine, read once.
    pub fn of_this_machine() -> CacheSizes {
        static SIZES: OnceLock<CacheSizes> = OnceLock::new();
        *SIZES.get_or_init(|| {
            let from_system = |level| Self::from_sysfs(level).or_else(|| Self::from_cpuid(level));
            CacheSizes {
                l1: from_system(1).unwrap_or(Self::FALLBACK.l1),
                l2: from_system(2).unwrap_or(Self::FALLBACK.l2),
                l3: from_system(3).unwrap_or(Self::FALLBACK.l3),
            }
        })
    }

    fn from_sysfs(level: u32) -> Option<usize> {
        (0..8).find_map(|index| {
            let read = |name: &str| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
                std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
            };
            let holds_data = read("type")? != "Instruction";
            if !holds_data || read("level")?.parse() != Ok(level) {
                return None;
            }
            Self::parse_size(&read("size")?)
        })
    }

    /// `48K`, `2M` or a plain number of bytes.
    fn parse_size(text: &str) -> Option<usize> {
        let (digits, unit) = match text.strip_suffix('K') {
            Some(digits) => (digits, 1 << 10),
            None => match text.strip_suffix('M') {
                Some(digits) => (digits, 1 << 20),
                None => (text, 1),
            },
        };
        digits.parse::<usize>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
    }

    #[cfg(target_arch = "x86_64")]
    fn from_cpuid(level: u32) -> Option<usize> {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        if __cpuid(0).eax < 4 {
            return None;
        }
        (0..8).find_map(|index| {
            let leaf = __cpuid_count(4, index);
            // Bits 0 to 4 are the kind (1 data, 3 unified), 5 to 7 the level.
            if !matches!(leaf.eax & 0x1f, 1 | 3) || (leaf.eax >> 5) & 7 != level {
                return None;
            }
            let ways = (leaf.ebx >> 22) as usize + 1;
            let parts = (leaf.ebx >> 12) as usize % 1024 + 1;
            let line = leaf.ebx as usize % 4096 + 1;
            Some(ways * parts * line * (leaf.ecx as usize + 1))
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn from_cpuid(_level: u32) -> Option<usize> {
        None
    }
}

/// What the choice of blocks depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
    /// Bytes of an element as it is computed (4 for half floats).
    pub size: usize,
    /// Rows of the largest tile.
    pub mr: usize,
    /// Columns of the largest tile.
    pub nr: usize,
    /// Bytes from one row of B to the next if kernels can read B's rows where they lie.
    pub b_pitch: Option<usize>,
    /// Whether kernels can read A where it lies.
    pub a_in_place: bool,
    /// Whether the columns of A, not its rows, are contiguous.
    pub a_by_columns: bool,
}

/// The loops of a product, from the outermost inwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// C is cut into this many pieces of columns ...
    pub column_pieces: usize,
    /// ... times this many pieces of rows; any thread may take a piece.
    pub row_pieces: usize,
    /// Columns of a piece are taken this many at a time (the last time fewer),
    pub nc: usize,
    /// K in blocks of this many (the last one shorter),
    pub kc: usize,
    /// that block of B packed, if this says so, to stay in L2;
    pub pack_b: bool,
    /// then rows of A this many at a time,
    pub mc: usize,
    /// packed, if this says so, in panels that stay in L1 while a row of tiles is computed.
    pub pack_a: bool,
    /// If not 0: K's blocks go to the threads instead of pieces of C, this many at a time, each
    /// with a result of its own, added in order.
    pub k_at_once: usize,
}

/// Below this many multiplications a product stays on the calling thread: waking another one costs
/// more.
const ONE_THREAD: usize = 64 * 64 * 64;
/// Sizes up to which nothing is packed if A and B can be read in place; in bytes of a row.
const UNPACKED_BYTES: usize = 2048;
/// Columns below which repacking A for every piece of columns costs too much.
const NARROW: usize = 256;
/// Columns at a time: more would leave L2 no room for what streams past.
const MOST_COLUMNS: usize = 512;
/// The most that the results of K's blocks may take.
const PARTIALS: usize = 4 << 20;

impl Blocking {
    /// Length of a block of K: even parts near 2 KiB (512 float32), never above 2.5 KiB.
    /// Long enough to make C's traffic small, short enough for a panel of A to stay in L1 and for
    /// rounding errors not to add up along one chain.
    #[inline]
    pub fn block_of_k(k: usize, size: usize) -> usize {
        let (target, most) = (2048 / size, 2560 / size);
        if k <= most {
            return k;
        }
        let blocks = ((k + target / 2) / target).max(k.div_ceil(most)).max(1);
        k.div_ceil(blocks).next_multiple_of(8).min(k)
    }

    /// The cut for `shape` on a machine with these caches and threads.
    pub fn choose(shape: &Shape, caches: CacheSizes, threads: usize) -> Blocking {
        let Shape { m, n, k, size, mr, nr, .. } = *shape;
        let work = m.saturating_mul(n).saturating_mul(k);
        let kc = Self::block_of_k(k, size);
        if work < ONE_THREAD && kc == k && shape.a_in_place && shape.b_pitch.is_some() {
            // Nothing to cut, nothing to pack: such products take less time than choosing.
            return Blocking {
                column_pieces: 1,
                row_pieces: 1,
                nc: n,
                kc,
                pack_b: false,
                mc: mr,
                pack_a: false,
                k_at_once: 0,
            };
        }
        let longest = m.max(n).max(k);

        // Unpacked B: while all of it is small and its rows do not fall on the same cache sets.
        let pack_b = match shape.b_pitch {
            None => true,
            Some(pitch) => {
                let conflicts = pitch.is_multiple_of(2048) && k > 256;
                longest * size > UNPACKED_BYTES || conflicts
            }
        };
        let pack_a = !shape.a_in_place || (longest * size > UNPACKED_BYTES && n > 2 * nr);

        // Half of L2 for the packed block of B; the rest streams past it.
        let fitting = caches.l2 / 2 / (kc.max(1) * size) / nr * nr;
        let nc = fitting.clamp(4 * nr, MOST_COLUMNS.max(4 * nr));

        let threads = if work < ONE_THREAD { 1 } else { threads.max(1) };
        let (column_pieces, row_pieces) = Self::pieces(shape, nc, threads, pack_a || pack_b);

        // A row panel of A whose columns are contiguous touches a line per k for a few elements:
        // several panels at once use the whole line.
        let mc = if shape.a_by_columns && pack_a { 8 * mr } else { mr };

        let blocks = k.div_ceil(kc.max(1));
        let result = m.saturating_mul(n).saturating_mul(size);
        let k_at_once = if threads > 1 && blocks >= threads && result <= PARTIALS / blocks.min(16) {
            // Cutting K packs everything once; cutting C packs A or B again in every piece.
            if m.min(n) < NARROW { (PARTIALS / result).clamp(threads, 64) } else { 0 }
        } else {
            0
        };
        Blocking { column_pieces, row_pieces, nc, kc, pack_b, mc, pack_a, k_at_once }
    }

    /// Pieces of columns and of rows: enough for all threads, as little repacking as possible.
    fn pieces(shape: &Shape, nc: usize, threads: usize, packs: bool) -> (usize, usize) {
        let Shape { m, n, mr, nr, .. } = *shape;
        if threads == 1 {
            return (1, 1);
        }
        let most_columns = n.div_ceil(nr);
        let most_rows = m.div_ceil(mr);
        // p pieces of columns pack A p times, q pieces of rows pack B q times.
        let mut best = (1, 1);
        let mut least = usize::MAX;
        for p in 1..=threads.min(most_columns) {
            let q = threads.div_ceil(p).min(most_rows);
            let missing = threads.saturating_sub(p * q);
            let narrow = if packs && n / p < NARROW { n / 8 } else { 0 };
            let cost = (p * m + q * n).saturating_add(missing * (m + n)).saturating_add(narrow);
            // On a tie cut columns: a row of tiles then stays within few pages of C.
            if cost <= least {
                least = cost;
                best = (p, q);
            }
        }
        let (mut p, q) = best;
        // Long pieces are cut at nc anyway; as pieces of their own, a late thread holds up less.
        // Then there must be no odd piece for one thread while the others wait.
        let wanted = n.div_ceil(nc);
        if wanted > p {
            p = if wanted * q < 4 * threads { wanted.next_multiple_of(p) } else { wanted };
        }
        (p.min(most_columns), q)
    }
}

/// The part `index` of `total`, cut into `parts` pieces that are multiples of `unit` (but for the
/// end) and as even as that allows.
pub(super) fn part(
    total: usize,
    parts: usize,
    unit: usize,
    index: usize,
) -> std::ops::Range<usize> {
    let units = total.div_ceil(unit);
    let cut = |i: usize| (units * i / parts * unit).min(total);
    cut(index)..cut(index + 1)
}

/// The length of the longest [`part`].
pub(super) fn widest(total: usize, parts: usize, unit: usize) -> usize {
    (total.div_ceil(unit).div_ceil(parts) * unit).min(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAPPHIRE: CacheSizes = CacheSizes { l1: 48 << 10, l2: 2 << 20, l3: 105 << 20 };

    fn square(n: usize) -> Shape {
        Shape {
            m: n,
            n,
            k: n,
            size: 4,
            mr: 14,
            nr: 32,
            b_pitch: Some(4 * n),
            a_in_place: true,
            a_by_columns: false,
        }
    }

    #[test]
    fn k_is_cut_evenly_near_the_target() {
        let table = [
            (0, 4, 0),
            (1, 4, 1),
            (512, 4, 512),
            (640, 4, 640),
            (641, 4, 328),
            (1000, 4, 504),
            (1024, 4, 512),
            (1025, 4, 520),
            (2048, 4, 512),
            (4096, 4, 512),
            (1024, 8, 256),
            (320, 8, 320),
            (321, 8, 168),
        ];
        for (k, size, kc) in table {
            assert_eq!(Blocking::block_of_k(k, size), kc, "k = {k}, {size} bytes");
        }
        for k in 1..5000 {
            assert!(Blocking::block_of_k(k, 4) <= 640);
        }
    }

    #[test]
    fn known_machines_get_known_blocks() {
        let large = Blocking::choose(&square(1024), SAPPHIRE, 2);
        let expected = Blocking {
            column_pieces: 2,
            row_pieces: 1,
            nc: 512,
            kc: 512,
            pack_b: true,
            mc: 14,
            pack_a: true,
            k_at_once: 0,
        };
        assert_eq!(large, expected);

        let small = Blocking::choose(&square(128), SAPPHIRE, 2);
        assert!(!small.pack_a && !small.pack_b);
        assert_eq!((small.column_pieces, small.row_pieces), (2, 1));

        let tiny = Blocking::choose(&square(32), SAPPHIRE, 2);
        assert_eq!((tiny.column_pieces, tiny.row_pieces), (1, 1));

        let laptop = Blocking::choose(&square(1024), CacheSizes::FALLBACK, 8);
        assert!(laptop.nc * laptop.kc * 4 <= 256 << 10);
        assert!(laptop.column_pieces * laptop.row_pieces >= 8);

        let long = Blocking::choose(&Shape { m: 64, n: 64, k: 4096, ..square(64) }, SAPPHIRE, 2);
        assert!(long.k_at_once >= 8);
        let flat = Blocking::choose(&Shape { k: 64, ..square(4096) }, SAPPHIRE, 2);
        assert_eq!((flat.column_pieces, flat.kc, flat.k_at_once), (8, 64, 0));
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        for n in [1, 17, 128, 700, 1024, 3000] {
            let one = Blocking::choose(&square(n), SAPPHIRE, 1);
            for threads in [2, 3, 7, 64] {
                let many = Blocking::choose(&square(n), SAPPHIRE, threads);
                assert_eq!(one.kc, many.kc);
            }
        }
    }

    #[test]
    fn parts_cover_everything_once() {
        for (total, parts, unit) in [(1, 1, 32), (100, 2, 32), (1023, 5, 14), (64, 2, 32)] {
            let mut next = 0;
            for index in 0..parts {
                let range = part(total, parts, unit, index);
                assert_eq!(range.start, next);
                assert!(range.len() <= widest(total, parts, unit));
                next = range.end;
            }
            assert_eq!(next, total);
        }
    }

    #[test]
    fn cache_sizes_are_read() {
        assert_eq!(CacheSizes::parse_size("48K"), Some(48 << 10));
        assert_eq!(CacheSizes::parse_size("2M"), Some(2 << 20));
        assert_eq!(CacheSizes::parse_size("nonsense"), None);
        let here = CacheSizes::of_this_machine();
        assert!(here.l1 >= 4 << 10 && here.l2 >= here.l1);
    }
}
