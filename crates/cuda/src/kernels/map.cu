// Moving packs of elements for maps. `I` is the type of indices.

#define THREADS 256
#define UNROLL 2

// The elements from `from` on, or one for all of the pack.
template <int V, class S> FN Pack<S, V> fetch(const S* from, bool same) {
    if (V == 1 || !same) return *(const Pack<S, V>*)from;
    Pack<S, V> x;
    S one = *from;
#pragma unroll
    for (int k = 0; k < V; k++) x.at[k] = one;
    return x;
}
