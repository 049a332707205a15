// SPDX-License-Identifier: Apache-2.0
// A client over librdmacm of a board's window: connects by the standard connection manager, fills the window by WRITEs,
// SENDs messages of 64-bit words that count on over all connections, READs the window again and again, and disconnects.
//   rdma_window ADDRESS PORT TIMES READS SENDS      READS and SENDS are pieces of 16 KiB in each connection
// Promise: exit status 0 only if each connection came up and ended, and every byte that was read is one that was written.
// Source: rdma_cm(7); the window in the private data: docs/rdma-cm.md.
#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 16384, DEPTH = 16, WAIT_MS = 60000, ACK_TIMEOUT = 15 };  // 134 ms until a packet is sent again

struct window {  // private data of REP, big-endian
    char magic[4];
    uint8_t version, reserved[3];
    uint64_t base;
    uint32_t rkey, windows, bytes;
} __attribute__((packed));

struct link {
    struct rdma_cm_id *id;
    struct ibv_comp_channel *events;
    struct ibv_cq *cq;
    struct ibv_mr *mr;  // pieces in flight, and behind them what the window holds
    struct window window;
};

static char *memory, *held;
static uint64_t words;

#define CHECK(call) do { if (call) { perror(#call); exit(1); } } while (0)

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted, struct window *window) {
    struct rdma_cm_event *event;
    CHECK(rdma_get_cm_event(channel, &event));
    if (event->event != wanted) {
        fprintf(stderr, "%s (status %d) where %s is due\n", rdma_event_str(event->event), event->status,
                rdma_event_str(wanted));
        exit(1);
    }
    if (window != NULL && event->param.conn.private_data_len >= sizeof *window)
        memcpy(window, event->param.conn.private_data, sizeof *window);
    CHECK(rdma_ack_cm_event(event));
}

static void post(struct link *link, enum ibv_wr_opcode opcode, uint64_t n) {
    uint64_t offset = n * PIECE % be32toh(link->window.bytes);
    char *local = opcode == IBV_WR_RDMA_WRITE ? held + offset : memory + n % DEPTH * PIECE;
    for (size_t at = 0; opcode == IBV_WR_SEND && at < PIECE; at += 8, words++) *(uint64_t *)(local + at) = htole64(words);
    struct ibv_sge piece = {.addr = (uintptr_t)local, .length = PIECE, .lkey = link->mr->lkey};
    struct ibv_send_wr request = {.wr_id = n, .sg_list = &piece, .num_sge = 1, .opcode = opcode,
                                  .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {be64toh(link->window.base) + offset,
                                                                               be32toh(link->window.rkey)}}, *bad;
    CHECK(ibv_post_send(link->id->qp, &request, &bad));
}

static void wait_for(struct link *link, struct ibv_wc *done) {
    while (ibv_poll_cq(link->cq, 1, done) == 0) {
        struct ibv_cq *cq;
        void *context;
        CHECK(ibv_req_notify_cq(link->cq, 0));
        if (ibv_poll_cq(link->cq, 1, done) == 1) return;
        struct pollfd due[] = {{.fd = link->events->fd, .events = POLLIN}, {.fd = link->id->channel->fd, .events = POLLIN}};
        CHECK(poll(due, 2, -1) < 0);
        if (due[1].revents != 0) {
            fprintf(stderr, "the board has ended the connection\n");
            exit(1);
        }
        CHECK(ibv_get_cq_event(link->events, &cq, &context));
        ibv_ack_cq_events(cq, 1);
    }
}

static void transfer(struct link *link, enum ibv_wr_opcode opcode, uint64_t pieces) {
    for (uint64_t posted = 0, ended = 0; ended < pieces; ended++) {
        for (; posted < pieces && posted < ended + DEPTH; posted++) post(link, opcode, posted);
        struct ibv_wc done;
        wait_for(link, &done);
        if (done.status != IBV_WC_SUCCESS || done.wr_id != ended) {
            fprintf(stderr, "operation %d, piece %" PRIu64 ": %s\n", opcode, done.wr_id, ibv_wc_status_str(done.status));
            exit(1);
        }
        if (opcode == IBV_WR_RDMA_READ &&
            memcmp(memory + ended % DEPTH * PIECE, held + ended * PIECE % be32toh(link->window.bytes), PIECE) != 0) {
            fprintf(stderr, "piece %" PRIu64 " is not what was written\n", ended);
            exit(1);
        }
    }
}

static void connect_once(struct rdma_event_channel *channel, struct sockaddr_in *to, uint64_t reads, uint64_t sends) {
    struct link link = {0};
    uint8_t timeout = ACK_TIMEOUT;
    CHECK(rdma_create_id(channel, &link.id, NULL, RDMA_PS_TCP));
    CHECK(rdma_set_option(link.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout));
    CHECK(rdma_resolve_addr(link.id, NULL, (struct sockaddr *)to, WAIT_MS));
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
    CHECK(rdma_resolve_route(link.id, WAIT_MS));
    expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
    CHECK((link.events = ibv_create_comp_channel(link.id->verbs)) == NULL);
    CHECK((link.cq = ibv_create_cq(link.id->verbs, 2 * DEPTH, NULL, link.events, 0)) == NULL);
    struct ibv_qp_init_attr attributes = {.send_cq = link.cq, .recv_cq = link.cq, .qp_type = IBV_QPT_RC,
                                          .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    CHECK(rdma_create_qp(link.id, NULL, &attributes));
    struct rdma_conn_param parameters = {.initiator_depth = DEPTH, .retry_count = 7, .rnr_retry_count = 7};
    CHECK(rdma_connect(link.id, &parameters));
    expect(channel, RDMA_CM_EVENT_ESTABLISHED, &link.window);
    uint32_t bytes = be32toh(link.window.bytes);
    CHECK(memcmp(link.window.magic, "PNSK", 4) != 0 || bytes < PIECE || bytes % PIECE != 0);
    CHECK((memory = malloc(DEPTH * PIECE + bytes)) == NULL);
    held = memory + DEPTH * PIECE;
    for (uint32_t at = 0; at < bytes; at += 4) *(uint32_t *)(held + at) = (uint32_t)random();
    CHECK((link.mr = ibv_reg_mr(link.id->pd, memory, DEPTH * PIECE + bytes, IBV_ACCESS_LOCAL_WRITE)) == NULL);
    transfer(&link, IBV_WR_RDMA_WRITE, bytes / PIECE);
    transfer(&link, IBV_WR_SEND, sends);
    transfer(&link, IBV_WR_RDMA_READ, reads);
    CHECK(rdma_disconnect(link.id));
    expect(channel, RDMA_CM_EVENT_DISCONNECTED, NULL);
    CHECK(ibv_dereg_mr(link.mr));
    rdma_destroy_qp(link.id);
    CHECK(ibv_destroy_cq(link.cq) || ibv_destroy_comp_channel(link.events) || rdma_destroy_id(link.id));
    free(memory);
}

int main(int argc, char **argv) {
    struct sockaddr_in to = {.sin_family = AF_INET};
    if (argc != 6 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) {
        fprintf(stderr, "usage: rdma_window ADDRESS PORT TIMES READS SENDS\n");
        return 2;
    }
    to.sin_port = htons(atoi(argv[2]));
    struct rdma_event_channel *channel = rdma_create_event_channel();
    CHECK(channel == NULL);
    for (int n = 0; n < atoi(argv[3]); n++) connect_once(channel, &to, strtoull(argv[4], NULL, 0), strtoull(argv[5], NULL, 0));
    printf("%s connections, each with %s pieces read and %s sent\n", argv[3], argv[4], argv[5]);
    return 0;
}
