// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for tests on machines without a GPU: memory of the process for that of the device, kernels by the C++
// compiler, work that is done in order but late, errors when they are asked for.
// Promise: what a driver forbids is an error here, and a line "wrong: ..." in the log: memory of the wrong kind or too
// short, memory freed while work is queued. Source: CUDA Driver API; -DCUDA_H compares all types with the real cuda.h.
//
//   c++ -std=c++17 -O1 -shared -fPIC -include on_cpu.h driver_standin.cpp -o FOLDER/libcuda.so.1
//
// FOLDER/standin.conf, if it is there:  late N            a stream is busy for N queries before its work is done
//                                       devices N         default 1
//                                       memory BYTES      of the device
//                                       fail CALL N CODE  the Nth call of CALL fails; from 700 on so do all after it
// FOLDER/standin.log: a line a call.

#include <dlfcn.h>

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
#endif

#include "kernels.cu"

namespace {

enum { kSuccess = 0, kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidPtx = 218, kNotReady = 600, kIllegal = 700 };

// No pointer of the process is an address of the device, nor the other way round.
constexpr uint64_t kDevice = 1ull << 56;

struct Stream {
    std::deque<std::function<int()>> work;
    std::vector<uint64_t> uses; // addresses that the work needs
    int queries = 0;
    int failure = kSuccess;
};

struct Driver {
    std::mutex mutex;
    FILE *log = nullptr;
    int late = 0, devices = 1, dead = kSuccess;
    uint64_t memory = 1ull << 30, used = 0;
    std::map<std::string, int> calls;
    std::map<std::pair<std::string, int>, int> failures;
    std::map<uint64_t, uint64_t> on_device; // begin, bytes
    std::map<uint64_t, uint64_t> pinned;
    std::set<Stream *> streams;

    Driver() {
        Dl_info self;
        dladdr((void *)&kDevice, &self);
        std::string folder = self.dli_fname;
        folder.resize(folder.rfind('/') + 1);
        log = fopen((folder + "standin.log").c_str(), "w");
        char line[200], call[100];
        int n, code;
        FILE *conf = fopen((folder + "standin.conf").c_str(), "r");
        while (conf != nullptr && fgets(line, sizeof line, conf) != nullptr) {
            sscanf(line, "late %d", &late);
            sscanf(line, "devices %d", &devices);
            sscanf(line, "memory %ju", (uintmax_t *)&memory);
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

unsigned char *host(CUdeviceptr at) {
    return (unsigned char *)(at ^ kDevice);
}

template <typename T> T parameter(void **parameters, int i) {
    T value;
    memcpy(&value, parameters[i], sizeof value);
    return value;
}

template <typename T> T *pointer(void **parameters, int i) {
    return (T *)host(parameter<CUdeviceptr>(parameters, i));
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
    *version = 12090;
    return (CUresult)kSuccess;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
    static const std::map<int, const char *> names = {
        {kInvalid, "CUDA_ERROR_INVALID_VALUE"}, {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
        {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {kIllegal, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"}, {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}};
    const auto name = names.find((int)error);
    *text = name == names.end() ? nullptr : name->second;
    return (CUresult)(name == names.end() ? kInvalid : kSuccess);
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == (CUresult)kOutOfMemory ? "out of memory" : "as the stand-in was told";
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
    *value = (int)attribute == 75 ? 7 : 0;
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

CUresult cuCtxSetCurrent(CUcontext) {
    return (CUresult)kSuccess;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    ENTER("cuModuleLoadData")
    const char *ptx = (const char *)image;
    *module = (CUmodule)image;
    const bool whole = strstr(ptx, ".entry prbs31_errors(") != nullptr && strstr(ptx, ".entry charges(") != nullptr;
    return (CUresult)(whole ? kSuccess : kInvalidPtx);
}

CUresult cuModuleUnload(CUmodule) {
    ENTER("cuModuleUnload")
    return (CUresult)kSuccess;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
    ENTER("cuModuleGetFunction")
    const bool prbs31 = strcmp(name, "prbs31_errors") == 0;
    *function = prbs31 ? (CUfunction)prbs31_errors : (CUfunction)charges;
    return (CUresult)kSuccess;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    ENTER("cuMemAlloc_v2")
    if (driver.used + bytes > driver.memory) {
        return (CUresult)kOutOfMemory;
    }
    driver.used += bytes;
    *at = (uint64_t)aligned_alloc(512, (bytes + 511) / 512 * 512) ^ kDevice;
    memset(host(*at), 0xA5, bytes);
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
    free(host(at));
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

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t words, CUstream stream) {
    ENTER("cuMemsetD32Async")
    if (!Driver::holds(driver.on_device, at, words * 4) || at % 4 != 0) {
        return (CUresult)driver.wrong("words set outside of memory", kInvalid);
    }
    return queue(stream, {at}, [=] {
        for (size_t i = 0; i < words; ++i) {
            memcpy(host(at) + 4 * i, &value, 4);
        }
        return kSuccess;
    });
}

CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                        unsigned, CUstream stream, void **p, void **) {
    ENTER("cuLaunchKernel")
    const auto data = pointer<const unsigned char>(p, 0);
    const auto count = parameter<unsigned>(p, 2);
    std::function<void()> thread;
    if (function == (CUfunction)prbs31_errors) {
        const auto pieces = pointer<const Piece>(p, 1);
        const auto jumps = pointer<const unsigned>(p, 3);
        const auto flip = parameter<unsigned>(p, 4);
        const auto found = pointer<Found>(p, 5);
        thread = [=] { prbs31_errors(data, pieces, count, jumps, flip, found); };
    } else {
        const auto modules = pointer<const unsigned>(p, 1);
        const auto out = pointer<int>(p, 3);
        thread = [=] { charges(data, modules, count, out); };
    }
    const uint64_t out = parameter<CUdeviceptr>(p, function == (CUfunction)prbs31_errors ? 5 : 3);
    return queue(stream, {parameter<CUdeviceptr>(p, 0), out}, [=] { return on_cpu(blocks, threads, thread), kSuccess; });
}

} // extern "C"
