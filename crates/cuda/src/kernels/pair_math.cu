// Loops, and the cheaper rows of formulas. In single precision by the card's own instructions: relative
// errors of 2^-22 (exponential, whose subnormal results are zero), 2^-22.9 (reciprocal roots) and 2^-23.

#define METHOD __device__ __forceinline__
#define PRAGMA(text) _Pragma(#text)
#define EACH(k, n) PRAGMA(unroll) for (int k = 0; k < (n); k++)
#define LOOP(k, n) PRAGMA(unroll 1) for (int k = 0; k < (n); k++)
// Along vectors: long ones are loops, of AT_A_TIME components at a time, so that kernels stay short.
#define ALONG(k, n) PRAGMA(unroll ((n) <= LONG ? LONG : AT_A_TIME)) for (int k = 0; k < (n); k++)
// Along vectors in shared memory, which loops can count through: as many at once as hide what memory makes them wait.
#define SOME_ALONG(k, n) PRAGMA(unroll 8) for (int k = 0; k < (n); k++)

// Shared memory of a block: declared, or, where there is more than a kernel may declare, a part of what its launch asks for.
#ifdef ASKS
extern __shared__ __align__(16) unsigned char asked_for[];
#define SHARED_ROOM(V, name, n, at) V* const name = (V*)(asked_for + (at))
#else
#define SHARED_ROOM(V, name, n, at) __shared__ V name[n]
#endif

FN f32 op_exp2_pair_f32(f32 a) { f32 y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
FN f32 op_rcp_pair_f32(f32 a) { f32 y; asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
FN f32 op_rsqrt_pair_f32(f32 a) { f32 y; asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
FN f32 op_sqrt_pair_f32(f32 a) { f32 y; asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }
// The same of numbers whose subnormals count as zero, which saves three instructions.
FN f32 root_of_exponent(f32 a) { f32 y; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a)); return y; }

// In double precision, 1.1 units in the last place: 2^(k / 64) from a table, times a polynomial of degree 5 of the
// rest, on nine instructions of the units for doubles, which are what is scarce. Everything else is done in
// integers: the range in which results are normal, and the power of two.
#define ROOTS 64
static __device__ const f64 ALL_ROOTS[ROOTS] = {
    1.0, 1.0108892860517005, 1.0218971486541166, 1.0330248790212284, 1.0442737824274138, 1.0556451783605572,
    1.0671404006768237, 1.0787607977571199, 1.0905077326652577, 1.102382583307841, 1.1143867425958924,
    1.1265216186082418, 1.1387886347566916, 1.1511892299529827, 1.1637248587775775, 1.1763969916502812,
    1.189207115002721, 1.202156731452703, 1.215247359980469, 1.22848053610687, 1.241857812073484, 1.255380757024691,
    1.2690509571917332, 1.2828700160787783, 1.2968395546510096, 1.3109612115247644, 1.3252366431597413,
    1.339667524053303, 1.3542555469368927, 1.3690024229745905, 1.383909881963832, 1.3989796725383112,
    1.4142135623730951, 1.42961333839197, 1.4451808069770467, 1.460917794180647, 1.4768261459394993,
    1.4929077282912648, 1.5091644275934228, 1.5255981507445384, 1.5422108254079407, 1.559004400237837,
    1.5759808451078865, 1.593142151342267, 1.6104903319492543, 1.6280274218573478, 1.645755478153965,
    1.6636765803267364, 1.681792830507429, 1.7001063537185235, 1.718619298122478, 1.7373338352737062,
    1.7562521603732995, 1.7753764925265212, 1.7947090750031072, 1.8142521755003989, 1.8340080864093424,
    1.8539791250833855, 1.8741676341103, 1.8945759815869656, 1.9152065613971474, 1.9360617934922943,
    1.9571441241754002, 1.978456026387951};
FN f64 exp2_by(const f64* roots, f64 a) {
    const f64 nearest = 105553116266496.0; // 1.5 * 2^46: its last place is a 64th
    f64 near = a + nearest, rest = a - (near - nearest);
    i32 k = __double2loint(near), high = __double2hiint(a);
    f64 slope = fma(0.001333356978334557, rest, 0.009618140859595685);
    slope = fma(slope, rest, 0.055504108664803826);
    slope = fma(slope, rest, 0.2402265069589214);
    slope = fma(slope, rest, 0.6931471805599453);
    f64 root = roots[k & (ROOTS - 1)], y = fma(root, rest * slope, root);
    i32 y_high = (k & -ROOTS) * ((1 << 20) / ROOTS) + __double2hiint(y), y_low = __double2loint(y);
    // Not above -1022, or not below 1024. NaN has k = 0, and stays.
    i32 size = high & 0x7fffffff;
    bool far = size >= (high < 0 ? 0x408ff000 : 0x40900000) && size <= 0x7ff00000;
    return __hiloint2double(far ? (high < 0 ? 0 : 0x7ff00000) : y_high, far ? 0 : y_low);
}
FN f64 op_exp2_pair_f64(f64 a) { return exp2_by(ALL_ROOTS, a); }
// The same of pairs: the table is in shared memory, which saves two instructions to find a root.
static __shared__ f64 own_roots[ROOTS];
FN f64 exp2_of_pair(f64 a) { return exp2_by(own_roots, a); }
FN void bring_roots(u32 threads) {
    for (u32 k = threadIdx.x; k < ROOTS; k += threads) own_roots[k] = ALL_ROOTS[k];
    __syncthreads();
}

template <class V> FN V not_a_number() { return (V)__int_as_float(0x7fffffff); }

// A squared norm, or NaN, which is above all limits, where the square of a distance could leave the range of V: it is
// up to four times as large.
template <class V> FN f64 in_range(f64 norm) { return norm <= (sizeof(V) == 4 ? 1e37 : 1e307) ? norm : not_a_number<f64>(); }

// c |v|^2, of v or about a centre, rounded once: the squares of float32 are summed in float64, and those of float64 with what every product
// and every sum lost.
template <class V> struct SquaredNorm {
    f64 sum = 0;
    METHOD void add(V v) { sum = fma((f64)v, (f64)v, sum); }
    METHOD void add(V v, V centre) { f64 d = (f64)v - (f64)centre; sum = fma(d, d, sum); }
    METHOD V times(f64 c) const { return (V)(in_range<V>(sum) * c); }
};
template <> struct SquaredNorm<f64> {
    f64 sum = 0, lost = 0;
    METHOD void add(f64 v) {
        f64 square = v * v, next = sum + square, added = next - sum;
        lost += fma(v, v, -square) + ((sum - (next - added)) + (square - added));
        sum = next;
    }
    METHOD void add(f64 v, f64 centre) {
        f64 d = v - centre, back = d - v;
        add(d);
        lost = fma(2 * d, (v - (d - back)) - (centre + back), lost);
    }
    METHOD f64 times(f64 c) const { return fma(in_range<f64>(sum), c, lost * c); }
};
