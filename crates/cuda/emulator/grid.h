// How a kernel is run over its grid; see `grid.cpp`.
#pragma once

#include "machine.h"

namespace emulated {

// A kernel of a library that is loaded.
struct Kernel {
    const char* name;
    Machine* machine;
    void (*door)(void** arguments);
    unsigned char *shared, *shared_end, *dynamic;
};

// Runs all blocks, one after the other. Only one thread of the process may be in here.
void run_grid(const Kernel& kernel, Index blocks, unsigned threads, unsigned dynamic_bytes, void** arguments);

// Ends the process with a message about the kernel that runs, and about where it is.
[[noreturn]] void give_up(const char* format, ...) __attribute__((format(printf, 1, 2)));

} // namespace emulated
