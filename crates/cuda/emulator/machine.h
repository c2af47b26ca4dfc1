// What a compiled kernel and the machine that runs it know of each other. A kernel's library has one `Machine`, by the
// name `emulated_machine`: the machine says in it which thread is running, and the kernel asks by it to meet others.
// Read by `device.h` and `grid.cpp`, so there are no headers in here.
#pragma once

namespace emulated {

// Bytes of shared memory that a launch may ask for.
enum { MOST_DYNAMIC = 228 << 10 };

struct Index { unsigned x, y, z; };

// What lanes of a warp meet for.
enum Meeting { SYNC, SHUFFLE, BALLOT, ANY, ALL, REDUCE_OR, REDUCE_AND, REDUCE_ADD, REDUCE_MAX, REDUCE_MIN };

struct Machine {
    Index thread, block, threads, blocks;
    // All living threads of the block; gives how many of them said `word`.
    unsigned (*barrier)(bool word);
    // The living lanes of a warp that `mask` names: each brings a value, and for SHUFFLE a lane whose value it gets.
    unsigned long long (*meet)(Meeting what, unsigned mask, unsigned long long value, unsigned lane);
};

} // namespace emulated
