// Runs kernels on the processor: block after block, and the threads of a block in turns, each on a stack of its own.
// A thread runs until it ends or must wait for others, at a barrier of the block or where lanes of a warp meet. That
// threads wait for each other and none can go on is a mistake of the kernel which would hang a card, or worse, would
// not: it ends the process with words.
//
// Shared memory is filled with NaN before every block, so that what was never written is seen in results. Threads take
// turns in an order that is drawn anew each time, from TILEWORK_EMULATOR_SEED: where a barrier is missing, results depend
// on it. Bytes that are copied while threads go on come late, and in such an order, too.

#include "grid.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <utility>
#include <vector>

#ifndef __x86_64__
#error "threads are switched by instructions of x86-64"
#endif

// Keeps what a function must not change, and goes on where another thread stopped.
extern "C" void emulated_switch(void** from, void* to);
asm(R"(
    .text
    .globl emulated_switch
    .hidden emulated_switch
    .type emulated_switch, @function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

namespace emulated {
namespace {

typedef unsigned long long u64;
enum { WARP = 32, MOST_THREADS = 1024, STACK = 256 << 10 };
enum State { NEW, READY, AT_BARRIER, AT_MEETING, AT_COUNTER, ASIDE, DONE };

struct Thread {
    State state;
    void* stopped_at;
    char* stack;
    // What it brings to a meeting, and what it takes from it.
    Meeting what;
    unsigned mask, lane;
    u64 value;
    bool word;
    // What it waits for: that the counter is not in this phase.
    const Counter* counter;
    unsigned phase;
};

// Bytes that are on their way.
struct Copy {
    void* to;
    const void* from;
    unsigned bytes;
    Counter* counter;
};

Thread all[MOST_THREADS];
// Which lanes of a warp live, and which wait for others of it.
struct Lanes { unsigned living, waiting; };
Lanes warps_now[MOST_THREADS / WARP];
unsigned count, living, arrived, words, running;
const Kernel* now;
void** arguments_now;
void* scheduler;
std::vector<char*> stacks;
std::vector<Copy> copies;

// Numbers that are the same in every run.
unsigned drawn() {
    static uint64_t state = [] {
        const char* seed = getenv("TILEWORK_EMULATOR_SEED");
        return (seed ? strtoull(seed, nullptr, 10) : 1) * 0x9e3779b97f4a7c15 | 1;
    }();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 32);
}

// A stack with a page below it that nobody may touch.
char* take_stack() {
    if (stacks.empty()) {
        void* made = mmap(nullptr, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) give_up("there is no memory for stacks");
        mprotect(made, 4096, PROT_NONE);
        return (char*)made + 4096;
    }
    char* stack = stacks.back();
    stacks.pop_back();
    return stack;
}

void release_barrier() {
    if (arrived < living || arrived == 0) return;
    for (unsigned t = 0; t < count; t++) if (all[t].state == AT_BARRIER) all[t].state = READY;
    // The number stays until the next barrier, for those that have not looked yet.
    words = 0;
    for (unsigned t = 0; t < count; t++) if (all[t].state == READY && all[t].word) words++;
    arrived = 0;
}

// Gives lanes of a warp what they meet for, if all that `mask` names are there.
void hold_meeting(unsigned t, unsigned mask) {
    Lanes& here = warps_now[t / WARP];
    Thread* warp = all + t / WARP * WARP;
    unsigned there = mask & here.living;
    if (there == 0 || there & ~here.waiting) return;
    Meeting what = warp[__builtin_ctz(there)].what;
    for (unsigned k = 0; k < WARP; k++) if (there >> k & 1) {
        if (warp[k].mask != mask) return;
        if (warp[k].what != what) give_up("lanes of a warp meet for different things (%d and %d)", what, warp[k].what);
    }
    here.waiting &= ~there;
    u64 said = 0, any = 0, every = ~0ull, sum = 0, most = 0, least = ~0ull;
    u64 values[WARP];
    for (unsigned k = 0; k < WARP; k++) if (there >> k & 1) {
        u64 value = values[k] = warp[k].value;
        said |= (u64)(value != 0) << k;
        any |= value;
        every &= value;
        sum += value;
        most = value > most ? value : most;
        least = value < least ? value : least;
    }
    for (unsigned k = 0; k < WARP; k++) if (there >> k & 1) {
        Thread& lane = warp[k];
        switch (what) {
        case SYNC: break;
        // What lanes that have ended, or are not asked, would say is not defined.
        case SHUFFLE: lane.value = there >> lane.lane & 1 ? values[lane.lane] : ~0ull; break;
        case BALLOT: lane.value = said; break;
        case ANY: lane.value = said != 0; break;
        case ALL: lane.value = said == there; break;
        case REDUCE_OR: lane.value = any; break;
        case REDUCE_AND: lane.value = every; break;
        case REDUCE_ADD: lane.value = sum; break;
        case REDUCE_MAX: lane.value = most; break;
        case REDUCE_MIN: lane.value = least; break;
        }
        lane.state = READY;
    }
}

unsigned barrier(bool word) {
    Thread& own = all[running];
    own.state = AT_BARRIER;
    own.word = word;
    arrived++;
    release_barrier();
    if (own.state != READY) emulated_switch(&own.stopped_at, scheduler);
    return words;
}

u64 meet(Meeting what, unsigned mask, u64 value, unsigned lane) {
    Thread& own = all[running];
    if (!(mask >> running % WARP & 1)) give_up("a lane meets others by a mask (%08x) that does not name it", mask);
    own.state = AT_MEETING;
    own.what = what;
    own.mask = mask;
    own.value = value;
    own.lane = lane % WARP;
    warps_now[running / WARP].waiting |= 1u << running % WARP;
    hold_meeting(running, mask);
    if (own.state != READY) emulated_switch(&own.stopped_at, scheduler);
    return own.value;
}

void await(const Counter* counter, unsigned phase) {
    Thread& own = all[running];
    if (counter->phase != phase) return;
    own.state = AT_COUNTER;
    own.counter = counter;
    own.phase = phase;
    emulated_switch(&own.stopped_at, scheduler);
}

void step_aside() {
    Thread& own = all[running];
    own.state = ASIDE;
    emulated_switch(&own.stopped_at, scheduler);
}

void copy(void* to, const void* from, unsigned bytes, Counter* counter) { copies.push_back({to, from, bytes, counter}); }

void refuse(const char* why) { give_up("%s", why); }

void arrive(const Copy& copy) {
    memcpy(copy.to, copy.from, copy.bytes);
    copy.counter->bytes -= (int)copy.bytes;
    next_phase(*copy.counter);
}

// Has some bytes arrive: some at least, if nothing else goes on.
bool bring(bool moved) {
    bool any = false;
    while (!copies.empty() && (!(moved || any) || drawn() % 4 != 0)) {
        std::swap(copies[drawn() % copies.size()], copies.back());
        arrive(copies.back());
        copies.pop_back();
        any = true;
    }
    return any;
}

void begin_thread() {
    now->door(arguments_now);
    Thread& own = all[running];
    own.state = DONE;
    living--;
    // Those that are left may be all that are waited for.
    release_barrier();
    Lanes& here = warps_now[running / WARP];
    here.living &= ~(1u << running % WARP);
    for (unsigned k = 0; k < WARP; k++) {
        if (here.waiting >> k & 1) hold_meeting(running, all[running / WARP * WARP + k].mask);
    }
    void* nowhere;
    emulated_switch(&nowhere, scheduler);
    abort();
}

void resume(unsigned t) {
    Thread& thread = all[t];
    if (thread.state == NEW) {
        thread.stack = take_stack();
        thread.state = READY;
        // What `emulated_switch` takes: six registers, and where to go; then no one to return to.
        void** top = (void**)(thread.stack + STACK);
        *--top = nullptr;
        *--top = (void*)begin_thread;
        for (int k = 0; k < 6; k++) *--top = nullptr;
        thread.stopped_at = top;
    }
    running = t;
    now->machine->thread.x = t;
    emulated_switch(&scheduler, thread.stopped_at);
    if (thread.state == DONE) stacks.push_back(thread.stack);
}

void run_block() {
    memset(now->shared, 0xff, now->shared_end - now->shared);
    living = count;
    arrived = 0;
    memset(warps_now, 0, sizeof(warps_now));
    for (unsigned t = 0; t < count; t++) {
        all[t].state = NEW;
        warps_now[t / WARP].living |= 1u << t % WARP;
    }
    while (living > 0) {
        bool moved = false;
        unsigned warps = (count + WARP - 1) / WARP, turn = drawn();
        for (unsigned t = 0; t < count; t++) if (all[t].state == ASIDE) {
            moved = true;
            if (drawn() % 2 == 0) all[t].state = READY;
        }
        for (unsigned k = 0; k < warps; k++) {
            unsigned first = ((turn & 1 ? warps - 1 - k : k) + (turn >> 8)) % warps * WARP;
            // A warp goes on as long as it can: its lanes meet more often than the block does.
            for (bool again = true; again;) {
                again = false;
                unsigned other = drawn() % WARP;
                for (unsigned lane = 0; lane < WARP; lane++) {
                    unsigned t = first + (lane ^ other);
                    if (t >= count) continue;
                    Thread& thread = all[t];
                    if (thread.state == AT_COUNTER && thread.counter->phase != thread.phase) thread.state = READY;
                    if (thread.state > READY) continue;
                    resume(t);
                    moved = again = true;
                }
            }
        }
        moved |= bring(moved);
        if (!moved) give_up("no thread can go on");
    }
    if (!copies.empty()) give_up("a block ends before all bytes are there that are copied to it");
}

} // namespace

void give_up(const char* format, ...) {
    va_list more;
    va_start(more, format);
    fprintf(stderr, "\nemulator: ");
    vfprintf(stderr, format, more);
    va_end(more);
    if (now) {
        const Machine& machine = *now->machine;
        fprintf(stderr, "\nemulator: kernel %s, block (%u, %u, %u) of (%u, %u, %u), thread %u of %u\n", now->name,
            machine.block.x, machine.block.y, machine.block.z, machine.blocks.x, machine.blocks.y, machine.blocks.z, running, count);
        const char* names[] = {"new", "ready", "at a barrier", "in a meeting", "at a counter", "aside", "done"};
        for (unsigned t = 0, from = 0; t < count; t++) {
            if (t + 1 < count && all[t + 1].state == all[from].state) continue;
            fprintf(stderr, "emulator: threads %u to %u are %s\n", from, t, names[all[from].state]);
            from = t + 1;
        }
    }
    fprintf(stderr, "\n");
    abort();
}

void run_grid(const Kernel& kernel, Index blocks, unsigned threads, unsigned dynamic_bytes, void** arguments) {
    now = &kernel;
    arguments_now = arguments;
    count = threads;
    Machine& machine = *kernel.machine;
    machine.threads = {threads, 1, 1};
    machine.blocks = blocks;
    machine.thread = {0, 0, 0};
    machine.barrier = barrier;
    machine.meet = meet;
    machine.await = await;
    machine.step_aside = step_aside;
    machine.copy = copy;
    machine.refuse = refuse;
    if (threads > MOST_THREADS || dynamic_bytes > MOST_DYNAMIC) give_up("%u threads, %u bytes", threads, dynamic_bytes);
    for (unsigned z = 0; z < blocks.z; z++) for (unsigned y = 0; y < blocks.y; y++) for (unsigned x = 0; x < blocks.x; x++) {
        machine.block = {x, y, z};
        memset(kernel.dynamic, 0xff, dynamic_bytes);
        run_block();
    }
    now = nullptr;
}

} // namespace emulated
