//! A child that is forked beside the first use of everything that is made once uses it too.
//!
//! Kernels are chosen, tapes made, machines asked and formulas assembled when the first operation
//! needs them. There is one such moment in the life of a process, so every try is a process of its
//! own. Alone in its file, because it forks: nothing else must run in this process.

#![cfg(unix)]

#[path = "../../fork/tests/forked/mod.rs"]
mod forked;

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use forked::forked;
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
    for try_ in 0..200 {
        let good = forked(|| {
            let (ready, go) = (AtomicBool::new(false), AtomicBool::new(false));
            thread::scope(|scope| {
                let beside = scope.spawn(|| {
                    ready.store(true, Ordering::Release);
                    while !go.load(Ordering::Acquire) {
                        hint::spin_loop();
                    }
                    works()
                });
                while !ready.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                go.store(true, Ordering::Release);
                // Moments spread over the time that the first use of everything takes.
                (0..try_ * 7919 % 30_000).for_each(|_| hint::spin_loop());
                let child = forked(|| works().unwrap_or(false));
                child && matches!(beside.join(), Ok(Ok(true)))
            })
        });
        assert!(good, "the child of try {try_} hung or computed something else");
    }
}
