// SPDX-License-Identifier: Apache-2.0
// Opens a queue pair of a front end from the processor beside it (Zynq, Versal, a soft core with Linux): hands its
// number, its first PSN, and a window that the server may read, to `penstock recv --exchange PORT` as one line of JSON,
// gets the server's, and sets the registers over AXI4-Lite. One file, no library: docs/exchange.md.
//
//     cc -O2 -o exchange exchange.c
//     exchange --server 192.168.1.10:18600 --registers /dev/uio0 --gateway-mac 02:00:0a:00:00:01
//
// Registers: regs/penstock.rdl. Another way to them (SPI, PCIe) needs two functions, as in `struct bus`: compile with
// -DEXCHANGE_AS_LIBRARY and call `exchange_open`.

#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// Byte addresses of regs/penstock.rdl; tests/test_recv_exchange.py compares them with it.
#define ID 0x000
#define BUILD 0x008
#define LOCAL_IP 0x028
#define QPN_BASE 0x030
#define RINGS 0x4000
#define RINGS_STRIDE 0x20
#define RING_BASE_LO 0x00
#define RING_BASE_HI 0x04
#define RING_SLOTS 0x08
#define RING_SLOT_SIZE 0x0C
#define RING_NEXT_SLOT 0x10
#define QP_TABLE 0x10000
#define QP_STRIDE 0x100
#define QP_DST_MAC_HI 0x00
#define QP_DST_MAC_LO 0x04
#define QP_DST_IP 0x08
#define QP_FLOW 0x0C
#define QP_DEST_QPN 0x10
#define QP_RKEY 0x14
#define QP_TRANSPORT 0x18
#define QP_INIT_PSN 0x1C
#define QP_STATE 0x20
#define MAP_BYTES 0x20000

#define ID_VALUE 0x5053544B
#define RESET 0
#define READY_TO_SEND 3
#define STATE_MASK 7
#define ECN_CAPABLE 2       // TOS of ECT(0): switches mark instead of dropping
#define FLOW_TOS_SHIFT 16
#define TIMEOUT_SHIFT 4
#define RETRY_SHIFT 12
#define RNR_SHIFT 16

// How the registers are reached. `user` is passed through. Both give 0, or -1 with errno.
struct bus {
    int (*read)(void *user, uint32_t address, uint32_t *value);
    int (*write)(void *user, uint32_t address, uint32_t value);
    void *user;
};

// What is agreed on beside the queue pair.
struct exchange_options {
    const char *host;       // of the server
    const char *port;
    uint32_t qp;            // index of the queue pair, from 0
    uint32_t psn;           // of its first packet, 24 bits
    uint32_t window_key;    // a window that the server may read; 0: none
    uint64_t window_address;
    uint64_t next_hop_mac;  // 0: as the server says
    uint32_t ack_timeout;   // 4.096 us * 2^code, 0 to 31
    uint32_t retry_cnt;     // 0 to 7
    uint32_t rnr_retry;     // 7: without end
};

static char trouble[256];

// Why the last call has failed.
const char *exchange_trouble(void) { return trouble; }

static int fail(const char *what, const char *why) {
    snprintf(trouble, sizeof trouble, "%s: %s", what, why);
    return -1;
}

// The value of a member that is a number; 0 if it is there.
static int number_of(const char *line, const char *name, uint64_t *value) {
    char key[32];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    char *end = NULL;
    if (at != NULL) {
        at += strlen(key);
        errno = 0;
        *value = strtoull(at, &end, 10);
    }
    return at != NULL && end != at && errno == 0 ? 0 : fail("the server's line has no number", name);
}

// The same of a string, without escapes.
static int string_of(const char *line, const char *name, char *value, size_t size) {
    char key[32];
    snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(line, key);
    const char *end = at == NULL ? NULL : strchr(at + strlen(key), '"');
    if (end == NULL || (size_t)(end - at) - strlen(key) >= size) return fail("the server's line has no string", name);
    size_t len = (size_t)(end - at) - strlen(key);
    memcpy(value, at + strlen(key), len);
    value[len] = 0;
    return 0;
}

static int mac_of(const char *text, uint64_t *mac) {
    unsigned part[6];
    char rest;
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", part, part + 1, part + 2, part + 3, part + 4, part + 5, &rest) != 6)
        return fail(text, "is no MAC address");
    *mac = 0;
    for (int i = 0; i < 6; i++) *mac = *mac << 8 | part[i];
    return 0;
}

// Sends a line and gets one.
static int converse(const struct exchange_options *options, const char *request, char *answer, size_t size) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(options->host, options->port, &hints, &found);
    if (error != 0) return fail(options->host, gai_strerror(error));
    int fd = socket(found->ai_family, found->ai_socktype, 0);
    // The server answers or refuses within 5 s.
    struct timeval patience = {.tv_sec = 10};
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    int done = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 ? 0 : -1;
    freeaddrinfo(found);
    size_t len = strlen(request);
    if (done == 0 && send(fd, request, len, MSG_NOSIGNAL) != (ssize_t)len) done = -1;
    size_t held = 0;
    while (done == 0 && held + 1 < size) {
        ssize_t part = recv(fd, answer + held, size - 1 - held, 0);
        if (part == 0) errno = ECONNRESET;
        if (part <= 0) {
            done = -1;
            break;
        }
        held += (size_t)part;
        if (memchr(answer, '\n', held) != NULL) break;
    }
    answer[held] = 0;
    int why = errno;
    if (fd >= 0) close(fd);
    if (done != 0) return fail("server", strerror(why));
    if (string_of(answer, "error", trouble, sizeof trouble) == 0) return -1;
    return 0;
}

static int set(const struct bus *bus, uint32_t address, uint32_t value) {
    return bus->write(bus->user, address, value) == 0 ? 0 : fail("register", strerror(errno));
}

static int get(const struct bus *bus, uint32_t address, uint32_t *value) {
    return bus->read(bus->user, address, value) == 0 ? 0 : fail("register", strerror(errno));
}

// Resets the queue pair, agrees with the server, and has it ready to send. 0, or -1: `exchange_trouble`.
int exchange_open(const struct bus *bus, const struct exchange_options *options) {
    uint32_t id, build, ip, base, state = RESET;
    if (get(bus, ID, &id) || get(bus, BUILD, &build) || get(bus, LOCAL_IP, &ip) || get(bus, QPN_BASE, &base)) return -1;
    if (id != ID_VALUE) return fail("registers", "this is no Penstock front end");
    if (options->qp >= build >> 16) return fail("queue pair", "the front end has fewer");
    if (ip == 0) return fail("local_ip", "is not set: the front end has no address");
    uint32_t row = QP_TABLE + options->qp * QP_STRIDE, ring = RINGS + options->qp * RINGS_STRIDE;
    if (set(bus, row + QP_STATE, RESET)) return -1;

    char request[256], answer[1024], text[32];
    snprintf(request, sizeof request,
             "{\"ip\":\"%u.%u.%u.%u\",\"qpn\":%u,\"psn\":%u,\"rkey\":%u,\"address\":%llu}\n", ip >> 24, ip >> 16 & 255,
             ip >> 8 & 255, ip & 255, base + options->qp, options->psn, options->window_key,
             (unsigned long long)options->window_address);
    if (converse(options, request, answer, sizeof answer)) return -1;

    uint64_t mac = options->next_hop_mac, qpn, rkey, address, slots, slot_bytes, mtu;
    struct in_addr server;
    if (string_of(answer, "ip", text, sizeof text)) return -1;
    if (inet_pton(AF_INET, text, &server) != 1) return fail(text, "is no IPv4 address");
    if (mac == 0 && (string_of(answer, "mac", text, sizeof text) || mac_of(text, &mac))) return -1;
    if (number_of(answer, "qpn", &qpn) || number_of(answer, "rkey", &rkey) || number_of(answer, "address", &address) ||
        number_of(answer, "slots", &slots) || number_of(answer, "slot_bytes", &slot_bytes) ||
        number_of(answer, "mtu", &mtu))
        return -1;
    uint32_t mtu_code = 0;
    while (mtu_code <= 5 && (128u << mtu_code) != mtu) mtu_code++;
    if (mtu_code < 1 || mtu_code > 5) return fail("mtu", "allowed are 256, 512, 1024, 2048 and 4096");

    const uint32_t words[][2] = {
        {ring + RING_BASE_LO, (uint32_t)address},
        {ring + RING_BASE_HI, (uint32_t)(address >> 32)},
        {ring + RING_SLOTS, (uint32_t)slots},
        {ring + RING_SLOT_SIZE, (uint32_t)slot_bytes},
        {ring + RING_NEXT_SLOT, 0},
        {row + QP_DST_MAC_HI, (uint32_t)(mac >> 32)},
        {row + QP_DST_MAC_LO, (uint32_t)mac},
        {row + QP_DST_IP, ntohl(server.s_addr)},
        {row + QP_FLOW, ECN_CAPABLE << FLOW_TOS_SHIFT},
        {row + QP_DEST_QPN, (uint32_t)qpn},
        {row + QP_RKEY, (uint32_t)rkey},
        {row + QP_TRANSPORT, mtu_code | options->ack_timeout << TIMEOUT_SHIFT | options->retry_cnt << RETRY_SHIFT |
                                 options->rnr_retry << RNR_SHIFT},
        {row + QP_INIT_PSN, options->psn},
        {row + QP_STATE, READY_TO_SEND},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (set(bus, words[i][0], words[i][1])) return -1;
    // A command takes effect when the requester next visits the queue pair: at once, for software.
    for (int looks = 0; looks < 1000; looks++) {
        if (get(bus, row + QP_STATE, &state)) return -1;
        if ((state & STATE_MASK) == READY_TO_SEND) return 0;
    }
    return fail("queue pair", "it does not become ready to send: messages of its last connection have no completion");
}

#ifndef EXCHANGE_AS_LIBRARY

static int map_read(void *user, uint32_t address, uint32_t *value) {
    *value = ((volatile uint32_t *)user)[address / 4];
    return 0;
}

static int map_write(void *user, uint32_t address, uint32_t value) {
    ((volatile uint32_t *)user)[address / 4] = value;
    return 0;
}

static const char usage[] =
    "exchange --server HOST:PORT --registers DEVICE [--at OFFSET] [--qp N] [--psn N] [--gateway-mac MAC]\n"
    "         [--window KEY:ADDRESS] [--ack-timeout CODE] [--retry-cnt N] [--rnr-retry N]\n"
    "  --registers    the file whose mapping are the front end's registers: /dev/uio0, or /dev/mem with --at\n"
    "  --at           where they begin in that file [0]\n"
    "  --qp           index of the queue pair [0]\n"
    "  --psn          of the first packet [random]\n"
    "  --gateway-mac  MAC address of the next hop [that of the server]\n"
    "  --window       memory that the server may read, as set in the front end's registers [none]\n"
    "  --ack-timeout, --retry-cnt, --rnr-retry  as in ibv_qp_attr [14, 7, 7]\n";

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "exchange: %s: %s\n%s", what, why, usage);
    return 2;
}

static int read_number(const char *text, uint64_t most, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return errno == 0 && *text != 0 && *text != '-' && *end == 0 && *value <= most ? 0 : -1;
}

int main(int argc, char **argv) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct exchange_options options = {.ack_timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    options.psn = ((uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec << 8 ^ (uint32_t)getpid()) & 0xFFFFFF;
    const char *device = NULL;
    uint64_t at = 0, value;
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i];
        char *text = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--help") == 0) return fputs(usage, stdout) < 0;
        if (text == NULL) return refuse(name, "a value is missing");
        char *colon = strrchr(text, ':');
        if (strcmp(name, "--server") == 0) {
            if (colon == NULL || colon == text) return refuse(text, "write HOST:PORT");
            *colon = 0;
            options.host = text;
            options.port = colon + 1;
        } else if (strcmp(name, "--registers") == 0) {
            device = text;
        } else if (strcmp(name, "--gateway-mac") == 0) {
            if (mac_of(text, &options.next_hop_mac)) return refuse(text, "is no MAC address");
        } else if (strcmp(name, "--window") == 0) {
            if (colon == NULL) return refuse(text, "write KEY:ADDRESS");
            *colon = 0;
            if (read_number(text, UINT32_MAX, &value)) return refuse(text, "is no key");
            options.window_key = (uint32_t)value;
            if (read_number(colon + 1, UINT64_MAX, &options.window_address)) return refuse(colon + 1, "is no address");
        } else {
            const struct {
                const char *name;
                uint64_t most;
                uint32_t *value;
            } numbers[] = {
                {"--qp", 255, &options.qp},
                {"--psn", 0xFFFFFF, &options.psn},
                {"--ack-timeout", 31, &options.ack_timeout},
                {"--retry-cnt", 7, &options.retry_cnt},
                {"--rnr-retry", 7, &options.rnr_retry},
            };
            size_t n = 0, count = sizeof numbers / sizeof *numbers;
            if (strcmp(name, "--at") == 0) {
                if (read_number(text, INT64_MAX, &at)) return refuse(text, "is no offset");
                continue;
            }
            while (n < count && strcmp(name, numbers[n].name) != 0) n++;
            if (n == count) return refuse(name, "there is no such option");
            if (read_number(text, numbers[n].most, &value)) return refuse(name, "the value is out of range");
            *numbers[n].value = (uint32_t)value;
        }
    }
    if (options.host == NULL || device == NULL) return refuse("options", "--server and --registers are needed");

    int fd = open(device, O_RDWR | O_SYNC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
    if (map == MAP_FAILED) {
        fprintf(stderr, "exchange: %s: %s\n", device, strerror(errno));
        return 1;
    }
    struct bus bus = {.read = map_read, .write = map_write, .user = map};
    if (exchange_open(&bus, &options) != 0) {
        fprintf(stderr, "exchange: %s\n", exchange_trouble());
        return 1;
    }
    printf("queue pair %u is ready to send\n", options.qp);
    return 0;
}

#endif
