//! Elements of any stride, side by side in a buffer; half types become float32 on the way.
//!
//! Kernels read contiguous elements only. Called by the drivers of reductions and scans for
//! everything else, in chunks that stay in L1.

use std::ptr::null;

use tilework_ops::DType;
use tilework_simd::Kernel;

use crate::isa::Isa;
use crate::map::by_hand::level;

/// How elements of one dtype are loaded.
#[derive(Clone, Copy)]
pub(crate) struct Loader {
    /// Bytes of an element in the array.
    pub(crate) size: usize,
    /// Bytes of a loaded element.
    pub(crate) loaded: usize,
    /// Whether elements change on loading, so that not even contiguous ones can be used in place.
    pub(crate) widens: bool,
    /// `(n, src, stride, dst)`, for elements as they are.
    pack: unsafe fn(usize, *const u8, isize, *mut u8),
    /// What changes contiguous ones.
    widen: Option<Kernel>,
}

/// Strided elements are brought together in pieces of so many, then widened.
const PIECE: usize = 256;

impl Loader {
    /// Loads elements as what they compute in.
    pub(crate) fn new(dtype: DType) -> Loader {
        let widen = match dtype {
            DType::Float16 => Some("f16_to_f32"),
            DType::BFloat16 => Some("bf16_to_f32"),
            _ => None,
        };
        let widen = widen.and_then(|name| tilework_simd::conversion(name, level(Isa::current())));
        let loaded = dtype.computes_in().size();
        Loader { loaded, widens: widen.is_some(), widen, ..Loader::of_elements(dtype) }
    }

    /// Loads elements as they are.
    pub(crate) fn of_elements(dtype: DType) -> Loader {
        let pack: unsafe fn(usize, *const u8, isize, *mut u8) = match dtype.size() {
            1 => copies::<u8>,
            2 => copies::<u16>,
            4 => copies::<u32>,
            8 => copies::<u64>,
            _ => copies::<[u64; 2]>,
        };
        let size = dtype.size();
        Loader { size, loaded: size, widens: false, pack, widen: None }
    }

    /// Loads `n` elements that are `stride` elements apart.
    ///
    /// # Safety
    /// The elements may be read, are aligned and are of the loader's dtype; `dst` has room for `n`
    /// loaded ones, is aligned for them and overlaps no element.
    #[inline]
    pub(crate) unsafe fn pack(&self, n: usize, src: *const u8, stride: isize, dst: *mut u8) {
        // SAFETY: the caller's promise; the current instruction set is available, and a kernel of
        // one operand reads no other.
        unsafe {
            let Some(widen) = self.widen else { return (self.pack)(n, src, stride, dst) };
            if stride == 1 {
                return widen(n, dst, src, null(), null());
            }
            let mut piece = [0u16; PIECE];
            let piece = piece.as_mut_ptr().cast::<u8>();
            for done in (0..n).step_by(PIECE) {
                let len = PIECE.min(n - done);
                let from = src.offset(done.cast_signed() * stride * self.size.cast_signed());
                (self.pack)(len, from, stride, piece);
                widen(len, dst.add(done * self.loaded), piece, null(), null());
            }
        }
    }
}

unsafe fn copies<T: Copy>(n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    let (src, dst) = (src.cast::<T>(), dst.cast::<T>());
    // SAFETY: the promise of `Loader::pack`.
    unsafe {
        match stride {
            1 => std::ptr::copy_nonoverlapping(src, dst, n),
            0 if n > 0 => std::slice::from_raw_parts_mut(dst, n).fill(*src),
            _ => {
                for i in 0..n {
                    *dst.add(i) = *src.offset(i.cast_signed() * stride);
                }
            }
        }
    }
}
