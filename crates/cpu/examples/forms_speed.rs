//! Speed of reductions over pairs whose form is chosen: pairs per second and the share of the limit
//! by counted operations of the direct form, beside the multiply-add peak of the same process.
//!
//! `cargo run --release -p tilework-cpu --example forms_speed [-- FILTER [ROUNDS [ROWS]]]`. Cases and the
//! peak are timed in turn; the best of the rounds counts. Operations are counted as a distance 2D,
//! scale 1, exponential 9 (float32) or 15 (float64), sum 1, logsumexp 2 more, argmin 3, argKmin 1.
//! Data are standard normal. `strict` is the same without forms.

#[path = "../tests/valid/mod.rs"]
mod valid;

use std::time::{Duration, Instant};

use tilework_backend::{
    Accuracy, PairReduce, Request, Scheme, Storage, SumScheme, Target, UserWrite, View,
};
use tilework_cpu::Cpu;
use tilework_cpu::limits::multiply_adds;
use tilework_layout::Layout;
use tilework_ops::{DType, Id, PairFoldId, Scalar};
use tilework_tape::{Builder, Per, Slot, Tape};
use valid::run;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    ArgMin,
    ArgKMin,
    Gauss,
    LogSumExp,
}

struct Case {
    name: String,
    kind: Kind,
    tape: Tape,
    inputs: Vec<View>,
    outputs: (Option<View>, Option<View>),
    n: usize,
    k: usize,
    pairs: f64,
    /// Operations of a pair.
    operations: f64,
    wide: bool,
    accuracy: Accuracy,
    best: Duration,
}

fn normal(seed: &mut u64) -> f64 {
    let mut unit = || {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 11) as f64 * 2f64.powi(-53)
    };
    let (u, v) = (unit().max(1e-300), unit());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

fn array(shape: &[usize], dtype: DType, mut number: impl FnMut() -> f64) -> View {
    let count: usize = shape.iter().product();
    let storage = Storage::host(Cpu::ID, count * dtype.size(), true).expect("memory");
    let mut bytes = UserWrite::new("fill", &storage).expect("a guard");
    for to in bytes.chunks_exact_mut(dtype.size()) {
        to.copy_from_slice(Scalar::new(number()).cast(dtype).bytes());
    }
    drop(bytes);
    View::new(storage, Layout::contiguous(shape).expect("a shape"), dtype).expect("a view")
}

impl Case {
    fn new(kind: Kind, dtype: DType, d: usize, m: usize, n: usize, accuracy: Accuracy) -> Case {
        let mut build = Builder::new();
        let slot = Slot { dtype, len: d as u32 };
        let (x, y) = (build.input(slot, Per::I), build.input(slot, Per::J));
        let b = (kind == Kind::Gauss).then(|| build.input(Slot::scalar(dtype), Per::J));
        let difference = build.apply(Id::Subtract, &[x, y]).expect("a step");
        let mut result = build.dot(difference, difference).expect("a step");
        if matches!(kind, Kind::Gauss | Kind::LogSumExp) {
            let scale = build.constant(Scalar::new(-1.0 / d as f64).cast(dtype), 1);
            result = build.apply(Id::Multiply, &[result, scale]).expect("a step");
        }
        if let Some(b) = b {
            result = build.apply(Id::Exp, &[result]).expect("a step");
            result = build.apply(Id::Multiply, &[result, b]).expect("a step");
        }
        let tape = build.finish(&[result]).expect("a tape");
        let mut seed = 1;
        let mut inputs = vec![array(&[m, d], dtype, || normal(&mut seed))];
        inputs.push(array(&[n, d], dtype, || normal(&mut seed)));
        if b.is_some() {
            inputs.push(array(&[n, 1], dtype, || normal(&mut seed)));
        }
        let k = if kind == Kind::ArgKMin { 10 } else { 1 };
        let is_search = matches!(kind, Kind::ArgMin | Kind::ArgKMin);
        let dtype_out = if is_search { DType::Int64 } else { dtype };
        let output = Some(array(&[m, k], dtype_out, || 0.0));
        let outputs = if is_search { (None, output) } else { (output, None) };
        let wide = dtype == DType::Float64;
        let exp = if wide { 17.0 } else { 11.0 };
        let operations = 2.0 * d as f64
            + match kind {
                Kind::ArgMin => 3.0,
                Kind::ArgKMin => 1.0,
                Kind::Gauss => exp,
                Kind::LogSumExp => exp + 2.0,
            };
        let strict = if accuracy == Accuracy::Strict { " strict" } else { " declared" };
        let name = format!("{kind:?} {dtype} D={d} {m}x{n}{strict}");
        let pairs = m as f64 * n as f64;
        let best = Duration::MAX;
        Case { name, kind, tape, inputs, outputs, n, k, pairs, operations, wide, accuracy, best }
    }

    fn time(&mut self) {
        let inputs: Vec<_> = self.inputs.iter().map(View::borrow).collect();
        fn target(view: &Option<View>) -> Option<Target<'_>> {
            view.as_ref().map(|view| Target::shared("speed", view.borrow()).expect("writable"))
        }
        let began = Instant::now();
        let request = PairReduce {
            tape: &self.tape,
            fold: match self.kind {
                Kind::ArgMin => PairFoldId::ArgMin,
                Kind::ArgKMin => PairFoldId::ArgKMin,
                Kind::Gauss => PairFoldId::Sum,
                Kind::LogSumExp => PairFoldId::LogSumExp,
            },
            k: self.k,
            inputs: &inputs,
            n: self.n,
            start: 0,
            sums: SumScheme::Blocks,
            accuracy: self.accuracy,
            scheme: Scheme::Auto,
            finish: true,
            values: target(&self.outputs.0),
            indices: target(&self.outputs.1),
            progress: None,
        };
        run(&Cpu, "test", &Request::PairReduce(request)).expect("a result");
        self.best = self.best.min(began.elapsed());
    }
}

/// Multiply-adds of float32 a second on all threads.
fn peak() -> f64 {
    let once = |_| {
        let began = Instant::now();
        multiply_adds(false) / 2.0 / began.elapsed().as_secs_f64()
    };
    (0..100).map(once).fold(0.0, f64::max)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let filter = arguments.next().unwrap_or_default();
    let rounds: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(7);
    let rows: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let mut cases = Vec::new();
    for kind in [Kind::ArgMin, Kind::ArgKMin, Kind::Gauss, Kind::LogSumExp] {
        for dtype in [DType::Float32, DType::Float64] {
            for d in [3, 10, 64] {
                let size = if d == 64 { 10_000 } else { 20_000 };
                for accuracy in [Accuracy::Declared, Accuracy::Strict] {
                    let strict = if accuracy == Accuracy::Strict { " strict" } else { " declared" };
                    if format!("{kind:?} {dtype} D={d}{strict}").contains(&filter) {
                        cases.push(Case::new(kind, dtype, d, rows.min(size), size, accuracy));
                    }
                }
            }
        }
    }
    let mut rate: f64 = 0.0;
    for _ in 0..rounds {
        rate = rate.max(peak());
        cases.iter_mut().for_each(Case::time);
    }
    println!("{:>8.1} GFLOP/s float32 multiply-add peak", rate * 2e-9);
    for case in &cases {
        let seconds = case.best.as_secs_f64();
        let limit = rate / if case.wide { 2.0 } else { 1.0 } / case.operations;
        let (rate, ms) = (case.pairs / seconds, seconds * 1e3);
        println!(
            "{:36} {ms:8.1} ms {:8.3} Gpairs/s  share {:.3}",
            case.name,
            rate / 1e9,
            rate / limit
        );
    }
}
