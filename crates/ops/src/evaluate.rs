//! Any operation and any reduction on scalars of any dtype: the tables as functions.
//!
//! This is what the reference backend, the tape's evaluator and the tests call; it is the meaning
//! of the row and nothing else. Operands have the dtype that the operation computes in
//! ([`crate::op::Row::computes`]).

use std::cmp::Ordering;

use crate::dtype::DType;
use crate::fold::{FOLD_COUNT, Fold, FoldColumn, FoldId, fold_column};
use crate::number::Scalar;
use crate::op::{Column, Entry, Gives, Op};
use crate::rows::{COUNT, Id, column};
use crate::scalar::{Element, Value};

type Evaluator = fn(&[Scalar]) -> Scalar;

struct Evaluators;

impl Column for Evaluators {
    type Cell = [Option<Evaluator>; DType::COUNT];
    type At<O: Op<N>, const N: usize> = At<O, N>;
}

struct At<O, const N: usize>(O);

impl<O: Op<N>, const N: usize> Entry<[Option<Evaluator>; DType::COUNT]> for At<O, N> {
    const VALUE: [Option<Evaluator>; DType::COUNT] = {
        let mut cells = [None; DType::COUNT];
        let mut i = 0;
        while i < DType::COUNT {
            let dtype = DType::ALL[i];
            if O::ROW.takes(dtype) {
                let cell: Evaluator = crate::with_element!(dtype, T => on::<O, T, N>);
                cells[i] = Some(cell);
            }
            i += 1;
        }
        cells
    };
}

fn on<O: Op<N>, E: Element, const N: usize>(operands: &[Scalar]) -> Scalar {
    let values = std::array::from_fn(|i| operands[i].get::<E>().widen());
    let result = <E::V as Value>::apply::<O, N>(values);
    Scalar::new(<<O::Gives as Gives>::In<E> as Element>::narrow(result))
}

static TABLE: [[Option<Evaluator>; DType::COUNT]; COUNT] = column::<Evaluators>();

impl Id {
    /// The operation on scalars of one dtype, or None where it has no meaning for that dtype.
    ///
    /// ```
    /// use tilework_ops::{Id, Scalar};
    /// let seven = Id::Add.evaluate(&[Scalar::new(3i8), Scalar::new(4i8)]).unwrap();
    /// assert_eq!(seven.get::<i8>(), 7);
    /// assert!(Id::Exp.evaluate(&[Scalar::new(3i8)]).is_none());
    /// ```
    ///
    /// # Panics
    /// If there are fewer operands than the operation takes.
    pub fn evaluate(self, operands: &[Scalar]) -> Option<Scalar> {
        TABLE[self as usize][operands[0].dtype() as usize].map(|evaluate| evaluate(operands))
    }
}

#[derive(Clone, Copy)]
struct Folder {
    whole: fn(&[Scalar], DType, f64) -> Scalar,
    running: fn(&[Scalar], DType) -> Vec<Scalar>,
}

struct Folders;

impl FoldColumn for Folders {
    type Cell = Folder;
    type At<F: Fold> = FoldAt<F>;
}

struct FoldAt<F>(F);

impl<F: Fold> Entry<Folder> for FoldAt<F> {
    const VALUE: Folder = Folder { whole: fold_whole::<F>, running: fold_running::<F> };
}

fn fold_whole<F: Fold>(operands: &[Scalar], dtype: DType, correction: f64) -> Scalar {
    crate::with_element!(dtype, T => {
        let state = fold_pairwise::<F, T>(operands, 0);
        finished::<F, T>(state, operands.len(), correction)
    })
}

/// In halves, so that rounding errors grow with the logarithm of the count.
fn fold_pairwise<F: Fold, E: Element>(operands: &[Scalar], first: usize) -> F::State<E::V> {
    match operands {
        [] => F::init(),
        [one] => F::step(F::init(), one.get::<E>().widen(), first as i64),
        _ => {
            let (a, b) = operands.split_at(operands.len() / 2);
            F::merge(fold_pairwise::<F, E>(a, first), fold_pairwise::<F, E>(b, first + a.len()))
        }
    }
}

fn fold_running<F: Fold>(operands: &[Scalar], dtype: DType) -> Vec<Scalar> {
    fn on<F: Fold, E: Element>(operands: &[Scalar]) -> Vec<Scalar> {
        let mut state = F::init();
        let mut next = |(k, x): (usize, &Scalar)| {
            state = F::step(state, x.get::<E>().widen(), k as i64);
            finished::<F, E>(state, k + 1, 0.0)
        };
        operands.iter().enumerate().map(&mut next).collect()
    }
    crate::with_element!(dtype, T => on::<F, T>(operands))
}

fn finished<F: Fold, E: Element>(state: F::State<E::V>, count: usize, correction: f64) -> Scalar {
    let value = F::finish(state, count, correction);
    Scalar::new(<<F::Gives as Gives>::In<E> as Element>::narrow(value))
}

static FOLDS: [Folder; FOLD_COUNT] = fold_column::<Folders>();

impl FoldId {
    /// The reduction of scalars, cast to `dtype` first, which it must accumulate in.
    ///
    /// ```
    /// use tilework_ops::{DType, FoldId, Scalar};
    /// let sum = FoldId::Sum.evaluate(&[Scalar::new(100i8), Scalar::new(100i8)], DType::Int64, 0.0);
    /// assert_eq!(sum, Scalar::new(200i64));
    /// ```
    pub fn evaluate(self, operands: &[Scalar], dtype: DType, correction: f64) -> Scalar {
        (FOLDS[self as usize].whole)(operands, dtype, correction)
    }

    /// The reductions of the first one, two, three, ... scalars.
    pub fn running(self, operands: &[Scalar], dtype: DType) -> Vec<Scalar> {
        (FOLDS[self as usize].running)(operands, dtype)
    }
}

impl Scalar {
    /// The order of sorting two scalars of one dtype: NaN after everything in either direction,
    /// zeros of either sign equal. Complex numbers by real part, then imaginary; after those without NaN come those
    /// with one in the imaginary part, then in the real part, then in both.
    pub fn sort_order(&self, other: &Scalar, descending: bool) -> Ordering {
        if !self.dtype().is_complex() {
            return real_order(self, other, descending);
        }
        let parts = |z: &Scalar| {
            let z = z.get::<num_complex::Complex<f64>>();
            ((z.re.is_nan(), z.im.is_nan()), Scalar::new(z.re), Scalar::new(z.im))
        };
        let (a, b) = (parts(self), parts(other));
        let order = |a: &Scalar, b: &Scalar| real_order(a, b, descending);
        a.0.cmp(&b.0).then_with(|| order(&a.1, &b.1)).then_with(|| order(&a.2, &b.2))
    }
}

fn real_order(a: &Scalar, b: &Scalar, descending: bool) -> Ordering {
    crate::with_element!(a.dtype(), T => {
        let (a, b) = (a.get::<T>().widen(), b.get::<T>().widen());
        match (a.is_nan(), b.is_nan()) {
            (false, false) if a.precedes(b) != b.precedes(a) => match a.precedes(b) != descending {
                true => Ordering::Less,
                false => Ordering::Greater,
            },
            (a_nan, b_nan) => a_nan.cmp(&b_nan),
        }
    })
}
