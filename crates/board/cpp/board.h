// SPDX-License-Identifier: Apache-2.0
// C interface of the verilated tops: their pins of one clock cycle, wide enough for the widest.
// `src/ffi.rs` declares the same struct; both must change together.
#pragma once
#include <cstdint>

extern "C" {

// The Ethernet side of one port.
struct PenstockLine {
    // inputs
    uint64_t rx_data[8];  // XGMII: the first word. GMII: its low two octets. AXI-Stream of a hard MAC: all
    uint64_t rx_mask;     // XGMII: control bits. GMII: rx_dv of each octet. AXI-Stream: tkeep
    // outputs
    uint64_t tx_data[8];
    uint64_t tx_mask;
    // inputs
    uint8_t rx_valid, rx_last, rx_error, tx_ready;  // AXI-Stream only
    // outputs
    uint8_t tx_valid, tx_last;  // AXI-Stream only
    uint8_t tx_error;           // GMII: tx_er of each octet. AXI-Stream: tuser
};

// AXI4-Lite: the registers.
struct PenstockAxil {
    // inputs
    uint32_t awaddr, wdata, araddr;
    uint8_t awvalid, wvalid, bready, arvalid, rready;
    // outputs
    uint8_t awready, wready, bvalid, arready, rvalid;
    uint8_t bresp, rresp;
    uint32_t rdata;
};

// AXI4: the memory of the rings, of a front end that keeps them there, and of what peers READ and WRITE.
struct PenstockAxi {
    // inputs
    uint64_t rdata;
    uint8_t awready, wready, bid, bresp, bvalid, arready, rid, rresp, rlast, rvalid;
    // outputs
    uint64_t awaddr, wdata, araddr;
    uint8_t awid, awlen, awvalid, wstrb, wlast, wvalid, bready, arid, arlen, arvalid, rready;
};

// SENDs of peers, and notices of their WRITEs.
struct PenstockReceive {
    // inputs
    uint8_t tready;
    // outputs
    uint64_t tdata;
    uint64_t tuser;  // receive_user_t
    uint8_t tkeep, tvalid, tlast;
};

struct PenstockPins {
    PenstockLine line;
    PenstockAxil axil;
    PenstockAxi axi;
    PenstockReceive receive;
    // inputs, held during the cycle
    uint64_t data_tdata[8];
    uint64_t data_tkeep;
    uint64_t event_tdata[32];  // of all inputs, input 0 first; so are the other four
    uint8_t event_tkeep[32];
    uint8_t event_tuser[4][18];  // fragment_t
    uint32_t desc_tdata[6];  // 176 bits, least significant word first
    uint8_t data_tvalid, data_tlast;
    uint8_t event_tvalid, event_tlast;  // a bit for each input
    uint8_t trigger_valid;
    uint16_t trigger_type;
    uint64_t trigger_number;
    uint8_t desc_tvalid, cpl_tready, sample_tready;
    uint8_t rst;
    uint8_t axi_rst;    // of the memory of the rings
    uint8_t event_rst;  // a bit for each input
    // outputs, as they stand right before the rising edge that ends the cycle
    uint64_t cpl_tdata;
    uint32_t sample_tdata[4];  // cc_sample_t, least significant word first
    uint64_t tai_ns;
    uint64_t accepted_number;  // of m_axis_trigger, which is always taken
    uint8_t accepted_valid, trigger_busy, trigger_gate;
    uint8_t event_tready;
    uint8_t data_tready, desc_tready, cpl_tvalid, sample_tvalid;
    uint8_t tx_paused;
};

// A top by its number in `enum Top` of `src/top.rs`; a null pointer for any other. Each but that of flows has four
// detector inputs, on the front end's own clock, triggers and a clock.
void *penstock_board_new(uint32_t top);
void penstock_board_free(void *board);
// One clock cycle: applies the inputs, samples the outputs, gives the rising edge.
void penstock_board_cycle(void *board, PenstockPins *pins);

// Pins of the QCN switch (rtl/top/penstock_switch.sv or penstock_switch_1g.sv with 4 ports, 2 queues each).
struct PenstockSwitchPins {
    PenstockLine line[4];
    PenstockLine management;  // GMII, of the switch at 1 Gb/s
    PenstockAxil axil;
    // inputs, held during the cycle
    uint8_t rst;
    uint8_t link_up;          // of each port, at 1 Gb/s
    uint8_t management_up;
    // outputs, as they stand right before the rising edge that ends the cycle
    uint64_t stat;         // switch_stat_t of each port, port 0 lowest
    uint8_t level[24];     // of each queue, three octets
};

// A top by its number in `enum SwitchLine` of `src/switch/gateware.rs`; a null pointer for any other.
void *penstock_switch_new(uint32_t top);
void penstock_switch_free(void *gateware);
void penstock_switch_cycle(void *gateware, PenstockSwitchPins *pins);
}
