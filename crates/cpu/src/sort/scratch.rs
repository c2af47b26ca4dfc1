//! Memory for the time of one sort, recycled like that of arrays: fresh pages would cost as much as
//! a pass over the elements. Used by the other files of this room.

use bytemuck::Pod;
use tilework_backend::{Storage, UserWrite};
use tilework_error::Result;

use crate::Cpu;

/// Room for two rows of elements of any plain type.
pub(super) struct Scratch(UserWrite);

impl Scratch {
    /// Room for twice `len` elements of type `E`; what it holds is of no meaning.
    pub(super) fn new<E: Pod>(len: usize) -> Result<Scratch> {
        let storage = Storage::host(Cpu::ID, (2 * len * size_of::<E>()).max(1), false)?;
        UserWrite::new("sort", &storage).map(Scratch)
    }

    /// Two rows of `len` elements each, of the type and length it was made for.
    pub(super) fn rows<E: Pod>(&mut self, len: usize) -> [&mut [E]; 2] {
        let all = bytemuck::cast_slice_mut(&mut self.0[..2 * len * size_of::<E>()]);
        let (first, second) = all.split_at_mut(len);
        [first, second]
    }
}
