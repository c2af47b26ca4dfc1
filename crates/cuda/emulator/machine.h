// What a compiled kernel and the machine that runs it know of each other. A kernel's library has one `Machine`, by the
// name `emulated_machine`: the machine says in it which thread is running, and the kernel asks by it to meet others.
// Read by `device.h` and `grid.cpp`, so there are no headers in here.
#pragma once

namespace emulated {

// Bytes of shared memory that a launch may ask for.
enum { MOST_DYNAMIC = 228 << 10 };

struct Index { unsigned x, y, z; };

// A barrier in shared memory, which goes to its next phase when all threads that it waits for have arrived and all
// bytes that it expects are there.
struct Counter {
    unsigned phase : 1, count : 15, missing : 16;
    int bytes;
};
inline void next_phase(Counter& counter) {
    if (counter.missing != 0 || counter.bytes != 0) return;
    counter.phase ^= 1;
    counter.missing = counter.count;
}

// What lanes of a warp meet for.
enum Meeting { SYNC, SHUFFLE, BALLOT, ANY, ALL, REDUCE_OR, REDUCE_AND, REDUCE_ADD, REDUCE_MAX, REDUCE_MIN };

struct Machine {
    Index thread, block, threads, blocks;
    // All living threads of the block; gives how many of them said `word`.
    unsigned (*barrier)(bool word);
    // The living lanes of a warp that `mask` names: each brings a value, and for SHUFFLE a lane whose value it gets.
    unsigned long long (*meet)(Meeting what, unsigned mask, unsigned long long value, unsigned lane);
    // Until a barrier is not in this phase any more.
    void (*await)(const Counter* counter, unsigned phase);
    // Until others had their turns.
    void (*step_aside)();
    // Copies bytes some time before the barrier's next phase.
    void (*copy)(void* to, const void* from, unsigned bytes, Counter* counter);
    [[noreturn]] void (*refuse)(const char* why);
};

} // namespace emulated
