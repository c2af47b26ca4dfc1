//! Random arrays: a seed and a place make a number, the same on every device.

use std::sync::atomic::{AtomicU64, Ordering};

use tilework_backend::{Random, Request};
use tilework_error::{Error, Result};
use tilework_ops::{DType, Distribution};

use crate::array::Array;
use crate::device::Device;

/// A stream of random numbers. Each call takes the next numbers of the stream.
///
/// ```
/// use tilework::{DType, Rng};
/// let (a, b) = (Rng::new(7), Rng::new(7));
/// let x = a.uniform(&[3], DType::Float32)?.to_vec::<f32>()?;
/// assert_eq!(x, b.uniform(&[3], DType::Float32)?.to_vec::<f32>()?);
/// assert_ne!(x, a.uniform(&[3], DType::Float32)?.to_vec::<f32>()?);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug)]
pub struct Rng {
    key: u64,
    next: AtomicU64,
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng { key: seed, next: AtomicU64::new(0) }
    }

    /// The seed, and how many numbers have been taken.
    pub fn state(&self) -> (u64, u64) {
        (self.key, self.next.load(Ordering::Relaxed))
    }

    /// A stream that goes on from a state.
    pub fn from_state(seed: u64, taken: u64) -> Rng {
        Rng { key: seed, next: AtomicU64::new(taken) }
    }

    /// Uniform numbers on [0, 1), of a real floating-point dtype.
    pub fn uniform(&self, shape: &[usize], dtype: DType) -> Result<Array> {
        self.real("uniform", Distribution::Uniform, shape, dtype)
    }

    /// Normal numbers of mean 0 and variance 1, of a real floating-point dtype.
    pub fn normal(&self, shape: &[usize], dtype: DType) -> Result<Array> {
        self.real("normal", Distribution::Normal, shape, dtype)
    }

    fn real(
        &self,
        operation: &'static str,
        distribution: Distribution,
        shape: &[usize],
        dtype: DType,
    ) -> Result<Array> {
        if !dtype.is_float() {
            return Err(Error::dtype(
                operation,
                format!("numbers are float32 or another float, not {dtype}"),
            ));
        }
        // Normal numbers are rounded to the half types; uniform ones are made for them, below 1.
        let drawn = if distribution == Distribution::Normal { dtype.computes_in() } else { dtype };
        self.draw(operation, distribution, shape, drawn)?.to_dtype(dtype)
    }

    /// Integers from `low` up to, not including, `high`, as int64.
    pub fn integers(&self, low: i64, high: i64, shape: &[usize]) -> Result<Array> {
        if low >= high {
            return Err(Error::value(
                "integers",
                format!("there is no integer from {low} up to {high}"),
            ));
        }
        let span = (high as i128 - low as i128) as u64;
        self.draw("integers", Distribution::Integers { low, span }, shape, DType::Int64)
    }

    /// The numbers 0 .. n in random order, as int64.
    pub fn permutation(&self, n: usize) -> Result<Array> {
        self.draw("permutation", Distribution::Bits, &[n], DType::UInt64)?.argsort(0, false)
    }

    fn draw(
        &self,
        operation: &'static str,
        distribution: Distribution,
        shape: &[usize],
        dtype: DType,
    ) -> Result<Array> {
        let device = Device::current();
        let mut fresh = device.allocate(shape, dtype, false)?;
        let counter = self.next.fetch_add(fresh.layout().len() as u64, Ordering::Relaxed);
        let output = fresh.target();
        let request = Random { distribution, key: self.key, counter, output };
        device.run(operation, &Request::Random(request))?;
        Ok(Array::from_fresh(fresh, device))
    }
}
