// SPDX-License-Identifier: Apache-2.0
// The registers' pins of any top.
#pragma once
#include "board.h"

namespace penstock {

template <typename Top> void put_axil(Top &top, const PenstockAxil &axil) {
    top.s_axil_awaddr = axil.awaddr;
    top.s_axil_awvalid = axil.awvalid;
    top.s_axil_wdata = axil.wdata;
    top.s_axil_wstrb = 0xf;
    top.s_axil_wvalid = axil.wvalid;
    top.s_axil_bready = axil.bready;
    top.s_axil_araddr = axil.araddr;
    top.s_axil_arvalid = axil.arvalid;
    top.s_axil_rready = axil.rready;
}

template <typename Top> void get_axil(const Top &top, PenstockAxil &axil) {
    axil.awready = top.s_axil_awready;
    axil.wready = top.s_axil_wready;
    axil.bvalid = top.s_axil_bvalid;
    axil.bresp = top.s_axil_bresp;
    axil.arready = top.s_axil_arready;
    axil.rvalid = top.s_axil_rvalid;
    axil.rdata = top.s_axil_rdata;
    axil.rresp = top.s_axil_rresp;
}

}  // namespace penstock
