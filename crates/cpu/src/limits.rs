//! What this machine can do at most: multiply-adds in registers, and bytes to and from memory.
//!
//! Loops with nothing beside the work itself, on the threads of the pool and the instruction set
//! of the process. They are no part of any operation; benchmarks time them in the same rounds
//! as the operations and give every figure as a share of them. They are here and not with one
//! benchmark since three measure by them, in crates of their own: the command line, which has no
//! unsafe code, formulas over pairs from Python, and the examples that time kernels.

use std::hint::black_box;

use crate::isa::Isa;
use crate::pool;

/// Independent chains of multiply-adds: enough to hide their latency, few enough for the registers
/// of either vector instruction set when they are run as two halves.
const CHAINS: usize = 24;

/// Steps of every chain in one call of [`multiply_adds`]: some 100 microseconds, beside which the
/// start of the threads is little.
const STEPS: usize = 20_000;

/// Runs multiply-adds on every thread and says how many operations (two each) that were. Without a
/// vector instruction set nothing is known about the peak, and the answer is 0.
pub fn multiply_adds(double: bool) -> f64 {
    let Some(lanes) = chains(Isa::current(), double) else { return 0.0 };
    let threads = pool::threads();
    let done = std::sync::atomic::AtomicUsize::new(0);
    // A piece a thread: whoever comes first may do two, but then the call takes twice as long and
    // is not the best one.
    pool::run(threads, &|_| {
        done.fetch_add(lanes() * CHAINS * STEPS * 2, std::sync::atomic::Ordering::Relaxed);
    });
    done.into_inner() as f64
}

/// A loop of multiply-adds on one thread that gives the lanes of a register, where there are vectors.
fn chains(isa: Isa, double: bool) -> Option<fn() -> usize> {
    match (isa, double) {
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        // SAFETY: `Isa::current`, which the caller asked, is available, here and below.
        (Isa::Avx512, false) => Some(|| unsafe { x86::chains_avx512_f32() }),
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        // SAFETY: as above.
        (Isa::Avx512, true) => Some(|| unsafe { x86::chains_avx512_f64() }),
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        // SAFETY: as above.
        (Isa::Avx2, false) => Some(|| unsafe { x86::chains_avx2_f32() }),
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        // SAFETY: as above.
        (Isa::Avx2, true) => Some(|| unsafe { x86::chains_avx2_f64() }),
        _ => None,
    }
}

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Lines a piece of the pool's work: 256 KiB of each stream.
const GRAIN: usize = 4096;

/// Arrays to be read together and perhaps one to be written, as an operation of so many operands
/// does, with no work between.
pub struct Streams {
    sources: Vec<Vec<Line>>,
    target: Vec<Line>,
}

impl Streams {
    /// Sources (at most three) and a target of so many bytes each; a target of 0 bytes is none.
    pub fn new(sources: usize, source_bytes: usize, target_bytes: usize) -> Streams {
        let lines = |bytes: usize| {
            let mut lines: Vec<Line> = Vec::with_capacity(bytes.div_ceil(64));
            huge_pages(lines.as_mut_ptr().cast(), lines.capacity() * 64);
            lines.resize(bytes.div_ceil(64), Line([1; 8]));
            lines
        };
        Streams {
            sources: (0..sources.min(3)).map(|_| lines(source_bytes)).collect(),
            target: lines(target_bytes),
        }
    }

    /// Reads every source once and writes the target once, with ordinary stores or with stores
    /// that go past the caches.
    pub fn run(&mut self, past_caches: bool) {
        let mut sources = [[].as_slice(); 3];
        for (slot, source) in sources.iter_mut().zip(&self.sources) {
            *slot = source;
        }
        let longest = sources[0].len().max(self.target.len());
        let target = Target(self.target.as_mut_ptr(), self.target.len());
        pool::for_ranges(longest, GRAIN, &|range| {
            let part = |lines: &[Line]| {
                (lines.as_ptr(), range.end.min(lines.len()).saturating_sub(range.start))
            };
            let target = &target;
            let writes = range.end.min(target.1).saturating_sub(range.start);
            // SAFETY: the ranges of the pool do not overlap and lie inside the arrays, whose
            // lengths were just taken.
            unsafe { pass(sources.map(part), (target.0, writes), range.start, past_caches) };
        });
    }
}

/// The target's start and length, for threads that write disjoint ranges of it.
struct Target(*mut Line, usize);
// SAFETY: the pieces of a run write disjoint ranges, and the run ends before the borrow does.
unsafe impl Sync for Target {}

fn huge_pages(at: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= 4 << 20 {
        let start = (at as usize).next_multiple_of(4096);
        let bytes = (at as usize + bytes - start) & !4095;
        // SAFETY: advice on memory that is ours; it changes no contents.
        unsafe { libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (at, bytes);
}

/// Reads `sources` from line `first` on and writes to the target from there.
///
/// # Safety
/// Each pointer is good for `first` plus its count of lines, and nobody else touches the target's.
unsafe fn pass(
    sources: [(*const Line, usize); 3],
    target: (*mut Line, usize),
    first: usize,
    past_caches: bool,
) {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    if Isa::current() == Isa::Avx512 {
        // SAFETY: the instruction set is there; the rest is the caller's promise.
        return unsafe { x86::pass_avx512(sources, target, first, past_caches) };
    }
    let _ = past_caches;
    // SAFETY: the caller's promise.
    unsafe { pass_plain(sources, target, first) };
}

/// [`pass`] as the compiler makes it for the target at hand.
///
/// # Safety
/// As [`pass`].
unsafe fn pass_plain(sources: [(*const Line, usize); 3], target: (*mut Line, usize), first: usize) {
    let reads = sources[0].1;
    let mut sum = [0u64; 8];
    for i in 0..reads.max(target.1) {
        let mut line = [0u64; 8];
        for source in sources.iter().filter(|source| i < source.1) {
            // SAFETY: `i` is below the count of this source.
            let read = unsafe { (*source.0.add(first + i)).0 };
            for (line, read) in line.iter_mut().zip(read) {
                *line |= read;
            }
        }
        if i < target.1 {
            // SAFETY: `i` is below the count of the target.
            unsafe { target.0.add(first + i).write(Line(line)) };
        } else {
            for (sum, line) in sum.iter_mut().zip(line) {
                *sum |= line;
            }
        }
    }
    black_box(sum);
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod x86 {
    use super::{CHAINS, Line, STEPS, black_box};
    use std::arch::x86_64::*;

    /// Multiply-adds on independent chains, `$chains` at a time; gives the lanes of a register.
    macro_rules! chains {
        ($name:ident, $feature:literal, $set:ident, $fma:ident, $lanes:literal, $chains:expr) => {
            #[target_feature(enable = $feature)]
            pub(super) fn $name() -> usize {
                let factor = black_box($set(0.999));
                for _ in 0..CHAINS / $chains {
                    let mut sums = [$set(1.0); $chains];
                    for _ in 0..STEPS {
                        for sum in &mut sums {
                            *sum = $fma(*sum, factor, factor);
                        }
                    }
                    black_box(sums);
                }
                $lanes
            }
        };
    }
    chains!(chains_avx512_f32, "avx512f", _mm512_set1_ps, _mm512_fmadd_ps, 16, CHAINS);
    chains!(chains_avx512_f64, "avx512f", _mm512_set1_pd, _mm512_fmadd_pd, 8, CHAINS);
    chains!(chains_avx2_f32, "avx2,fma", _mm256_set1_ps, _mm256_fmadd_ps, 8, CHAINS / 2);
    chains!(chains_avx2_f64, "avx2,fma", _mm256_set1_pd, _mm256_fmadd_pd, 4, CHAINS / 2);

    /// # Safety
    /// As `pass`, and the CPU has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn pass_avx512(
        sources: [(*const Line, usize); 3],
        target: (*mut Line, usize),
        first: usize,
        past_caches: bool,
    ) {
        let count = sources.iter().filter(|source| source.1 > 0).count();
        // SAFETY: the caller's promise.
        unsafe {
            match (count, past_caches) {
                (0, false) => lines::<0, false>(sources, target, first),
                (0, true) => lines::<0, true>(sources, target, first),
                (1, false) => lines::<1, false>(sources, target, first),
                (1, true) => lines::<1, true>(sources, target, first),
                (2, false) => lines::<2, false>(sources, target, first),
                (2, true) => lines::<2, true>(sources, target, first),
                (_, false) => lines::<3, false>(sources, target, first),
                (_, true) => lines::<3, true>(sources, target, first),
            }
        }
    }

    /// # Safety
    /// As `pass`; the first `N` sources have lines.
    #[target_feature(enable = "avx512f")]
    unsafe fn lines<const N: usize, const PAST: bool>(
        sources: [(*const Line, usize); 3],
        target: (*mut Line, usize),
        first: usize,
    ) {
        let reads = if N == 0 { 0 } else { sources[0].1 };
        let both = reads.min(target.1);
        let read = |i: usize| {
            let mut sum = _mm512_set1_epi64(1);
            for source in &sources[..N] {
                // SAFETY: all sources have the same length, and `i` is below it.
                let line = unsafe { _mm512_load_si512(source.0.add(first + i).cast()) };
                sum = _mm512_or_si512(sum, line);
            }
            sum
        };
        let write = |i: usize, line: __m512i| {
            // SAFETY: `i` is below the target's length; lines are aligned to 64 bytes.
            unsafe {
                let at = target.0.add(first + i).cast();
                if PAST {
                    _mm512_stream_si512(at, line);
                } else {
                    _mm512_store_si512(at, line);
                }
            }
        };
        for i in 0..both {
            write(i, read(i));
        }
        for i in both..target.1 {
            write(i, _mm512_set1_epi64(1));
        }
        let mut sum = _mm512_setzero_si512();
        for i in both..reads {
            sum = _mm512_or_si512(sum, read(i));
        }
        black_box(sum);
        _mm_sfence();
    }
}
