// SPDX-License-Identifier: Apache-2.0
// A peer over librdmacm: connects to our connection manager, or takes its connections.
//   rdma_peer connect ADDRESS PORT TIMES MESSAGES BYTES   each time WRITEs 64-bit words that count on, then disconnects
//   rdma_peer listen PORT TIMES SLOTS BYTES               compares fragments of such words until the peer disconnects
// Promise: exit status 0 only if every connection came up and ended by a DREQ, and every byte was right.
// Source: rdma_cm(7); private data: crates/transport/src/rdma_cm/offer.rs; header of a fragment: docs/fragments.md.
#include <endian.h>
#include <inttypes.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

enum { HEADER = 40, WAIT_MS = 60000 };

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
        .cap = {.max_send_wr = 4, .max_recv_wr = receives + 1, .max_send_sge = 1, .max_recv_sge = 1},
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

// The next fragment, whose words must follow.
static uint64_t check_fragment(const struct link *link, uint32_t slot, uint32_t slot_bytes, uint32_t len, uint64_t count) {
    const char *payload = link->memory + (size_t)slot * slot_bytes + HEADER;
    for (uint32_t at = 0; at + 8 <= len - HEADER; at += 8, count++) {
        uint64_t word;
        memcpy(&word, payload + at, 8);
        if (le64toh(word) != count) {
            fprintf(stderr, "slot %u byte %u: word %" PRIu64 " where %" PRIu64 " is due\n", slot, at, le64toh(word), count);
            exit(1);
        }
    }
    return count;
}

static int listen_times(int port, int times, uint32_t slots, uint32_t slot_bytes) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct rdma_cm_id *listener;
    CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    CHECK(rdma_bind_addr(listener, (struct sockaddr *)&any));
    CHECK(rdma_listen(listener, 4));
    puts("listening");
    fflush(stdout);
    uint64_t words = 0, fragments = 0;
    for (int n = 0; n < times; n++) {
        struct link link;
        open_link(&link, expect(RDMA_CM_EVENT_CONNECT_REQUEST, NULL), (size_t)slots * slot_bytes, slots);
        for (uint32_t slot = 0; slot < slots; slot++) post_receive(&link);
        struct offer offer = {.magic = "PNSK", .version = 1, .base = htobe64((uintptr_t)link.memory),
                              .rkey = htobe32(link.mr->rkey), .slots = htobe32(slots), .slot_bytes = htobe32(slot_bytes)};
        struct rdma_conn_param parameters = {.private_data = &offer, .private_data_len = sizeof offer, .rnr_retry_count = 7};
        CHECK(rdma_accept(link.id, &parameters));
        until_disconnected();
        uint64_t count = 0;
        struct ibv_wc done;
        while (ibv_poll_cq(link.cq, 1, &done) == 1 && done.status == IBV_WC_SUCCESS) {
            count = check_fragment(&link, be32toh(done.imm_data), slot_bytes, done.byte_len, count);
            fragments++;
        }
        words += count;
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
    fprintf(stderr, "usage: rdma_peer connect ADDRESS PORT TIMES MESSAGES BYTES | listen PORT TIMES SLOTS BYTES\n");
    return 2;
}
