//! Elements of any stride, side by side in a buffer; half types become float32 on the way.
//!
//! Kernels read contiguous elements only. Called by the drivers of reductions and scans for
//! everything else, in chunks that stay in L1.

use half::slice::HalfFloatSliceExt;
use tilework_ops::{DType, Element, bf16, f16};

/// How elements of one dtype are loaded.
#[derive(Clone, Copy)]
pub(crate) struct Loader {
    /// Bytes of an element in the array.
    pub(crate) size: usize,
    /// Bytes of a loaded element.
    pub(crate) loaded: usize,
    /// Whether elements change on loading, so that not even contiguous ones can be used in place.
    pub(crate) widens: bool,
    /// `(n, src, stride, dst)`
    pack: unsafe fn(usize, *const u8, isize, *mut u8),
}

impl Loader {
    pub(crate) fn new(dtype: DType) -> Loader {
        let pack: unsafe fn(usize, *const u8, isize, *mut u8) = match dtype {
            DType::Float16 => halves::<f16>,
            DType::BFloat16 => halves::<bf16>,
            _ => match dtype.size() {
                1 => copies::<u8>,
                2 => copies::<u16>,
                4 => copies::<u32>,
                8 => copies::<u64>,
                _ => copies::<[u64; 2]>,
            },
        };
        let loaded = dtype.computes_in().size();
        Loader { size: dtype.size(), loaded, widens: loaded != dtype.size(), pack }
    }

    /// Loads `n` elements that are `stride` elements apart.
    ///
    /// # Safety
    /// The elements may be read, are aligned and are of the loader's dtype; `dst` has room for `n`
    /// loaded ones, is aligned for them and overlaps no element.
    #[inline]
    pub(crate) unsafe fn pack(&self, n: usize, src: *const u8, stride: isize, dst: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { (self.pack)(n, src, stride, dst) }
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

unsafe fn halves<T: Element<V = f32>>(n: usize, src: *const u8, stride: isize, dst: *mut u8)
where
    [T]: HalfFloatSliceExt,
{
    /// Strided elements are brought together in pieces of so many, then widened.
    const PIECE: usize = 256;
    let (src, dst) = (src.cast::<T>(), dst.cast::<f32>());
    // SAFETY: the promise of `Loader::pack`; a half type is plain memory.
    unsafe {
        if stride == 1 {
            let from = std::slice::from_raw_parts(src, n);
            from.convert_to_f32_slice(std::slice::from_raw_parts_mut(dst, n));
            return;
        }
        let mut piece = [T::default(); PIECE];
        let mut done = 0;
        while done < n {
            let len = PIECE.min(n - done);
            for (i, slot) in piece[..len].iter_mut().enumerate() {
                *slot = *src.offset((done + i).cast_signed() * stride);
            }
            let to = std::slice::from_raw_parts_mut(dst.add(done), len);
            piece[..len].convert_to_f32_slice(to);
            done += len;
        }
    }
}
