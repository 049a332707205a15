// SPDX-License-Identifier: Apache-2.0
// A peer over librdmacm: connects to our connection manager, or takes its connections.
//   rdma_peer connect ADDRESS PORT TIMES MESSAGES BYTES   each time WRITEs 64-bit words that count on, then disconnects
//   rdma_peer listen PORT TIMES SLOTS BYTES               compares fragments of such words until the peer disconnects
//   rdma_peer read PORT TIMES SLOTS BYTES                 the same for fragments that the peer announces: READs them
// Promise: exit status 0 only if every connection came up and ended by a DREQ, and every byte was right.
// Source: rdma_cm(7); private data: crates/transport/src/rdma_cm/offer.rs; header of a fragment, announcements:
// docs/fragments.md.
#include <endian.h>
#include <inttypes.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

enum { HEADER = 40, WAIT_MS = 60000 };
enum { READS = 16, MESSAGES = 16, MESSAGE_BYTES = 512, ENTRY = 5, SUCCESSORS = 2 * ENTRY, ANNOUNCED = 1024 };
enum { ACK_TIMEOUT = 15 };  // 134 ms until a READ is repeated

struct offer {  // big-endian
    char magic[4];
    uint8_t version, reserved[3];
    uint64_t base;
    uint32_t rkey, slots, slot_bytes;
} __attribute__((packed));

struct link {
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char *memory;
};

static struct rdma_event_channel *channel;

static void die(const char *what) {
    perror(what);
    exit(1);
}

#define CHECK(call) do { if (call) die(#call); } while (0)

// The next event, which must be this one, and its private data as an offer.
static struct rdma_cm_id *expect(enum rdma_cm_event_type wanted, struct offer *offer) {
    struct rdma_cm_event *event;
    CHECK(rdma_get_cm_event(channel, &event));
    if (event->event != wanted) {
        fprintf(stderr, "%s (status %d) where %s is due\n", rdma_event_str(event->event), event->status,
                rdma_event_str(wanted));
        exit(1);
    }
    if (offer != NULL) {
        if (event->param.conn.private_data_len < sizeof *offer) die("private data");
        memcpy(offer, event->param.conn.private_data, sizeof *offer);
        if (memcmp(offer->magic, "PNSK", 4) != 0 || offer->version != 1) die("private data of another kind");
    }
    struct rdma_cm_id *id = event->id;
    CHECK(rdma_ack_cm_event(event));
    return id;
}

// Waits for the peer's DREQ. One whose RTU was lost has no event of its own before.
static void until_disconnected(void) {
    for (enum rdma_cm_event_type type = RDMA_CM_EVENT_ESTABLISHED; type != RDMA_CM_EVENT_DISCONNECTED;) {
        struct rdma_cm_event *event;
        CHECK(rdma_get_cm_event(channel, &event));
        type = event->event;
        CHECK(rdma_ack_cm_event(event));
        if (type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_DISCONNECTED) die(rdma_event_str(type));
    }
}

static void open_link(struct link *link, struct rdma_cm_id *id, size_t bytes, unsigned receives) {
    link->id = id;
    if ((link->pd = ibv_alloc_pd(id->verbs)) == NULL) die("ibv_alloc_pd");
    if ((link->cq = ibv_create_cq(id->verbs, 128, NULL, NULL, 0)) == NULL) die("ibv_create_cq");
    if ((link->memory = calloc(1, bytes)) == NULL) die("calloc");
    link->mr = ibv_reg_mr(link->pd, link->memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (link->mr == NULL) die("ibv_reg_mr");
    struct ibv_qp_init_attr attributes = {
        .send_cq = link->cq, .recv_cq = link->cq, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = READS, .max_recv_wr = receives + 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    CHECK(rdma_create_qp(id, link->pd, &attributes));
}

static void close_link(struct link *link) {
    rdma_destroy_qp(link->id);
    CHECK(ibv_dereg_mr(link->mr));
    CHECK(ibv_destroy_cq(link->cq));
    CHECK(ibv_dealloc_pd(link->pd));
    free(link->memory);
    CHECK(rdma_destroy_id(link->id));
}

static void post_receive(struct link *link) {
    struct ibv_recv_wr receive = {0}, *bad;
    CHECK(ibv_post_recv(link->id->qp, &receive, &bad));
}

static uint64_t words_into(char *to, size_t bytes, uint64_t count) {
    for (size_t at = 0; at < bytes; at += 8, count++) {
        uint64_t word = htole64(count);
        memcpy(to + at, &word, 8);
    }
    return count;
}

static void write_message(struct link *link, const struct offer *offer, uint32_t slot, uint32_t bytes) {
    struct ibv_sge piece = {.addr = (uintptr_t)link->memory, .length = bytes, .lkey = link->mr->lkey};
    struct ibv_send_wr write = {
        .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
        .imm_data = htobe32(slot),
        .wr.rdma = {.remote_addr = be64toh(offer->base) + (uint64_t)slot * be32toh(offer->slot_bytes),
                    .rkey = be32toh(offer->rkey)},
    }, *bad;
    CHECK(ibv_post_send(link->id->qp, &write, &bad));
    struct ibv_wc done;
    while (ibv_poll_cq(link->cq, 1, &done) == 0) {}
    if (done.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "WRITE: %s\n", ibv_wc_status_str(done.status));
        exit(1);
    }
}

static int connect_times(const char *address, int port, int times, int messages, uint32_t bytes) {
    uint64_t count = 0;
    for (int n = 0; n < times; n++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
        if (inet_pton(AF_INET, address, &to.sin_addr) != 1) die("inet_pton");
        struct rdma_cm_id *id;
        CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
        CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, WAIT_MS));
        expect(RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
        CHECK(rdma_resolve_route(id, WAIT_MS));
        expect(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
        struct link link;
        open_link(&link, id, bytes, 0);
        struct rdma_conn_param parameters = {.retry_count = 7, .rnr_retry_count = 7};
        CHECK(rdma_connect(id, &parameters));
        struct offer offer;
        expect(RDMA_CM_EVENT_ESTABLISHED, &offer);
        for (int m = 0; m < messages; m++) {
            count = words_into(link.memory, bytes, count);
            write_message(&link, &offer, (uint32_t)m % be32toh(offer.slots), bytes);
        }
        CHECK(rdma_disconnect(id));
        expect(RDMA_CM_EVENT_DISCONNECTED, NULL);
        close_link(&link);
    }
    printf("%d connections, %" PRIu64 " words\n", times, count);
    return 0;
}

// A fragment, whose words must follow.
static uint64_t check_fragment(const char *fragment, uint32_t len, uint64_t count) {
    for (uint32_t at = HEADER; at + 8 <= len; at += 8, count++) {
        uint64_t word;
        memcpy(&word, fragment + at, 8);
        if (le64toh(word) != count) {
            fprintf(stderr, "byte %u: word %" PRIu64 " where %" PRIu64 " is due\n", at, le64toh(word), count);
            exit(1);
        }
    }
    return count;
}

static void start_listening(int port) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct rdma_cm_id *listener;
    CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    CHECK(rdma_bind_addr(listener, (struct sockaddr *)&any));
    CHECK(rdma_listen(listener, 4));
    puts("listening");
    fflush(stdout);
}

// Accepts with `slots` slots of `slot_bytes`; the peer writes to the memory from its first byte on.
static void accept_link(struct link *link, uint32_t slots, uint32_t slot_bytes, uint8_t reads) {
    struct offer offer = {.magic = "PNSK", .version = 1, .base = htobe64((uintptr_t)link->memory),
                          .rkey = htobe32(link->mr->rkey), .slots = htobe32(slots), .slot_bytes = htobe32(slot_bytes)};
    struct rdma_conn_param parameters = {.private_data = &offer, .private_data_len = sizeof offer, .rnr_retry_count = 7,
                                         .initiator_depth = reads};
    CHECK(rdma_accept(link->id, &parameters));
}

static int listen_times(int port, int times, uint32_t slots, uint32_t slot_bytes) {
    start_listening(port);
    uint64_t words = 0, fragments = 0;
    for (int n = 0; n < times; n++) {
        struct link link;
        open_link(&link, expect(RDMA_CM_EVENT_CONNECT_REQUEST, NULL), (size_t)slots * slot_bytes, slots);
        for (uint32_t slot = 0; slot < slots; slot++) post_receive(&link);
        accept_link(&link, slots, slot_bytes, 0);
        until_disconnected();
        uint64_t count = 0;
        struct ibv_wc done;
        while (ibv_poll_cq(link.cq, 1, &done) == 1 && done.status == IBV_WC_SUCCESS) {
            count = check_fragment(link.memory + (size_t)be32toh(done.imm_data) * slot_bytes, done.byte_len, count);
            fragments++;
        }
        words += count;
        rdma_disconnect(link.id);
        close_link(&link);
    }
    printf("%d connections, %" PRIu64 " fragments, %" PRIu64 " words\n", times, fragments, words);
    return 0;
}

// What a board has announced over one connection, in the order of its events.
struct board {
    struct { uint64_t address; uint32_t bytes; } fragments[ANNOUNCED];
    uint64_t announced, posted, ended;
    uint64_t address;  // of the next fragment
    uint32_t key, stride;
    uint8_t named;  // as successors, modulo 256
};

static uint64_t number_at(const char *at, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | (uint8_t)at[bytes];
    return value;
}

static void add_fragment(struct board *board, const char *entry) {
    uint64_t n = board->announced++ % ANNOUNCED;
    board->fragments[n].address = board->address;
    board->fragments[n].bytes = (uint32_t)number_at(entry + 1, 4);
    board->address += board->stride;
}

// A message names fragments once those that were named before it have come.
static int take_message(struct board *board, const char *message) {
    if ((uint8_t)message[7] != board->named) return 0;
    if (memcmp(message, "PSTA\2", 6) != 0) die("a message of another kind");
    board->address = number_at(message + 16, 8);
    board->key = (uint32_t)number_at(message + 24, 4);
    board->stride = (uint32_t)number_at(message + 28, 4);
    for (int n = 0; n < message[6]; n++) add_fragment(board, message + 32 + n * ENTRY);
    return 1;
}

// READs so many bytes; none: the board learns that earlier READs are not repeated.
static void post_read(struct link *link, const struct board *board, uint64_t n, uint32_t bytes, char *to) {
    struct ibv_sge piece = {.addr = (uintptr_t)to, .length = bytes, .lkey = link->mr->lkey};
    struct ibv_send_wr read = {.wr_id = n, .sg_list = &piece, .num_sge = bytes != 0, .opcode = IBV_WR_RDMA_READ,
                               .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {.rkey = board->key}}, *bad;
    read.wr.rdma.remote_addr = board->fragments[n % ANNOUNCED].address;
    CHECK(ibv_post_send(link->id->qp, &read, &bad));
}

// Whether the peer has disconnected; waits a millisecond for it.
static int is_disconnected(void) {
    struct pollfd due = {.fd = channel->fd, .events = POLLIN};
    if (poll(&due, 1, 1) != 1) return 0;
    struct rdma_cm_event *event;
    CHECK(rdma_get_cm_event(channel, &event));
    enum rdma_cm_event_type type = event->event;
    CHECK(rdma_ack_cm_event(event));
    if (type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_DISCONNECTED) die(rdma_event_str(type));
    return type == RDMA_CM_EVENT_DISCONNECTED;
}

// READs what is announced until the peer disconnects; the words that it was.
static uint64_t read_announced(struct link *link, struct board *board, uint32_t slot_bytes) {
    char *fragments = link->memory + MESSAGES * MESSAGE_BYTES;
    uint64_t count = 0, messages = 0, taken = 0, confirmed = 0;
    int outstanding = 0, empty = 0;  // READs, and those of no bytes that are to be posted
    uint32_t slots[MESSAGES], place = slot_bytes + SUCCESSORS;
    struct ibv_wc done;
    for (;;) {
        while (taken < messages && take_message(board, link->memory + slots[taken % MESSAGES] * MESSAGE_BYTES)) taken++;
        if (board->ended == board->announced && confirmed != board->announced) {
            empty = READS;
            confirmed = board->announced;
        }
        // rdma_rxe of Linux 6.1 may stop for good where more READs are posted than may be outstanding.
        for (; empty > 0 && outstanding < READS; empty--, outstanding++) post_read(link, board, UINT64_MAX, 0, NULL);
        for (; board->posted < board->announced && outstanding < READS; board->posted++, outstanding++) {
            uint64_t n = board->posted;
            post_read(link, board, n, board->fragments[n % ANNOUNCED].bytes + SUCCESSORS, fragments + n % READS * place);
        }
        if (ibv_poll_cq(link->cq, 1, &done) == 0) {
            if (is_disconnected()) return count;
            continue;
        }
        if (done.status != IBV_WC_SUCCESS) die(ibv_wc_status_str(done.status));
        if (done.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
            slots[messages++ % MESSAGES] = be32toh(done.imm_data) % MESSAGES;
            post_receive(link);
            continue;
        }
        outstanding--;
        if (done.wr_id == UINT64_MAX) continue;
        const char *fragment = fragments + done.wr_id % READS * place;
        uint32_t bytes = board->fragments[done.wr_id % ANNOUNCED].bytes;
        count = check_fragment(fragment, bytes, count);
        for (const char *entry = fragment + bytes; entry < fragment + bytes + SUCCESSORS; entry += ENTRY) {
            if (number_at(entry + 1, 4) == 0) break;
            add_fragment(board, entry);
            board->named++;
        }
        board->ended++;
    }
}

static int read_times(int port, int times, uint32_t slots, uint32_t slot_bytes) {
    if (slots > ANNOUNCED) die("slots");
    start_listening(port);
    uint64_t words = 0, fragments = 0;
    for (int n = 0; n < times; n++) {
        struct link link;
        struct board board = {0};
        uint8_t timeout = ACK_TIMEOUT;
        struct rdma_cm_id *id = expect(RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
        CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout));
        open_link(&link, id, MESSAGES * MESSAGE_BYTES + (size_t)READS * (slot_bytes + SUCCESSORS), MESSAGES);
        for (int slot = 0; slot < MESSAGES; slot++) post_receive(&link);
        accept_link(&link, slots, slot_bytes, READS);
        words += read_announced(&link, &board, slot_bytes);
        fragments += board.ended;
        rdma_disconnect(link.id);
        close_link(&link);
    }
    printf("%d connections, %" PRIu64 " fragments, %" PRIu64 " words\n", times, fragments, words);
    return 0;
}

int main(int argc, char **argv) {
    if ((channel = rdma_create_event_channel()) == NULL) die("rdma_create_event_channel");
    if (argc == 7 && strcmp(argv[1], "connect") == 0)
        return connect_times(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), (uint32_t)atoi(argv[6]));
    if (argc == 6 && strcmp(argv[1], "listen") == 0)
        return listen_times(atoi(argv[2]), atoi(argv[3]), (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]));
    if (argc == 6 && strcmp(argv[1], "read") == 0)
        return read_times(atoi(argv[2]), atoi(argv[3]), (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]));
    fprintf(stderr, "usage: rdma_peer connect ADDRESS PORT TIMES MESSAGES BYTES | listen|read PORT TIMES SLOTS BYTES\n");
    return 2;
}
