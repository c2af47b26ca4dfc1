//! An n-dimensional strided array with interchangeable backends.
//!
//! ```
//! use tilework::{Array, DType};
//! let x = Array::linspace(0.0..=1.0, 5, DType::Float32)?;
//! let y = (&x * 2.0)?.exp()?;
//! println!("{y:?}");
//! # Ok::<(), tilework::Error>(())
//! ```

// One file maps files, and one hands requests to backends; both say why.
#![deny(unsafe_code)]

mod array;
mod device;
mod door;
mod interop;
mod io;
pub mod pairs;
mod random;

pub use array::{
    Arg, Array, Axes, Direction, FloatMode, Indexer, Indexing, Iter, KeepDims, Nan, Nested, Order,
    PadMode, PrintOptions, ReadGuard, Show, Side, Sign, Span, Unique, WriteGuard, apply,
    apply_into, broadcast_arrays, complex, concat, einsum, matmul_naive_flat, matmul_tiled,
    matmul_tiled_flat, meshgrid, result_type, select, stack,
};
pub use device::{Device, DeviceScope, num_threads, set_num_threads};
#[cfg(feature = "serde")]
pub use interop::serde::dtype as serde_dtype;
pub use io::{
    Npz, check_save, load, load_mapped, load_mapped_private, load_npz, read_npy, read_npz, save,
    save_npz, save_npz_compressed, write_npy, write_npz, write_npz_compressed,
};
pub use random::Rng;
pub use tilework_backend::{DeviceId, Memory, Properties, Storage, empty_cache, interruptible};
pub use tilework_error::{Error, Result};
pub use tilework_formula as formula;
pub use tilework_layout::{Index, Layout, broadcast_shapes, s};
pub use tilework_ops::{
    Complex, DType, Element, FInfo, FoldId, IInfo, Id, Kind, Number, Scalar, bf16, f16,
};

/// The examples of the README, which are run like all others.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
