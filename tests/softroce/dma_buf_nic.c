// SPDX-License-Identifier: Apache-2.0
// A libibverbs.so.1 in front of the real one, with which rdma_rxe takes a dma-buf: if that is a file in memory, it maps it
// and registers the mapping at the address that was asked for. For tests with the stand-in driver of crates/gpu/kernels.
// Promise: everything else is the real library's. Source: ibv_reg_dmabuf_mr(3), ibv_reg_mr(3).

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

struct ibv_pd;
struct ibv_mr;
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t length, uint64_t iova, unsigned int access);
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int file, int access);
int ibv_dereg_mr(struct ibv_mr *mr);

enum { kMost = 1024 };
static struct {
    struct ibv_mr *mr;
    void *at;
    size_t length;
} mapped[kMost];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int file, int access) {
    void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    if (at == MAP_FAILED) {
        return NULL;
    }
    struct ibv_mr *mr = ibv_reg_mr_iova2(pd, at, length, iova, (unsigned)access);
    const int failure = errno;
    pthread_mutex_lock(&lock);
    for (int i = 0; mr != NULL && i < kMost; ++i) {
        if (mapped[i].mr == NULL) {
            mapped[i].mr = mr;
            mapped[i].at = at;
            mapped[i].length = length;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    if (mr == NULL) {
        munmap(at, length);
        errno = failure;
    }
    return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr) {
    int (*real)(struct ibv_mr *) = (int (*)(struct ibv_mr *))dlsym(RTLD_NEXT, "ibv_dereg_mr");
    if (real == NULL) {
        return ENOSYS;
    }
    const int status = real(mr);
    pthread_mutex_lock(&lock);
    for (int i = 0; status == 0 && i < kMost; ++i) {
        if (mapped[i].mr == mr) {
            munmap(mapped[i].at, mapped[i].length);
            mapped[i].mr = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}
