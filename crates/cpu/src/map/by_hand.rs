//! Loops that are better than what the compiler makes of a row.
//!
//! The simd crate knows functions by the public names of the rows; whatever it offers for f32 and
//! f64 replaces the compiled loop, and so do the divisions of integers in `divide`. Called once, when the table of kernels is first used, and by
//! `cast` for the half types.

use tilework_ops::{DType, Id};
use tilework_simd::{Elem, Level};

use super::divide;
use super::kernels::Kernel;
use crate::isa::Isa;

/// The simd crate's name for an instruction set.
pub(crate) fn level(isa: Isa) -> Level {
    match isa {
        Isa::Scalar => Level::Scalar,
        Isa::Avx2 => Level::Avx2,
        Isa::Avx512 => Level::Avx512,
    }
}

/// The better loop of an operation, where there is one.
pub(super) fn kernel(id: Id, dtype: DType, isa: Isa) -> Option<Kernel> {
    let elem = match dtype {
        DType::Float32 => Elem::F32,
        DType::Float64 => Elem::F64,
        _ => return divide::kernel(id, dtype, isa),
    };
    tilework_simd::kernel(id.row().name, elem, level(isa))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function whose row was renamed would never be called again, and nothing but time would
    /// tell.
    #[test]
    fn every_vector_function_belongs_to_a_row() {
        for (name, elem, _) in tilework_simd::KERNELS {
            let id = Id::named(name).unwrap_or_else(|| panic!("no row is named {name}"));
            let dtype = match elem {
                Elem::F32 => DType::Float32,
                Elem::F64 => DType::Float64,
            };
            assert!(id.row().takes(dtype), "{name} has no meaning for {dtype}");
            assert!(kernel(id, dtype, Isa::Scalar).is_some());
        }
    }
}
