//! Square tiles of a transpose, turned around in registers.
//!
//! A tile is one cache line each way: as many lines of the source as a line has elements become as
//! many rows of the target. The shuffles take a quarter of the time of moving element by element, and
//! a tile at an edge is the same work behind masks. Called by `moves`, which moves elements of other
//! widths, and those of other instruction sets, one by one.

/// Turns a tile of `(high, wide)` elements: column `c` of `high` elements begins `c` steps from the
/// source, row `r` of `wide` elements begins `r` steps from the target. Steps are in bytes.
///
/// # Safety
/// `high` and `wide` are 1 to the elements of a line; the elements of the tile may be read and
/// written, and the two sides do not overlap. The instruction set is available.
pub(super) type Turn = unsafe fn((usize, usize), (*mut u8, isize), (*const u8, isize));

/// The way to turn tiles of elements of this width in this process, if there is one in registers.
#[inline]
pub(super) fn chosen(width: usize) -> Option<Turn> {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    if crate::isa::Isa::current() == crate::isa::Isa::Avx512 {
        return match width {
            4 => Some(x86::turn_16),
            8 => Some(x86::turn_8),
            _ => None,
        };
    }
    let _ = width;
    None
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod x86 {
    use std::arch::x86_64::*;

    /// A register of each line, `wide` of which are read, behind a mask of `high` elements.
    macro_rules! lines {
        ($n:literal, $load:ident, $zero:ident, $mask:expr, $wide:ident, $from:ident) => {
            std::array::from_fn::<_, $n, _>(|c| {
                if c < $wide {
                    // SAFETY: line `c` of the tile, for which the caller vouches; what the mask
                    // leaves out is not touched.
                    unsafe { $load($mask, $from.0.offset(c.cast_signed() * $from.1).cast()) }
                } else {
                    $zero()
                }
            })
        };
    }

    /// Quarter `q` of each, as register `q`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn turned_quarters([a, b, c, d]: [__m512d; 4]) -> [__m512d; 4] {
        let (even, even_high) =
            (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0x88>(c, d));
        let (odd, odd_high) =
            (_mm512_shuffle_f64x2::<0xDD>(a, b), _mm512_shuffle_f64x2::<0xDD>(c, d));
        [
            _mm512_shuffle_f64x2::<0x88>(even, even_high),
            _mm512_shuffle_f64x2::<0x88>(odd, odd_high),
            _mm512_shuffle_f64x2::<0xDD>(even, even_high),
            _mm512_shuffle_f64x2::<0xDD>(odd, odd_high),
        ]
    }

    /// Sixteen by sixteen elements of four bytes.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn turn_16(
        (high, wide): (usize, usize),
        to: (*mut u8, isize),
        from: (*const u8, isize),
    ) {
        let reads = (u32::MAX >> (32 - high)) as __mmask16;
        let writes = (u32::MAX >> (32 - wide)) as __mmask16;
        let a: [__m512; 16] =
            lines!(16, _mm512_maskz_loadu_ps, _mm512_setzero_ps, reads, wide, from);
        // Pairs, then fours, of lines are interleaved inside of each quarter of a register ...
        let mut b = a;
        for i in 0..8 {
            b[2 * i] = _mm512_unpacklo_ps(a[2 * i], a[2 * i + 1]);
            b[2 * i + 1] = _mm512_unpackhi_ps(a[2 * i], a[2 * i + 1]);
        }
        let b = b.map(|x| _mm512_castps_pd(x));
        let mut c = b;
        for i in 0..4 {
            for j in 0..2 {
                c[4 * i + 2 * j] = _mm512_unpacklo_pd(b[4 * i + j], b[4 * i + j + 2]);
                c[4 * i + 2 * j + 1] = _mm512_unpackhi_pd(b[4 * i + j], b[4 * i + j + 2]);
            }
        }
        // ... so that quarter `q` of c[4 i + k] is row 4 q + k of lines 4 i to 4 i + 3.
        for k in 0..4 {
            let rows = turned_quarters([c[k], c[4 + k], c[8 + k], c[12 + k]]);
            for (q, row) in rows.into_iter().enumerate() {
                if 4 * q + k < high {
                    // SAFETY: a row of the tile, for which the caller vouches; what the mask leaves
                    // out is not touched.
                    unsafe {
                        let at = to.0.offset((4 * q + k).cast_signed() * to.1).cast();
                        _mm512_mask_storeu_ps(at, writes, _mm512_castpd_ps(row));
                    }
                }
            }
        }
    }

    /// Eight by eight elements of eight bytes.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn turn_8(
        (high, wide): (usize, usize),
        to: (*mut u8, isize),
        from: (*const u8, isize),
    ) {
        let reads = (u32::MAX >> (32 - high)) as __mmask8;
        let writes = (u32::MAX >> (32 - wide)) as __mmask8;
        let a: [__m512d; 8] =
            lines!(8, _mm512_maskz_loadu_pd, _mm512_setzero_pd, reads, wide, from);
        // Quarter `q` of b[2 i + k] is row 2 q + k of lines 2 i and 2 i + 1.
        let mut b = a;
        for i in 0..4 {
            b[2 * i] = _mm512_unpacklo_pd(a[2 * i], a[2 * i + 1]);
            b[2 * i + 1] = _mm512_unpackhi_pd(a[2 * i], a[2 * i + 1]);
        }
        for k in 0..2 {
            let rows = turned_quarters([b[k], b[2 + k], b[4 + k], b[6 + k]]);
            for (q, row) in rows.into_iter().enumerate() {
                if 2 * q + k < high {
                    // SAFETY: as above.
                    unsafe {
                        let at = to.0.offset((2 * q + k).cast_signed() * to.1).cast();
                        _mm512_mask_storeu_pd(at, writes, row);
                    }
                }
            }
        }
    }
}
