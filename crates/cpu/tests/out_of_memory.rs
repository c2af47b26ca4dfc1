//! Requests that find no memory for what they need beside their arrays fail, and their targets are
//! as they were; with a little less than they would like, they succeed.
//!
//! Alone in its file, and one test, because its allocator refuses blocks while it is told to.

mod map_support;

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use map_support::*;
use tilework_backend::{
    Accuracy, Fresh, Matmul, MatmulKernel, PairReduce, Reduce, Request, Scan, Scheme, Sort,
    Storage, SumScheme, Target, View, empty_cache,
};
use tilework_cpu::{Cpu, pool};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_ops::{DType, FoldId, Id, PairFoldId, Scalar};
use tilework_tape::{Builder, Per, Slot, Tape};

/// Blocks above this size are refused. The backend takes blocks of a mebibyte and more from the
/// system directly, so tests must need less.
static MOST: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Whether blocks are no longer refused once one as large has been given back.
static RELENTS: AtomicBool = AtomicBool::new(false);
/// How many blocks were refused.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

struct Refusing;

// SAFETY: hands out and takes back what the system's allocator does, or nothing.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Memory) -> *mut u8 {
        if layout.size() > MOST.load(Relaxed) {
            REFUSED.fetch_add(1, Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Memory) {
        if RELENTS.load(Relaxed) && layout.size() > MOST.load(Relaxed) {
            MOST.store(usize::MAX, Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Runs a request while blocks above `most` bytes are refused; its result, and how many were.
fn refusing(most: usize, request: &Request<'_>) -> (Result<()>, usize) {
    empty_cache();
    REFUSED.store(0, Relaxed);
    MOST.store(most, Relaxed);
    let result = run(&Cpu, "test", request);
    MOST.store(usize::MAX, Relaxed);
    (result, REFUSED.load(Relaxed))
}

fn small_numbers(shape: &[usize], dtype: DType, step: usize) -> View {
    let values: Vec<Scalar> =
        (0..97).map(|i| Scalar::new((i * step % 5) as f64 - 1.0).cast(dtype)).collect();
    array(Layout::contiguous(shape).unwrap(), dtype, &values)
}

/// Runs what `request` makes for a target, first without memory, then with it. Without it the request
/// must fail and leave the target as it was, or find a way that needs none; whether it failed.
fn fails_whole<'a>(name: &str, out: &'a View, request: impl Fn(Target<'a>) -> Request<'a>) -> bool {
    let request = request(Target::shared("test", out.borrow()).unwrap());
    let old = read(out);
    let (result, refused) = refusing(2048, &request);
    if result.is_ok() {
        let without = read(out);
        run(&Cpu, "test", &request).unwrap();
        assert_eq!(read(out), without, "{name}: without memory it is another result");
        return false;
    }
    assert!(matches!(result, Err(Error::OutOfMemory(_))), "{name}: {result:?}");
    assert!(refused >= 2, "{name}: the recycled blocks were given back and it was tried again");
    let message = result.unwrap_err().to_string();
    assert!(message.starts_with(&format!("{name}: no memory for ")), "{message}");
    assert_eq!(read(out), old, "{name}: the target was written");
    run(&Cpu, "test", &request).unwrap();
    assert_ne!(read(out), old, "{name}");
    true
}

fn matmul<'a>(a: &'a View, b: &'a View, output: Target<'a>, kernel: MatmulKernel) -> Request<'a> {
    Request::Matmul(Matmul { a: a.borrow(), b: b.borrow(), output, kernel })
}

fn products() {
    // One row; few rows; packed panels; sums in another form; K cut; batches, in and over threads.
    let cases: [(&[usize], [usize; 3], DType); 9] = [
        (&[], [1, 20_000, 1], DType::Float32),
        (&[], [1, 2000, 300], DType::Float64),
        (&[], [3, 300, 900], DType::Float32),
        (&[], [20, 100, 600], DType::Float32),
        (&[], [40, 50, 60], DType::Float16),
        (&[], [40, 50, 60], DType::Int8),
        (&[], [16, 5000, 16], DType::Float64),
        (&[3], [80, 64, 96], DType::Float16),
        (&[50], [20, 20, 20], DType::Float16),
    ];
    let mut failed = 0;
    for (batch, [m, k, n], dtype) in cases {
        let shape = |rows: usize, columns: usize| [batch, &[rows, columns]].concat();
        let (a, b) = (small_numbers(&shape(m, k), dtype, 2), small_numbers(&shape(k, n), dtype, 3));
        let out = small_numbers(&shape(m, n), dtype, 1);
        let request = |target| matmul(&a, &b, target, MatmulKernel::Best);
        failed += usize::from(fails_whole("matmul", &out, request));
    }
    // The loops of narrow instruction sets multiply few rows in place.
    assert!(failed >= cases.len() - 2, "{failed} of {} need memory", cases.len());
    let tiles = |rows: usize, columns: usize| [rows, columns, 40, 40];
    for dtype in [DType::Float16, DType::Int8] {
        let (a, b) = (small_numbers(&tiles(2, 3), dtype, 2), small_numbers(&tiles(3, 2), dtype, 3));
        let out = small_numbers(&tiles(2, 2), dtype, 1);
        let request = |target| matmul(&a, &b, target, MatmulKernel::Tiled);
        assert!(fails_whole("matmul", &out, request));
    }
}

/// The tile unit packs both operands whole; without the memory for that, vectors do the product.
fn products_with_little_memory() {
    let expected = |a: &View, b: &View, dtype: DType| {
        let out = small_numbers(&[64, 64], dtype, 1);
        let output = Target::shared("test", out.borrow()).unwrap();
        run(&Cpu, "test", &matmul(a, b, output, MatmulKernel::Naive)).unwrap();
        read(&out)
    };
    for (dtype, kernel) in
        [(DType::BFloat16, MatmulKernel::Best), (DType::Float32, MatmulKernel::Pieces)]
    {
        let (a, b) = (small_numbers(&[64, 900], dtype, 2), small_numbers(&[900, 64], dtype, 3));
        let out = small_numbers(&[64, 64], dtype, 1);
        // Enough for vectors on one thread. The unit needs 240 and 720 KiB.
        let (result, refused) = pool_of_one(|| {
            let output = Target::shared("test", out.borrow()).unwrap();
            refusing(235 << 10, &matmul(&a, &b, output, kernel))
        });
        assert!(result.is_ok(), "{dtype}: {result:?}, {refused} refused");
        assert_eq!(read(&out), expected(&a, &b, dtype), "{dtype}");
    }
}

fn pool_of_one<T>(work: impl FnOnce() -> T) -> T {
    let threads = pool::threads();
    pool::set_threads(1);
    let result = work();
    pool::set_threads(threads);
    result
}

fn others() {
    let line = small_numbers(&[200_000], DType::Float32, 2);
    let out = small_numbers(&[200_000], DType::Float32, 1);
    let (input, axis) = (line.borrow(), 0);
    assert!(fails_whole("sum", &out, |output| {
        Request::Scan(Scan { fold: FoldId::Sum, input, axis, output })
    }));
    let (unsorted, sorted) =
        (small_numbers(&[60_000], DType::Float32, 2), small_numbers(&[60_000], DType::Float32, 1));
    assert!(fails_whole("sort", &sorted, |output| {
        let (input, descending, indices) = (unsorted.borrow(), false, false);
        Request::Sort(Sort { input, axis, descending, output, indices })
    }));

    // A part of each result for every some hundred elements, of which there may be any number.
    let wide = View::new(
        line.storage().clone(),
        Layout::new(&[3000, 2000], &[0, 1], 0).unwrap(),
        DType::Float32,
    )
    .unwrap();
    let out = small_numbers(&[2000], DType::Float32, 1);
    assert!(fails_whole("max", &out, |output| {
        let (input, axes, correction) = (wide.borrow(), &[0][..], 0.0);
        Request::Reduce(Reduce { fold: FoldId::Max, input, axes, correction, output })
    }));
}

/// |x - y|^2 of points with so many components, or exp(-|x - y|^2), and y for a weight.
fn distances(components: usize, exponential: bool, weighted: bool) -> Tape {
    let mut build = Builder::new();
    let slot = Slot { dtype: DType::Float32, len: components as u32 };
    let (x, y) = (build.input(slot, Per::I), build.input(slot, Per::J));
    let difference = build.apply(Id::Subtract, &[x, y]).unwrap();
    let mut value = build.dot(difference, difference).unwrap();
    if exponential {
        let negated = build.apply(Id::Negative, &[value]).unwrap();
        value = build.apply(Id::Exp, &[negated]).unwrap();
    }
    let outputs = [value, y];
    build.finish(&outputs[..1 + usize::from(weighted)]).unwrap()
}

/// Results over pairs are new, so a request without memory for its states may fail at any time; one
/// without memory for packed points or for a filter does without.
fn pairs() {
    use PairFoldId::{ArgKMin, LogSumExpWeight, Sum};
    const LITTLE: usize = 2048;
    let (m, n) = (1200, 3000);
    // A sum that packs its points, a search with a filter, one without, exponents with weights, and
    // the largest block that each must have: sums of one number do with next to nothing.
    let cases = [
        (Sum, 1, distances(20, true, false), LITTLE),
        (Sum, 1, distances(4, true, false), LITTLE),
        (ArgKMin, 5, distances(3, false, false), 32 << 10),
        (ArgKMin, 400, distances(3, false, false), usize::MAX),
        (LogSumExpWeight, 1, distances(3, false, true), 32 << 10),
    ];
    for (fold, k, tape, enough) in cases {
        let components = tape.inputs()[0].slot.len as usize;
        let [x, y] = [(m, 2), (n, 3)]
            .map(|(points, step)| small_numbers(&[points, components], DType::Float32, step));
        let (inputs, name) = ([x.borrow(), y.borrow()], fold.row().name);
        let compute = |most: usize| {
            let shape =
                [m, if k > 1 { k } else { tape.outputs().get(1).map_or(1, |_| components) }];
            let dtype = if k > 1 { DType::Int64 } else { DType::Float32 };
            let bytes = shape[0] * shape[1] * dtype.size();
            let storage = Storage::host(Cpu::ID, bytes, true).unwrap();
            let mut fresh = Fresh::row_major(storage, &shape, dtype).unwrap();
            let target = Some(fresh.target());
            let (values, indices) = if k > 1 { (None, target) } else { (target, None) };
            let request = Request::PairReduce(PairReduce {
                tape: &tape,
                fold,
                k,
                inputs: &inputs,
                n,
                start: 0,
                sums: SumScheme::Blocks,
                accuracy: Accuracy::Declared,
                scheme: Scheme::Auto,
                finish: true,
                values,
                indices,
                progress: None,
            });
            refusing(most, &request).0.map(|()| read(&fresh.finish()))
        };
        let expected = compute(usize::MAX).unwrap();
        if enough > LITTLE {
            let result = compute(LITTLE);
            assert!(matches!(result, Err(Error::OutOfMemory(_))), "{name} of {k}");
            let message = result.unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name}: no memory for ")), "{message}");
        }
        assert!(compute(enough).unwrap() == expected, "{name} of {k}: with {enough} bytes");
        assert!(compute(usize::MAX).unwrap() == expected, "{name} of {k}: again");
    }
}

/// What is kept for reuse is given back to the system before a request fails.
fn recycled_blocks_make_room() {
    let (a, b) = (
        small_numbers(&[20, 100], DType::Float32, 2),
        small_numbers(&[100, 600], DType::Float32, 3),
    );
    let out = small_numbers(&[20, 600], DType::Float32, 1);
    let output = Target::shared("test", out.borrow()).unwrap();
    let request = matmul(&a, &b, output, MatmulKernel::Best);
    empty_cache();
    drop(Storage::host(Cpu::ID, 50_000, false).unwrap());
    RELENTS.store(true, Relaxed);
    MOST.store(40_000, Relaxed);
    let result = run(&Cpu, "test", &request);
    assert_eq!(MOST.swap(usize::MAX, Relaxed), usize::MAX, "the kept block was not given back");
    RELENTS.store(false, Relaxed);
    result.unwrap();
}

#[test]
fn requests_without_memory_leave_their_targets_alone() {
    // The assembler of formulas needs memory by the size of the formula, not of the data.
    // SAFETY: no other thread is there yet to read the environment.
    unsafe { std::env::set_var("TILEWORK_JIT", "0") };
    pool::set_threads(2);
    // The workers and what they keep are there before memory runs out.
    let both = Barrier::new(2);
    pool::run(2, &|_| _ = both.wait());
    products();
    products_with_little_memory();
    others();
    pairs();
    recycled_blocks_make_room();
}
