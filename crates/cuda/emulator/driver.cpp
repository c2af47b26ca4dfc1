// A stand-in for CUDA's driver: one card of capability 8.0, or of what TILEWORK_EMULATOR_CAPABILITY says (90 is Hopper),
// whose memory is the host's and whose kernels are libraries from `compiler.cpp`, run by `grid.cpp`. Every call is over
// when it returns, so that streams and events are names only.
//
// Memory that is allocated holds NaN. Around it are bytes that no kernel may write: they are looked at after every
// launch. With TILEWORK_EMULATOR_FENCE=1 every allocation ends at a page that nobody may touch, and a kernel that reads
// or writes beyond it ends the process, with words. TILEWORK_EMULATOR_MEMORY is the card's memory in MiB.

#include "grid.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

typedef uint64_t Address;
enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500, NOT_SUPPORTED = 801 };
const size_t PAGE = 4096, GUARD = 256, FILLED = 256 << 20;
// Shared memory of a block that a kernel has without asking.
const size_t DECLARED = 48 << 10;
const unsigned char GUARD_BYTE = 0xa5;

// Where bytes lie, and what was asked of the system for them.
struct Block { size_t bytes; char* mapped; size_t mapped_bytes; };

std::mutex lock; // Of everything below, and of the machine.
std::map<Address, Block> blocks;
size_t in_use = 0, most_in_use = 0;

size_t setting(const char* name, size_t otherwise) {
    const char* text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}
size_t memory() { static size_t bytes = setting("TILEWORK_EMULATOR_MEMORY", 16384) << 20; return bytes; }
int capability() { static int is = (int)setting("TILEWORK_EMULATOR_CAPABILITY", 80); return is; }
// Shared memory that a block may have.
size_t shared() { return capability() >= 90 ? 227 << 10 : 163 << 10; }
bool fenced() { static bool is = setting("TILEWORK_EMULATOR_FENCE", 0) != 0; return is; }

// The bytes around a block, as far as they are watched.
bool is_whole(Address at, const Block& block) {
    const unsigned char *own = (const unsigned char*)at, *end = own + block.bytes;
    const unsigned char* from = own - 64 < (unsigned char*)block.mapped ? (unsigned char*)block.mapped : own - 64;
    const unsigned char* to = (unsigned char*)block.mapped + block.mapped_bytes;
    if (end + 64 < to) to = end + 64;
    for (; from < own; from++) if (*from != GUARD_BYTE) return false;
    for (; end < to; end++) if (*end != GUARD_BYTE) return false;
    return true;
}
void check_blocks(const char* when) {
    for (const auto& [at, block] : blocks) {
        if (!is_whole(at, block)) emulated::give_up("bytes around %zu at %#zx were written, seen %s", block.bytes, (size_t)at, when);
    }
}

// A library, and a kernel of it.
struct Module { void* library; };
// What of shared memory a launch may ask for: what is left of DECLARED, unless more was granted.
struct Function {
    std::string name;
    emulated::Kernel kernel;
    size_t granted;
    size_t declared() const { return kernel.shared_end - kernel.shared; }
};

void on_fault(int, siginfo_t* info, void*) { emulated::give_up("a kernel touches %p, where nothing is", info->si_addr); }

thread_local void* current_context = nullptr;

} // namespace

extern "C" {

int cuInit(unsigned) { return OK; }
int cuDriverGetVersion(int* version) { *version = 12090; return OK; }
int cuGetErrorString(int code, const char** text) {
    switch (code) {
    case INVALID: *text = "invalid argument"; break;
    case OUT_OF_MEMORY: *text = "out of memory"; break;
    case INVALID_IMAGE: *text = "the kernel's library cannot be loaded"; break;
    case NOT_FOUND: *text = "named symbol not found"; break;
    case NOT_SUPPORTED: *text = "not supported by the emulator"; break;
    default: return INVALID;
    }
    return OK;
}

int cuDeviceGetCount(int* count) { *count = 1; return OK; }
int cuDeviceGet(int* device, int index) { *device = index; return index == 0 ? OK : INVALID; }
int cuDeviceGetName(char* to, int bytes, int) { snprintf(to, bytes, "emulated card"); return OK; }
int cuDeviceGetAttribute(int* to, int what, int) {
    switch (what) {
    case 16: *to = (int)setting("TILEWORK_EMULATOR_PROCESSORS", capability() >= 90 ? 132 : 108); break; // multiprocessors
    case 75: *to = capability() / 10; break;
    case 76: *to = capability() % 10; break;
    case 115: *to = 1; break;  // memory pools
    default: return INVALID;
    }
    return OK;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { *bytes = memory(); return OK; }
int cuDevicePrimaryCtxRetain(void** context, int) { static char one; *context = &one; return OK; }
int cuCtxGetCurrent(void** context) { *context = current_context; return OK; }
int cuCtxSetCurrent(void* context) { current_context = context; return OK; }
int cuCtxSynchronize() { return OK; }

int cuStreamCreate(void** stream, unsigned) { *stream = malloc(1); return OK; }
int cuStreamSynchronize(void*) { return OK; }
int cuStreamWaitEvent(void*, void*, unsigned) { return OK; }
int cuEventCreate(void** event, unsigned) { *event = malloc(1); return OK; }
int cuEventRecord(void*, void*) { return OK; }
int cuEventQuery(void*) { return OK; }
int cuEventSynchronize(void*) { return OK; }
int cuEventDestroy_v2(void* event) { free(event); return OK; }

int cuPointerGetAttribute(void* to, int what, Address at) {
    std::lock_guard<std::mutex> held(lock);
    auto found = blocks.upper_bound(at);
    if (what != 9 || found == blocks.begin()) return INVALID;
    --found;
    if (at >= found->first + found->second.bytes) return INVALID;
    *(int*)to = 0;
    return OK;
}
int cuDeviceGetDefaultMemPool(void** pool, int) { static char one; *pool = &one; return OK; }
int cuMemPoolSetAttribute(void*, int, void*) { return OK; }
int cuMemPoolGetAttribute(void*, int what, void* to) {
    std::lock_guard<std::mutex> held(lock);
    *(uint64_t*)to = what == 4 ? ~0ull : what == 6 || what == 8 ? most_in_use : in_use;
    return OK;
}
int cuMemPoolTrimTo(void*, size_t) { return OK; }

int cuMemAllocAsync(Address* to, size_t bytes, void*) {
    std::lock_guard<std::mutex> held(lock);
    if (bytes == 0) return INVALID;
    if (in_use + bytes > memory()) return OUT_OF_MEMORY;
    // A card's alignment; with a fence only what kernels need, so that it is close to the end.
    size_t step = fenced() ? 16 : GUARD, whole = (bytes + step - 1) / step * step;
    size_t mapped = fenced() ? (whole + PAGE - 1) / PAGE * PAGE + 2 * PAGE : whole + 2 * GUARD;
    char *from, *own;
    if (fenced() || bytes > FILLED) {
        mapped = (mapped + PAGE - 1) / PAGE * PAGE;
        void* made = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return OUT_OF_MEMORY;
        from = (char*)made;
        own = fenced() ? from + mapped - PAGE - whole : from + GUARD;
    } else {
        from = (char*)aligned_alloc(GUARD, mapped);
        if (!from) return OUT_OF_MEMORY;
        own = from + GUARD;
    }
    memset(own - 64, GUARD_BYTE, 64);
    if (bytes <= FILLED) memset(own, 0xff, bytes);
    Block block = {bytes, from, mapped};
    if (fenced()) {
        memset(own + bytes, GUARD_BYTE, whole - bytes);
        mprotect(from + mapped - PAGE, PAGE, PROT_NONE);
        block.mapped_bytes = mapped - PAGE;
    } else {
        memset(own + bytes, GUARD_BYTE, 64);
    }
    in_use += bytes;
    if (in_use > most_in_use) most_in_use = in_use;
    blocks[(Address)own] = block;
    *to = (Address)own;
    return OK;
}
int cuMemFreeAsync(Address at, void*) {
    std::lock_guard<std::mutex> held(lock);
    auto found = blocks.find(at);
    if (found == blocks.end()) emulated::give_up("%#zx is freed, where nothing was allocated", (size_t)at);
    Block block = found->second;
    if (!is_whole(at, block)) emulated::give_up("bytes around %zu at %#zx were written, seen when it is freed", block.bytes, (size_t)at);
    in_use -= block.bytes;
    blocks.erase(found);
    if (fenced() || block.bytes > FILLED) munmap(block.mapped, block.mapped_bytes + (fenced() ? PAGE : 0));
    else free(block.mapped);
    return OK;
}
int cuMemAllocHost_v2(void** to, size_t bytes) { *to = malloc(bytes ? bytes : 1); return *to ? OK : OUT_OF_MEMORY; }
int cuMemFreeHost(void* at) { free(at); return OK; }
int cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, void*) { memset((void*)to, byte, bytes); return OK; }
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void*) { memcpy((void*)to, from, bytes); return OK; }
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void*) { memcpy(to, (void*)from, bytes); return OK; }
int cuMemGetInfo_v2(size_t* free, size_t* total) {
    std::lock_guard<std::mutex> held(lock);
    *total = memory();
    *free = memory() - in_use;
    return OK;
}

// The loader knows files by their names, so that each library needs one that was never used.
int cuModuleLoadData(Module** to, const void* image) {
    const Elf64_Ehdr* head = (const Elf64_Ehdr*)image;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return INVALID_IMAGE;
    size_t bytes = head->e_shoff + (size_t)head->e_shentsize * head->e_shnum;
    const char* temporary = getenv("TMPDIR");
    static int number = 0;
    std::string name;
    {
        std::lock_guard<std::mutex> held(lock);
        name = std::string(temporary ? temporary : "/tmp") + "/tilework-emulator-" + std::to_string(getpid()) + "-" +
            std::to_string(number++) + "-XXXXXX";
    }
    int file = mkstemp(&name[0]);
    bool written = file >= 0 && write(file, image, bytes) == (ssize_t)bytes;
    if (file >= 0) close(file);
    void* library = written ? dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) fprintf(stderr, "emulator: %s\n", written ? dlerror() : "no temporary file");
    unlink(name.c_str());
    if (!library) return INVALID_IMAGE;
    *to = new Module{library};
    return OK;
}
int cuModuleUnload(Module* module) {
    std::lock_guard<std::mutex> held(lock);
    dlclose(module->library);
    delete module;
    return OK;
}
int cuModuleGetFunction(Function** to, Module* module, const char* name) {
    auto find = [&](const std::string& symbol) { return dlsym(module->library, symbol.c_str()); };
    void* door = find(std::string("emulated_run_") + name);
    if (!door) return NOT_FOUND;
    // Functions live as long as the process; they are few.
    Function* function = new Function{name, {}, 0};
    unsigned char** shared = (unsigned char**)find("emulated_door_shared");
    function->kernel = {function->name.c_str(), *(emulated::Machine**)find("emulated_door_machine"), (void (*)(void**))door,
        shared[0], shared[1], (unsigned char*)find("emulated_door_dynamic")};
    function->granted = function->declared() < DECLARED ? DECLARED - function->declared() : 0;
    *to = function;
    return OK;
}
int cuFuncSetAttribute(Function* function, int attribute, int bytes) {
    std::lock_guard<std::mutex> held(lock);
    if (attribute != 8 || bytes < 0 || function->declared() + bytes > shared()) return INVALID;
    function->granted = bytes;
    return OK;
}
int cuTensorMapEncodeTiled(void*, int, unsigned, Address, const uint64_t*, const uint64_t*, const unsigned*, const unsigned*,
    int, int, int, int) {
    return NOT_SUPPORTED;
}
// Blocks that wait for each other cannot be run one after the other.
int cuLaunchCooperativeKernel(Function*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**) {
    return NOT_SUPPORTED;
}
int cuLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
    unsigned threads_z, unsigned dynamic_bytes, void*, void** arguments, void**) {
    if (x == 0 || y == 0 || z == 0 || threads == 0 || threads > 1024 || threads_y != 1 || threads_z != 1) return INVALID;
    std::lock_guard<std::mutex> held(lock);
    if (dynamic_bytes > function->granted) return INVALID;
    struct sigaction former, own = {};
    if (fenced()) {
        own.sa_sigaction = on_fault;
        own.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &own, &former);
    }
    static bool traced = setting("TILEWORK_EMULATOR_TRACE", 0) != 0;
    if (traced) fprintf(stderr, "emulator: %s, %u x %u x %u blocks of %u\n", function->kernel.name, x, y, z, threads);
    emulated::run_grid(function->kernel, {x, y, z}, threads, dynamic_bytes, arguments);
    if (fenced()) sigaction(SIGSEGV, &former, nullptr);
    std::string when = "after the kernel " + function->name;
    check_blocks(when.c_str());
    return OK;
}

}
