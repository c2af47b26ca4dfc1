// Loops, and the cheaper rows of formulas. In single precision by the card's own instructions: relative
// errors of 2^-22 (exponential, whose subnormal results are zero) and 2^-23.

#define METHOD __device__ __forceinline__
#define PRAGMA(text) _Pragma(#text)
#define EACH(k, n) PRAGMA(unroll) for (int k = 0; k < (n); k++)
#define LOOP(k, n) PRAGMA(unroll 1) for (int k = 0; k < (n); k++)
// Along vectors: long ones are loops, so that kernels stay short.
#define ALONG(k, n) PRAGMA(unroll ((n) <= LONG ? LONG : 4)) for (int k = 0; k < (n); k++)

FN f32 op_exp2_pair_f32(f32 a) { f32 y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
FN f32 op_rcp_pair_f32(f32 a) { f32 y; asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
FN f32 op_rsqrt_pair_f32(f32 a) { f32 y; asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
FN f32 op_sqrt_pair_f32(f32 a) { f32 y; asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
// The same of numbers whose subnormals count as zero, which saves three instructions.
FN f32 root_of_exponent(f32 a) { f32 y; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }

// In double precision, 1.1 units in the last place: 2^(k / 16) from a table, which is one line of a cache, times
// a polynomial of degree 6 of the rest, on ten instructions of the units for doubles, which are what is scarce.
// Everything else is done in integers: the range in which results are normal, and the power of two.
static __device__ const f64 SIXTEENTHS[16] = {
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721, 1.241857812073484,
    1.2968395546510096, 1.3542555469368927, 1.4142135623730951, 1.4768261459394993, 1.5422108254079407,
    1.6104903319492543, 1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};
FN f64 op_exp2_pair_f64(f64 a) {
    const f64 nearest = 422212465065984.0; // 1.5 * 2^48: its last place is a sixteenth
    f64 near = a + nearest, rest = a - (near - nearest);
    i32 k = __double2loint(near), high = __double2hiint(a);
    f64 slope = fma(0.00015403723980749256, rest, 0.0013333781576784268);
    slope = fma(slope, rest, 0.009618129106919537);
    slope = fma(slope, rest, 0.0555041086566393);
    slope = fma(slope, rest, 0.24022650695910075);
    slope = fma(slope, rest, 0.6931471805599457);
    f64 root = SIXTEENTHS[k & 15], y = fma(root, rest * slope, root);
    i32 y_high = __double2hiint(y) + (k >> 4 << 20), y_low = __double2loint(y);
    // Not above -1022, or not below 1024. NaN has k = 0, and stays.
    i32 size = high & 0x7fffffff;
    bool far = size >= (high < 0 ? 0x408ff000 : 0x40900000) && size <= 0x7ff00000;
    return __hiloint2double(far ? (high < 0 ? 0 : 0x7ff00000) : y_high, far ? 0 : y_low);
}
