//! A child that is forked beside the first use of everything that is made once uses it too.
//!
//! Kernels are chosen, tapes made, machines asked and formulas assembled when the first operation
//! needs them. There is one such moment in the life of a process, so every try is a process of its
//! own. Alone in its file, because it forks: nothing else must run in this process.

#![cfg(unix)]

#[path = "../../fork/tests/forked/mod.rs"]
mod forked;

use forked::forked_beside;
use tilework::pairs::LazyTensor;
use tilework::{Array, DType, Result};

/// Uses one thing of each kind: a row of the table, a cast, a product, a formula.
fn works() -> Result<bool> {
    let x = Array::from_slice(&[0.0f32, 1.0, 4.0])?.reshape(&[3, 1])?;
    let root = x.sqrt()?.astype(DType::Int64)?;
    let product = x.matmul(&x.transpose())?;
    let distances = LazyTensor::vi(&x)?.sqdist(&LazyTensor::vj(&x)?)?.sum(1)?;
    Ok(root.to_vec::<i64>()? == [0, 1, 2]
        && product.to_vec::<f32>()? == [0.0, 0.0, 0.0, 0.0, 1.0, 4.0, 0.0, 4.0, 16.0]
        && distances.to_vec::<f32>()? == [17.0, 10.0, 25.0])
}

#[test]
fn a_fork_beside_the_first_operation_can_go_on() {
    let works = || works().unwrap_or(false);
    for attempt in 0..200 {
        // Moments spread over the time that the first use of everything takes.
        let turns = attempt * 7919 % 30_000;
        let good = forked_beside(turns, works, works);
        assert!(good, "the child of attempt {attempt} hung or computed something else");
    }
}
