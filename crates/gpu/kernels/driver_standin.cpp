// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for tests on machines without a GPU: files in memory for that of the device, kernels by the C++
// compiler, work that is done in order but late, errors on request.
// Promise: what a driver forbids is an error here, and a line "wrong: ..." in the log: memory of the wrong kind or too
// short, memory freed while work is queued. The device's addresses are the process's own, but closed to it unless a kernel
// runs: who takes one for a pointer crashes. Source: CUDA Driver API; -DCUDA_H compares all types with the real cuda.h.
//
//   c++ -std=c++17 -O1 -shared -fPIC -include on_cpu.h driver_standin.cpp -o FOLDER/libcuda.so.1
//
// FOLDER/standin.conf, if it is there:  late N            a stream is busy for N queries before its work is done
//                                       version N         of CUDA that it speaks; default 12090
//                                       devices N         default 1
//                                       memory BYTES      of the device
//                                       dma_buf 0         it exports no memory; default 1
//                                       ordering N        of writes from outside: 0, default 100 (the device's own scope)
//                                       flush 0           they cannot be flushed; default 1
//                                       fail CALL N CODE  the Nth call of CALL fails; from 700 on so do all after it
// FOLDER/standin.log: a line a call.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#ifdef CUDA_H
#include <cuda.h>
#else
typedef int CUresult, CUdevice, CUdevice_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef int CUpointer_attribute, CUmemRangeHandleType, CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope;
#endif

#include "kernels.cu"

namespace {

enum { kSuccess = 0, kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidPtx = 218, kNotReady = 600, kIllegal = 700,
       kNotSupported = 801 };

// Memory of the device: a file, mapped twice. `alias` is for the driver, the address that it goes by for nobody.
struct Memory {
    uint64_t bytes;
    int file;
    unsigned char *alias;
};

constexpr int kHere = 0; // for the library to find its folder
thread_local CUcontext current = nullptr;

struct Stream {
    std::deque<std::function<int()>> work;
    std::vector<uint64_t> uses; // addresses that the work needs
    int queries = 0;
    int failure = kSuccess;
};

struct Driver {
    std::mutex mutex;
    FILE *log = nullptr;
    int late = 0, version = 12090, devices = 1, dead = kSuccess, dma_buf = 1, ordering = 100, flush = 1;
    uint64_t memory = 1ull << 30, used = 0;
    std::map<std::string, int> calls;
    std::map<std::pair<std::string, int>, int> failures;
    std::map<uint64_t, Memory> memories; // by address
    std::map<uint64_t, uint64_t> on_device; // begin, bytes
    std::map<uint64_t, uint64_t> pinned;
    std::set<Stream *> streams;

    Driver() {
        Dl_info self;
        dladdr((void *)&kHere, &self);
        std::string folder = self.dli_fname;
        folder.resize(folder.rfind('/') + 1);
        log = fopen((folder + "standin.log").c_str(), "w");
        char line[200], call[100];
        int n, code;
        FILE *conf = fopen((folder + "standin.conf").c_str(), "r");
        while (conf != nullptr && fgets(line, sizeof line, conf) != nullptr) {
            sscanf(line, "late %d", &late);
            sscanf(line, "version %d", &version);
            sscanf(line, "devices %d", &devices);
            sscanf(line, "memory %ju", (uintmax_t *)&memory);
            sscanf(line, "dma_buf %d", &dma_buf);
            sscanf(line, "ordering %d", &ordering);
            sscanf(line, "flush %d", &flush);
            if (sscanf(line, "fail %99s %d %d", call, &n, &code) == 3) {
                failures[{call, n}] = code;
            }
        }
        if (conf != nullptr) {
            fclose(conf);
        }
    }

    void note(const char *text) {
        if (log != nullptr) {
            fprintf(log, "%s\n", text);
            fflush(log);
        }
    }

    int wrong(const char *what, int status) {
        note((std::string("wrong: ") + what).c_str());
        return status;
    }

    // What a call comes back with before it has done anything.
    int enter(const char *call) {
        note(call);
        const auto failure = failures.find({call, ++calls[call]});
        if (failure == failures.end()) {
            return dead;
        }
        if (failure->second >= kIllegal) {
            dead = failure->second;
        }
        return failure->second;
    }

    static bool holds(const std::map<uint64_t, uint64_t> &ranges, uint64_t at, uint64_t bytes) {
        auto range = ranges.upper_bound(at);
        return range != ranges.begin() && (--range, at + bytes <= range->first + range->second);
    }

    // Whether queued work needs memory that is to be freed.
    bool in_use(uint64_t begin, uint64_t bytes) const {
        for (const Stream *stream : streams) {
            for (const uint64_t at : stream->uses) {
                if (begin <= at && at < begin + bytes) {
                    return true;
                }
            }
        }
        return false;
    }
};

Driver &driver() {
    static Driver the_driver;
    return the_driver;
}

CUresult queue(CUstream handle, std::vector<uint64_t> uses, std::function<int()> work) {
    Stream *stream = (Stream *)handle;
    stream->work.push_back(work);
    stream->uses.insert(stream->uses.end(), uses.begin(), uses.end());
    return (CUresult)kSuccess;
}

int done(Stream *stream) {
    for (; !stream->work.empty(); stream->work.pop_front()) {
        const int status = stream->work.front()();
        stream->failure = stream->failure == kSuccess ? status : stream->failure;
    }
    stream->uses.clear();
    return stream->failure;
}

// What lies at an address of the device, for the driver.
unsigned char *host(CUdeviceptr at) {
    const auto memory = --driver().memories.upper_bound(at);
    return memory->second.alias + (at - memory->first);
}

// Opens the device's memory to this process while a kernel runs, and closes it again.
void open_device(bool open) {
    for (const auto &memory : driver().memories) {
        mprotect((void *)memory.first, memory.second.bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

template <typename T> T parameter(void **parameters, int i) {
    T value;
    memcpy(&value, parameters[i], sizeof value);
    return value;
}

template <typename T> T *pointer(void **parameters, int i) {
    return (T *)parameter<CUdeviceptr>(parameters, i);
}

} // namespace

#define ENTER(call)                                                                                                    \
    Driver &driver = ::driver();                                                                                       \
    std::lock_guard<std::mutex> lock(driver.mutex);                                                                    \
    if (const int status = driver.enter(call)) {                                                                       \
        return (CUresult)status;                                                                                       \
    }

extern "C" {

CUresult cuInit(unsigned) {
    ENTER("cuInit")
    return (CUresult)(driver.devices == 0 ? kNoDevice : kSuccess);
}

CUresult cuDriverGetVersion(int *version) {
    *version = driver().version;
    return (CUresult)kSuccess;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == (CUresult)kOutOfMemory ? "out of memory" : "requested of the stand-in";
    return (CUresult)kSuccess;
}

CUresult cuDeviceGetCount(int *count) {
    ENTER("cuDeviceGetCount")
    *count = driver.devices;
    return (CUresult)kSuccess;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER("cuDeviceGet")
    *device = ordinal;
    return (CUresult)kSuccess;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice) {
    ENTER("cuDeviceGetName")
    snprintf(name, bytes, "stand-in, no GPU");
    return (CUresult)kSuccess;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
    ENTER("cuDeviceGetAttribute")
    const std::map<int, int> values = {{75, 7}, {117, driver.flush}, {118, driver.ordering}, {124, driver.dma_buf}};
    const auto found = values.find((int)attribute);
    *value = found == values.end() ? 0 : found->second;
    return (CUresult)kSuccess;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
    ENTER("cuDeviceTotalMem_v2")
    *bytes = driver.memory;
    return (CUresult)kSuccess;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
    ENTER("cuDevicePrimaryCtxRetain")
    *context = (CUcontext)&driver;
    return (CUresult)kSuccess;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    ENTER("cuDevicePrimaryCtxRelease_v2")
    return (CUresult)kSuccess;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    current = context;
    return (CUresult)kSuccess;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = current;
    return (CUresult)kSuccess;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    ENTER("cuModuleLoadData")
    const char *ptx = (const char *)image;
    *module = (CUmodule)image;
    const bool whole = strstr(ptx, ".entry prbs31_errors(") != nullptr && strstr(ptx, ".entry charges(") != nullptr &&
                       strstr(ptx, ".entry read_fragments(") != nullptr;
    return (CUresult)(whole ? kSuccess : kInvalidPtx);
}

CUresult cuModuleUnload(CUmodule) {
    ENTER("cuModuleUnload")
    return (CUresult)kSuccess;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
    ENTER("cuModuleGetFunction")
    const std::map<std::string, CUfunction> functions = {{"prbs31_errors", (CUfunction)prbs31_errors},
                                                         {"charges", (CUfunction)charges},
                                                         {"read_fragments", (CUfunction)read_fragments}};
    const auto found = functions.find(name);
    *function = found == functions.end() ? nullptr : found->second;
    return (CUresult)(found == functions.end() ? kInvalid : kSuccess);
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    ENTER("cuMemAlloc_v2")
    if (driver.used + bytes > driver.memory) {
        return (CUresult)kOutOfMemory;
    }
    driver.used += bytes;
    const uint64_t page = sysconf(_SC_PAGESIZE);
    Memory memory = {(bytes + page - 1) / page * page, memfd_create("device", MFD_CLOEXEC), nullptr};
    if (memory.file < 0 || ftruncate(memory.file, memory.bytes) != 0) {
        return (CUresult)kOutOfMemory;
    }
    memory.alias = (unsigned char *)mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file, 0);
    *at = (uint64_t)mmap(nullptr, memory.bytes, PROT_NONE, MAP_SHARED, memory.file, 0);
    memset(memory.alias, 0xA5, memory.bytes);
    driver.memories[*at] = memory;
    driver.on_device[*at] = bytes;
    return (CUresult)kSuccess;
}

CUresult cuMemFree_v2(CUdeviceptr at) {
    ENTER("cuMemFree_v2")
    if (driver.on_device.count(at) == 0 || driver.in_use(at, driver.on_device[at])) {
        return (CUresult)driver.wrong("device memory freed that is in use, or nobody's", kInvalid);
    }
    driver.used -= driver.on_device[at];
    driver.on_device.erase(at);
    const Memory memory = driver.memories[at];
    driver.memories.erase(at);
    munmap(memory.alias, memory.bytes);
    munmap((void *)at, memory.bytes);
    close(memory.file);
    return (CUresult)kSuccess;
}

// Whole allocations only, by pages; the file is what a NIC maps.
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at, size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long) {
    ENTER("cuMemGetHandleForAddressRange")
    if (driver.dma_buf == 0) {
        return (CUresult)kNotSupported;
    }
    const uint64_t page = sysconf(_SC_PAGESIZE);
    const auto memory = driver.memories.find(at);
    if ((int)type != 1 || at % page != 0 || bytes % page != 0 || memory == driver.memories.end() ||
        bytes > driver.on_device[at]) {
        return (CUresult)driver.wrong("a range exported that is not of whole pages, or nobody's", kInvalid);
    }
    *(int *)handle = dup(memory->second.file);
    return (CUresult)kSuccess;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr at) {
    ENTER("cuPointerSetAttribute")
    const bool right = (int)attribute == 6 && *(const unsigned *)value == 1 && driver.on_device.count(at) != 0;
    return (CUresult)(right ? kSuccess : driver.wrong("an attribute that does not exist was set", kInvalid));
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope) {
    ENTER("cuFlushGPUDirectRDMAWrites")
    const bool right = (int)target == 0 && (int)scope == 100 && driver.flush != 0;
    return (CUresult)(right ? kSuccess : kNotSupported);
}

CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned) {
    ENTER("cuMemHostRegister_v2")
    const uint64_t page = sysconf(_SC_PAGESIZE);
    if ((uint64_t)at % page != 0 || driver.pinned.count((uint64_t)at) != 0) {
        return (CUresult)driver.wrong("memory pinned twice, or from the middle of a page", kInvalid);
    }
    driver.pinned[(uint64_t)at] = bytes;
    return (CUresult)kSuccess;
}

CUresult cuMemHostUnregister(void *at) {
    ENTER("cuMemHostUnregister")
    const uint64_t begin = (uint64_t)at;
    if (driver.pinned.count(begin) == 0 || driver.in_use(begin, driver.pinned[begin])) {
        return (CUresult)driver.wrong("memory unpinned that is in use, or nobody's", kInvalid);
    }
    driver.pinned.erase(begin);
    return (CUresult)kSuccess;
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned) {
    ENTER("cuMemHostAlloc")
    *at = malloc(bytes);
    driver.pinned[(uint64_t)*at] = bytes;
    return (CUresult)kSuccess;
}

CUresult cuMemFreeHost(void *at) {
    ENTER("cuMemFreeHost")
    const uint64_t begin = (uint64_t)at;
    if (driver.pinned.count(begin) == 0 || driver.in_use(begin, driver.pinned[begin])) {
        return (CUresult)driver.wrong("pinned memory freed that is in use, or nobody's", kInvalid);
    }
    driver.pinned.erase(begin);
    free(at);
    return (CUresult)kSuccess;
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
    ENTER("cuStreamCreate")
    Stream *made = new Stream;
    driver.streams.insert(made);
    *stream = (CUstream)made;
    return (CUresult)kSuccess;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    ENTER("cuStreamDestroy_v2")
    driver.streams.erase((Stream *)stream);
    delete (Stream *)stream;
    return (CUresult)kSuccess;
}

CUresult cuStreamQuery(CUstream handle) {
    ENTER("cuStreamQuery")
    Stream *stream = (Stream *)handle;
    if (!stream->work.empty() && stream->queries++ < driver.late) {
        return (CUresult)kNotReady;
    }
    stream->queries = 0;
    return (CUresult)done(stream);
}

CUresult cuStreamSynchronize(CUstream handle) {
    ENTER("cuStreamSynchronize")
    return (CUresult)done((Stream *)handle);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    ENTER("cuMemcpyHtoDAsync_v2")
    if (!Driver::holds(driver.on_device, to, bytes) || !Driver::holds(driver.pinned, (uint64_t)from, bytes)) {
        return (CUresult)driver.wrong("a copy in that leaves its memory, or is not pinned", kInvalid);
    }
    return queue(stream, {to, (uint64_t)from}, [=] { return memcpy(host(to), from, bytes), kSuccess; });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    ENTER("cuMemcpyDtoHAsync_v2")
    if (!Driver::holds(driver.on_device, from, bytes) || !Driver::holds(driver.pinned, (uint64_t)to, bytes)) {
        return (CUresult)driver.wrong("a copy out that leaves its memory, or is not pinned", kInvalid);
    }
    return queue(stream, {from, (uint64_t)to}, [=] { return memcpy(to, host(from), bytes), kSuccess; });
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    ENTER("cuMemcpyDtoH_v2")
    if (!Driver::holds(driver.on_device, from, bytes)) {
        return (CUresult)driver.wrong("a copy out that leaves its memory", kInvalid);
    }
    memcpy(to, host(from), bytes);
    return (CUresult)kSuccess;
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    ENTER("cuMemsetD8Async")
    if (!Driver::holds(driver.on_device, at, bytes)) {
        return (CUresult)driver.wrong("bytes set outside of memory", kInvalid);
    }
    return queue(stream, {at}, [=] { return memset(host(at), value, bytes), kSuccess; });
}

CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                        unsigned, CUstream stream, void **p, void **) {
    ENTER("cuLaunchKernel")
    const auto count = parameter<unsigned>(p, 1);
    std::function<void()> thread;
    int out = 3;
    if (function == (CUfunction)prbs31_errors) {
        const auto pieces = pointer<const Piece>(p, 0);
        const auto jumps = pointer<const unsigned>(p, 2);
        const auto flip = parameter<unsigned>(p, 3);
        const auto found = pointer<Found>(p, out = 4);
        thread = [=] { prbs31_errors(pieces, count, jumps, flip, found); };
    } else if (function == (CUfunction)read_fragments) {
        const auto parts = pointer<const Part>(p, 0);
        const auto tables = pointer<const unsigned>(p, 2);
        const auto read = pointer<Read>(p, out = 3);
        thread = [=] { read_fragments(parts, count, tables, read); };
    } else {
        const auto modules = pointer<const u64>(p, 0);
        const auto charged = pointer<int>(p, out = 2);
        thread = [=] { charges(modules, count, charged); };
    }
    return queue(stream, {parameter<CUdeviceptr>(p, 0), parameter<CUdeviceptr>(p, out)}, [=] {
        open_device(true);
        on_cpu(blocks, threads, thread);
        open_device(false);
        return kSuccess;
    });
}

} // extern "C"
