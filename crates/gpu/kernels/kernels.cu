// SPDX-License-Identifier: Apache-2.0
// What a GPU does with fragments: their headers gathered and their CRC-32C computed where a NIC has written them, PRBS-31
// compared bit by bit, and the charge of every waveform of the LST camera. Addresses are those of the device.
// Promise: integers only, so that a GPU and a processor agree to the bit; every byte of a payload is read once, and each
// thread works alone. `make_ptx.py` makes kernels.ptx of this file; `on_cpu.h` lets a C++ compiler make functions of it.
// Source: ITU-T O.150 (x^31 + x^28 + 1), crates/wire/src/prbs31.rs; data/lst1_run2008/README.md for the modules; CRC-32C
// as crates/wire/src/crc.rs has it, in parts: a CRC is linear, so those of the parts are moved on by what follows and added.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A piece of a payload that must be PRBS-31: at most 32 chunks.
struct Piece {
    u64 at;    // address of its first byte, a multiple of 4
    u32 begin; // of that byte in its payload
    u32 len;   // bytes
    u32 state; // of the sequence in front of its payload: 31 bits, the oldest in bit 0, nothing complemented
    u32 unused;
};

// What was found in a piece; zeros where all is right.
struct Found {
    u32 errors;    // wrong bits
    u32 not_first; // the first wrong byte's place in the payload, complemented: a maximum of these is the first
};

// A part of a message that is a fragment's header and its payload: at most 32 chunks of the payload.
struct Part {
    u64 at;      // address of its first byte, a multiple of 4
    u32 message; // whose it is
    u32 len;     // bytes; none where the payload has none
    u32 behind;  // bytes of the payload behind these
    u32 first;   // 1: the header lies in front of this part
};

// What is read of a message: header, the first and the last four bytes of its payload (fewer: zeros), its CRC-32C.
struct Read {
    u32 header[10];
    u32 begin;
    u32 end;
    u32 crc;
};

static const u32 kHeaderWords = 10;
static const u32 kPolynomial = 0x82F63B78; // CRC-32C, the highest power in bit 0

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
extern "C" __global__ void prbs31_errors(const Piece *pieces, u32 count, const u32 *jumps, u32 flip, Found *found) {
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
    const u8 *bytes = (const u8 *)piece.at;
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
// in the middle, so that the charge is a whole number. `modules` are their addresses, even ones.
extern "C" __global__ void charges(const u64 *modules, u32 count, int *out) {
    const u32 number = thread_number();
    if (number / kWaveforms >= count) {
        return;
    }
    const u8 *module = (const u8 *)modules[number / kWaveforms] + kCounterBytes;
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

// The product of two polynomials modulo that of CRC-32C; the highest power in bit 0.
__device__ static u32 product(u32 a, u32 b) {
    u32 sum = 0;
    for (u32 i = 0; i < 32; ++i) {
        sum ^= (0 - (a >> 31)) & b;
        a <<= 1;
        b = b >> 1 ^ ((0 - (b & 1)) & kPolynomial);
    }
    return sum;
}

// What a CRC becomes behind so many bytes of zeros. Word k of `powers` is x to the power of 8 * 2^k.
__device__ static u32 behind_zeros(const u32 *powers, u32 crc, u32 bytes) {
    for (u32 k = 0; bytes != 0; ++k) {
        if ((bytes & 1) != 0) {
            crc = product(powers[k], crc);
        }
        bytes >>= 1;
    }
    return crc;
}

__device__ static u32 word_of(const u8 *bytes, u32 len) {
    u32 word = 0;
    for (u32 i = 0; i < len; ++i) {
        word |= (u32)bytes[i] << 8 * i;
    }
    return word;
}

// Thirty-two threads a part, one chunk each. `tables`: the 32 powers of `behind_zeros`, then four tables of 256 words, of
// which the k-th has what a byte becomes behind k bytes of zeros. `read` is zeros before.
extern "C" __global__ void read_fragments(const Part *parts, u32 count, const u32 *tables, Read *read) {
    const u32 number = thread_number() / kLanes;
    const u32 lane = thread_number() % kLanes;
    if (number >= count) {
        return;
    }
    const Part part = parts[number];
    const u8 *bytes = (const u8 *)part.at;
    Read *out = &read[part.message];
    if (part.first != 0 && lane < kHeaderWords) {
        out->header[lane] = ((const u32 *)bytes)[(int)lane - (int)kHeaderWords];
    }
    if (part.first != 0 && lane == 0) {
        out->begin = word_of(bytes, part.len < 4 ? part.len : 4);
        // A CRC begins with ones and is complemented at its end.
        atomicXor(&out->crc, ~behind_zeros(tables, 0xFFFFFFFF, part.len + part.behind));
    }
    if (part.behind == 0 && lane == 0) {
        // Where a payload is longer than this part, its last four bytes may begin in front of it.
        const u32 whole = part.first != 0 && part.len < 4 ? part.len : 4;
        out->end = word_of(bytes + part.len - whole, whole);
    }
    const u32 *slices = tables + 32;
    const u32 from = lane * kChunkBytes;
    const u32 end = part.len < from + kChunkBytes ? part.len : from + kChunkBytes;
    if (from >= end) {
        return;
    }
    u32 crc = 0;
    u32 at = from;
    for (; at + 4 <= end; at += 4) {
        crc ^= *(const u32 *)(bytes + at);
        crc = slices[3 * 256 + (crc & 0xFF)] ^ slices[2 * 256 + (crc >> 8 & 0xFF)] ^ slices[256 + (crc >> 16 & 0xFF)] ^
              slices[crc >> 24];
    }
    for (; at < end; ++at) {
        crc = crc >> 8 ^ slices[(crc ^ bytes[at]) & 0xFF];
    }
    atomicXor(&out->crc, behind_zeros(tables, crc, part.len - end + part.behind));
}
