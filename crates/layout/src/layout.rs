//! The [`Layout`] type: its invariants, its constructors and the questions it answers.
//!
//! Assumes nothing of numbers that come from outside; everything else in this crate assumes the
//! invariants and need not check again. Called by all floors above.

use tilework_error::{Error, Result, tuple};

use crate::{Dims, MAX_AXES, Strides};

/// Where the elements of an array lie in a block: shape, signed strides and offset, counted in
/// elements.
///
/// # Invariants
///
/// 1. Shape and strides have the same length, at most [`MAX_AXES`].
/// 2. The product of the axes that are not zero fits `isize`; so does every axis, and
///    [`Layout::len`].
/// 3. Every position that an index reaches lies in `0..=isize::MAX`. So partial sums of
///    `index * stride` on top of the offset never overflow. An empty layout reaches nothing.
/// 4. The offset fits `isize`. A view that turns out empty keeps the offset of the layout that it
///    was made from.
///
/// From 3 and 4 follows that a view of a layout that [fits](Layout::fits) a block fits it too: it
/// reaches only positions that its source reaches. [`Layout::as_strided`] is the one exception,
/// and takes the length of the block for that reason.
///
/// The stride of an axis of size one, and all strides of an empty layout, are never walked and may
/// hold any number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Dims,
    strides: Strides,
    offset: usize,
}

/// Row-major strides of `shape`; an axis of size zero counts as one, as in NumPy.
///
/// Products that overflow wrap: pass shapes that [`Layout::contiguous`] accepts.
///
/// ```
/// # use tilework_layout::contiguous_strides;
/// assert_eq!(contiguous_strides(&[2, 3, 4]).as_slice(), [12, 4, 1]);
/// ```
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(0, shape.len());
    set_row_major(&mut strides, shape);
    strides
}

/// Writes the row-major strides of `shape`.
#[inline]
fn set_row_major(strides: &mut [isize], shape: &[usize]) {
    let mut step = 1isize;
    for (stride, n) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.wrapping_mul((*n).max(1).cast_signed());
    }
}

/// Fails unless `shape` satisfies invariants 1 and 2.
#[inline]
pub(crate) fn check_shape(op: &str, shape: &[usize]) -> Result<()> {
    let mut count = 1isize;
    let mut fits = shape.len() <= MAX_AXES;
    for &n in shape {
        match count.checked_mul(n.max(1).cast_signed()) {
            Some(product) if product > 0 => count = product,
            _ => fits = false,
        }
    }
    if fits { Ok(()) } else { Err(shape_error(op, shape)) }
}

#[cold]
fn shape_error(op: &str, shape: &[usize]) -> Error {
    let message = if shape.len() > MAX_AXES {
        format!("{} axes are more than the {MAX_AXES} that an array can have", shape.len())
    } else {
        format!("shape {} has more elements than memory", tuple(shape))
    };
    Error::shape(op, message)
}

/// Lowest and highest position of a layout without empty axes, `None` where invariant 3 fails.
fn reach(shape: &[usize], strides: &[isize], offset: usize) -> Option<(usize, usize)> {
    let mut low = isize::try_from(offset).ok()?;
    let mut high = low;
    for (&n, &stride) in shape.iter().zip(strides) {
        let last = isize::try_from(n.checked_sub(1)?).ok()?.checked_mul(stride)?;
        if last < 0 {
            low = low.checked_add(last)?;
        } else {
            high = high.checked_add(last)?;
        }
    }
    Some((usize::try_from(low).ok()?, high.cast_unsigned()))
}

impl Layout {
    /// The layout of no axes and one element.
    #[inline]
    pub const fn scalar() -> Layout {
        Layout { shape: Dims::new_const(), strides: Strides::new_const(), offset: 0 }
    }

    /// The row-major layout of `shape` from position zero.
    ///
    /// The product of the non-zero axes must fit `isize`, even where another axis is zero.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let layout = Layout::contiguous(&[2, 3])?;
    /// assert_eq!(layout.strides(), [3, 1]);
    /// assert!(Layout::contiguous(&[usize::MAX, 0]).is_err());
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    #[inline]
    pub fn contiguous(shape: &[usize]) -> Result<Layout> {
        let mut layout = Layout::scalar();
        layout.set_contiguous(shape)?;
        Ok(layout)
    }

    /// Becomes [`Layout::contiguous`] of `shape`, where it is: for small arrays, moving a layout that
    /// has just been written takes longer than making it.
    #[inline]
    pub fn set_contiguous(&mut self, shape: &[usize]) -> Result<()> {
        check_shape("layout", shape)?;
        self.clear();
        for &n in shape {
            self.shape.push(n);
            self.strides.push(0);
        }
        set_row_major(&mut self.strides, shape);
        Ok(())
    }

    /// Becomes [`Layout::scalar`], where it is.
    #[inline]
    fn clear(&mut self) {
        self.shape.clear();
        self.strides.clear();
        self.offset = 0;
    }

    /// Becomes a view of `of`, where it is: `lay_out` gets its shape and strides, empty, and says by
    /// how much the first element moves. The rest is as for [`Layout::derived`].
    #[inline]
    pub(crate) fn set_derived(
        &mut self,
        of: &Layout,
        lay_out: impl FnOnce(&mut Dims, &mut Strides) -> Result<isize>,
    ) -> Result<()> {
        self.clear();
        match lay_out(&mut self.shape, &mut self.strides) {
            Ok(shift) => {
                let shift = if self.shape.contains(&0) { 0 } else { shift };
                self.offset = of.offset.wrapping_add_signed(shift);
                debug_assert!(Layout::new(&self.shape, &self.strides, self.offset).is_ok());
                Ok(())
            }
            Err(error) => {
                self.clear();
                Err(error)
            }
        }
    }

    /// A layout from its parts, checked against the invariants of the type.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let backwards = Layout::new(&[3], &[-1], 2)?;
    /// assert_eq!(backwards.span(), Some((0, 2)));
    /// assert!(Layout::new(&[3], &[-1], 1).is_err());
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn new(shape: &[usize], strides: &[isize], offset: usize) -> Result<Layout> {
        Layout::checked("layout", shape, strides, offset)
    }

    fn checked(op: &str, shape: &[usize], strides: &[isize], offset: usize) -> Result<Layout> {
        if shape.len() != strides.len() {
            let (shape, strides) = (tuple(shape), tuple(strides));
            let message = format!("shape {shape} and strides {strides} differ in length");
            return Err(Error::shape(op, message));
        }
        check_shape(op, shape)?;
        let reachable = if shape.contains(&0) {
            isize::try_from(offset).is_ok()
        } else {
            reach(shape, strides, offset).is_some()
        };
        if !reachable {
            let (shape, strides) = (tuple(shape), tuple(strides));
            let message = format!(
                "shape {shape} with strides {strides} from offset {offset} leaves every block"
            );
            return Err(Error::value(op, message));
        }
        Ok(Layout { shape: Dims::from_slice(shape), strides: Strides::from_slice(strides), offset })
    }

    /// A view of this layout: other axes, the first element moved by `shift`.
    ///
    /// The caller vouches for invariants 1 and 2, and that only positions of `self` are reached;
    /// for the sake of empty layouts, whose strides hold any number, it computes with wrapping
    /// arithmetic.
    pub(crate) fn derived(&self, shape: Dims, strides: Strides, shift: isize) -> Layout {
        let offset =
            if shape.contains(&0) { self.offset } else { self.offset.wrapping_add_signed(shift) };
        debug_assert!(Layout::new(&shape, &strides, offset).is_ok());
        Layout { shape, strides, offset }
    }

    /// Any shape and strides over a block of `block_len` elements, from the first element of this
    /// layout moved by `shift`.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let tail = Layout::contiguous(&[10])?.narrow(0, 4, 6)?;
    /// let pairs = tail.as_strided(&[3, 2], &[2, 1], 0, 10)?;
    /// assert_eq!(pairs.offset(), 4);
    /// assert!(tail.as_strided(&[4, 2], &[2, 1], 0, 10).is_err());
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn as_strided(
        &self,
        shape: &[usize],
        strides: &[isize],
        shift: isize,
        block_len: usize,
    ) -> Result<Layout> {
        let op = "as_strided";
        let offset = self.offset.checked_add_signed(shift).ok_or_else(|| {
            let message = format!("offset {} moved by {shift} leaves the block", self.offset);
            Error::value(op, message)
        })?;
        let layout = Layout::checked(op, shape, strides, offset)?;
        if layout.fits(block_len) {
            return Ok(layout);
        }
        let (shape, strides) = (tuple(shape), tuple(strides));
        let message = format!(
            "shape {shape} with strides {strides} from offset {offset} reaches beyond the \
             {block_len} elements of the block"
        );
        Err(Error::value(op, message))
    }

    /// The same shape and strides from another first position.
    pub fn with_offset(&self, offset: usize) -> Result<Layout> {
        Layout::checked("with_offset", &self.shape, &self.strides, offset)
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Steps between neighbours of each axis, in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The position of the first element.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of axes.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        // Cannot overflow by invariant 2, where a zero axis makes the product zero for good.
        self.shape.iter().fold(1, |count, &n| count.wrapping_mul(n))
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether the elements lie one after another in row-major order.
    ///
    /// Axes of size one do not matter, and an empty layout is contiguous.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        is_dense(self.axes().rev())
    }

    /// Whether the elements lie one after another in column-major order.
    pub fn is_f_contiguous(&self) -> bool {
        is_dense(self.axes())
    }

    /// Whether this is all of a block of `block_len` elements in row-major order.
    #[inline]
    pub fn is_compact(&self, block_len: usize) -> bool {
        self.offset == 0 && self.len() == block_len && self.is_contiguous()
    }

    /// The lowest and the highest position that an index reaches; `None` if empty.
    pub fn span(&self) -> Option<(usize, usize)> {
        reach(&self.shape, &self.strides, self.offset)
    }

    /// Whether every index reaches inside a block of `block_len` elements.
    ///
    /// An empty layout fits when its offset is at most `block_len`, so that the empty slice at its
    /// offset exists.
    #[inline]
    pub fn fits(&self, block_len: usize) -> bool {
        // No position is negative and no sum overflows, by invariant 3: only the end matters.
        let mut high = self.offset;
        for (n, stride) in self.axes() {
            if n == 0 {
                return self.offset <= block_len;
            }
            high = high.wrapping_add((n - 1).wrapping_mul(stride.max(0).cast_unsigned()));
        }
        high < block_len
    }

    /// The position that `index` reaches.
    ///
    /// Meaningful for an index inside of the shape; another one gives some number.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// assert_eq!(Layout::contiguous(&[3, 4])?.position(&[2, 1]), 9);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    #[inline]
    pub fn position(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.strides).fold(self.offset, |position, (&i, &stride)| {
            position.wrapping_add_signed(i.cast_signed().wrapping_mul(stride))
        })
    }

    /// Size and stride of each axis.
    #[inline]
    pub(crate) fn axes(
        &self,
    ) -> impl ExactSizeIterator<Item = (usize, isize)> + DoubleEndedIterator {
        self.shape.iter().copied().zip(self.strides.iter().copied())
    }
}

/// Whether axes, fastest first, follow each other without gaps, or one of them is empty.
#[inline]
fn is_dense(mut axes: impl Iterator<Item = (usize, isize)>) -> bool {
    let mut step = 1;
    while let Some((n, stride)) = axes.next() {
        if n == 1 {
            continue;
        }
        if n == 0 {
            return true;
        }
        if stride != step {
            return axes.any(|(n, _)| n == 0);
        }
        step = step.wrapping_mul(n.cast_signed());
    }
    true
}
