//! The array: five fields over shared memory.
//!
//! Device, block, shape, strides, offset. View methods rewrite the last three and share the block;
//! everything that touches numbers becomes a request to the device's backend. Rooms by subject:
//! `create`, `nested`, `ranges`, `view`, `operands`, `operators`, `map`, `parts`, `reduce`, `linalg`, `textbook`, `einsum`,
//! `compare`, `assign`, `snapshot`, `index`, `pick`, `mask`, `join`, `order`, `memory_order`, `access`, `show`.

mod access;
mod assign;
mod compare;
mod create;
mod einsum;
mod index;
mod join;
mod linalg;
mod map;
mod mask;
mod memory_order;
mod nested;
mod operands;
mod operators;
mod order;
mod parts;
mod pick;
mod ranges;
mod reduce;
mod show;
mod snapshot;
mod textbook;
mod view;

use tilework_backend::{Fresh, Memory, Recycled, Storage, View, ViewRef};
use tilework_error::{Error, Result};
use tilework_layout::{Layout, Overlap, overlap};
use tilework_ops::DType;

use crate::device::Device;

pub use access::{Iter, ReadGuard, WriteGuard};
pub use compare::Nan;
pub use create::{Indexing, meshgrid};
pub use einsum::einsum;
pub use index::Indexer;
pub use join::{PadMode, concat, stack};
pub use map::{apply, apply_into, select};
pub use memory_order::Order;
pub use nested::Nested;
pub use operands::{Arg, result_type};
pub use order::{Direction, Side, Unique};
pub use parts::complex;
pub use ranges::Span;
pub use reduce::{Axes, KeepDims};
pub use show::{FloatMode, PrintOptions, Show, Sign};
pub use textbook::{matmul_naive_flat, matmul_tiled, matmul_tiled_flat};
pub use view::broadcast_arrays;

/// An n-dimensional array with a dtype chosen at run time.
///
/// Cloning shares the memory: a clone is a view, and a write through one is seen through all.
/// [`Array::copy`] makes an array of its own. All methods may be called from any thread.
///
/// ```
/// use tilework::{Array, s};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0])?.reshape(&[2, 2])?;
/// let column = x.slice(&s![.., 1])?;
/// column.fill(0.0)?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 3.0, 0.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Clone)]
pub struct Array {
    // In a box, since arrays are handed through many functions and a view is 150 bytes.
    view: Recycled<View>,
    device: Device,
}

impl Array {
    #[inline]
    pub(crate) fn from_fresh(fresh: Fresh, device: Device) -> Array {
        Array { view: fresh.finish(), device }
    }

    /// An array on memory that was made elsewhere; an error if the layout leaves the block, or the
    /// block's device is unknown or has other memory.
    pub fn from_storage(storage: Storage, layout: Layout, dtype: DType) -> Result<Array> {
        let device = Device::with_id(storage.device())?;
        // A block's maker says any name: the host's memory is no card's.
        if storage.is_on_host() != (device.memory() == Memory::Host) {
            let message = format!("the block is not in the memory of {device}");
            return Err(Error::device("from_storage", message));
        }
        Ok(Array { view: Recycled::try_new(View::new(storage, layout, dtype)?)?, device })
    }

    /// Length of each axis.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.view.layout().shape()
    }

    /// Steps in elements, one for each axis.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.view.layout().strides()
    }

    /// Position of the first element in its block.
    #[inline]
    pub fn offset(&self) -> usize {
        self.view.layout().offset()
    }

    /// Number of axes.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.view.layout().ndim()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.layout().len()
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.view.layout().is_empty()
    }

    /// Type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.view.dtype()
    }

    /// Where it lives.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The shared block of memory.
    #[inline]
    pub fn storage(&self) -> &Storage {
        self.view.storage()
    }

    /// Shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.view.layout()
    }

    /// Whether the elements lie in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.view.layout().is_contiguous()
    }

    /// Whether it may be written to.
    pub fn is_writable(&self) -> bool {
        self.view.storage().is_writable()
    }

    /// Whether both are views of one block of memory, be it of different parts.
    pub fn is_same_block(&self, other: &Array) -> bool {
        self.storage().is_same(other.storage())
    }

    /// Whether both are laid out on the same memory, be it foreign memory that is known as two blocks.
    pub(crate) fn is_same_memory(&self, other: &Array) -> bool {
        let (a, b) = (self.storage(), other.storage());
        a.is_same(b) || (a.address() == b.address() && a.bytes() == b.bytes() && a.bytes() > 0)
    }

    /// Whether some element belongs to both. Exact for arrays of equal element sizes and all but
    /// contrived strides; otherwise arrays of one block, or of foreign blocks whose bytes meet, are
    /// said to share.
    ///
    /// ```
    /// use tilework::{Array, DType, s};
    /// let x = Array::zeros(&[6], DType::Float32)?;
    /// let (low, high) = (x.slice(&s![..3])?, x.slice(&s![3..])?);
    /// assert!(x.shares_memory(&low) && !low.shares_memory(&high) && low.is_same_block(&high));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn shares_memory(&self, other: &Array) -> bool {
        self.meets(self.layout(), other) != Overlap::None
    }

    /// Whether writing `other` could change what is read of `self` at another index.
    pub(crate) fn overlaps(&self, other: &Array) -> Result<bool> {
        if !self.storage().may_alias(other.storage()) {
            return Ok(false);
        }
        // Element by element only if the operand, as broadcast to the target, is the target.
        let broadcast = self.layout().broadcast_to(other.shape())?;
        Ok(self.meets(&broadcast, other) == Overlap::Possible)
    }

    /// How the elements of this array, through `layout`, meet those of `other`: the one place where
    /// that is decided.
    fn meets(&self, layout: &Layout, other: &Array) -> Overlap {
        if !self.storage().may_alias(other.storage()) || self.is_empty() || other.is_empty() {
            return Overlap::None;
        }
        if self.dtype().size() != other.dtype().size() {
            return Overlap::Possible;
        }
        if self.is_same_block(other) {
            return overlap(layout, other.layout());
        }
        // Foreign memory as two blocks: both are counted from where the first one begins, if that
        // is a whole number of elements before the other.
        let begins = [self, other].map(|array| array.storage().address().addr());
        let [here, there] = begins.map(|begin| begin - begins[0].min(begins[1]));
        let size = self.dtype().size();
        let from_first = |layout: &Layout, begin: usize| match begin % size {
            0 => layout.with_offset(layout.offset() + begin / size).ok(),
            _ => None,
        };
        match (from_first(layout, here), from_first(other.layout(), there)) {
            (Some(layout), Some(other)) => overlap(&layout, &other),
            _ => Overlap::Possible,
        }
    }

    #[inline]
    pub(crate) fn borrow(&self) -> ViewRef<'_> {
        self.view.borrow()
    }

    /// Another layout on the same memory.
    #[inline]
    pub(crate) fn with_layout(&self, layout: Layout) -> Result<Array> {
        Ok(Array { view: Recycled::try_new(self.view.with_layout(layout)?)?, device: self.device })
    }

    /// The same memory seen as elements of another dtype of the same size or a part of it.
    pub(crate) fn reinterpret(&self, layout: Layout, dtype: DType) -> Result<Array> {
        let view = Recycled::try_new(View::new(self.storage().clone(), layout, dtype)?)?;
        Ok(Array { view, device: self.device })
    }
}
