//! Speed of the matrix product: GFLOP/s per case beside the multiply-add peak of the same process.
//!
//! `cargo run --release -p tilework-cpu --example gemm_bench [-- FILTER [ROUNDS]]`. All cases and
//! the peak are timed in turn, several rounds, a few milliseconds each; the best of the rounds
//! counts, because other guests of the machine take a core now and then. Products run on the
//! process's pool (`TILEWORK_NUM_THREADS`) and instruction set (`TILEWORK_ISA`).

use half::{bf16, f16};
use num_complex::Complex;
use std::time::{Duration, Instant};
use tilework_cpu::gemm::{Element, Parallel, Product, batched};
use tilework_cpu::isa::Isa;
use tilework_cpu::pool;
use tilework_fork::ForkOnce;

/// The pool of the process.
struct Pool;

impl Parallel for Pool {
    fn threads(&self) -> usize {
        pool::threads()
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        pool::run(pieces, work);
    }

    fn run_brief(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        pool::run_brief(pieces, work);
    }
}

/// A product to be timed.
struct Case {
    name: String,
    /// Operations of one call.
    flops: f64,
    /// Calls it so many times.
    call: Box<dyn Fn(usize)>,
    best: f64,
    all: Vec<f64>,
}

/// Layouts of A and B.
#[derive(Clone, Copy, Default)]
struct Layout {
    a_by_columns: bool,
    b_by_columns: bool,
}

/// The cases whose name contains the filter; others are not even allocated.
struct Suite {
    filter: String,
    cases: Vec<Case>,
}

impl Suite {
    fn add<T: Element>(
        &mut self,
        name: &str,
        sizes: (usize, usize, usize),
        batch: usize,
        layout: Layout,
        value: impl Fn(usize) -> T,
    ) {
        if name.contains(&self.filter) {
            self.cases.push(case(name, sizes, batch, layout, value));
        }
    }
}

/// An array as the library allocates them: aligned, and of huge pages if it is large.
fn array<T: Copy>(count: usize, value: impl Fn(usize) -> T) -> &'static mut [T] {
    let bytes = (count * size_of::<T>()).max(64);
    let align = if bytes >= 1 << 20 { 2 << 20 } else { 64 };
    let layout = std::alloc::Layout::from_size_align(bytes, align).expect("a size that fits");
    // SAFETY: the size is not zero; every element is written before the slice is made; the memory
    // is never freed.
    unsafe {
        let at = std::alloc::alloc(layout).cast::<T>();
        assert!(!at.is_null(), "out of memory");
        #[cfg(target_os = "linux")]
        libc::madvise(at.cast(), bytes, libc::MADV_HUGEPAGE);
        for i in 0..count {
            at.add(i).write(value(i));
        }
        std::slice::from_raw_parts_mut(at, count)
    }
}

fn case<T: Element>(
    name: &str,
    (m, k, n): (usize, usize, usize),
    batch: usize,
    layout: Layout,
    value: impl Fn(usize) -> T,
) -> Case {
    let fill = |count: usize| array(count, |i| value(i * 7919 % 251));
    let (a, b) = (fill(m * k * batch), fill(k * n * batch));
    let c = fill(m * n * batch);
    let (m1, k1, n1) = (m as isize, k as isize, n as isize);
    let offsets: Vec<_> =
        (0..batch as isize).map(|i| (i * m1 * k1, i * k1 * n1, i * m1 * n1)).collect();
    let (a_rows, a_cols) = if layout.a_by_columns { (1, m1) } else { (k1, 1) };
    let (b_rows, b_cols) = if layout.b_by_columns { (1, k1) } else { (n1, 1) };
    let product = Product {
        m,
        n,
        k,
        a: a.as_ptr(),
        a_rows,
        a_cols,
        b: b.as_ptr(),
        b_rows,
        b_cols,
        c: c.as_mut_ptr(),
        c_rows: n1,
        c_cols: 1,
        accumulate: false,
    };
    let isa = Isa::current();
    let call = move |times: usize| {
        for _ in 0..times {
            // SAFETY: the three arrays live for ever and hold the whole batch; only this closure
            // uses them.
            unsafe { batched(isa, &Pool, &product, &offsets) }.expect("there is memory");
        }
    };
    let flops = 2.0 * (m * n * k * batch) as f64;
    Case { name: name.to_owned(), flops, call: Box::new(call), best: 0.0, all: Vec::new() }
}

/// Multiply-adds in registers on every thread of the pool: the most that a product could reach.
fn peak(double: bool) -> Case {
    let threads = pool::threads();
    let call = move |times: usize| {
        pool::run(threads, &|_| {
            for _ in 0..times {
                match (Isa::current(), double) {
                    // SAFETY: `Isa::current` is available.
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx512, _) => unsafe { fma_512() },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx2, _) => unsafe { fma_256() },
                    _ => {}
                }
            }
        });
    };
    let lanes = match Isa::current() {
        Isa::Avx512 => 16.0,
        Isa::Avx2 => 8.0,
        Isa::Scalar => 0.0,
    };
    let lanes = if double { lanes / 2.0 } else { lanes };
    let name = if double { "peak f64" } else { "peak f32" };
    let flops = threads as f64 * 1000.0 * 24.0 * lanes * 2.0;
    Case { name: name.to_owned(), flops, call: Box::new(call), best: 0.0, all: Vec::new() }
}

/// 1000 rounds of 24 independent chains.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fma_512() {
    use std::arch::x86_64::*;
    let factor = std::hint::black_box(_mm512_set1_ps(0.999));
    let mut sums = [_mm512_set1_ps(1.0); 24];
    for _ in 0..1000 {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, factor, factor);
        }
    }
    std::hint::black_box(sums);
}

/// 1000 rounds of 24 products on 12 independent chains, of which a smaller register file has room.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fma_256() {
    use std::arch::x86_64::*;
    let factor = std::hint::black_box(_mm256_set1_ps(0.999));
    let mut sums = [_mm256_set1_ps(1.0); 12];
    for _ in 0..2000 {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, factor, factor);
        }
    }
    std::hint::black_box(sums);
}

fn cases(filter: String) -> Vec<Case> {
    let single = |x: usize| x as f32 / 125.0 - 1.0;
    let double = |x: usize| x as f64 / 125.0 - 1.0;
    let mut suite = Suite { filter, cases: vec![peak(false), peak(true)] };
    let rows = Layout::default();
    for n in [16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1000, 1023, 1024, 1025, 2048] {
        suite.add(&format!("f32 {n}"), (n, n, n), 1, rows, single);
    }
    for n in [16, 32, 64, 128, 256, 512, 1024, 2048] {
        suite.add(&format!("f64 {n}"), (n, n, n), 1, rows, double);
    }
    for n in [64, 256, 1024] {
        for (name, a_by_columns, b_by_columns) in
            [("A^T B", true, false), ("A B^T", false, true), ("A^T B^T", true, true)]
        {
            let layout = Layout { a_by_columns, b_by_columns };
            suite.add(&format!("f32 {n} {name}"), (n, n, n), 1, layout, single);
        }
    }
    let by_columns = Layout { b_by_columns: true, ..rows };
    suite.add("f32 4096x64x4096", (4096, 64, 4096), 1, rows, single);
    suite.add("f32 64x4096x64", (64, 4096, 64), 1, rows, single);
    suite.add("f32 1x4096x4096", (1, 4096, 4096), 1, rows, single);
    suite.add("f32 4096x4096x1", (4096, 4096, 1), 1, rows, single);
    suite.add("f32 1x4096x4096 B^T", (1, 4096, 4096), 1, by_columns, single);
    suite.add("f32 4x4096x4096", (4, 4096, 4096), 1, rows, single);
    suite.add("f32 8x4096x4096", (8, 4096, 4096), 1, rows, single);
    suite.add("f32 32x2048x2048", (32, 2048, 2048), 1, rows, single);
    suite.add("f32 batch 64 of 64", (64, 64, 64), 64, rows, single);
    suite.add("f32 batch 1000 of 8", (8, 8, 8), 1000, rows, single);
    suite.add("f64 batch 64 of 64", (64, 64, 64), 64, rows, double);
    for n in [256, 1024, 2048] {
        let brain = |x: usize| bf16::from_f32(single(x));
        suite.add(&format!("bf16 {n}"), (n, n, n), 1, rows, brain);
        let half = |x: usize| f16::from_f32(single(x));
        suite.add(&format!("f16 {n}"), (n, n, n), 1, rows, half);
    }
    suite.add("bf16 64", (64, 64, 64), 1, rows, |x| bf16::from_f32(single(x)));
    suite.add("i8 512", (512, 512, 512), 1, rows, |x| x as i8);
    suite.add("i16 512", (512, 512, 512), 1, rows, |x| x as i16);
    suite.add("i32 512", (512, 512, 512), 1, rows, |x| x as i32);
    suite.add("i64 512", (512, 512, 512), 1, rows, |x| x as i64);
    suite.add("bool 512", (512, 512, 512), 1, rows, |x| x % 17 == 0);
    let complex = |x: usize| Complex { re: single(x), im: single(x + 3) };
    suite.add("c32 512 (times 4)", (512, 512, 512), 1, rows, complex);
    let complex = |x: usize| Complex { re: double(x), im: double(x + 3) };
    suite.add("c64 512 (times 4)", (512, 512, 512), 1, rows, complex);
    suite.cases
}

/// Seconds so far: the thread's own with one thread, so that other processes on its core do not
/// count; the wall's otherwise.
fn now() -> f64 {
    #[cfg(target_os = "linux")]
    if pool::threads() == 1 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a local.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        return time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
    }
    static START: ForkOnce<Instant> = ForkOnce::new();
    START.get_or_make(Instant::now).elapsed().as_secs_f64()
}

/// One window of about `length`.
fn time(case: &mut Case, length: Duration) {
    (case.call)(1);
    let start = now();
    (case.call)(1);
    let once = (now() - start).max(1e-9);
    let times = ((length.as_secs_f64() / once) as usize).clamp(1, 100_000);
    let start = now();
    (case.call)(times);
    let factor = if case.name.contains("(times 4)") { 4.0 } else { 1.0 };
    let rate = factor * case.flops * times as f64 / (now() - start) / 1e9;
    case.best = case.best.max(rate);
    case.all.push(rate);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let filter = arguments.next().unwrap_or_default();
    let rounds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(7);
    let mut cases = cases(filter);
    for _ in 0..rounds {
        for case in &mut cases {
            time(case, Duration::from_millis(4));
        }
    }
    let (single, double) = (cases[0].best, cases[1].best);
    println!("{} on {} threads; GFLOP/s", Isa::current().name(), pool::threads());
    for case in &mut cases {
        case.all.sort_by(f64::total_cmp);
        let middle = case.all[case.all.len() / 2];
        let wide = case.name.contains("f64") || case.name.contains("c64");
        let peak = if wide { double } else { single };
        let share = if peak > 0.0 { case.best / peak } else { 0.0 };
        println!("{:24} best {:8.1}  p50 {:8.1}  {share:5.2}", case.name, case.best, middle);
    }
}
