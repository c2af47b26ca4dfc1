//! The table of the benchmark: which work on which operands, and the ratio to the peers that it
//! must reach. A new row is a line here; new work is a variant of [`Work`] (`work.rs`) and, where
//! Python's peers know it, a line in `bench/peers.py`.

use tilework::{DType, FoldId, Id};

use super::work::Work;
use DType::{BFloat16, Float16, Float32, Float64, Int32};

/// One line of the benchmark.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The chart that it belongs to.
    pub(crate) group: &'static str,
    pub(crate) work: Work,
    pub(crate) dtype: DType,
    /// Of the operands; (m, k, n), or a batch before them, for products.
    pub(crate) shape: Vec<usize>,
    pub(crate) target: Target,
}

/// What a row must reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The better of NumPy's and PyTorch's times over ours is at least this.
    pub(crate) ratio: f64,
    /// Medians of the rounds are compared, not the best ones: for work whose rate the machine
    /// changes by itself.
    pub(crate) by_median: bool,
    /// And at least this share of the machine's limit, or the best peer's.
    pub(crate) share: Option<f64>,
}

impl From<f64> for Target {
    fn from(ratio: f64) -> Target {
        Target { ratio, by_median: false, share: None }
    }
}

impl Row {
    /// The row in four words, as tables show it and Python's peers read it.
    pub(crate) fn name(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let (op, variant) = (self.work.name(), self.work.variant());
        format!("{op} {} {} {variant}", self.dtype, shape.join("x"))
    }
}

/// A ratio of 0.97 is within what two equal contestants differ by.
pub(crate) const LEVEL: f64 = 0.97;

/// The target of large products: level with the peers, and near the machine's multiply-adds.
fn large_product(n: usize) -> Target {
    Target { share: (n >= 1024).then_some(0.8), ..LEVEL.into() }
}

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    let mut table = Table(Vec::new());
    table.products();
    table.elementwise();
    table.layouts();
    table.reductions();
    table.order();
    table.0
}

struct Table(Vec<Row>);

impl Table {
    fn add(
        &mut self,
        group: &'static str,
        work: Work,
        dtype: DType,
        shape: &[usize],
        target: impl Into<Target>,
    ) {
        self.0.push(Row { group, work, dtype, shape: shape.to_vec(), target: target.into() });
    }

    fn products(&mut self) {
        let plain = Work::Matmul { a_transposed: false, b_transposed: false };
        for dtype in [Float32, Float64] {
            for n in [16, 32, 64, 128] {
                self.add("gemm-small", plain, dtype, &[n; 3], 1.3);
            }
            for n in [256, 512, 1000, 1023, 1024, 1025, 2048] {
                self.add("gemm", plain, dtype, &[n; 3], large_product(n));
            }
            for (a_transposed, b_transposed) in [(true, false), (false, true), (true, true)] {
                let work = Work::Matmul { a_transposed, b_transposed };
                self.add("gemm", work, dtype, &[1024; 3], large_product(1024));
            }
        }
        for (shape, target) in [
            (&[4096, 64, 4096][..], 1.5),
            (&[64, 4096, 64], 1.0),
            (&[1, 4096, 4096], LEVEL),
            (&[4096, 4096, 1], LEVEL),
            (&[64, 64, 64, 64], LEVEL),
        ] {
            self.add("gemm-skinny", plain, Float32, shape, target);
        }
        for n in [1024, 2048] {
            let target = Target { by_median: true, ..1.0.into() };
            self.add("gemm-other", plain, BFloat16, &[n; 3], target);
        }
        self.add("gemm-other", plain, Float16, &[1024; 3], 1.0);
        self.add("gemm-other", plain, Int32, &[512; 3], 2.0);
    }

    fn elementwise(&mut self) {
        let large = [1 << 24];
        for id in [Id::Add, Id::Multiply] {
            self.add("arithmetic", Work::Map { id, out: true }, Float32, &large, 1.0);
            self.add("arithmetic", Work::Map { id, out: false }, Float32, &large, 2.0);
        }
        self.add("arithmetic", Work::Map { id: Id::Add, out: true }, Float64, &large, 1.0);
        self.add("arithmetic", Work::Map { id: Id::Add, out: false }, Float64, &large, 2.0);
        self.add("arithmetic", Work::Copy { out: true }, Float32, &large, 1.0);
        self.add("arithmetic", Work::Copy { out: false }, Float32, &large, 1.0);
        self.add("arithmetic", Work::Cast { to: Float64 }, Float32, &large, 1.0);
        self.add("arithmetic", Work::Cast { to: Float16 }, Float32, &large, 1.0);
        self.add("arithmetic", Work::Cast { to: Int32 }, Float32, &large, 1.0);
        for (group, dtype) in [("mathematics-float32", Float32), ("mathematics-float64", Float64)] {
            for id in [Id::Exp, Id::Log, Id::Tanh, Id::Sin, Id::Sigmoid, Id::Pow, Id::Erf] {
                self.add(group, Work::Map { id, out: false }, dtype, &large, 2.0);
                self.add(group, Work::Map { id, out: true }, dtype, &large, 1.0);
            }
        }
        for (shape, target) in [([1 << 17], 1.2), ([1 << 27], 1.0)] {
            for id in [Id::Add, Id::Exp] {
                self.add("sizes", Work::Map { id, out: false }, Float32, &shape, target);
                self.add("sizes", Work::Map { id, out: true }, Float32, &shape, target);
            }
            let sum = Work::Reduce { fold: FoldId::Sum, axis: None };
            self.add("sizes", sum, Float32, &shape, target);
        }
    }

    fn layouts(&mut self) {
        let square = [4096, 4096];
        self.add("broadcast", Work::AddRow, Float32, &square, 1.5);
        self.add("broadcast", Work::AddColumn, Float32, &square, 1.5);
        self.add("broadcast", Work::AddSteps, Float32, &[1 << 24], 1.5);
        self.add("broadcast", Work::AddTransposed, Float32, &square, 1.5);
        let images = [32, 64, 128, 128];
        for out in [false, true] {
            self.add("layout", Work::Transpose { out }, Float32, &square, 2.5);
            self.add("layout", Work::ChannelsLast { out }, Float32, &images, 2.5);
        }
        self.add("layout", Work::Windows, Float32, &[16, 32, 64, 64], 1.0);
        self.add("layout", Work::Concat, Float32, &[2048, 4096], 1.0);
        self.add("layout", Work::Pad, Float32, &square, 1.0);
        self.add("layout", Work::Take, Float32, &[1 << 22], 1.0);
        self.add("layout", Work::TakeRows, Float32, &[1 << 16, 64], 1.0);
        self.add("layout", Work::Put, Float32, &[1 << 22], 1.0);
        for work in [Work::Nonzero, Work::MaskTake, Work::MaskPut] {
            self.add("layout", work, Float32, &[2048, 2048], 1.0);
        }
    }

    fn reductions(&mut self) {
        use FoldId::{ArgMax, Max, Mean, Sum, Var};
        for (fold, target) in [(Sum, 1.0), (Max, 1.0), (Mean, 1.0), (Var, 3.0), (ArgMax, 1.0)] {
            for axis in [None, Some(0), Some(1)] {
                let work = Work::Reduce { fold, axis };
                self.add("reductions", work, Float32, &[4096, 4096], target);
            }
            let middle = Work::Reduce { fold, axis: Some(1) };
            self.add("reductions", middle, Float32, &[256, 256, 256], target);
        }
        for axis in [None, Some(0), Some(1)] {
            let sum = Work::Reduce { fold: Sum, axis };
            self.add("reductions", sum, Float64, &[4096, 4096], 1.0);
        }
        for axis in [0, 1] {
            let sum = Work::Reduce { fold: Sum, axis: Some(axis) };
            self.add("reductions", sum, Float16, &[4096, 4096], 1.0);
        }
        self.add("reductions", Work::CumulativeSum { axis: 0 }, Float32, &[1 << 24], 1.0);
        self.add("reductions", Work::CumulativeSum { axis: 0 }, Float32, &[4096, 4096], 1.0);
        self.add("reductions", Work::CumulativeSum { axis: 1 }, Float32, &[4096, 4096], 1.0);
    }

    fn order(&mut self) {
        for few in [false, true] {
            for work in [Work::Sort { few }, Work::Argsort { few }, Work::Unique { few }] {
                self.add("order", work, Float32, &[1_000_000], 1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_differ_and_have_four_words() {
        let mut names: Vec<String> = super::rows().iter().map(super::Row::name).collect();
        assert!(names.iter().all(|name| name.split(' ').count() == 4), "{names:?}");
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
