// Loops, and the cheaper rows of formulas by the card's own instructions: relative errors of 2^-22
// (exponential, whose subnormal results are zero) and 2^-23.

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
