//! Any operation on scalars of any dtype: the table as a function.
//!
//! This is what the reference backend, the tape's evaluator and the tests call; it is the meaning
//! of the row and nothing else. Operands have the dtype that the operation computes in
//! ([`crate::op::Row::computes`]).

use crate::dtype::DType;
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
