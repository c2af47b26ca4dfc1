//! Shape, signed strides and offset as pure integers: views, broadcasting, loop nests.
//!
//! A [`Layout`] says where the elements of an array lie in a block of memory, and nothing more:
//! this crate knows neither memory nor element types, so every function is pure and every claim
//! can be tested by counting. The array crate makes views with it, backends walk it through
//! [`LoopNest`] and [`ReduceNest`].
//!
//! ```
//! use tilework_layout::{Layout, s};
//!
//! let matrix = Layout::contiguous(&[3, 4])?;
//! let column = matrix.slice(&s![.., 1])?;
//! assert_eq!((column.shape(), column.strides(), column.offset()), (&[3][..], &[4][..], 1));
//! # Ok::<(), tilework_error::Error>(())
//! ```
//!
//! Rooms, from the ground up: `axes` (numbering of axes), `layout` (the type, its invariants, its
//! questions), `view`, `index`, `reshape`, `broadcast` (layout to layout), `overlap` (two layouts
//! in one block), `walk` (positions one by one), `nest` and `reduce` (loops over many layouts).

#![forbid(unsafe_code)]

mod axes;
mod broadcast;
mod index;
mod layout;
mod nest;
mod overlap;
mod reduce;
mod reshape;
mod view;
mod walk;

use smallvec::SmallVec;

pub use axes::{normalize_axes, normalize_axis};
pub use broadcast::broadcast_shapes;
pub use index::{AxisRange, Index, out_of_bounds, resolve_index};
pub use layout::{Layout, contiguous_strides};
pub use nest::LoopNest;
pub use overlap::{Overlap, overlap};
pub use reduce::ReduceNest;
pub use reshape::resolve_shape;
pub use walk::{Positions, positions};

/// The most axes that an array can have, as in NumPy.
pub const MAX_AXES: usize = 64;

/// How many axes live inline.
const INLINE_AXES: usize = 6;

/// A shape or a list of axes; up to six entries live inline.
pub type Dims = SmallVec<[usize; INLINE_AXES]>;

/// Steps in elements, one for each axis; up to six live inline.
pub type Strides = SmallVec<[isize; INLINE_AXES]>;
