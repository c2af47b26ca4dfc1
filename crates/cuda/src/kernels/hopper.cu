// Hopper's own instructions: barriers that count bytes, and groups of four warps that multiply tiles
// of shared memory. Rows of a tile are 128 bytes; its 16-byte chunks are permuted (chunk number xor
// row mod 8), so that eight rows of a column lie in different banks.

FN u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

FN void barrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
FN void barrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
FN void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
FN void barrier_wait(u32 barrier, u32 phase) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }"
        ::"r"(barrier), "r"(phase) : "memory");
}

// The barriers of a ring of stages: `full` when a stage's bytes are there, `empty` when its readers
// are done with it.
template <int N> struct Ring {
    u32 full, empty;

    FN Ring make(u64* barriers, u32 readers) {
        u32 at = shared_address(barriers);
        Ring ring = {at, at + 8 * N};
        if (threadIdx.x == 0) {
            for (int s = 0; s < N; s++) {
                barrier_init(ring.full + 8 * s, 1);
                barrier_init(ring.empty + 8 * s, readers);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
        return ring;
    }
    // Before stage number k is filled with so many bytes, which one of the threads says that fill it.
    __device__ __forceinline__ u32 fill(u32 k, u32 bytes, bool says) {
        u32 s = k % N;
        if (k >= N) barrier_wait(empty + 8 * s, (k / N - 1) & 1);
        if (says) barrier_expect(full + 8 * s, bytes);
        return full + 8 * s;
    }
    __device__ __forceinline__ void take(u32 k) { barrier_wait(full + 8 * (k % N), k / N & 1); }
    __device__ __forceinline__ void leave(u32 k) {
        if (threadIdx.x % 128 == 0) barrier_arrive(empty + 8 * (k % N));
    }
};

// Bytes that lie together, a multiple of 16; the barrier counts them.
FN void bulk_copy(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// The same for lines that the second cache gives up first, or treats as all others.
FN void bulk_copy(u32 to, const void* from, u32 bytes, u32 barrier, bool passes) {
    u64 policy;
    if (passes) asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    else asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
        ::"r"(to), "l"(from), "r"(bytes), "r"(barrier), "l"(policy) : "memory");
}

// How the tensor cores find a tile: `rows` bytes from one group of 8 rows to the next, `columns` from
// one run of 128 bytes to the next where a tile has several.
FN u64 describe(u32 address, u32 rows, u32 columns) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(columns >> 4) << 16 | (u64)(rows >> 4) << 32 | (u64)1 << 62;
}
FN void group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
FN void group_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> FN void group_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }

// Registers of a group that only copies, for the groups that multiply.
template <int COUNT = 40> FN void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT> FN void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }

#define PLACES_8(a, b, c, d, e, f, g, h) "%" #a ",%" #b ",%" #c ",%" #d ",%" #e ",%" #f ",%" #g ",%" #h
#define KEPT_8(d, k) "+f"(d[k]), "+f"(d[k + 1]), "+f"(d[k + 2]), "+f"(d[k + 3]), \
    "+f"(d[k + 4]), "+f"(d[k + 5]), "+f"(d[k + 6]), "+f"(d[k + 7])
#define PLACES_32 PLACES_8(0, 1, 2, 3, 4, 5, 6, 7) "," PLACES_8(8, 9, 10, 11, 12, 13, 14, 15) "," \
    PLACES_8(16, 17, 18, 19, 20, 21, 22, 23) "," PLACES_8(24, 25, 26, 27, 28, 29, 30, 31)
#define KEPT_32(d, k) KEPT_8(d, k), KEPT_8(d, k + 8), KEPT_8(d, k + 16), KEPT_8(d, k + 24)
