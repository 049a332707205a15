// SPDX-License-Identifier: Apache-2.0
// CUDA C on a processor, as far as kernels.cu uses it: c++ -x c++ -include on_cpu.h kernels.cu
// Promise: a kernel is a function that computes one thread; `on_cpu` calls it for all threads of a launch, in order.
// Source: CUDA C++ Programming Guide, "C++ Language Extensions".
#pragma once

#define __global__
#define __device__

struct Dimensions {
    unsigned x = 1;
};
static thread_local Dimensions gridDim, blockDim, blockIdx, threadIdx;

static inline int __ffs(int bits) {
    return __builtin_ffs(bits);
}

static inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}

// Threads follow each other here, so nothing need be atomic.
static inline unsigned atomicAdd(unsigned *at, unsigned more) {
    const unsigned before = *at;
    *at += more;
    return before;
}

static inline unsigned atomicXor(unsigned *at, unsigned other) {
    const unsigned before = *at;
    *at ^= other;
    return before;
}

static inline unsigned atomicMax(unsigned *at, unsigned other) {
    const unsigned before = *at;
    *at = other > before ? other : before;
    return before;
}

template <typename Thread> static void on_cpu(unsigned blocks, unsigned threads, Thread thread) {
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {
            thread();
        }
    }
}
