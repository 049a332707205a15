// SPDX-License-Identifier: Apache-2.0
// Drives cc_step with the history on standard input (example `steps` of crates/cc), a visit a cycle.
// The gateware goes on from its own state words; the first difference is printed, and ends the run.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>

#include "Vcc_step_harness.h"

namespace {

constexpr int kStateWords = 9;
constexpr int kCcWords = sizeof(Vcc_step_harness::params_words) / 4;  // registers of a group
constexpr int kQcnWords = sizeof(Vcc_step_harness::params_qcn_words) / 4;
constexpr int kParamWords = kCcWords + kQcnWords;
const char* const kNames[kStateWords] = {
    "rate_current", "rate_target", "timer_elapsed",   "bytes_sent",            "stages, limited, law",
    "cnp_handled",  "alpha or lfsr", "since_cut or timer_limit", "alpha_elapsed or byte_limit"};

struct Visit {
    uint32_t what, bytes, state[kStateWords], flags;
};

class Bench {
public:
    Bench() {
        top_.rst = 1;
        cycle();
        cycle();
        top_.rst = 0;
    }

    // Both return false at the first difference.
    bool visit(const Visit& visit) {
        top_.in_valid = 1;
        top_.in_what = visit.what;
        top_.in_bytes = visit.bytes;
        std::memcpy(&top_.in_state, state_[visit.what & 255], sizeof visit.state);
        in_flight_.push_back(visit);
        cycle();
        top_.in_valid = 0;
        return check();
    }

    bool drain() {
        while (!in_flight_.empty()) {
            cycle();
            if (!check()) return false;
        }
        return true;
    }

    void params(uint32_t group, const uint32_t* words) {
        top_.params_valid = 1;
        top_.params_group = group;
        std::memcpy(&top_.params_words, words, kCcWords * 4);
        std::memcpy(&top_.params_qcn_words, words + kCcWords, kQcnWords * 4);
        cycle();
        top_.params_valid = 0;
    }

    uint64_t visits() const { return visits_; }

private:
    void cycle() {
        top_.clk = 0;
        top_.eval();
        top_.clk = 1;
        top_.eval();
    }

    bool check() {
        if (!top_.out_valid) {
            if (in_flight_.size() <= 16) return true;
            std::printf("visit %llu: no answer\n", static_cast<unsigned long long>(visits_));
            return false;
        }
        const Visit expected = in_flight_.front();
        in_flight_.pop_front();
        uint32_t* const state = state_[expected.what & 255];
        std::memcpy(state, &top_.out_state, sizeof expected.state);
        const bool equal = std::memcmp(state, expected.state, sizeof expected.state) == 0 &&
                           top_.out_flags == expected.flags && top_.out_qp == (expected.what & 255);
        if (!equal) report(expected, state);
        ++visits_;
        return equal;
    }

    void report(const Visit& expected, const uint32_t* state) {
        std::printf("visit %llu: what = 0x%x, bytes = %u, queue pair %u answers for %u\n",
                    static_cast<unsigned long long>(visits_), expected.what, expected.bytes, expected.what & 255,
                    top_.out_qp);
        for (int i = 0; i < kStateWords; i++)
            if (state[i] != expected.state[i])
                std::printf("  %s: gateware 0x%08x, model 0x%08x\n", kNames[i], state[i], expected.state[i]);
        if (top_.out_flags != expected.flags)
            std::printf("  unlimited, ignored, clamped, low: gateware %u, model %u\n", top_.out_flags, expected.flags);
    }

    Vcc_step_harness top_;
    std::deque<Visit> in_flight_;
    uint32_t state_[256][kStateWords] = {};
    uint64_t visits_ = 0;
};

bool read(uint32_t* words, size_t count) { return std::fread(words, 4, count, stdin) == count; }

}  // namespace

int main() {
    static char buffer[1 << 20];
    std::setvbuf(stdin, buffer, _IOFBF, sizeof buffer);
    Bench bench;
    uint32_t kind, group, words[kParamWords];
    Visit visit;
    while (read(&kind, 1)) {
        if (kind == 1) {
            if (!read(&group, 1) || !read(words, kParamWords)) return 2;
            if (!bench.drain()) return 1;
            bench.params(group, words);
        } else {
            if (!read(&visit.what, sizeof visit / 4)) return 2;
            if (!bench.visit(visit)) return 1;
        }
    }
    if (!bench.drain()) return 1;
    std::printf("%llu visits equal\n", static_cast<unsigned long long>(bench.visits()));
    return bench.visits() == 0;
}
