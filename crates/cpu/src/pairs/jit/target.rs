//! What code is assembled for: the size of registers and of what is in them.
//!
//! `encode` gives the instructions; both are asked by `assemble`, and this by `jit` for what fits.

use tilework_simd::Elem;

/// The size of registers and the form of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Target {
    /// AVX-512, else AVX2.
    pub(super) wide: bool,
    /// What lanes are.
    pub(super) elem: Elem,
}

impl Target {
    /// Bytes of a register.
    pub(super) fn bytes(self) -> usize {
        if self.wide { 64 } else { 32 }
    }

    /// Bytes of a number.
    pub(super) fn size(self) -> usize {
        if self.elem == Elem::F32 { 4 } else { 8 }
    }

    /// Registers for values, beside the one for instructions that are several.
    pub(super) fn registers(self) -> usize {
        if self.wide { 31 } else { 15 }
    }

    /// Bytes from one row of j to the next: a number, or a vector where lanes are j.
    pub(super) fn row_step(self, across: bool) -> usize {
        if across { self.bytes() } else { self.size() }
    }

    /// Numbers in a register.
    pub(super) fn lanes(self) -> usize {
        self.bytes() / self.size()
    }
}
