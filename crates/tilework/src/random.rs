//! Random arrays: a seed and a place make a number, the same on every device.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use tilework_backend::{Random, Request};
use tilework_error::{Error, Result};
use tilework_ops::random::{bits, block};
use tilework_ops::{DType, Distribution};

use crate::array::{Array, Direction};
use crate::device::Device;

/// The most numbers of a sample that are looked up in a set, which then takes a few megabytes.
const FEW: usize = 1 << 20;

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

    /// The stream of a seed of any length: that of its only word, or one that depends on all of them
    /// and on their order.
    pub fn from_words(words: &[u64]) -> Rng {
        let (first, rest) = words.split_first().map_or((0, words), |(first, rest)| (*first, rest));
        Rng::new(rest.iter().fold(first, |key, word| bits(block(key, *word))))
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
        self.integers_of(DType::Int64, low.into(), high.into(), shape)
    }

    /// Integers from `low` up to, not including, `high`, all of which `dtype` must hold.
    ///
    /// ```
    /// use tilework::{DType, Rng};
    /// let any = Rng::new(7).integers_of(DType::UInt64, 0, 1 << 64, &[5])?;
    /// assert_eq!(any.dtype(), DType::UInt64);
    /// assert!(Rng::new(7).integers_of(DType::Int8, 0, 1000, &[5]).is_err());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn integers_of(
        &self,
        dtype: DType,
        low: i128,
        high: i128,
        shape: &[usize],
    ) -> Result<Array> {
        let operation = "integers";
        if !dtype.is_integer() {
            return Err(Error::dtype(operation, format!("{dtype} has other numbers too")));
        }
        if low >= high {
            let message = format!("there is no integer from {low} up to {high}");
            return Err(Error::value(operation, message));
        }
        let range = dtype.iinfo()?;
        if low < range.min || high - 1 > range.max {
            let message = format!("{dtype} does not hold all integers from {low} up to {high}");
            return Err(Error::value(operation, message));
        }
        // They are drawn in 64 bits, where sums wrap, so that a cast finds uint64 in int64; a span of
        // 2^64 wraps to zero, which stands for it.
        let integers = Distribution::Integers { low: low as i64, span: (high - low) as u64 };
        self.draw(operation, integers, shape, DType::Int64)?.to_dtype(dtype)
    }

    /// The numbers 0 .. n in random order, as int64.
    pub fn permutation(&self, n: usize) -> Result<Array> {
        self.draw("permutation", Distribution::Bits, &[n], DType::UInt64)?
            .argsort(0, Direction::Ascending)
    }

    /// So many different ones of the numbers 0 .. n in random order, as int64.
    ///
    /// ```
    /// use tilework::Rng;
    /// let picks = Rng::new(7).sample(1 << 40, 3)?.to_vec::<i64>()?;
    /// assert!(picks[0] != picks[1] && picks[1] != picks[2] && picks[2] != picks[0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn sample(&self, n: usize, count: usize) -> Result<Array> {
        if count > n {
            let message = format!("{count} of {n} without replacement");
            return Err(Error::value("sample", message));
        }
        if count > FEW.min(n / 32) || i64::try_from(n).is_err() {
            let order = self.permutation(n).map_err(|error| error.of("sample"))?;
            return order.slice(&[(..count).into()])?.copy();
        }
        // Few of many: the first ones that are different, which seldom takes a second draw.
        let (mut seen, mut picks) = (HashSet::with_capacity(count), Vec::with_capacity(count));
        while picks.len() < count {
            let drawn = self.integers(0, n as i64, &[count - picks.len()])?.to_vec::<i64>()?;
            picks.extend(drawn.into_iter().filter(|&pick| seen.insert(pick)));
        }
        Array::from_slice_on(Device::current(), &picks)
    }

    fn draw(
        &self,
        operation: &'static str,
        distribution: Distribution,
        shape: &[usize],
        dtype: DType,
    ) -> Result<Array> {
        let device = Device::current();
        let mut fresh = device.allocate(operation, shape, dtype, false)?;
        let counter = self.next.fetch_add(fresh.layout().len() as u64, Ordering::Relaxed);
        let output = fresh.target();
        let request = Random { distribution, key: self.key, counter, output };
        device.run(operation, &Request::Random(request))?;
        Ok(Array::from_fresh(fresh, device))
    }
}
