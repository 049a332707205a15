// SPDX-License-Identifier: Apache-2.0
#include "board.h"

#include <cstring>
#include <type_traits>

#include "Vboard.h"
#include "Vboard_flows.h"
#include "Vboard_reads.h"
#include "Vboard_tcp.h"
#ifdef PENSTOCK_ALL_TOPS
#include "Vboard_100g_tcp_x16.h"
#include "Vboard_100g_x16.h"
#include "Vboard_10g_memory.h"
#include "Vboard_10g_tcp_x16.h"
#include "Vboard_10g_x16.h"
#include "Vboard_1g.h"
#include "Vboard_25g_tcp_x16.h"
#include "Vboard_25g_x16.h"
#include "Vboard_2g5.h"
#endif
#include "axil.h"
#include "verilated.h"

namespace {

// A pin of any width and its words, the least significant first.
template <typename Pin> void put(Pin &pin, const uint64_t *words) {
    if constexpr (std::is_integral_v<Pin>) pin = words[0];
    else std::memcpy(pin.data(), words, sizeof(Pin));
}

// The same from bytes, the lowest first.
template <typename Pin> void put(Pin &pin, const uint8_t *bytes) {
    if constexpr (std::is_integral_v<Pin>) std::memcpy(&pin, bytes, sizeof(Pin));
    else std::memcpy(pin.data(), bytes, sizeof(Pin));
}

template <typename Pin> void get(const Pin &pin, uint64_t *words) {
    if constexpr (std::is_integral_v<Pin>) words[0] = pin;
    else std::memcpy(words, pin.data(), sizeof(Pin));
}

template <typename Top> constexpr bool has_xgmii = requires(Top &top) { top.xgmii_rxd; };

template <typename Top> constexpr bool has_gmii = requires(Top &top) { top.gmii_rxd; };

// An octet of GMII on its way in, and the one on its way out.
template <typename Top> void gmii_octet(Top &top, PenstockLine &line, int lane) {
    top.gmii_rxd = line.rx_data[0] >> 8 * lane;
    top.gmii_rx_dv = line.rx_mask >> lane & 1;
    line.tx_data[0] |= uint64_t{top.gmii_txd} << 8 * lane;
    line.tx_mask |= uint64_t{top.gmii_tx_en} << lane;
    line.tx_error |= top.gmii_tx_er << lane;
}

template <typename Top> void put_port(Top &top, const PenstockLine &line) {
    if constexpr (has_xgmii<Top>) {
        top.xgmii_rxd = line.rx_data[0];
        top.xgmii_rxc = line.rx_mask;
    } else if constexpr (has_gmii<Top>) {
        top.link_up = top.link_full_duplex = 1;
        top.link_speed = 2;  // 1 Gb/s
        top.gmii_tx_enable = 1;
        top.gmii_tx_clk = top.gmii_rx_clk = 0;
    } else {
        put(top.s_axis_rx_tdata, line.rx_data);
        top.s_axis_rx_tkeep = line.rx_mask;
        top.s_axis_rx_tvalid = line.rx_valid;
        top.s_axis_rx_tlast = line.rx_last;
        top.s_axis_rx_tuser = line.rx_error;
        top.m_axis_tx_tready = line.tx_ready;
    }
}

template <typename Top> void get_port(Top &top, PenstockLine &line) {
    if constexpr (has_xgmii<Top>) {
        line.tx_data[0] = top.xgmii_txd;
        line.tx_mask = top.xgmii_txc;
    } else if constexpr (has_gmii<Top>) {
        line.tx_data[0] = line.tx_mask = line.tx_error = 0;
        gmii_octet(top, line, 0);
    } else {
        get(top.m_axis_tx_tdata, line.tx_data);
        line.tx_mask = top.m_axis_tx_tkeep;
        line.tx_valid = top.m_axis_tx_tvalid;
        line.tx_last = top.m_axis_tx_tlast;
        line.tx_error = top.m_axis_tx_tuser;
    }
}

template <typename Top> void put_memory(Top &top, const PenstockAxi &axi) {
    top.m_axi_awready = axi.awready;
    top.m_axi_wready = axi.wready;
    top.m_axi_bid = axi.bid;
    top.m_axi_bresp = axi.bresp;
    top.m_axi_bvalid = axi.bvalid;
    top.m_axi_arready = axi.arready;
    top.m_axi_rid = axi.rid;
    top.m_axi_rdata = axi.rdata;
    top.m_axi_rresp = axi.rresp;
    top.m_axi_rlast = axi.rlast;
    top.m_axi_rvalid = axi.rvalid;
}

template <typename Top> void get_memory(const Top &top, PenstockAxi &axi) {
    axi.awid = top.m_axi_awid;
    axi.awaddr = top.m_axi_awaddr;
    axi.awlen = top.m_axi_awlen;
    axi.awvalid = top.m_axi_awvalid;
    axi.wdata = top.m_axi_wdata;
    axi.wstrb = top.m_axi_wstrb;
    axi.wlast = top.m_axi_wlast;
    axi.wvalid = top.m_axi_wvalid;
    axi.bready = top.m_axi_bready;
    axi.arid = top.m_axi_arid;
    axi.araddr = top.m_axi_araddr;
    axi.arlen = top.m_axi_arlen;
    axi.arvalid = top.m_axi_arvalid;
    axi.rready = top.m_axi_rready;
}

template <typename Top> void get_receive(const Top &top, PenstockReceive &receive) {
    receive.tdata = top.m_axis_receive_tdata;
    receive.tkeep = top.m_axis_receive_tkeep;
    receive.tuser = top.m_axis_receive_tuser;
    receive.tvalid = top.m_axis_receive_tvalid;
    receive.tlast = top.m_axis_receive_tlast;
}

struct Board {
    virtual ~Board() = default;
    virtual void cycle(PenstockPins &pins) = 0;
};

// `n_in`: its detector inputs. `in_memory`: its rings are, or windows of peers, and its AXI4 port is in use.
template <typename Top, int n_in = 4, bool in_memory = false> class Front final : public Board {
    static constexpr uint8_t all_inputs = (1 << n_in) - 1;
    VerilatedContext context;
    Top top{&context, "board"};

public:
    ~Front() override { top.final(); }

    void cycle(PenstockPins &pins) override {
        top.rst = pins.rst;
        top.m_axi_rst = pins.axi_rst;
        put_port(top, pins.line);
        put(top.s_axis_data_tdata, pins.data_tdata);
        top.s_axis_data_tkeep = pins.data_tkeep;
        top.s_axis_data_tvalid = pins.data_tvalid;
        top.s_axis_data_tlast = pins.data_tlast;
        top.s_event_rst = pins.event_rst & all_inputs;
        top.s_axis_event_tvalid = pins.event_tvalid;
        if (pins.event_tvalid) {
            put(top.s_axis_event_tdata, pins.event_tdata);
            put(top.s_axis_event_tkeep, pins.event_tkeep);
            put(top.s_axis_event_tuser, pins.event_tuser[0]);
            top.s_axis_event_tlast = pins.event_tlast;
        }
        top.trigger_valid = pins.trigger_valid;
        if (pins.trigger_valid) {
            top.trigger_number = pins.trigger_number;
            top.trigger_type = pins.trigger_type;
        }
        top.m_axis_trigger_tready = 1;
        for (int i = 0; i < 6; ++i) top.s_axis_desc_tdata[i] = pins.desc_tdata[i];
        top.s_axis_desc_tvalid = pins.desc_tvalid;
        top.m_axis_cpl_tready = pins.cpl_tready;
        top.m_axis_sample_tready = pins.sample_tready;
        top.m_axis_receive_tready = pins.receive.tready;
        penstock::put_axil(top, pins.axil);
        if constexpr (in_memory) put_memory(top, pins.axi);

        top.clk = 0;
        top.s_event_clk = 0;
        top.eval();  // inputs ripple through the combinational paths

        get_port(top, pins.line);
        pins.trigger_busy = top.trigger_busy;
        pins.trigger_gate = top.trigger_gate;
        pins.accepted_valid = top.m_axis_trigger_tvalid;
        std::memcpy(&pins.accepted_number, top.m_axis_trigger_tdata.data(), sizeof pins.accepted_number);
        pins.tai_ns = top.tai_ns;
        pins.event_tready = top.s_axis_event_tready;
        pins.data_tready = top.s_axis_data_tready;
        pins.desc_tready = top.s_axis_desc_tready;
        pins.cpl_tvalid = top.m_axis_cpl_tvalid;
        pins.cpl_tdata = top.m_axis_cpl_tdata;
        pins.sample_tvalid = top.m_axis_sample_tvalid;
        for (int i = 0; i < 4; ++i) pins.sample_tdata[i] = top.m_axis_sample_tdata[i];
        penstock::get_axil(top, pins.axil);
        if constexpr (in_memory) {
            get_memory(top, pins.axi);
            get_receive(top, pins.receive);
        }
        pins.tx_paused = top.tx_paused;

        top.clk = 1;
        top.s_event_clk = all_inputs;
        if constexpr (has_gmii<Top>) {  // its clocks are twice as fast
            top.gmii_tx_clk = top.gmii_rx_clk = 1;
            top.eval();
            top.gmii_tx_clk = top.gmii_rx_clk = 0;
            top.eval();
            gmii_octet(top, pins.line, 1);
            top.gmii_tx_clk = top.gmii_rx_clk = 1;
        }
        top.eval();
    }
};

}  // namespace

// Verilator asks for simulation time only in messages; cycles are counted by the caller.
double sc_time_stamp() { return 0; }

void *penstock_board_new(uint32_t top) {
    Board *board = nullptr;
    switch (top) {
        case 0: board = new Front<Vboard>; break;
        case 1: board = new Front<Vboard_tcp>; break;
        case 2: board = new Front<Vboard_flows, 0>; break;
        case 12: board = new Front<Vboard_reads, 4, true>; break;
#ifdef PENSTOCK_ALL_TOPS
        case 3: board = new Front<Vboard_1g>; break;
        case 4: board = new Front<Vboard_10g_x16>; break;
        case 5: board = new Front<Vboard_25g_x16>; break;
        case 6: board = new Front<Vboard_100g_x16>; break;
        case 7: board = new Front<Vboard_10g_tcp_x16>; break;
        case 8: board = new Front<Vboard_25g_tcp_x16>; break;
        case 9: board = new Front<Vboard_100g_tcp_x16>; break;
        case 10: board = new Front<Vboard_10g_memory, 4, true>; break;
        case 11: board = new Front<Vboard_2g5>; break;
#endif
    }
    return board;
}

void penstock_board_free(void *board) { delete static_cast<Board *>(board); }

void penstock_board_cycle(void *board, PenstockPins *pins) { static_cast<Board *>(board)->cycle(*pins); }
