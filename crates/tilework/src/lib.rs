//! An n-dimensional strided array with interchangeable backends.
//!
//! ```
//! use tilework::{Array, DType};
//! let x = Array::linspace(0.0, 1.0, 5, true, DType::Float32)?;
//! let y = (&x * 2.0)?.exp()?;
//! println!("{y:?}");
//! # Ok::<(), tilework::Error>(())
//! ```

#![forbid(unsafe_code)]

mod array;
mod device;
mod random;

pub use array::{
    Arg, Array, Axes, Indexer, Iter, Nested, PadMode, PrintOptions, ReadGuard, Unique, WriteGuard,
    apply, apply_into, broadcast_arrays, complex, concat, matmul_tiled, meshgrid, result_type,
    select, stack,
};
pub use device::{Device, DeviceScope};
pub use random::Rng;
pub use tilework_backend::{Storage, empty_cache};
pub use tilework_error::{Error, Result};
pub use tilework_layout::{Index, Layout, broadcast_shapes, s};
pub use tilework_ops::{Complex, DType, Element, FoldId, Id, Number, Scalar, bf16, f16};
