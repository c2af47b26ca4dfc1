//! The positions of one layout, one by one, in row-major order.
//!
//! Assumes the invariants of [`Layout`]. Called by iterators, printing and tests; loops over many
//! elements use [`crate::LoopNest`] instead, which hands out whole runs.

use crate::{Dims, Layout};

/// Iterator over the positions of a layout in row-major order, made by [`positions`].
#[derive(Clone, Debug)]
pub struct Positions {
    layout: Layout,
    index: Dims,
    position: usize,
    left: usize,
}

/// The positions of `layout` in row-major order.
///
/// ```
/// # use tilework_layout::{Layout, positions};
/// let columns = Layout::contiguous(&[2, 3])?.transpose();
/// assert_eq!(positions(&columns).collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn positions(layout: &Layout) -> Positions {
    Positions {
        index: Dims::from_elem(0, layout.ndim()),
        position: layout.offset(),
        left: layout.len(),
        layout: layout.clone(),
    }
}

impl Iterator for Positions {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let here = self.position;
        for (i, (n, stride)) in self.index.iter_mut().zip(self.layout.axes()).rev() {
            *i += 1;
            if *i < n {
                self.position = self.position.wrapping_add_signed(stride);
                break;
            }
            let back = (n - 1).cast_signed().wrapping_mul(stride);
            self.position = self.position.wrapping_sub(back.cast_unsigned());
            *i = 0;
        }
        Some(here)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Positions {}
impl std::iter::FusedIterator for Positions {}
