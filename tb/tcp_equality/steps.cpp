// SPDX-License-Identifier: Apache-2.0
// Drives tcp_engine with the history on standard input (example `tcp_steps` of crates/transport), an event a cycle.
// The gateware goes on from its own rows; the first difference is printed, and ends the run. The deadline of a timer
// that is off says nothing: it is taken from the model.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>

#include "Vtcp_step_harness.h"

namespace {

constexpr int kEventWords = 7;
constexpr int kRowWords = 18;
constexpr int kActionWords = 5;
constexpr int kParamWords = 10;
constexpr int kStreams = 64;
constexpr int kDeadline = 8, kBits = 16;  // words of a row
constexpr uint32_t kTimerOn = 1 << 3;     // in kBits
const char* const kRow[kRowWords] = {
    "una", "nxt", "max", "written", "window, state << 30", "max_window, duplicates << 30", "rcv_nxt",
    "recover", "deadline", "timed_seq", "timed_at", "srtt", "rttvar", "reset_seq", "challenge_at",
    "mss, shift << 14, tries << 18, backoff << 26",
    "repairing, resend, probing, timer_on, timing, measured, syn_due, ack_due, reset_due, reset_acks, challenge_held,"
    " shortened, path_at << 24",
    "too_long, whole_mss << 16"};
const char* const kActions[kActionWords] = {"opened, ended << 1, transmit_pending << 5, counts << 16", "acknowledged",
                                            "send.seq", "send.ack", "send.flags, len << 8, valid << 24"};
const char* const kKinds[8] = {"Open", "Abort", "Written", "Segment", "PathMtu", "Tick", "Transmit", "?"};

struct Record {
    uint32_t stream, event[kEventWords], row[kRowWords], actions[kActionWords];
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
    bool happen(const Record& record) {
        top_.in_valid = 1;
        std::memcpy(&top_.in_event, record.event, sizeof record.event);
        std::memcpy(&top_.in_row, row_[record.stream % kStreams], sizeof record.row);
        in_flight_.push_back(record);
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

    void params(const uint32_t* words) {
        top_.params_valid = 1;
        std::memcpy(&top_.params_words, words, kParamWords * 4);
        cycle();
        top_.params_valid = 0;
    }

    void put(uint32_t stream, const uint32_t* row) { std::memcpy(row_[stream % kStreams], row, kRowWords * 4); }

    uint64_t events() const { return events_; }

private:
    void cycle() {
        top_.clk = 0;
        top_.eval();
        top_.clk = 1;
        top_.eval();
    }

    bool check() {
        if (!top_.out_valid) {
            if (in_flight_.size() <= 4) return true;
            std::printf("event %llu: no answer\n", static_cast<unsigned long long>(events_));
            return false;
        }
        const Record expected = in_flight_.front();
        in_flight_.pop_front();
        uint32_t before[kRowWords];
        uint32_t* const row = row_[expected.stream % kStreams];
        std::memcpy(before, row, sizeof before);
        std::memcpy(row, &top_.out_row, sizeof expected.row);
        uint32_t actions[kActionWords];
        std::memcpy(actions, &top_.out_actions, sizeof actions);
        if (!(row[kBits] & kTimerOn)) row[kDeadline] = expected.row[kDeadline];
        const bool equal = std::memcmp(row, expected.row, sizeof expected.row) == 0 &&
                           std::memcmp(actions, expected.actions, sizeof actions) == 0;
        if (!equal) report(expected, before, row, actions);
        ++events_;
        return equal;
    }

    void report(const Record& expected, const uint32_t* before, const uint32_t* row, const uint32_t* actions) {
        const uint32_t* event = expected.event;
        std::printf("event %llu, stream %u: %s at 0x%08x, seq 0x%08x, ack 0x%08x, flags and window 0x%08x, len and mss"
                    " 0x%08x, scale 0x%08x\n",
                    static_cast<unsigned long long>(events_), expected.stream, kKinds[event[0] & 7], event[1],
                    event[2], event[3], event[4], event[5], event[6]);
        for (int i = 0; i < kRowWords; i++)
            std::printf("  %s %s: before 0x%08x, gateware 0x%08x, model 0x%08x\n",
                        row[i] != expected.row[i] ? "DIFFERS" : "       ", kRow[i], before[i], row[i],
                        expected.row[i]);
        for (int i = 0; i < kActionWords; i++)
            if (actions[i] != expected.actions[i])
                std::printf("  DIFFERS %s: gateware 0x%08x, model 0x%08x\n", kActions[i], actions[i],
                            expected.actions[i]);
    }

    Vtcp_step_harness top_;
    std::deque<Record> in_flight_;
    uint32_t row_[kStreams][kRowWords] = {};
    uint64_t events_ = 0;
};

bool read(uint32_t* words, size_t count) { return std::fread(words, 4, count, stdin) == count; }

}  // namespace

int main() {
    static char buffer[1 << 20];
    std::setvbuf(stdin, buffer, _IOFBF, sizeof buffer);
    Bench bench;
    uint32_t kind, stream, words[kRowWords];
    Record record;
    while (read(&kind, 1)) {
        if (kind == 1) {
            if (!read(words, kParamWords)) return 2;
            if (!bench.drain()) return 1;
            bench.params(words);
        } else if (kind == 2) {
            if (!read(&stream, 1) || !read(words, kRowWords)) return 2;
            if (!bench.drain()) return 1;
            bench.put(stream, words);
        } else {
            if (!read(&record.stream, sizeof record / 4)) return 2;
            if (!bench.happen(record)) return 1;
        }
    }
    if (!bench.drain()) return 1;
    std::printf("%llu events equal\n", static_cast<unsigned long long>(bench.events()));
    return bench.events() == 0;
}
