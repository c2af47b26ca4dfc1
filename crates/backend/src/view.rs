//! A layout and a dtype on a storage: what arrays are made of and requests speak of.

use tilework_error::{Error, Result, tuple};
use tilework_layout::{Index, Layout};
use tilework_ops::{DType, Scalar};

use crate::interrupt;
use crate::recycled::Recycled;
use crate::session::Session;
use crate::storage::Storage;

/// A typed, strided window on a block of memory.
///
/// Invariant: every index of the layout reaches an element inside the block, at an address that is
/// aligned for the dtype. It is checked by [`View::new`] and kept by everything that makes a view
/// from a view.
#[derive(Debug, Clone)]
pub struct View {
    storage: Storage,
    layout: Layout,
    dtype: DType,
}

impl View {
    /// The view of `storage` through `layout`; an error if an index would leave the block, or if
    /// the block does not begin where an element of `dtype` may lie.
    #[inline]
    pub fn new(storage: Storage, layout: Layout, dtype: DType) -> Result<View> {
        let view = View { storage, layout, dtype };
        view.check()?;
        Ok(view)
    }

    /// A view that nobody has laid out yet, in a box, where it is made and stays: moving it takes
    /// longer than making it.
    #[inline(always)]
    fn blank(storage: Storage, dtype: DType) -> Result<Recycled<View>> {
        // A constant comes from memory that nobody writes; what was made on the stack would be moved
        // with all its unused axes, and wait for whatever was written there before.
        let empty = || const { Layout::scalar() };
        Recycled::with(|| View { storage, layout: empty(), dtype })
    }

    /// The view of `storage` through the layout that `lay_out` writes, checked like [`View::new`].
    #[inline(always)]
    fn boxed(
        storage: Storage,
        dtype: DType,
        lay_out: impl FnOnce(&mut Layout) -> Result<()>,
    ) -> Result<Recycled<View>> {
        let mut view = View::blank(storage, dtype)?;
        lay_out(&mut view.layout)?;
        view.check()?;
        Ok(view)
    }

    /// The part that `indices` name. It reaches no element that this view does not reach, so there
    /// is nothing to check.
    #[inline]
    pub fn slice(&self, indices: &[Index]) -> Result<Recycled<View>> {
        let mut part = View::blank(self.storage.clone(), self.dtype)?;
        self.layout.slice_to(indices, &mut part.layout)?;
        Ok(part)
    }

    /// Fails unless the invariant holds.
    #[inline]
    fn check(&self) -> Result<()> {
        let View { storage, layout, dtype } = self;
        let elements = elements(storage, *dtype);
        if !layout.fits(elements) {
            return Err(leaves(layout, elements));
        }
        if storage.address().addr() & (dtype.alignment() - 1) != 0 {
            return Err(misaligned(storage, *dtype));
        }
        Ok(())
    }

    /// The block.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The layout.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Another layout on the same block.
    #[inline]
    pub fn with_layout(&self, layout: Layout) -> Result<View> {
        View::new(self.storage.clone(), layout, self.dtype)
    }

    /// The axes in reverse order: the same elements, so there is nothing to check.
    #[inline]
    pub fn transposed(&self) -> View {
        let layout = self.layout.transpose();
        View { storage: self.storage.clone(), layout, dtype: self.dtype }
    }

    /// This view, to be named in a request.
    #[inline]
    pub fn borrow(&self) -> ViewRef<'_> {
        ViewRef { storage: &self.storage, layout: &self.layout, dtype: self.dtype }
    }
}

#[cold]
fn leaves(layout: &Layout, elements: usize) -> Error {
    let (shape, strides) = (tuple(layout.shape()), tuple(layout.strides()));
    let offset = layout.offset();
    let message = format!(
        "shape {shape}, strides {strides}, offset {offset} leave a block of {elements} elements"
    );
    Error::index("view", message)
}

#[cold]
fn misaligned(storage: &Storage, dtype: DType) -> Error {
    let message = format!(
        "a block at {:?} does not begin at a multiple of {} bytes, as {dtype} must; copy it first",
        storage.address(),
        dtype.alignment()
    );
    Error::value("view", message)
}

/// How many elements a block holds. Sizes of dtypes are powers of two, and this is asked often.
#[inline]
fn elements(storage: &Storage, dtype: DType) -> usize {
    storage.bytes() >> dtype.size().trailing_zeros()
}

/// A borrowed [`View`]; what requests read. It tells nobody its block, so that whoever sees the
/// target of a request cannot keep it.
#[derive(Debug, Clone, Copy)]
pub struct ViewRef<'a> {
    storage: &'a Storage,
    layout: &'a Layout,
    dtype: DType,
}

impl<'a> ViewRef<'a> {
    /// The block. Not for others: a [`Fresh`] is new only as long as nobody can clone its block.
    #[inline]
    pub(crate) fn storage(&self) -> &'a Storage {
        self.storage
    }

    /// How many elements of the dtype the block holds.
    #[inline]
    pub fn block_elements(&self) -> usize {
        elements(self.storage, self.dtype)
    }

    /// The layout.
    #[inline]
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The same block through another layout, checked like [`View::new`].
    #[inline]
    pub fn with_layout(&self, layout: &'a Layout) -> Result<ViewRef<'a>> {
        if !layout.fits(elements(self.storage, self.dtype)) {
            return Err(leaves(layout, elements(self.storage, self.dtype)));
        }
        Ok(ViewRef { layout, ..*self })
    }

    /// The element at a position of the block, that is, one that the layout reaches.
    ///
    /// # Panics
    /// If the position is outside of the block or the session does not hold the block's guard.
    /// Unwinds if the request is to be stopped, as [`interrupt::check`] does.
    pub fn load(&self, session: &Session<'_>, position: usize) -> Scalar {
        let size = self.dtype.size();
        assert!(position < self.block_elements(), "position {position} is outside");
        session.assert_reads(self.storage);
        // Who goes through here element by element takes his time.
        interrupt::check();
        let mut bytes = [0u8; 16];
        // SAFETY: the element lies inside the block, and the session holds the block's guard, so
        // nobody writes it meanwhile.
        unsafe {
            let from = self.storage.address().add(position * size);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), size);
        }
        Scalar::from_bytes(self.dtype, &bytes)
    }

    /// Where the block begins, for kernels that read it within the session. That the session is the
    /// request's own is theirs to see to: reading there is `unsafe`.
    #[inline]
    pub fn pointer(&self, session: &Session<'_>) -> *const u8 {
        if cfg!(debug_assertions) {
            session.assert_reads(self.storage);
        }
        self.storage.address()
    }
}

/// A new result that nobody else knows yet, and that needs no guard therefore.
///
/// Nobody can: it has the only [`Storage`] of its block, which neither it nor a target or a view
/// made of it gives out before it is finished.
///
/// ```compile_fail
/// # use tilework_backend::{Fresh, Storage};
/// fn keep(fresh: &mut Fresh) -> Storage {
///     fresh.target().view().storage().clone()
/// }
/// ```
#[derive(Debug)]
pub struct Fresh(Recycled<View>);

impl Fresh {
    /// The result of a new block.
    ///
    /// The block must be new: a clone of `storage` kept elsewhere is refused.
    pub fn new(storage: Storage, layout: Layout, dtype: DType) -> Result<Fresh> {
        Fresh::laid_out(storage, dtype, |place| {
            *place = layout;
            Ok(())
        })
    }

    /// The result of a new block in row-major order.
    #[inline]
    pub fn row_major(storage: Storage, shape: &[usize], dtype: DType) -> Result<Fresh> {
        Fresh::laid_out(storage, dtype, |layout| layout.set_contiguous(shape))
    }

    #[inline(always)]
    fn laid_out(
        storage: Storage,
        dtype: DType,
        lay_out: impl FnOnce(&mut Layout) -> Result<()>,
    ) -> Result<Fresh> {
        if storage.is_shared() {
            return Err(Error::borrowed("allocate", "a new block has a second owner"));
        }
        View::boxed(storage, dtype, lay_out).map(Fresh)
    }

    /// The finished result, where it has been all the time.
    #[inline]
    pub fn finish(self) -> Recycled<View> {
        self.0
    }

    /// Writes the bytes of its block, which is the host's.
    ///
    /// # Panics
    /// If it is another device's, or of another size.
    #[inline]
    pub fn fill(&mut self, bytes: &[u8]) {
        let block = self.0.storage();
        assert!(block.is_on_host() && block.bytes() == bytes.len(), "not the bytes of this block");
        // SAFETY: the block has as many bytes (checked), and nobody else knows it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), block.address(), bytes.len()) }
    }

    /// What will be the result's layout.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.0.layout()
    }

    /// The result as the target of a request.
    #[inline]
    pub fn target(&mut self) -> Target<'_> {
        Target { view: self.0.borrow(), fresh: true }
    }

    /// A part of the result, or the result in another order, as the target of a request.
    pub fn target_through<'a>(&'a mut self, layout: &'a Layout) -> Result<Target<'a>> {
        Ok(Target { view: self.0.borrow().with_layout(layout)?, fresh: true })
    }
}

/// Where a request writes.
#[derive(Debug)]
pub struct Target<'a> {
    view: ViewRef<'a>,
    fresh: bool,
}

impl<'a> Target<'a> {
    /// A view that others may see; an error if its memory is read-only or one element is reached
    /// by several indices.
    pub fn shared(operation: &str, view: ViewRef<'a>) -> Result<Target<'a>> {
        if !view.storage.is_writable() {
            return Err(Error::read_only(
                operation,
                "the target's memory is read-only; copy it first",
            ));
        }
        if view.layout.has_internal_overlap() {
            return Err(Error::value(
                operation,
                format!(
                    "the target of shape {} reaches some elements by several indices (strides {}); copy it first",
                    tuple(view.layout.shape()),
                    tuple(view.layout.strides())
                ),
            ));
        }
        Ok(Target { view, fresh: false })
    }

    /// A part of what is written; an error if the layout leaves it, or reaches one element by several indices.
    pub fn part(&self, operation: &str, layout: &'a Layout) -> Result<Target<'a>> {
        let view = self.view.with_layout(layout)?;
        Target::shared(operation, view).map(|target| Target { fresh: self.fresh, ..target })
    }

    /// What is written, to be looked at.
    #[inline]
    pub fn view(&self) -> ViewRef<'a> {
        self.view
    }

    /// The layout.
    #[inline]
    pub fn layout(&self) -> &'a Layout {
        self.view.layout
    }

    /// The dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.view.dtype
    }

    /// Whether nobody else knows the block.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Writes an element at a position of the block.
    ///
    /// # Panics
    /// If the position is outside of the block, the dtype is another, or the session does not hold
    /// the block's guard for writing. Unwinds as [`ViewRef::load`] does.
    pub fn store(&self, session: &Session<'_>, position: usize, value: Scalar) {
        let size = self.view.dtype.size();
        assert!(value.dtype() == self.view.dtype, "{} is not {}", value.dtype(), self.view.dtype);
        assert!(position < self.view.block_elements(), "position {position} is outside");
        session.assert_writes(self.view.storage);
        interrupt::check();
        // SAFETY: the element lies inside the block, and the session, which stays on one thread,
        // holds the block's guard for writing.
        unsafe {
            let to = self.view.storage.address().add(position * size);
            std::ptr::copy_nonoverlapping(value.bytes().as_ptr(), to, size);
        }
    }

    /// Where the block begins, for kernels that write it within the session, as
    /// [`ViewRef::pointer`].
    #[inline]
    pub fn pointer(&self, session: &Session<'_>) -> *mut u8 {
        if cfg!(debug_assertions) {
            session.assert_writes(self.view.storage);
        }
        self.view.storage.address()
    }
}
