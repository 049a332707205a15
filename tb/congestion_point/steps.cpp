// SPDX-License-Identifier: Apache-2.0
// Drives congestion points with the history on standard input (example `congestion_points` of crates/cc), a frame at a
// time. The gateware goes on from its own state; the first difference is printed, and ends the run.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "Vcongestion_point_harness.h"

namespace {

constexpr int kParamWords = 12;
constexpr int kBusyCycles = 12;

struct Frame {
    uint32_t point, bytes, queue, feedback, queue_old;
};

class Bench {
public:
    void restart(const uint32_t* words) {
        std::memcpy(&top_.params, words, kParamWords * 4);
        top_.rst = 1;
        cycle();
        top_.rst = 0;
    }

    // False at the first difference.
    bool arrive(const Frame& frame) {
        top_.in_valid = 1;
        top_.in_point = frame.point;
        top_.in_bytes = frame.bytes;
        top_.in_queue = frame.queue;
        cycle();
        top_.in_valid = 0;
        int busy = 0;
        while (top_.busy && busy <= kBusyCycles) {
            cycle();
            busy++;
        }
        ++frames_;
        samples_ += busy != 0;
        const bool notified = top_.out_valid >> frame.point & 1;
        const uint32_t feedback = notified ? top_.out_feedback[frame.point] : 0;
        messages_ += notified;
        const bool elsewhere = top_.out_valid & ~(1u << frame.point);
        if ((busy == 0 || busy == kBusyCycles) && !elsewhere && feedback == frame.feedback &&
            (!notified || (top_.out_queue[frame.point] == frame.queue &&
                       top_.out_queue_old[frame.point] == frame.queue_old)))
            return true;
        std::printf("frame %llu: point %u, %u bytes, queue %u: busy for %d cycles\n",
                    static_cast<unsigned long long>(frames_), frame.point, frame.bytes, frame.queue, busy);
        std::printf("  |F_b|: gateware %u, model %u\n", feedback, frame.feedback);
        if (notified)
            std::printf("  queue at the last sample: gateware %u, model %u\n", top_.out_queue_old[frame.point],
                        frame.queue_old);
        return false;
    }

    bool report() const {
        std::printf("%llu frames, %llu samples, %llu messages equal\n", static_cast<unsigned long long>(frames_),
                    static_cast<unsigned long long>(samples_), static_cast<unsigned long long>(messages_));
        return messages_ != 0;
    }

private:
    void cycle() {
        top_.clk = 0;
        top_.eval();
        top_.clk = 1;
        top_.eval();
    }

    Vcongestion_point_harness top_;
    uint64_t frames_ = 0, samples_ = 0, messages_ = 0;
};

bool read(uint32_t* words, size_t count) { return std::fread(words, 4, count, stdin) == count; }

}  // namespace

int main() {
    static char buffer[1 << 20];
    std::setvbuf(stdin, buffer, _IOFBF, sizeof buffer);
    Bench bench;
    uint32_t kind, words[kParamWords];
    Frame frame;
    while (read(&kind, 1)) {
        if (kind == 1) {
            if (!read(words, kParamWords)) return 2;
            bench.restart(words);
        } else {
            if (!read(&frame.point, sizeof frame / 4)) return 2;
            if (!bench.arrive(frame)) return 1;
        }
    }
    return !bench.report();
}
