// SPDX-License-Identifier: Apache-2.0
#include "board.h"

#include <memory>

#include "Vboard.h"
#include "verilated.h"

namespace {

struct Board {
    std::unique_ptr<VerilatedContext> context = std::make_unique<VerilatedContext>();
    std::unique_ptr<Vboard> top = std::make_unique<Vboard>(context.get(), "penstock_10g");
};

}  // namespace

// Verilator asks for simulation time only in messages; cycles are counted by the caller.
double sc_time_stamp() { return 0; }

void *penstock_board_new() { return new Board; }

void penstock_board_free(void *board) {
    auto *b = static_cast<Board *>(board);
    b->top->final();
    delete b;
}

void penstock_board_cycle(void *board, PenstockPins *pins) {
    Vboard &top = *static_cast<Board *>(board)->top;
    top.rst = pins->rst;
    top.xgmii_rxd = pins->xgmii_rxd;
    top.xgmii_rxc = pins->xgmii_rxc;
    top.s_axis_data_tdata = pins->data_tdata;
    top.s_axis_data_tkeep = pins->data_tkeep;
    top.s_axis_data_tvalid = pins->data_tvalid;
    top.s_axis_data_tlast = pins->data_tlast;
    for (int i = 0; i < 6; ++i) top.s_axis_desc_tdata[i] = pins->desc_tdata[i];
    top.s_axis_desc_tvalid = pins->desc_tvalid;
    top.m_axis_cpl_tready = pins->cpl_tready;
    top.m_axis_sample_tready = pins->sample_tready;
    top.s_axil_awaddr = pins->awaddr;
    top.s_axil_awvalid = pins->awvalid;
    top.s_axil_wdata = pins->wdata;
    top.s_axil_wstrb = 0xf;
    top.s_axil_wvalid = pins->wvalid;
    top.s_axil_bready = pins->bready;
    top.s_axil_araddr = pins->araddr;
    top.s_axil_arvalid = pins->arvalid;
    top.s_axil_rready = pins->rready;

    top.clk = 0;
    top.eval();  // inputs ripple through the combinational paths

    pins->xgmii_txd = top.xgmii_txd;
    pins->xgmii_txc = top.xgmii_txc;
    pins->data_tready = top.s_axis_data_tready;
    pins->desc_tready = top.s_axis_desc_tready;
    pins->cpl_tvalid = top.m_axis_cpl_tvalid;
    pins->cpl_tdata = top.m_axis_cpl_tdata;
    pins->sample_tvalid = top.m_axis_sample_tvalid;
    for (int i = 0; i < 4; ++i) pins->sample_tdata[i] = top.m_axis_sample_tdata[i];
    pins->awready = top.s_axil_awready;
    pins->wready = top.s_axil_wready;
    pins->bvalid = top.s_axil_bvalid;
    pins->bresp = top.s_axil_bresp;
    pins->arready = top.s_axil_arready;
    pins->rvalid = top.s_axil_rvalid;
    pins->rdata = top.s_axil_rdata;
    pins->rresp = top.s_axil_rresp;
    pins->tx_paused = top.tx_paused;

    top.clk = 1;
    top.eval();
}
