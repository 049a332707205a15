// SPDX-License-Identifier: Apache-2.0
// C interface of the verilated `penstock_10g`: its pins of one clock cycle.
// `src/ffi.rs` declares the same struct; both must change together.
#pragma once
#include <cstdint>

extern "C" {

struct PenstockPins {
    // inputs, held during the cycle
    uint64_t xgmii_rxd;
    uint64_t data_tdata;
    uint32_t desc_tdata[6];  // 176 bits, least significant word first
    uint32_t awaddr, wdata, araddr;
    uint8_t xgmii_rxc;
    uint8_t data_tkeep, data_tvalid, data_tlast;
    uint8_t desc_tvalid, cpl_tready, sample_tready;
    uint8_t awvalid, wvalid, bready, arvalid, rready;
    uint8_t rst;
    // outputs, as they stand right before the rising edge that ends the cycle
    uint64_t xgmii_txd;
    uint64_t cpl_tdata;
    uint32_t sample_tdata[4];  // cc_sample_t, least significant word first
    uint32_t rdata;
    uint8_t xgmii_txc;
    uint8_t data_tready, desc_tready, cpl_tvalid, sample_tvalid;
    uint8_t awready, wready, bvalid, arready, rvalid;
    uint8_t bresp, rresp, tx_paused;
};

void *penstock_board_new();
void penstock_board_free(void *board);
// One clock cycle: applies the inputs, samples the outputs, gives the rising edge.
void penstock_board_cycle(void *board, PenstockPins *pins);
}
