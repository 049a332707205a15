// SPDX-License-Identifier: Apache-2.0
// What a GPU does with fragments: PRBS-31 compared bit by bit, and the charge of every waveform of the LST camera.
// Promise: integers only, so that a GPU and a processor agree to the bit; every byte of `data` is read once, and each
// thread works alone. `make_ptx.py` makes kernels.ptx of this file; `on_cpu.h` lets a C++ compiler make functions of it.
// Source: ITU-T O.150 (x^31 + x^28 + 1), crates/wire/src/prbs31.rs; data/lst1_run2008/README.md for the modules.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A piece of a payload that must be PRBS-31: at most 32 chunks.
struct Piece {
    u32 offset; // of its first byte in the data, a multiple of 4
    u32 begin;  // the same in its payload
    u32 len;    // bytes
    u32 state;  // of the sequence in front of its payload: 31 bits, the oldest in bit 0, nothing complemented
};

// What was found in a piece; zeros where all is right.
struct Found {
    u32 errors;    // wrong bits
    u32 not_first; // the first wrong byte's place in the payload, complemented: a maximum of these is the first
};

static const u32 kLanes = 32;
static const u32 kChunkBytes = 128;
static const u32 kStateBits = 31;

// Bytes of a module in front of its waveforms, waveforms (two gains, seven pixels), samples of each.
static const u32 kCounterBytes = 22;
static const u32 kWaveforms = 14;
static const u32 kSamples = 40;
static const u32 kHalf = kSamples / 2;

__device__ static u32 thread_number() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// The state so many bytes on. Row k of `jumps` holds what 2^k bytes make of each single bit of a state.
__device__ static u32 jump(const u32 *jumps, u32 state, u32 bytes) {
    for (u32 k = 0; bytes >> k != 0; ++k) {
        if ((bytes >> k & 1) == 0) {
            continue;
        }
        u32 sum = 0;
        for (u32 bit = 0; bit < kStateBits; ++bit) {
            sum ^= (0 - (state >> bit & 1)) & jumps[k * kStateBits + bit];
        }
        state = sum;
        if (k == 31) {
            break; // a shift by 32 is no shift
        }
    }
    return state;
}

// The next 32 bits of the sequence, the first of them in bit 0.
__device__ static u32 next_word(u32 *state) {
    u64 bits = *state;
    bits |= ((bits ^ bits >> 3) & 0x0FFFFFFF) << 31;
    u64 behind = bits >> 28;
    bits |= ((behind ^ behind >> 3) & 0xF) << 59;
    *state = (u32)(bits >> 32) & 0x7FFFFFFF;
    return (u32)(bits >> 31);
}

// Thirty-two threads a piece, one chunk each. `flip` is all ones where the sequence is sent complemented.
extern "C" __global__ void prbs31_errors(const u8 *data, const Piece *pieces, u32 count, const u32 *jumps, u32 flip,
                                         Found *found) {
    const u32 number = thread_number() / kLanes;
    if (number >= count) {
        return;
    }
    const Piece piece = pieces[number];
    const u32 from = thread_number() % kLanes * kChunkBytes;
    const u32 end = piece.len < from + kChunkBytes ? piece.len : from + kChunkBytes;
    if (from >= end) {
        return;
    }
    const u8 *bytes = data + piece.offset;
    u32 state = jump(jumps, piece.state, piece.begin + from);
    u32 errors = 0;
    u32 not_first = 0;
    for (u32 at = from; at < end; at += 4) {
        u32 wrong = next_word(&state) ^ flip;
        if (at + 4 <= end) {
            wrong ^= *(const u32 *)(bytes + at);
        } else {
            for (u32 i = 0; at + i < end; ++i) {
                wrong ^= (u32)bytes[at + i] << 8 * i;
            }
            wrong &= (1u << 8 * (end - at)) - 1;
        }
        if (wrong != 0) {
            if (errors == 0) {
                not_first = ~(piece.begin + at + (__ffs((int)wrong) - 1) / 8);
            }
            errors += __popc(wrong);
        }
    }
    if (errors != 0) {
        atomicAdd(&found[number].errors, errors);
        atomicMax(&found[number].not_first, not_first);
    }
}

// A thread a waveform: the sum of its samples above its pedestal, which is the median of the forty: the mean of the two
// in the middle, so that the charge is a whole number. `modules` are their offsets in the data, even ones.
extern "C" __global__ void charges(const u8 *data, const u32 *modules, u32 count, int *out) {
    const u32 number = thread_number();
    if (number / kWaveforms >= count) {
        return;
    }
    const u8 *module = data + modules[number / kWaveforms] + kCounterBytes;
    const u16 *waveform = (const u16 *)module + number % kWaveforms * kSamples;
    u16 samples[kSamples];
    int sum = 0;
    for (u32 i = 0; i < kSamples; ++i) {
        samples[i] = waveform[i];
        sum += samples[i];
    }
    int lower = 0;
    int upper = 0;
    for (u32 i = 0; i < kSamples; ++i) {
        u32 smaller = 0;
        u32 not_larger = 0;
        for (u32 j = 0; j < kSamples; ++j) {
            smaller += samples[j] < samples[i];
            not_larger += samples[j] <= samples[i];
        }
        if (smaller < kHalf && kHalf <= not_larger) {
            lower = samples[i];
        }
        if (smaller <= kHalf && kHalf < not_larger) {
            upper = samples[i];
        }
    }
    out[number] = sum - (int)kHalf * (lower + upper);
}
