//! Contestants from Rust, on the same numbers as ours: `ndarray`, used as its documentation would
//! (operators, `Zip`, methods), and `matrixmultiply`, which does `ndarray`'s matrix products. Both
//! run on one thread.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayD, Axis, Ix2, NdFloat, Zip};
use tilework::{Array, DType, Element, FoldId, Id, Result};

use super::rows::Row;
use super::work::{Call, Work, matrices, operand};

/// Those that know a row: the name and the call.
pub(crate) fn peers(row: &Row) -> Result<Vec<(&'static str, Call)>> {
    let call = match row.dtype {
        DType::Float32 => call::<f32>(row)?,
        DType::Float64 => call::<f64>(row)?,
        _ => None,
    };
    let name = if let Work::Matmul { .. } = row.work { "matrixmultiply" } else { "ndarray" };
    Ok(call.map(|call| (name, call)).into_iter().collect())
}

/// An element that both libraries compute with.
trait Float: NdFloat + Element<Raw = Self> + bytemuck::Pod + num_traits::FromPrimitive {}
impl Float for f32 {}
impl Float for f64 {}

/// A peer's own copy of an array, whatever its strides.
fn owned<T: Float>(x: &Array) -> Result<ArrayD<T>> {
    x.to_ndarray()
}

/// A call that makes something new and drops it.
fn fresh<R>(call: impl Fn() -> R + 'static) -> Call {
    Box::new(move || {
        std::hint::black_box(call());
        Ok(())
    })
}

fn call<T: Float>(row: &Row) -> Result<Option<Call>> {
    if let Work::Matmul { a_transposed, b_transposed } = row.work {
        return product::<T>(row, a_transposed, b_transposed);
    }
    let make = |seed| owned::<T>(&operand(row.work, row.dtype, &row.shape, seed)?);
    Ok(Some(match row.work {
        Work::Map { id: Id::Add, out: false } => {
            let (x, y) = (make(1)?, make(2)?);
            fresh(move || &x + &y)
        }
        Work::Map { id: Id::Add, out: true } => {
            let (x, y) = (make(1)?, make(2)?);
            let mut z = x.clone();
            Box::new(move || {
                Zip::from(&mut z).and(&x).and(&y).for_each(|z, &x, &y| *z = x + y);
                Ok(())
            })
        }
        Work::Map { id: Id::Exp, out: false } => {
            let x = make(1)?;
            fresh(move || x.mapv(T::exp))
        }
        Work::Copy { out: false } => {
            let x = make(1)?;
            fresh(move || x.clone())
        }
        Work::AddRow => {
            let x = make(1)?;
            let line = owned::<T>(&operand(row.work, row.dtype, &row.shape[1..], 2)?)?;
            fresh(move || &x + &line)
        }
        Work::AddTransposed => {
            let x = make(1)?;
            fresh(move || &x + &x.t())
        }
        Work::Transpose { out: false } => {
            let x = make(1)?;
            fresh(move || x.t().as_standard_layout().into_owned())
        }
        Work::Reduce { fold: FoldId::Sum, axis: None } => {
            let x = make(1)?;
            fresh(move || x.sum())
        }
        Work::Reduce { fold: FoldId::Sum, axis: Some(axis) } => {
            let x = make(1)?;
            fresh(move || x.sum_axis(Axis(axis as usize)))
        }
        Work::Reduce { fold: FoldId::Var, axis: Some(axis) } => {
            let x = make(1)?;
            fresh(move || x.var_axis(Axis(axis as usize), T::zero()))
        }
        _ => return Ok(None),
    }))
}

fn product<T: Float>(row: &Row, a_transposed: bool, b_transposed: bool) -> Result<Option<Call>> {
    // Products of vectors and batches have no call of their own there.
    if row.shape.len() != 3 {
        return Ok(None);
    }
    let (a, b) = matrices(row)?;
    // The copy has the elements in the order of the memory; its view has the row's shape again.
    let plain = |x: &Array, transposed| {
        let copy = if transposed { owned::<T>(&x.transpose())? } else { owned::<T>(x)? };
        Ok((copy.into_dimensionality::<Ix2>().map_err(wrong_rank)?, transposed))
    };
    let (a, b) = (plain(&a, a_transposed)?, plain(&b, b_transposed)?);
    let mut c = ndarray::Array2::<T>::zeros((row.shape[0], row.shape[2]));
    Ok(Some(Box::new(move || {
        let a = if a.1 { a.0.t() } else { a.0.view() };
        let b = if b.1 { b.0.t() } else { b.0.view() };
        general_mat_mul(T::one(), &a, &b, T::zero(), &mut c);
        Ok(())
    })))
}

fn wrong_rank(error: ndarray::ShapeError) -> tilework::Error {
    tilework::Error::shape("bench", error)
}
